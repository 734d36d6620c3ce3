//! Bounded resources without a recorded semaphore, put back as semaphores (a method of longpole's own). Of several
//! threads never more than a certain number sleep at a time, other threads wait until one is done, and a waiter goes on
//! whenever a sleeper is done. Examples are connections in a queue, tokens in a channel, and a semaphore made of atomic
//! operations. The number of sleepers and the wake-ups are recorded; that they belong to one resource is concluded. The
//! program with the semaphore must take as long as the recording, or as predicted without it.

use crate::cpus::Cpus;
use crate::experiment::bounded;
use crate::predict::{Model, Timing};
use crate::program::{EdgeId, ObjectId, Operation, Program, Thread};
use crate::schedule::{Interval, SimulatedState, Why};
use crate::time::Ticks;
use rustc_hash::{FxHashMap, FxHashSet};

/// A thread that sleeps less often does not use a resource again and again.
const OFTEN: usize = 10;
/// Least number of threads for a pool. With two threads, one would have the resource and the other wait, which is a
/// lock.
const FEWEST_THREADS: usize = 3;
/// Threads use the same resource if their mean sleeps differ from the median thread's by at most this factor.
const ALIKE: f64 = 1.5;
/// More threads than permits sleep for at most this share of the time: simulated instants differ from recorded ones. With one
/// more permit, one more thread would sleep for `ALL_IN_USE` of the time.
const BY_CHANCE: f64 = 0.1;
/// All permits are in use, and other threads wait, for at least this share of the time.
const ALL_IN_USE: f64 = 0.5;
/// Other threads wait and none computes for at least this share of the time; otherwise they wait for a lock whose holder
/// computes.
const NONE_COMPUTES: f64 = 0.2;
/// After this part of the sleeps the thread wakes another thread of the pool, and threads of the pool end this part of the
/// pool's waiting time.
const GIVEN_ON: f64 = 0.7;
/// The predicted time with the semaphore differs by at most this share from the recorded time, or from the predicted
/// time without it.
const SAME_TIME: f64 = 0.05;

/// A bounded resource: the threads that use it, and its number of permits.
struct Pool {
    threads: FxHashSet<usize>,
    permits: u32,
}

/// Replaces waits of a pool's threads by a semaphore, if these threads waited for a bounded resource. Returns the
/// changed program.
pub(in crate::limit) fn put_back(program: Program, model: &Model) -> Program {
    let with = with_semaphore(&program, model);
    with.unwrap_or(program)
}

fn with_semaphore(program: &Program, model: &Model) -> Option<Program> {
    let cpus = program.recorded_cpus.and_then(Cpus::count)?;
    let threads = sleepers(program)?;
    let timing = Timing::new(program, model).ok()?;
    let before = timing.finished_ns(cpus, 0)?;
    let pool = Pool::of(program, threads, &timing, cpus)?;
    let with = pool.in_place(program)?;
    with.check().ok()?;
    let after = Timing::new(&with, model).ok()?.finished_ns(cpus, 0)?;
    let measured = program.overhead.map(|cost| cost.wall_ns as f64);
    let is_same = |time: f64| (after - time).abs() <= SAME_TIME * time;
    (is_same(before) || measured.is_some_and(is_same)).then_some(with)
}

/// Threads that sleep often and about equally long, of the process that has most threads that sleep often.
fn sleepers(program: &Program) -> Option<FxHashSet<usize>> {
    let mut by_process: FxHashMap<Option<&str>, Vec<(u64, usize)>> = FxHashMap::default();
    for (number, thread) in program.threads.iter().enumerate().filter(|(_, of)| of.background.is_none()) {
        let sleeps = thread.operations.iter().filter_map(|operation| match operation {
            Operation::Sleep(length) => Some(length.0),
            _ => None,
        });
        let (count, sum) =
            sleeps.fold((0usize, 0u64), |(count, sum), of| (count + 1, sum.saturating_add(of)));
        if count >= OFTEN {
            by_process.entry(thread.process.as_deref()).or_default().push((sum / count as u64, number));
        }
    }
    let mut most: Vec<(u64, usize)> =
        by_process.into_values().max_by_key(|of| (of.len(), of.first().copied()))?;
    most.sort_unstable();
    let middle = most.get(most.len() / 2)?.0 as f64;
    let alike = most.into_iter().filter(|(mean, _)| {
        let mean = *mean as f64;
        mean <= ALIKE * middle && middle <= ALIKE * mean
    });
    let threads: FxHashSet<usize> = alike.map(|(_, number)| number).collect();
    (threads.len() >= FEWEST_THREADS).then_some(threads)
}

