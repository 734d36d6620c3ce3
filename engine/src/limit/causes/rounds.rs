//! Rounds of work that end unevenly: all threads of a crew begin together, some have less to do, and wait until the last one is
//! done. Pools that get a list of tasks work like that, whatever their threads and processes wait for. (This method is
//! longpole's own.)

use super::stretch::Computing;
use crate::program::{EdgeId, Operation, Program, Thread};
use crate::time::Ticks;
use rustc_hash::{FxHashMap, FxHashSet};

/// With fewer rounds, a user can examine each end by itself.
const FEWEST: u64 = 3;
/// A smaller part of the run is what equal work differs by chance: threads are interrupted, caches are cold.
const MUCH: f64 = 0.15;
/// Shorter ends, nanoseconds, are hand-overs.
const SHORTEST_NS: u64 = 100_000;
/// Largest part of the ends in which threads outside of the crew may compute: the crew may wait for these.
const OTHERS: f64 = 0.2;
/// Largest part of the run in which nobody computes: otherwise the crew waits for work from elsewhere.
const IDLE: f64 = 0.15;
/// Largest part of the threads' waiting in the ends that devices and sleep may take.
const DEVICES: f64 = 0.25;

/// Rounds of one crew.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::limit) struct Rounds {
    pub(in crate::limit) crew: Vec<usize>,
    /// Number of rounds that end unevenly.
    pub(in crate::limit) times: u64,
    /// Time in their ends, ticks: some threads of the crew compute, fewer than could.
    pub(in crate::limit) ends: u64,
    /// The part of that time that is saved if all threads compute until the end, ticks.
    pub(in crate::limit) saved: u64,
}

impl Rounds {
    /// Adds a round, and returns the part of its end in which others compute.
    fn add(&mut self, round: Round, crew: usize) -> u64 {
        let saved = if round.is_full { round.saved(crew) } else { 0 };
        if saved == 0 {
            return 0;
        }
        self.times += 1;
        self.ends += round.ends;
        self.saved += saved;
        round.others
    }
}

/// One round so far, ticks.
#[derive(Default)]
struct Round {
    /// Whether as many threads computed as can.
    is_full: bool,
    ends: u64,
    saved: u64,
    others: u64,
    /// What each thread of the crew computed.
    work: FxHashMap<u32, u64>,
}

impl Round {
    /// The part of the end that is saved by equal work for all of `crew` threads: at most what the busiest one has more than
    /// their mean. Threads with equal work end one after the other, too, if there are more threads than CPUs.
    fn saved(&self, crew: usize) -> u64 {
        let most = self.work.values().copied().max().unwrap_or(0);
        let all = self.work.values().copied().fold(0, u64::saturating_add);
        self.saved.min(most.saturating_sub(all / crew.max(1) as u64))
    }
}

/// The crew whose rounds lose most. `most`: number of threads that can compute at once; `length` of the run, ticks.
pub(in crate::limit) fn uneven(
    computing: &Computing,
    program: &Program,
    crews: &[Vec<usize>],
    (most, length): (usize, u64),
) -> Option<Rounds> {
    let all = crews.iter().filter_map(|crew| {
        let most = most.min(crew.len());
        let tells = Tells::of(program, crew);
        (most > 1).then(|| of_crew(computing, (crew, &tells), (most as u64, length))).flatten()
    });
    let waits = |rounds: &Rounds| {
        let threads = rounds.crew.iter().filter_map(|thread| program.threads.get(*thread));
        let operations = threads.flat_map(|thread| &thread.operations);
        let waited = operations.filter_map(|operation| match operation {
            Operation::Io(_, length) | Operation::Sleep(length) | Operation::SleepNext(length) => {
                Some(length.0)
            }
            _ => None,
        });
        waited.fold(0, u64::saturating_add)
    };
    let of_devices = |rounds: &Rounds| {
        waits(rounds) as f64 <= DEVICES * rounds.ends.saturating_mul(rounds.crew.len() as u64 - 1) as f64
    };
    all.filter(of_devices).max_by_key(|rounds| rounds.saved)
}

/// When threads of a crew wake threads outside of it: that a task is done. A thread that finds its next task at once does not
/// stop in between.
struct Tells(FxHashMap<u32, Vec<u64>>);

