//! `top --listen` over real connections: clients made by others, and malicious ones.

mod attacks;
mod readers;

use crate::exports::recording;
use collector::listen::{Access, Board, Listener, Socket, Token};
use collector::live::{Asked, Message};
use collector::tui::{CpuWish, Snapshot};
use engine::predict::Model;
use engine::program::Program;
use engine::report::{Cpus, Detail};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

const TOKEN: &str = "a-token-of-the-tests";

/// A server that runs during a test.
struct Served {
    address: SocketAddr,
    board: Board,
    /// Failures of the server's thread.
    news: UnboundedReceiver<Message>,
    _listener: Listener,
}

fn serve() -> Served {
    let socket = Socket::bind("127.0.0.1:0".parse().expect("an address")).expect("a port");
    let address = socket.address;
    let access = Access::new(address, Token::chosen(TOKEN).expect("a token"));
    let board = Board::new("store (pid 4242)".to_owned());
    let (sender, news) = unbounded_channel();
    let listener = Listener::start(socket, access, board.clone(), sender).expect("a thread");
    Served { address, board, news, _listener: listener }
}

/// The report that `top` makes of a kept recording.
fn snapshot(name: &str) -> Arc<Snapshot> {
    let (recording, _) = recording::read(&recording(name)).expect("a recording");
    let cpus = Cpus::parse_list("1,2,8,inf").expect("a list");
    let asked = Asked { cpus, recorded_cpus: Some(2), wish: CpuWish::default(), per: None };
    Arc::new(collector::live::snapshot(&recording, &asked, false))
}

/// The same for a program written by hand.
fn snapshot_of(program: &Program) -> Arc<Snapshot> {
    let (cpus, model) = ([Cpus::ONE, Cpus::Infinite], Model::default());
    let report = engine::report::report(program, &cpus, Detail::Functions);
    Arc::new(Snapshot {
        report,
        limits: engine::limit::limits(program, &cpus, &model),
        ..Snapshot::default()
    })
}

impl Served {
    fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address).expect("a connection")
    }

    /// Sends these bytes, and returns the answer up to the end of the connection.
    fn send(&self, bytes: &[u8]) -> String {
        let mut stream = self.connect();
        // An error means that the server closed the connection before it had read everything.
        let _ = stream.write_all(bytes);
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        String::from_utf8_lossy(&answer).into_owned()
    }

    fn get(&self, path: &str) -> String {
        self.send(format!("GET {path} HTTP/1.1\r\nHost: {}\r\n\r\n", self.address).as_bytes())
    }

    /// Checks that the server answers, and that its thread has not failed.
    #[track_caller]
    fn is_well(&mut self) {
        let answer = self.get("/metrics");
        assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with("# EOF\n"), "{answer}");
        assert!(self.news.try_recv().is_err(), "a part has failed");
    }
}
