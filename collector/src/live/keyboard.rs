//! The thread that waits for keys.

use super::message::Message;
use crossterm::event::{self, Event};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::sync::mpsc::UnboundedSender;

/// How long leaving may have to wait for this thread.
const PATIENCE: Duration = Duration::from_millis(50);

/// Reads keys until dropped.
#[derive(Debug)]
pub struct Keyboard {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Keyboard {
    /// Starts the thread. If the terminal goes away, the loop is told to end.
    pub fn start(news: UnboundedSender<Message>) -> io::Result<Keyboard> {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = super::parts::spawn("keys", news.clone(), (), move || {
            while !stopped.load(Ordering::Relaxed) {
                let message = match event::poll(PATIENCE) {
                    Ok(false) => continue,
                    Ok(true) => match event::read() {
                        Ok(Event::Key(key)) => Message::Key(key),
                        Ok(Event::Resize(..)) => Message::Resized,
                        Ok(_) => continue,
                        Err(_) => Message::TerminalGone,
                    },
                    Err(_) => Message::TerminalGone,
                };
                let last = matches!(message, Message::TerminalGone);
                if news.send(message).is_err() || last {
                    break;
                }
            }
        })?;
        Ok(Keyboard { stop, thread: Some(thread) })
    }
}

impl Drop for Keyboard {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // A panic in there has been reported by the thread itself.
            let _ = thread.join();
        }
    }
}
