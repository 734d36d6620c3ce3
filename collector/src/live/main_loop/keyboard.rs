//! The thread that reads keys.
//!
//! It polls the terminal itself before crossterm reads, because crossterm does not distinguish a terminal that has hung
//! up from a silent one. A terminal may also hang up between poll and read: hence crossterm's feature `use-dev-tty`,
//! whose absence would make crossterm retry the failed read forever, at full speed.

use super::message::Message;
use crossterm::event::{self, Event};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::sync::mpsc::UnboundedSender;

/// Longest wait for a key: leaving the screen may have to wait as long for this thread.
const PATIENCE: Duration = Duration::from_millis(50);

/// Timeout for crossterm's poll: with zero it would not check for input at all.
const A_LOOK: Duration = Duration::from_millis(1);

/// Reads keys until dropped.
#[derive(Debug)]
pub struct Keyboard {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Keyboard {
    /// Starts the thread. If the terminal goes away, the loop gets a message to end.
    pub fn start(messages: UnboundedSender<Message>) -> io::Result<Keyboard> {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = crate::threads::spawn("keys", messages.clone(), (), move || {
            // Keys that come together (a pasted pattern) are read together: the thread waits for the first one only.
            let mut patience = PATIENCE;
            let mut size = window_size();
            while !stopped.load(Ordering::Relaxed) {
                let next = next(patience);
                // The size is polled: checking for SIGWINCH takes a hundred times as long.
                let is_resized = std::mem::replace(&mut size, window_size()) != size;
                patience = if matches!(next, Ok(Some(_))) { Duration::ZERO } else { PATIENCE };
                let message = match next {
                    Ok(Some(Event::Key(key))) => Message::Key(key),
                    Ok(Some(Event::Resize(..))) => Message::Resized,
                    Ok(_) if is_resized => Message::Resized,
                    Ok(_) => continue,
                    Err(_) => Message::TerminalGone,
                };
                let last = matches!(message, Message::TerminalGone);
                if messages.send(message).is_err() || last {
                    break;
                }
            }
        })?;
        Ok(Keyboard { stop, thread: Some(thread) })
    }
}

/// The next event, `None` if there was none for a while, or an error if the terminal was closed.
fn next(patience: Duration) -> io::Result<Option<Event>> {
    let is_there = wait_for_input(&io::stdin(), patience)?;
    // Even with a timeout of zero, crossterm may still have bytes in its buffer.
    let may_be_there = is_there || patience.is_zero();
    if may_be_there && event::poll(A_LOOK)? { event::read().map(Some) } else { Ok(None) }
}

/// Columns and rows, if known.
fn window_size() -> Option<(u16, u16)> {
    rustix::termios::tcgetwinsize(io::stdin()).ok().map(|size| (size.ws_col, size.ws_row))
}

/// Waits until there is input (`true`) or time is up (`false`). An error means that no input can come any more.
fn wait_for_input(terminal: &impl AsFd, patience: Duration) -> io::Result<bool> {
    let mut wanted = [PollFd::new(terminal, PollFlags::IN)];
    let patience = Timespec::try_from(patience).map_err(io::Error::other)?;
    match poll(&mut wanted, Some(&patience)) {
        Ok(_) => {}
        Err(rustix::io::Errno::INTR) => return Ok(false),
        Err(error) => return Err(error.into()),
    }
    if wanted[0].revents().intersects(PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL) {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(wanted[0].revents().contains(PollFlags::IN))
}

impl Drop for Keyboard {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // If the thread panicked, it has reported that itself.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    /// The thread of a closed terminal must not read in an endless loop at full speed.
    #[test]
    fn a_terminal_that_hung_up_is_an_error_and_a_silent_one_is_not() {
        let (mine, mut other) = std::os::unix::net::UnixStream::pair().expect("a pair");
        assert!(wait_for_input(&mine, Duration::from_millis(1)).is_ok(), "silent");
        other.write_all(b"q").expect("write");
        assert!(wait_for_input(&mine, Duration::from_millis(1)).is_ok(), "a key");
        drop(other);
        assert!(wait_for_input(&mine, Duration::from_millis(1)).is_err(), "gone");
    }
}