impl Pool {
    fn of(program: &Program, threads: FxHashSet<usize>, timing: &Timing<'_>, cpus: Cpus) -> Option<Pool> {
        let known = bounded(program);
        let wakes = Wakes::of(program, &threads);
        if !known.is_empty() || wakes.followed < GIVEN_ON {
            return None;
        }
        let mut seen = Seen { threads: &threads, changes: Vec::new(), waits: FxHashMap::default() };
        timing.run_watched(cpus, 0, Box::new(|interval| seen.tell(interval)));
        let waited: f64 = seen.waits.values().map(|ticks| *ticks as f64).sum();
        let by_members: f64 =
            seen.waits.iter().map(|(of, ticks)| *ticks as f64 * wakes.by_members(*of)).sum();
        let permits = seen.most_asleep()?;
        let is_some_of = permits > 1 && (permits as usize) < threads.len();
        (is_some_of && waited > 0.0 && by_members >= GIVEN_ON * waited).then_some(Pool { threads, permits })
    }

    /// The program with a permit around each sleep of the pool's threads, and without their waits for each other.
    fn in_place(&self, program: &Program) -> Option<Program> {
        let mut with = program.clone();
        let semaphore = ObjectId(u32::try_from(with.objects.len()).ok()?);
        let asleep_in = program.recorded.waits.iter().find(|wait| wait.is_for_time());
        let function = asleep_in.and_then(|wait| wait.sleepers.first());
        with.objects.push(match function {
            Some(function) => format!("semaphore a pool (around {})", function.name),
            None => "semaphore a pool".to_owned(),
        });
        let users = Wakes::of(program, &self.threads);
        let created: FxHashSet<usize> = program
            .threads
            .iter()
            .flat_map(|thread| &thread.operations)
            .filter_map(crate::experiment::created)
            .collect();
        let is_first = |number: &usize| {
            !created.contains(number)
                && program.threads.get(*number).is_some_and(|of| of.background.is_none())
        };
        let first = (0..program.threads.len()).find(is_first)?;
        for (number, thread) in with.threads.iter_mut().enumerate() {
            let is_member = self.threads.contains(&number);
            if number != first && !is_member {
                continue;
            }
            let start = (number == first).then_some(Operation::SemInit(semaphore, self.permits));
            rewrite(thread, start, |operation, out| match operation {
                Operation::Sleep(_) if is_member => {
                    out.extend([Operation::SemWait(semaphore), operation, Operation::SemPost(semaphore)]);
                }
                Operation::Await(edge) if is_member && users.inside.contains(&edge) => {}
                Operation::SemWait(of)
                | Operation::SemPost(of)
                | Operation::Wait(of)
                | Operation::Signal(of)
                    if is_member && users.is_own(of) => {}
                _ => out.push(operation),
            });
        }
        Some(with)
    }
}

/// Replaces each operation of a thread by those that `with` adds, and renumbers all references to operations.
fn rewrite(
    thread: &mut Thread,
    start: Option<Operation>,
    mut with: impl FnMut(Operation, &mut Vec<Operation>),
) {
    let mut out: Vec<Operation> = start.into_iter().collect();
    let mut places: Vec<u32> = Vec::with_capacity(thread.operations.len() + 1);
    for operation in &thread.operations {
        places.push(out.len() as u32);
        with(*operation, &mut out);
    }
    places.push(out.len() as u32);
    let place = |old: u32| places.get(old as usize).copied().unwrap_or(out.len() as u32);
    for change in &mut thread.moves {
        change.operation = place(change.operation);
    }
    if let Some(background) = &mut thread.background {
        background.repeats_from = place(background.repeats_from);
        background.repeats_until = place(background.repeats_until);
    }
    thread.operations = out;
}

/// Which threads wake the threads of a pool.
struct Wakes {
    /// Recorded wake-ups among the pool's threads.
    inside: FxHashSet<EdgeId>,
    /// The part of the pool's recorded waits that a thread of the pool ended.
    awaited: f64,
    /// For each semaphore: how often threads of the pool posted it, and how often other threads did.
    given: FxHashMap<ObjectId, (u64, u64)>,
    taken_outside: FxHashSet<ObjectId>,
    /// Share of the pool's sleeps after which the thread wakes another thread of the pool before its next sleep.
    followed: f64,
}