impl Tells {
    /// For each thread of the crew: its computing before each of these operations, ticks.
    fn of(program: &Program, crew: &[usize]) -> Tells {
        let threads = || crew.iter().filter_map(|number| Some((*number, program.threads.get(*number)?)));
        let own: FxHashSet<EdgeId> = threads()
            .flat_map(|(_, thread)| &thread.operations)
            .filter_map(|operation| match operation {
                Operation::Await(edge) => Some(*edge),
                _ => None,
            })
            .collect();
        let of_thread = |(number, thread): (usize, &Thread)| {
            let mut computed = 0u64;
            let mut at = Vec::new();
            for operation in &thread.operations {
                match operation {
                    Operation::Exec(length) | Operation::ExecIn(_, length) | Operation::Once(_, length) => {
                        computed = computed.saturating_add(length.0);
                    }
                    Operation::Release(edge) if !own.contains(edge) => at.push(computed),
                    Operation::SemPost(_) | Operation::Signal(_) | Operation::CondSignal(_) => {
                        at.push(computed)
                    }
                    _ => {}
                }
            }
            (u32::try_from(number).unwrap_or(u32::MAX), at)
        };
        Tells(threads().map(of_thread).collect())
    }

    /// Whether the thread says so in the last `within` ticks of its computing up to here.
    fn has(&self, thread: u32, computed: u64, within: u64) -> bool {
        let Some(all) = self.0.get(&thread) else { return false };
        let next = all.partition_point(|at| *at <= computed);
        next.checked_sub(1).and_then(|last| all.get(last)).is_some_and(|at| computed - at <= within)
    }
}

/// A round is over if a thread wakes one outside of the crew in the last part of its end, one part in `LAST`.
const LAST: u64 = 20;

