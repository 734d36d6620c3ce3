//! Threads that poll: they sleep, check whether there is work, and sleep again, each time as long or, as retries do, longer. (This
//! is longpole's own.)

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

/// In a series of growing sleeps each is at least this part of the one before, and the last at least `GROWTH` times the first.
const AS_LONG: f64 = 0.9;
const GROWTH: f64 = 1.8;
/// Series of growing sleeps show polling if they are at least this share of the thread's sleeping.
const MOST_SLEEP: f64 = 0.5;

/// The threads of a program that poll.
#[derive(Clone, Debug, PartialEq)]
pub struct Polling {
    /// Their indices in the program.
    pub(crate) threads: Vec<usize>,
    /// The median length of the sleeps between two checks.
    pub(crate) every: Ticks,
    /// The shortest and the longest of these sleeps; sleeps of another length are not for a check.
    pub(crate) between: (Ticks, Ticks),
}

/// A thread's sleeps of about one length, in ascending order, and the computing after each.
#[derive(Default)]
struct Looks {
    thread: usize,
    slept: Vec<u64>,
    computed: Vec<u64>,
    /// Computing after sleeps that another such sleep followed, ascending: a check that finds nothing is repeated.
    again: Vec<u64>,
    /// Whether no thread waits for this one: then it polls for something outside the program.
    in_background: bool,
    /// The sleeps are of series in which they grow.
    grows: bool,
}

impl Polling {
    /// Whether the sleeps are retries that grow.
    pub(crate) fn grows(&self) -> bool {
        let (shortest, longest) = self.between;
        has_grown(shortest.0, longest.0)
    }

    /// Finds threads whose checks often find no work, and threads with sleeps as long whose checks found work.
    /// `is_of_go`: the program runs goroutines. Go's runtime has a thread that looks after the others and sleeps longer each time.
    pub(crate) fn of(program: &Program, is_of_go: bool) -> Option<Polling> {
        let timers = timers(program);
        let threads = program.threads.iter().enumerate();
        let looks: Vec<Looks> =
            threads.flat_map(|(number, thread)| Looks::of(number, thread, &timers, is_of_go)).collect();
        let polling = looks.iter().filter(|looks| !looks.in_background && looks.is_polling());
        let first = polling.max_by_key(|looks| (looks.grows, looks.every()))?;
        let (every, grows) = (first.every(), first.grows);
        let is_alike = |looks: &&Looks| match grows {
            true => looks.grows,
            false => !looks.grows && looks.every().abs_diff(every) as f64 <= ALIKE * every as f64,
        };
        let alike: Vec<&Looks> = looks.iter().filter(is_alike).collect();
        let lengths = || alike.iter().flat_map(|looks| looks.slept.iter().copied());
        let between = (Ticks(lengths().min()?), Ticks(lengths().max()?));
        let mut threads: Vec<usize> = alike.iter().map(|looks| looks.thread).collect();
        threads.dedup();
        Some(Polling { threads, every: Ticks(every), between })
    }
}

/// The thread's sleeps, each with the computing after it; `None`: a periodic timer wakes it.
fn sleeps(thread: &Thread, timers: &[bool]) -> Option<Vec<(u64, u64)>> {
    let mut sleeps: Vec<(u64, u64)> = Vec::new();
    for operation in &thread.operations {
        match operation {
            Operation::Sleep(length) => sleeps.push((length.0, 0)),
            Operation::Io(device, length) if timers.get(device.0 as usize) == Some(&true) => {
                sleeps.push((length.0, 0));
            }
            Operation::SleepNext(_) | Operation::SleepUntil(_) => return None,
            Operation::Exec(length) | Operation::ExecIn(_, length) => {
                if let Some((_, computed)) = sleeps.last_mut() {
                    *computed = computed.saturating_add(length.0);
                }
            }
            _ => {}
        }
    }
    Some(sleeps)
}

