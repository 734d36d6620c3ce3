//! The thread that looks for the places where processes publish the contexts of their threads.

use super::source::EventSource;
use crate::live::main_loop::{ChangeKind, Message, ProcessChange};
use crate::threads;
use capture::thread_contexts::{Found, NAME, Why, find};
use probe_abi::ContextPlace;
use std::collections::BTreeMap;
use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};
use tokio::sync::mpsc::UnboundedSender;

/// A loader fills in the place soon after it has mapped a library: the first pause before another look, which doubles.
const FIRST_PAUSE: Duration = Duration::from_millis(5);
/// Largest number of looks at a place that is not filled in.
const MOST_LOOKS: u32 = 10;
/// Largest number of processes that are looked at.
const MOST_PROCESSES: usize = probe_abi::MAX_CONTEXT_PLACES as usize;

/// A process, and the place that it has now; `None`: no known one.
type Told = (u32, Option<ContextPlace>);

/// Sends processes to the thread, and hands the places that it finds to the kernel programs.
#[derive(Debug)]
pub(super) struct ContextPlaces {
    asks: Sender<u32>,
    found: Receiver<Told>,
    /// Places that the kernel programs have not got yet.
    untold: Vec<Told>,
    /// Some process had a place.
    any: bool,
}

impl ContextPlaces {
    /// Looks at the processes of a source; `None` if nobody asked for contexts.
    pub(super) fn of(source: &dyn EventSource, messages: &UnboundedSender<Message>) -> Option<ContextPlaces> {
        let pids = source.publishing()?;
        let places = ContextPlaces::start(messages.clone());
        let places = places.inspect_err(|error| log::warn!("thread contexts are not read: {error}")).ok()?;
        for pid in pids {
            let _ = places.asks.send(pid);
        }
        Some(places)
    }

    fn start(news: UnboundedSender<Message>) -> io::Result<ContextPlaces> {
        let ((asks, inbox), (outbox, found)) = (channel(), channel());
        threads::spawn("contexts", news, (), move || {
            threads::before_others();
            Looks::default().run(&inbox, &outbox);
        })?;
        Ok(ContextPlaces { asks, found, untold: Vec::new(), any: false })
    }

    /// A process has changed.
    pub(super) fn see(&self, change: &ProcessChange) {
        // The kernel programs forget the places of processes that end.
        if change.kind != ChangeKind::Ended {
            // A thread that has ended has reported the reason itself.
            let _ = self.asks.send(change.pid);
        }
    }

    /// Hands new places to the kernel programs.
    pub(super) fn tell(&mut self, source: &mut dyn EventSource) {
        self.untold.extend(self.found.try_iter());
        if !self.untold.is_empty() && source.tell_contexts(&self.untold) {
            self.any |= self.untold.iter().any(|(_, place)| place.is_some());
            self.untold.clear();
        }
    }

    /// Warns if no process had a place.
    pub(super) fn end(&self) {
        if !self.any {
            log::warn!(
                "no process publishes for which trace its threads work: neither a program nor its libraries export {NAME}"
            );
        }
    }
}

/// A process that is looked at.
struct Looked {
    /// Time of the next look; `None`: when the process changes.
    due: Option<Instant>,
    looks: u32,
    place: Option<ContextPlace>,
    warned: bool,
}

#[derive(Default)]
struct Looks {
    processes: BTreeMap<u32, Looked>,
}

impl Looks {
    fn run(mut self, inbox: &Receiver<u32>, outbox: &Sender<Told>) {
        loop {
            let due = self.processes.values().filter_map(|looked| looked.due).min();
            let received = match due {
                None => inbox.recv().map_err(|_| RecvTimeoutError::Disconnected),
                Some(due) => inbox.recv_timeout(due.saturating_duration_since(Instant::now())),
            };
            match received {
                Ok(pid) => std::iter::once(pid).chain(inbox.try_iter()).for_each(|pid| self.asked(pid)),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            let now = Instant::now();
            for (pid, looked) in &mut self.processes {
                if looked.due.is_some_and(|due| due <= now)
                    && let Some(told) = looked.look(*pid, find(*pid))
                    && outbox.send(told).is_err()
                {
                    return;
                }
            }
        }
    }

    /// A process is new or has changed; 0: any may have.
    fn asked(&mut self, pid: u32) {
        let now = Some(Instant::now());
        if pid == 0 {
            self.processes.values_mut().for_each(|looked| (looked.due, looked.looks) = (now, 0));
            return;
        }
        if self.processes.len() >= MOST_PROCESSES && !self.processes.contains_key(&pid) {
            self.processes.retain(|_, looked| looked.due.is_some() || looked.place.is_some());
            if self.processes.len() >= MOST_PROCESSES {
                return;
            }
        }
        let looked =
            self.processes.entry(pid).or_insert(Looked { due: None, looks: 0, place: None, warned: false });
        (looked.due, looked.looks) = (now, 0);
    }
}

impl Looked {
    /// Takes the result of a look. Returns what the kernel programs must be told.
    fn look(&mut self, pid: u32, found: Found) -> Option<Told> {
        self.due = None;
        let place = match found {
            Found::At(place) => Some(place),
            Found::Nothing => None,
            Found::NotYet if self.looks < MOST_LOOKS => {
                let pause = FIRST_PAUSE.saturating_mul(1 << self.looks);
                self.due = Instant::now().checked_add(pause);
                self.looks += 1;
                return None;
            }
            Found::NotYet => {
                self.warn(pid, "its loader has not filled in the variable's place");
                None
            }
            Found::Unknown(why) => {
                self.warn(pid, words(why));
                None
            }
        };
        // A program that was executed just now has no place in the kernel yet, even if it is that of the program before.
        (place.is_some() || self.place.is_some()).then(|| {
            self.place = place;
            (pid, place)
        })
    }

    fn warn(&mut self, pid: u32, why: &str) {
        if !std::mem::replace(&mut self.warned, true) {
            log::warn!("for which trace threads of process {pid} work is not known: {why}");
        }
    }
}

fn words(why: Why) -> &'static str {
    match why {
        Why::NoRelocation => "the library has no relocation for its own variable",
        Why::OtherLibc => {
            "only glibc's table of thread-local variables is known; the variable may be in the program itself"
        }
        Why::NoRight => "its memory cannot be read",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_told_when_it_is_known_and_taken_back_when_it_is_gone() {
        let mut looks = Looks::default();
        looks.asked(7);
        let looked = looks.processes.get_mut(&7).expect("asked");
        assert_eq!(looked.look(7, Found::Nothing), None);
        assert_eq!(looked.look(7, Found::NotYet), None);
        assert!(looked.due.is_some(), "it is looked at again");
        let place = ContextPlace { module: 2, after_exec: 0, offset: 16 };
        assert_eq!(looked.look(7, Found::At(place)), Some((7, Some(place))));
        assert_eq!(looked.due, None);
        // Another program with the same place has to be told, too.
        assert_eq!(looked.look(7, Found::At(place)), Some((7, Some(place))));
        assert_eq!(looked.look(7, Found::Unknown(Why::OtherLibc)), Some((7, None)));
        (0..=MOST_LOOKS).for_each(|_| _ = looked.look(7, Found::NotYet));
        assert!(looked.due.is_none() && looked.warned, "not for ever");
    }
}