fn of_crew(
    computing: &Computing,
    (crew, tells): (&[usize], &Tells),
    (most, length): (u64, u64),
) -> Option<Rounds> {
    let mut changes: Vec<(u64, bool, Option<u32>)> = Vec::new();
    for (thread, start, end) in computing.parts() {
        let member = Some(thread).filter(|thread| crew.binary_search(&(*thread as usize)).is_ok());
        changes.push((start, true, member));
        changes.push((end, false, member));
    }
    // At one instant, ends come before begins.
    changes.sort_unstable();
    let mut found = Rounds { crew: crew.to_vec(), times: 0, ends: 0, saved: 0 };
    let (mut members, mut others, mut since, mut idle, mut by_others) = (0u64, 0u64, 0u64, 0u64, 0u64);
    let mut round = Round::default();
    // Since when members compute, and what they computed before.
    let mut began: FxHashMap<u32, u64> = FxHashMap::default();
    let mut before: FxHashMap<u32, u64> = FxHashMap::default();
    for (time, begins, member) in changes.into_iter().chain([(length, false, None)]) {
        let passed = time.saturating_sub(since);
        since = time.max(since);
        if members == 0 && others == 0 {
            idle += passed;
        }
        if round.is_full && members > 0 && members < most {
            round.ends += passed;
            round.saved += passed - passed / most * members;
            round.others += if others > 0 { passed } else { 0 };
        }
        let is_over = begins && member.is_some() && round.ends > 0 && {
            let at = |thread: &u32, since: &u64| before.get(thread).copied().unwrap_or(0) + (time - since);
            began.iter().all(|(thread, since)| tells.has(*thread, at(thread, since), round.ends / LAST))
        };
        if is_over {
            for (thread, since) in &mut began {
                let computed = time - *since;
                *round.work.entry(*thread).or_insert(0) += computed;
                *before.entry(*thread).or_insert(0) += computed;
                *since = time;
            }
            by_others += found.add(std::mem::take(&mut round), crew.len());
        }
        match member {
            Some(thread) if begins => _ = began.insert(thread, time),
            Some(thread) => {
                let computed = time - began.remove(&thread).unwrap_or(time);
                *round.work.entry(thread).or_insert(0) += computed;
                *before.entry(thread).or_insert(0) += computed;
            }
            None => {}
        }
        let count = if member.is_some() { &mut members } else { &mut others };
        *count = if begins { *count + 1 } else { count.saturating_sub(1) };
        if members >= most {
            // More work was there for the others.
            round = Round { is_full: true, work: round.work, ..Round::default() };
        } else if members == 0 {
            by_others += found.add(std::mem::take(&mut round), crew.len());
        }
    }
    let share = |part: u64, of: u64| part as f64 / of.max(1) as f64;
    let is_round = found.times >= FEWEST
        && found.ends / found.times.max(1) >= Ticks::from_ns(SHORTEST_NS).0
        && share(by_others, found.ends) <= OTHERS
        && share(idle, length) <= IDLE
        && share(found.saved, length) >= MUCH;
    is_round.then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::ThreadId;
    use crate::schedule::{Interval, SimulatedState};

    const MS: u64 = 1_000_000;

    /// Busy intervals (thread, from, to) in milliseconds.
    fn rounds(parts: &[(u32, u64, u64)], most: usize) -> Option<(u64, u64, u64)> {
        let mut computing = Computing::new(4, 0);
        let ticks = |ms: u64| Ticks::from_ns(ms * MS);
        for &(thread, start, end) in parts {
            let (start, end) = (ticks(start), ticks(end));
            let doing = SimulatedState::Busy;
            computing.tell(Interval { thread: ThreadId(thread), start, end, doing, cpu: None });
        }
        let length = parts.iter().map(|part| ticks(part.2).0).max().unwrap_or(0);
        let found = uneven(&computing, &Program::default(), &[vec![0, 1]], (most, length))?;
        let ms = |ticks: u64| Ticks(ticks).as_ns_f64() as u64 / MS;
        Some((found.times, ms(found.ends), ms(found.saved)))
    }

    #[test]
    fn threads_that_wait_for_the_last_one_of_each_round_are_found() {
        let round = |at: u64| [(0, 11 * at, 11 * at + 4), (1, 11 * at, 11 * at + 10)];
        let uneven: Vec<(u32, u64, u64)> = (0..4).flat_map(round).collect();
        assert_eq!(rounds(&uneven, 2), Some((4, 24, 12)));
        assert_eq!(rounds(&uneven, 1), None, "on one CPU nobody waits for nothing");
        assert_eq!(rounds(&uneven[..4], 2), None, "two rounds are single stretches");
        let even =
            |at: u64| [(0, 11 * at, 11 * at + 9), (1, 11 * at, 11 * at + 9), (2, 11 * at + 9, 11 * at + 10)];
        assert_eq!(rounds(&(0..4).flat_map(even).collect::<Vec<_>>(), 2), None);
    }

    #[test]
    fn threads_with_equal_work_that_end_one_after_the_other_have_no_rounds() {
        let round =
            |at: u64| [(0, 11 * at, 11 * at + 5), (1, 11 * at, 11 * at + 5), (2, 11 * at + 5, 11 * at + 10)];
        let mut computing = Computing::new(4, 0);
        for (thread, start, end) in (0..4).flat_map(round) {
            let (start, end) = (Ticks::from_ns(start * MS), Ticks::from_ns(end * MS));
            let doing = SimulatedState::Busy;
            computing.tell(Interval { thread: ThreadId(thread), start, end, doing, cpu: None });
        }
        let length = Ticks::from_ns(44 * MS).0;
        assert_eq!(uneven(&computing, &Program::default(), &[vec![0, 1, 2]], (2, length)), None);
    }

    #[test]
    fn threads_that_wait_for_work_from_elsewhere_have_no_rounds() {
        let busy = |at: u64| [(0, 11 * at, 11 * at + 4), (1, 11 * at, 11 * at + 7)];
        assert_eq!(rounds(&(0..4).flat_map(busy).collect::<Vec<_>>(), 2), None, "idle for 3 ms of 10");
        let fed =
            |at: u64| [(0, 11 * at, 11 * at + 4), (1, 11 * at, 11 * at + 10), (2, 11 * at + 4, 11 * at + 10)];
        assert_eq!(
            rounds(&(0..4).flat_map(fed).collect::<Vec<_>>(), 2),
            None,
            "a third one computes meanwhile"
        );
        let again =
            |at: u64| [(0, 11 * at, 11 * at + 4), (0, 11 * at + 6, 11 * at + 10), (1, 11 * at, 11 * at + 10)];
        assert_eq!(
            rounds(&(0..4).flat_map(again).collect::<Vec<_>>(), 2),
            None,
            "it gets more work meanwhile"
        );
    }
}
