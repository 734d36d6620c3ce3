//! Recognizes threads of one pool that mostly sleep during their work. (This method is longpole's own.) They compute so
//! little that the function that each computes most is chance, and an interpreter's locks make each thread look as if
//! it waited for an object of its own. Such threads do the same if one thread started them, by the same name, with the
//! same function as far as samples show; they sleep as long each time and in all; and none gives another what it waits
//! for.

use super::thread_group::{EVEN, Group};
use super::thread_name::{bare, letters};
use super::thread_samples::ThreadSamples;
use crate::experiment::{created, own_sleep};
use crate::program::{EdgeId, ObjectId, ObjectMeaning, Operation, Program, Thread};
use crate::time::Ticks;
use rustc_hash::{FxHashMap, FxHashSet};

/// Each sleeps at least this often.
const OFTEN: usize = 10;
/// Each of these threads sleeps at least this many times as long as it computes.
const MOSTLY: u64 = 2;
/// One thread gives another work if it wakes it at least this many times, while fewer than one in `BOTH_WAYS` wake-ups
/// go the other way.
const FEWEST_WAKES: usize = 4;
const BOTH_WAYS: usize = 4;

/// A thread that mostly sleeps.
struct Sleeper<'p> {
    process: Option<&'p str>,
    name: String,
    creator: Option<usize>,
    /// Ticks of a sleep on average, and of all sleeps.
    mean: f64,
    all: f64,
}

/// Merges groups of threads that mostly sleep if the threads are alike; other groups stay as they are.
pub(super) fn merged(program: &Program, seen: &[ThreadSamples], groups: Vec<Group>) -> Vec<Group> {
    let mut creators: FxHashMap<usize, usize> = FxHashMap::default();
    for (number, thread) in program.threads.iter().enumerate() {
        creators.extend(thread.operations.iter().filter_map(created).map(|child| (child, number)));
    }
    let entry = |number: usize| seen.get(number).and_then(ThreadSamples::told_entry);
    let mut merged: Vec<(Group, Option<Sleeper<'_>>)> = Vec::new();
    let is_sleeper = |number: &usize| Sleeper::of(program, *number, &creators).is_some();
    for group in groups.into_iter().flat_map(|group| apart(group, is_sleeper)) {
        let sleepers: Option<Vec<Sleeper<'_>>> =
            group.threads.iter().map(|number| Sleeper::of(program, *number, &creators)).collect();
        let own = sleepers.and_then(|all| all.into_iter().next());
        let is_alike = |(other, of): &(Group, Option<Sleeper<'_>>)| {
            let (Some(own), Some(of)) = (&own, of) else { return false };
            let (Some(one), Some(another)) = (group.threads.first(), other.threads.first()) else {
                return false;
            };
            let known = entry(*one).zip(entry(*another));
            own.is_like(of) && known.is_none_or(|(a, b)| a == b) && !feeds(program, *one, *another)
        };
        match merged.iter().position(is_alike).and_then(|place| merged.get_mut(place)) {
            Some((other, _)) => {
                other.threads.extend(&group.threads);
                other.threads.sort_unstable();
                other.meets |= group.meets;
            }
            None => merged.push((group, own)),
        }
    }
    merged.into_iter().map(|(group, _)| group).collect()
}

/// Splits the threads that mostly sleep off a group, each into a group of its own, if the group's other threads do not
/// sleep. The first thread of an interpreter computes the same as the threads that it started.
fn apart(group: Group, is_sleeper: impl Fn(&usize) -> bool) -> Vec<Group> {
    let (sleepers, others): (Vec<usize>, Vec<usize>) = group.threads.iter().copied().partition(is_sleeper);
    if sleepers.is_empty() || others.is_empty() {
        return vec![group];
    }
    let of = |threads: Vec<usize>| Group { threads, meets: group.meets };
    std::iter::once(others).chain(sleepers.into_iter().map(|one| vec![one])).map(of).collect()
}

impl<'p> Sleeper<'p> {
    /// The thread with this number as a sleeper; `None`: it sleeps rarely, or little, or starts threads.
    fn of(program: &'p Program, number: usize, creators: &FxHashMap<usize, usize>) -> Option<Sleeper<'p>> {
        let thread = program.threads.get(number)?;
        let starts = thread.operations.iter().any(|operation| created(operation).is_some());
        // The first thread of a process may sleep as long as its workers, but for another reason.
        if starts || (is_first(thread) && !waits_for_answers(program, thread)) {
            return None;
        }
        let (times, Ticks(asleep)) = own_sleep(program, thread);
        let computed = thread.operations.iter().map(|operation| match operation {
            Operation::Exec(length) | Operation::ExecIn(_, length) => length.0,
            _ => 0,
        });
        let computed = computed.fold(0u64, u64::saturating_add);
        (times >= OFTEN && asleep >= computed.saturating_mul(MOSTLY)).then(|| Sleeper {
            process: thread.process.as_deref(),
            name: letters(bare(&thread.name)),
            creator: creators.get(&number).copied(),
            mean: asleep as f64 / times as f64,
            all: asleep as f64,
        })
    }

    fn is_like(&self, other: &Sleeper<'_>) -> bool {
        let near = |a: f64, b: f64| a <= EVEN * b && b <= EVEN * a;
        self.process == other.process
            && self.name == other.name
            && self.creator == other.creator
            && near(self.mean, other.mean)
            && near(self.all, other.all)
    }
}

/// Whether the thread is the first one of its process, as its number shows.
fn is_first(thread: &Thread) -> bool {
    let number = |name: &str| name.rsplit_once('/').map(|(_, number)| number.to_owned());
    let of_process = thread.process.as_deref().and_then(number);
    of_process.is_some() && of_process == number(&thread.name)
}

fn waits_for_answers(program: &Program, thread: &Thread) -> bool {
    let is_answer = |operation: &Operation| matches!(operation, Operation::Io(device, _) if program.meaning(*device) == ObjectMeaning::Answer);
    thread.operations.iter().any(is_answer)
}

/// Whether one of two threads gives the other what that one waits for, and never the other way round.
fn feeds(program: &Program, one: usize, another: usize) -> bool {
    let wakes = |from: usize, to: usize| {
        let operations =
            |number: usize| program.threads.get(number).into_iter().flat_map(|of| &of.operations);
        let (mut edges, mut objects): (FxHashSet<EdgeId>, FxHashSet<ObjectId>) = Default::default();
        let mut given: FxHashSet<ObjectId> = FxHashSet::default();
        for operation in operations(to) {
            match *operation {
                Operation::Await(edge) => drop(edges.insert(edge)),
                Operation::SemWait(of) | Operation::Wait(of) | Operation::CondWait(of, _) => {
                    objects.insert(of);
                }
                Operation::SemPost(of) | Operation::Signal(of) => drop(given.insert(of)),
                _ => {}
            }
        }
        let is_for_other = |operation: &&Operation| match operation {
            Operation::Release(edge) => edges.contains(edge),
            // An object that a thread both takes and gives is a lock.
            Operation::SemPost(of) | Operation::Signal(of) => objects.contains(of) && !given.contains(of),
            Operation::CondSignal(of) | Operation::CondBroadcast(of) => objects.contains(of),
            _ => false,
        };
        operations(from).filter(is_for_other).count()
    };
    let (there, back) = (wakes(one, another), wakes(another, one));
    there.max(back) >= FEWEST_WAKES && there.min(back).saturating_mul(BOTH_WAYS) < there.max(back)
}
