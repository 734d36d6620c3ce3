//! The thread that answers requests. All is bounded: connections, a request's size and time, and how long a client may not
//! read.

use super::access::Access;
use super::answer::{Answer, answer};
use super::board::Board;
use super::texts::Writer;
use crate::threads::{self, Failure};
use http_body_util::channel::{Channel, Sender};
use http_body_util::{Either, Full};
use hyper::body::{Bytes, Incoming};
use hyper::header::{self, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use std::cell::Cell;
use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};
use tokio::task::{LocalSet, spawn_local};
use tokio::time::{MissedTickBehavior, interval, sleep};
use tokio_io_timeout::TimeoutStream;

/// The page, built from `view/`.
const PAGE: &str = include_str!("../../embedded/page/live.html");
/// Largest number of connections at once; further ones are closed when they arrive.
const CONNECTIONS: usize = 32;
/// Largest number of pages at once: the remaining connections are for clients that read metrics.
const PAGES: usize = 16;
/// How long a request may take to arrive, and how long a client may stop reading.
const PATIENCE: Duration = Duration::from_secs(5);
/// Longest connection, except for pages.
const MOST: Duration = Duration::from_secs(20);
/// Largest size of a request, and of an answer in memory, bytes.
const BUFFER: usize = 16 << 10;
/// Largest number of bytes that the kernel buffers for a client.
const UNREAD: usize = 64 << 10;
/// Pause after the machine had no resources for one more connection.
const PAUSE: Duration = Duration::from_millis(200);

/// A bound socket, before connections are accepted.
pub struct Socket {
    socket: std::net::TcpListener,
    /// The bound address.
    pub address: SocketAddr,
}

impl Socket {
    /// Binds an address; port 0 stands for any free port.
    ///
    /// # Errors
    /// The address is in use, not one of this machine, or not allowed.
    pub fn bind(address: SocketAddr) -> io::Result<Socket> {
        let socket = std::net::TcpListener::bind(address)?;
        socket.set_nonblocking(true)?;
        let address = socket.local_addr()?;
        Ok(Socket { socket, address })
    }
}

/// Answers requests until dropped.
pub struct Listener {
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Listener {
    /// Starts the thread.
    ///
    /// # Errors
    /// The thread or its runtime cannot be started.
    pub fn start<M: From<Failure> + Send + 'static>(
        socket: Socket,
        access: Access,
        board: Board,
        news: UnboundedSender<M>,
    ) -> io::Result<Listener> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let listener = {
            let _in = runtime.enter();
            TcpListener::from_std(socket.socket)?
        };
        let (stop, stopped) = oneshot::channel();
        let thread = threads::spawn("listen", news, (), move || {
            threads::behind_others();
            let tasks = LocalSet::new();
            tasks.block_on(&runtime, async move {
                tokio::select! {
                    () = accept(listener, Rc::new(Shared { access, writer: Writer::new(board), pages: Arc::new(Semaphore::new(PAGES)) })) => {}
                    _ = stopped => {}
                }
            });
        })?;
        Ok(Listener { stop: Some(stop), thread: Some(thread) })
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            // If the thread panicked, it has reported that itself.
            let _ = thread.join();
        }
    }
}

/// Data that all connections share.
struct Shared {
    access: Access,
    writer: Writer,
    pages: Arc<Semaphore>,
}

async fn accept(listener: TcpListener, shared: Rc<Shared>) {
    let room = Arc::new(Semaphore::new(CONNECTIONS));
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                if let Ok(permit) = Arc::clone(&room).try_acquire_owned() {
                    spawn_local(serve(stream, Rc::clone(&shared), permit));
                }
            }
            Err(error) => {
                log::debug!("a connection could not be accepted: {error}");
                sleep(PAUSE).await;
            }
        }
    }
}

/// Serves one connection with one request.
async fn serve(stream: TcpStream, shared: Rc<Shared>, _permit: OwnedSemaphorePermit) {
    // With a large buffer, megabytes would wait for a client before the write timeout notices that the client does not
    // read.
    if rustix::net::sockopt::set_socket_send_buffer_size(&stream, UNREAD).is_err() {
        return;
    }
    let mut stream = TimeoutStream::new(stream);
    stream.set_write_timeout(Some(PATIENCE));
    let is_page = Cell::new(false);
    let respond = service_fn(|request: Request<Incoming>| {
        let answer = answer(&request.into_parts().0, &shared.access);
        let response = response(answer, &shared);
        is_page.set(response.status() == StatusCode::OK && answer == Answer::Events);
        async { Ok::<_, Infallible>(response) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(PATIENCE)
        .max_buf_size(BUFFER)
        .keep_alive(false)
        .serve_connection(TokioIo::new(Box::pin(stream)), respond);
    let mut connection = pin!(connection);
    tokio::select! {
        // An error of one connection concerns its client only.
        _ = &mut connection => return,
        () = sleep(MOST) => {}
    }
    if is_page.get() {
        let _ = connection.await;
    }
}

type Body = Either<Full<Bytes>, Channel<Bytes>>;

fn response(answer: Answer, shared: &Rc<Shared>) -> Response<Body> {
    let whole = |text: Bytes| Either::Left(Full::new(text));
    let (status, kind, body) = match answer {
        Answer::Metrics => (
            StatusCode::OK,
            "application/openmetrics-text; version=1.0.0; charset=utf-8",
            whole(shared.writer.texts().metrics.clone()),
        ),
        Answer::Page => {
            (StatusCode::OK, "text/html; charset=utf-8", whole(Bytes::from_static(PAGE.as_bytes())))
        }
        Answer::Events => match Arc::clone(&shared.pages).try_acquire_owned() {
            Ok(permit) => {
                let (sender, body) = Channel::new(1);
                spawn_local(tell(Rc::clone(shared), sender, permit));
                (StatusCode::OK, "text/event-stream", Either::Right(body))
            }
            Err(_) => {
                let why = "too many pages are open: close one\n";
                (StatusCode::SERVICE_UNAVAILABLE, "text/plain", whole(why.into()))
            }
        },
        Answer::No(status, why) => (status, "text/plain", whole(format!("{why}\n").into())),
    };
    let mut response = Response::new(body);
    *response.status_mut() = status;
    for (name, value) in [
        (header::CONTENT_TYPE, kind),
        (header::CACHE_CONTROL, "no-store"),
        (header::CONTENT_SECURITY_POLICY, "frame-ancestors 'none'"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    ] {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}

/// Sends new data to a page each second, until the page is closed.
async fn tell(shared: Rc<Shared>, mut to: Sender<Bytes>, _permit: OwnedSemaphorePermit) {
    let mut told = 0;
    let mut seconds = interval(Duration::from_secs(1));
    seconds.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        seconds.tick().await;
        let texts = shared.writer.texts();
        let is_new = std::mem::replace(&mut told, texts.number) != texts.number;
        // Waits until the client has read; data that arrives in the meantime is skipped.
        if is_new && to.send_data(texts.report.clone()).await.is_err() {
            return;
        }
        if to.send_data(texts.counts.clone()).await.is_err() {
            return;
        }
    }
}
