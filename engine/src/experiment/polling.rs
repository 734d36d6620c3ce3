//! Threads that poll: they sleep, check whether there is work, and sleep again. (This is longpole's own.)

use super::free::timers;
use crate::program::{Operation, Program, Thread};
use crate::time::Ticks;

/// Fewest sleeps of a thread that show a pattern.
const FEWEST: usize = 10;
/// Sleeps are alike if the middle 80 % of them differ from their median by at most this share.
const ALIKE: f64 = 0.1;
/// A check that finds no work computes less than this share of a check that finds work, and than this share of the
/// sleep.
const OF_WORK: f64 = 1.0 / 8.0;
const OF_SLEEP: f64 = 1.0 / 50.0;
/// In a polling thread, more than this share of the checks find no work. A thread that waits for an answer finds it
/// each time.
const FINDS_NOTHING: f64 = 0.1;

/// The threads of a program that poll.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Polling {
    /// Their indices in the program.
    pub(crate) threads: Vec<usize>,
    /// Length of each sleep of these threads.
    pub(crate) every: Ticks,
}

/// A thread's sleeps: their lengths, and the computing after each.
#[derive(Default)]
struct Looks {
    slept: Vec<u64>,
    computed: Vec<u64>,
    /// Whether no thread waits for this one: then it polls for something outside the program.
    in_background: bool,
}

impl Polling {
    /// Finds threads whose checks often find no work, and threads with sleeps as long whose checks found work.
    pub(crate) fn of(program: &Program) -> Option<Polling> {
        let timers = timers(program);
        let looks = program.threads.iter().map(|thread| Looks::of(thread, &timers));
        let looks: Vec<Option<Looks>> = looks.map(|looks| looks.filter(Looks::is_regular)).collect();
        let first = looks.iter().flatten().filter(|looks| !looks.in_background && looks.is_polling());
        let every = first.map(Looks::every).max()?;
        let is_alike = |looks: &Looks| looks.every().abs_diff(every) as f64 <= ALIKE * every as f64;
        let threads = looks.iter().enumerate();
        let threads = threads.filter(|(_, looks)| looks.as_ref().is_some_and(is_alike));
        Some(Polling { threads: threads.map(|(thread, _)| thread).collect(), every: Ticks(every) })
    }
}

impl Looks {
    /// The sleeps of a thread; `None`: too few, or a periodic timer wakes it.
    fn of(thread: &Thread, timers: &[bool]) -> Option<Looks> {
        let mut looks = Looks { in_background: thread.background.is_some(), ..Looks::default() };
        for operation in &thread.operations {
            match operation {
                Operation::Sleep(length) => looks.sleep(length.0),
                Operation::Io(device, length) if timers.get(device.0 as usize) == Some(&true) => {
                    looks.sleep(length.0);
                }
                Operation::SleepNext(_) | Operation::SleepUntil(_) => return None,
                Operation::Exec(length) | Operation::ExecIn(_, length) => {
                    if let Some(computed) = looks.computed.last_mut() {
                        *computed = computed.saturating_add(length.0);
                    }
                }
                _ => {}
            }
        }
        looks.slept.sort_unstable();
        looks.computed.sort_unstable();
        (looks.slept.len() >= FEWEST).then_some(looks)
    }

    fn sleep(&mut self, length: u64) {
        self.slept.push(length);
        self.computed.push(0);
    }

    /// The median length.
    fn every(&self) -> u64 {
        at(&self.slept, 0.5)
    }

    fn is_regular(&self) -> bool {
        let spread = at(&self.slept, 0.9).saturating_sub(at(&self.slept, 0.1));
        self.every() > 0 && spread as f64 <= ALIKE * self.every() as f64
    }

    /// Whether there was no work after some sleeps, and work after others.
    fn is_polling(&self) -> bool {
        let most = self.computed.len().div_ceil(10);
        let work = self.computed.iter().rev().take(most).map(|ticks| *ticks as f64).sum::<f64>();
        let least = (OF_WORK * work / most.max(1) as f64).min(OF_SLEEP * self.every() as f64);
        let nothing = self.computed.partition_point(|computed| (*computed as f64) < least);
        nothing as f64 > FINDS_NOTHING * self.computed.len() as f64
    }
}

fn at(sorted: &[u64], share: f64) -> u64 {
    let place = (sorted.len() as f64 * share) as usize;
    sorted.get(place.min(sorted.len().saturating_sub(1))).copied().unwrap_or(0)
}