impl Looks {
    /// The regular sleeps of a thread, by length.
    /// `is_of_go`: growing sleeps show nothing.
    fn of(number: usize, thread: &Thread, timers: &[bool], is_of_go: bool) -> Vec<Looks> {
        let sleeps = sleeps(thread, timers).unwrap_or_default();
        let mut lengths: Vec<u64> = sleeps.iter().map(|(slept, _)| *slept).collect();
        lengths.sort_unstable();
        let is_near = |a: &u64, b: &u64| *b as f64 <= (1.0 + ALIKE) * *a as f64;
        let of_one_length = lengths.chunk_by(is_near).filter(|lengths| lengths.len() >= FEWEST);
        let looks = of_one_length.map(|slept| {
            let is_one = |length: u64| slept.first() <= Some(&length) && Some(&length) <= slept.last();
            let mut looks = Looks {
                thread: number,
                slept: slept.to_vec(),
                in_background: thread.background.is_some(),
                ..Looks::default()
            };
            let next = sleeps.iter().skip(1).map(|(slept, _)| Some(*slept)).chain([None]);
            for ((_, computed), next) in sleeps.iter().zip(next).filter(|((slept, _), _)| is_one(*slept)) {
                looks.computed.push(*computed);
                if next.is_some_and(is_one) {
                    looks.again.push(*computed);
                }
            }
            looks.computed.sort_unstable();
            looks.again.sort_unstable();
            looks
        });
        let regular = looks.filter(Looks::is_regular);
        let retries = Looks::of_retries(number, thread, &sleeps).filter(|_| !is_of_go);
        regular.chain(retries).collect()
    }

    /// The sleeps of retries that grow, if the thread sleeps mostly in these.
    fn of_retries(number: usize, thread: &Thread, sleeps: &[(u64, u64)]) -> Option<Looks> {
        let mut computed: Vec<u64> = sleeps.iter().map(|(_, computed)| *computed).collect();
        computed.sort_unstable();
        let least = OF_WORK * work(&computed);
        let mut slept: Vec<u64> = Vec::new();
        // A check that finds something ends a series, and so does a shorter sleep.
        let is_next = |(before, found): &(u64, u64), (after, _): &(u64, u64)| {
            (*found as f64) < least && *after as f64 >= AS_LONG * *before as f64
        };
        for series in sleeps.chunk_by(is_next) {
            if let [(first, _), .., (last, _)] = series
                && has_grown(*first, *last)
            {
                slept.extend(series.iter().map(|(slept, _)| *slept));
            }
        }
        slept.sort_unstable();
        let sum = |lengths: &mut dyn Iterator<Item = u64>| lengths.fold(0u64, u64::saturating_add) as f64;
        let all = sum(&mut sleeps.iter().map(|(slept, _)| *slept));
        let is_most = slept.len() >= FEWEST && sum(&mut slept.iter().copied()) >= MOST_SLEEP * all;
        let in_background = thread.background.is_some();
        is_most.then(|| Looks { thread: number, slept, in_background, grows: true, ..Looks::default() })
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
        let least = (OF_WORK * work(&self.computed)).min(OF_SLEEP * self.every() as f64);
        let nothing = self.again.partition_point(|computed| (*computed as f64) < least);
        self.grows || nothing as f64 > FINDS_NOTHING * self.computed.len() as f64
    }
}

/// Whether a series of sleeps with these lengths at its ends is a retry.
fn has_grown(first: u64, last: u64) -> bool {
    last as f64 >= GROWTH * first as f64
}

/// The computing after a sleep that found work: the mean of the longest tenth. `computed`: after each sleep, ascending.
fn work(computed: &[u64]) -> f64 {
    let most = computed.len().div_ceil(10);
    computed.iter().rev().take(most).map(|ticks| *ticks as f64).sum::<f64>() / most.max(1) as f64
}

fn at(sorted: &[u64], share: f64) -> u64 {
    let place = (sorted.len() as f64 * share) as usize;
    sorted.get(place.min(sorted.len().saturating_sub(1))).copied().unwrap_or(0)
}