impl Wakes {
    fn of(program: &Program, threads: &FxHashSet<usize>) -> Wakes {
        let mut wakes = Wakes {
            inside: FxHashSet::default(),
            awaited: 0.0,
            given: FxHashMap::default(),
            taken_outside: FxHashSet::default(),
            followed: 0.0,
        };
        let (mut released, mut awaited, mut takers) =
            (FxHashSet::default(), FxHashSet::default(), FxHashSet::default());
        for (number, thread) in program.threads.iter().enumerate() {
            let is_member = threads.contains(&number);
            for operation in &thread.operations {
                match *operation {
                    Operation::Release(edge) if is_member => drop(released.insert(edge)),
                    Operation::Await(edge) if is_member => drop(awaited.insert(edge)),
                    Operation::SemPost(of) | Operation::Signal(of) => {
                        let counts = wakes.given.entry(of).or_insert((0, 0));
                        *(if is_member { &mut counts.0 } else { &mut counts.1 }) += 1;
                    }
                    Operation::SemWait(of) | Operation::Wait(of) if is_member => drop(takers.insert(of)),
                    Operation::SemWait(of) | Operation::Wait(of) => drop(wakes.taken_outside.insert(of)),
                    _ => {}
                }
            }
        }
        wakes.inside = released.intersection(&awaited).copied().collect();
        wakes.awaited = wakes.inside.len() as f64 / awaited.len().max(1) as f64;
        let (mut sleeps, mut followed) = (0u64, 0u64);
        for thread in threads.iter().filter_map(|number| program.threads.get(*number)) {
            let mut is_open = false;
            for operation in &thread.operations {
                match operation {
                    Operation::Sleep(_) => (sleeps, is_open) = (sleeps + 1, true),
                    Operation::Release(edge) if is_open && wakes.inside.contains(edge) => {
                        (followed, is_open) = (followed + 1, false);
                    }
                    Operation::SemPost(of) | Operation::Signal(of) if is_open && takers.contains(of) => {
                        (followed, is_open) = (followed + 1, false);
                    }
                    _ => {}
                }
            }
        }
        wakes.followed = followed as f64 / sleeps.max(1) as f64;
        wakes
    }

    /// The part of the waits for this object (`None`: for recorded wake-ups) that a thread of the pool ended.
    fn by_members(&self, object: Option<ObjectId>) -> f64 {
        let Some(object) = object else { return self.awaited };
        let (own, others) = self.given.get(&object).copied().unwrap_or((0, 0));
        own as f64 / own.saturating_add(others).max(1) as f64
    }

    /// Whether only threads of the pool wait for the object and post it.
    fn is_own(&self, object: ObjectId) -> bool {
        let others = self.given.get(&object).map_or(0, |(_, others)| *others);
        others == 0 && !self.taken_outside.contains(&object)
    }
}

/// The state of a thread.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum State {
    Asleep,
    Waits,
    Computes,
}

/// The states of the pool's threads in a run.
struct Seen<'t> {
    threads: &'t FxHashSet<usize>,
    /// Time, whether a state begins (`true`) or ends, and the state; at one instant ends sort first.
    changes: Vec<(Ticks, bool, State)>,
    /// Time for which the pool's threads wait for each object, ticks; the key `None` stands for recorded wake-ups.
    waits: FxHashMap<Option<ObjectId>, u64>,
}

impl Seen<'_> {
    fn tell(&mut self, interval: Interval) {
        if interval.end <= interval.start || !self.threads.contains(&(interval.thread.0 as usize)) {
            return;
        }
        let state = match interval.doing {
            SimulatedState::Nothing | SimulatedState::Blocked(Why::Join) => return,
            SimulatedState::Blocked(Why::Sleep) => State::Asleep,
            SimulatedState::Blocked(why) => {
                let object = if let Why::Object(object) = why { Some(object) } else { None };
                let sum = self.waits.entry(object).or_insert(0);
                *sum = sum.saturating_add(interval.end.0 - interval.start.0);
                State::Waits
            }
            SimulatedState::Busy | SimulatedState::Ready | SimulatedState::Spinning(_) => State::Computes,
        };
        self.changes.push((interval.start, true, state));
        self.changes.push((interval.end, false, state));
    }

    /// The most threads that sleep at a time. `None`: that number is rare, or then no other thread waits, or one computes.
    fn most_asleep(mut self) -> Option<u32> {
        self.changes.sort_unstable();
        let (mut asleep, mut waits, mut computes, mut since) = (0usize, 0u64, 0u64, Ticks(0));
        // For each number of sleeping threads: the time with that number, the part of it in which others wait, and the
        // part in which no thread computes.
        let mut sums = vec![(0u64, 0u64, 0u64); self.threads.len() + 1];
        for (at, begins, state) in self.changes {
            let passed = at.0 - since.0;
            if let Some((all, waited, quiet)) = sums.get_mut(asleep) {
                *all += passed;
                *waited += if waits > 0 { passed } else { 0 };
                *quiet += if waits > 0 && computes == 0 { passed } else { 0 };
            }
            let count = |sum: &mut u64| *sum = if begins { *sum + 1 } else { sum.saturating_sub(1) };
            match state {
                State::Asleep => asleep = if begins { asleep + 1 } else { asleep.saturating_sub(1) },
                State::Waits => count(&mut waits),
                State::Computes => count(&mut computes),
            }
            since = at;
        }
        let total: u64 = sums.iter().skip(1).map(|(all, ..)| all).sum();
        let part = |ticks: u64| ticks as f64 / total.max(1) as f64;
        let mut above = 0u64;
        for (number, (all, waited, quiet)) in sums.into_iter().enumerate().skip(1).rev() {
            above += all;
            if part(above) > BY_CHANCE {
                let is_full = part(waited) >= ALL_IN_USE && part(quiet) >= NONE_COMPUTES;
                return is_full.then(|| u32::try_from(number).unwrap_or(u32::MAX));
            }
        }
        None
    }
}
