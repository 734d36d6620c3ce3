//! The thread that finds the functions of processes that came later: reading symbols takes its time.

use super::message::{Chosen, Message, ProcessChange};
use std::io;
use std::sync::mpsc::{Sender, channel};
use tokio::sync::mpsc::UnboundedSender;

/// Knows which functions of a process to probe.
pub trait Choose: Send {
    /// The functions of a process as it is now. `None`: it has ended as it should, or its probes are in place already.
    fn choose(&mut self, change: ProcessChange) -> Option<Chosen>;
}

/// The other end of the thread; dropping it ends the thread after what it is doing.
#[derive(Debug)]
pub struct Chooser {
    wanted: Sender<ProcessChange>,
}

impl Chooser {
    /// Starts the thread; answers go to `news`.
    pub fn start(mut choose: Box<dyn Choose>, news: UnboundedSender<Message>) -> io::Result<Chooser> {
        let (wanted, inbox) = channel();
        super::parts::spawn("symbols", news.clone(), (), move || {
            while let Ok(change) = inbox.recv() {
                if let Some(chosen) = choose.choose(change)
                    && news.send(Message::Chosen(chosen)).is_err()
                {
                    break;
                }
            }
        })?;
        Ok(Chooser { wanted })
    }

    /// Asks for the functions of a process; the answer comes as a message.
    pub fn ask(&self, change: ProcessChange) {
        // If the thread is gone it has said why.
        let _ = self.wanted.send(change);
    }
}
