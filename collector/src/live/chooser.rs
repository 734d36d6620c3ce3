//! The thread that finds the functions of processes that came later: reading symbols takes its time.

use super::message::{Chosen, Granted, LibcChosen, Message, ProcessChange, Wish};
use super::promising::Sighting;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use tokio::sync::mpsc::UnboundedSender;

/// Knows which functions of a process to probe.
pub trait Choose: Send {
    /// The functions of a process as it is now. `None`: it has ended as it should, or its probes are in place already.
    fn choose(&mut self, change: ProcessChange) -> Option<Chosen>;

    /// The C library of a process as it is now, if its operations are to be recorded there. `Err`: why they cannot be.
    fn choose_libc(&mut self, change: ProcessChange) -> Option<Result<LibcChosen, String>> {
        let _ = change;
        None
    }

    /// The functions that somebody means, in these processes.
    fn grant(&mut self, wish: &Wish, pids: &[u32]) -> Granted {
        let _ = pids;
        Granted { sentence: format!("{} cannot be found here", wish.pattern), ..Granted::default() }
    }

    /// Functions that samples have shown and that are worth probes, if there are some.
    fn sighted(&mut self, sighting: &Sighting, pids: &[u32]) -> Option<Granted> {
        let _ = (sighting, pids);
        None
    }
}

enum Order {
    Changed(ProcessChange),
    Wished(Wish, Vec<u32>),
    Sighted(Sighting, Vec<u32>),
}

/// The other end of the thread; dropping it ends the thread after what it is doing.
pub struct Chooser {
    wanted: Sender<Order>,
    /// The last sighting is not done with.
    looking: Arc<AtomicBool>,
}

impl Chooser {
    /// Starts the thread; answers go to `news`.
    pub fn start(mut choose: Box<dyn Choose>, news: UnboundedSender<Message>) -> io::Result<Chooser> {
        let (wanted, inbox) = channel();
        let looking = Arc::new(AtomicBool::new(false));
        let is_looking = Arc::clone(&looking);
        super::parts::spawn("symbols", news.clone(), (), move || {
            while let Ok(order) = inbox.recv() {
                let change = match order {
                    Order::Changed(change) => change,
                    Order::Wished(wish, pids) => {
                        if news.send(Message::Granted(choose.grant(&wish, &pids))).is_err() {
                            break;
                        }
                        continue;
                    }
                    Order::Sighted(sighting, pids) => {
                        let granted = choose.sighted(&sighting, &pids);
                        is_looking.store(false, Ordering::Release);
                        if granted.is_some_and(|granted| news.send(Message::Granted(granted)).is_err()) {
                            break;
                        }
                        continue;
                    }
                };
                // What runs first in a new program are locks: no symbols have to be read for these again.
                let libc = choose.choose_libc(change).map(|libc| match libc {
                    Ok(chosen) => Message::Libc(chosen),
                    Err(why) => Message::NoLibc(why),
                });
                if libc.is_some_and(|message| news.send(message).is_err()) {
                    break;
                }
                if let Some(chosen) = choose.choose(change)
                    && news.send(Message::Chosen(chosen)).is_err()
                {
                    break;
                }
            }
        })?;
        Ok(Chooser { wanted, looking })
    }

    /// Asks for the functions of a process; the answer comes as a message.
    pub fn ask(&self, change: ProcessChange) {
        // If the thread is gone it has said why.
        let _ = self.wanted.send(Order::Changed(change));
    }

    /// Asks for the functions that somebody means; the answer comes as a message.
    pub fn wish(&self, wish: Wish, pids: Vec<u32>) {
        let _ = self.wanted.send(Order::Wished(wish, pids));
    }

    /// Says what samples have shown; if functions are worth probes the answer comes as a message. The next sighting shows the
    /// same: while one is looked at, others are left out.
    pub fn sighted(&self, sighting: Sighting, pids: Vec<u32>) {
        if !self.looking.swap(true, Ordering::AcqRel) {
            let _ = self.wanted.send(Order::Sighted(sighting, pids));
        }
    }
}
