//! Finds which waits, wake-ups and operations lie inside which synchronization operation. Operations inside others are
//! those of a signal handler, or of code that `pthread_once` runs.

use crate::timeline::{LockOperation, NO_OBJECT, State, Step, StepKind, Thread, Timeline, Wait, WaitReason};
use probe_abi::Call;

/// The kernel's `TASK_UNINTERRUPTIBLE`.
const UNINTERRUPTIBLE: u32 = 2;

/// Stands for no operation.
pub(in crate::program) const NONE: u32 = u32::MAX;

/// Levels of operations inside operations that are followed: a malformed recording may nest without end.
const DEEPEST: usize = 64;

/// Where an operation begins among its thread's steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::program) struct Begin {
    /// Index in `Timeline::lock_operations`.
    pub(in crate::program) used: u32,
    /// Time at which the operation began; never before the thread's start or inside of an earlier operation.
    pub(in crate::program) time: u64,
    /// Index of the first step inside the operation, or of the step that ends it.
    pub(in crate::program) first_step: u32,
}

/// Which waits, wake-ups and operations lie inside which operation. Lists by operation have the indices of
/// `Timeline::lock_operations`.
#[derive(Clone, Debug, Default)]
pub(in crate::program) struct Nesting {
    /// The operation around each operation, or [`NONE`].
    pub(super) parent: Vec<u32>,
    /// Whether the thread slept for a futex directly inside.
    pub(super) slept: Vec<bool>,
    /// Whether the operation ended another thread's wait.
    pub(super) woke: Vec<bool>,
    /// Whether nothing but wake-ups of others happened inside.
    plain: Vec<bool>,
    /// Index of the first step inside the operation, and of the step that ends the operation.
    steps: Vec<(u32, u32)>,
    /// For each wake-up: the innermost operation around it, or [`NONE`].
    pub(super) wake_in: Vec<u32>,
    /// For each thread and wait: the innermost operation around the wait, or [`NONE`].
    pub(super) wait_in: Vec<Vec<u32>>,
    /// For each thread: where its operations begin, in order; an outer operation precedes those inside it.
    pub(super) begins: Vec<Vec<Begin>>,
}

/// An operation of the current thread.
#[derive(Clone, Copy, Debug)]
struct Own {
    begin: Begin,
    end_step: u32,
    end: u64,
}

impl Nesting {
    pub(in crate::program) fn of(timeline: &Timeline) -> Nesting {
        let count = timeline.lock_operations.len();
        let mut nesting = Nesting {
            parent: vec![NONE; count],
            slept: vec![false; count],
            woke: vec![false; count],
            plain: vec![false; count],
            steps: vec![(0, 0); count],
            wake_in: vec![NONE; timeline.wakeups.len()],
            ..Nesting::default()
        };
        let mut behind: Vec<(u32, u32)> = Vec::new();
        for thread in &timeline.threads {
            let own = nesting.nest(timeline, thread);
            for own in &own {
                nesting.steps[own.begin.used as usize] = (own.begin.first_step, own.end_step);
                let steps = own.begin.first_step as usize..own.end_step as usize;
                let steps = thread.steps.get(steps).unwrap_or_default();
                nesting.plain[own.begin.used as usize] =
                    steps.iter().all(|step| matches!(step.kind, StepKind::Wake(_)));
            }
            nesting.place_steps(timeline, thread, &own, &mut behind);
            nesting.place_waits(timeline, thread, &own);
            let mut begins: Vec<Begin> = own.iter().map(|own| own.begin).collect();
            // Of two operations that begin together, the outer one ends later and so is later in the list.
            begins.reverse();
            begins.sort_by_key(|begin| (begin.first_step, begin.time));
            nesting.begins.push(begins);
        }
        nesting.place_behind(timeline, &behind);
        nesting
    }

    /// Assigns wake-ups outside of operations to the release before, if the woken thread waits for the same object.
    ///
    /// A release recorded as an instant may come before its wake-up, if a thread has just begun to wait. `behind` has
    /// wake-ups, each with the operation before.
    fn place_behind(&mut self, timeline: &Timeline, behind: &[(u32, u32)]) {
        for &(wakeup, used) in behind {
            let Some(wake) = timeline.wakeups.get(wakeup as usize) else { continue };
            let Some(before) = timeline.lock_operations.get(used as usize) else { continue };
            let waits = self.wait_in.get(wake.wakee as usize);
            let wait = wake.ended.and_then(|wait| waits.and_then(|waits| waits.get(wait as usize)));
            let Some(awaited) = wait.and_then(|&number| timeline.lock_operations.get(number as usize)) else {
                continue;
            };
            let is_instant = before.began == before.ended && before.object != NO_OBJECT;
            if !is_instant || before.object != awaited.object && before.object != awaited.second {
                continue;
            }
            if let Some(wake) = self.wake_in.get_mut(wakeup as usize) {
                *wake = used;
            }
            if let Some(woke) = self.woke.get_mut(used as usize) {
                *woke = true;
            }
        }
    }

    /// Index of the operation around a wait of a thread.
    pub(super) fn of_wait(&self, thread: usize, wait: usize) -> Option<u32> {
        self.wait_in.get(thread)?.get(wait).copied().filter(|used| *used != NONE)
    }

    /// The operation around a wait of a thread.
    pub(in crate::program) fn operation<'t>(
        &self,
        timeline: &'t Timeline,
        thread: usize,
        wait: u32,
    ) -> Option<&'t LockOperation> {
        timeline.lock_operations.get(self.of_wait(thread, wait as usize)? as usize)
    }

    /// Whether only computing and wake-ups of others happened inside the operation.
    pub(super) fn is_plain(&self, used: u32) -> bool {
        self.plain.get(used as usize) == Some(&true)
    }

    /// Whether `other`, of the same thread, ended before this operation began.
    pub(super) fn is_after(&self, used: u32, other: u32) -> bool {
        match (self.steps.get(used as usize), self.steps.get(other as usize)) {
            (Some((first, _)), Some((_, end))) => end < first,
            _ => false,
        }
    }

    /// The operation `used` and all operations around it, from the inside out.
    pub(super) fn around(&self, used: u32) -> impl Iterator<Item = u32> + '_ {
        let next =
            move |used: &u32| self.parent.get(*used as usize).copied().filter(|parent| *parent != NONE);
        std::iter::successors(Some(used).filter(|used| *used != NONE), next).take(DEEPEST)
    }

    /// Returns the thread's operations in order of their ends, and fills in `parent`.
    fn nest(&mut self, timeline: &Timeline, thread: &Thread) -> Vec<Own> {
        let mut all: Vec<Own> = Vec::new();
        // Indices in `all` of operations that are inside no other one, as far as is known.
        let mut outer: Vec<usize> = Vec::new();
        // Time of the last hole, and index of the step that follows it.
        let mut hole = (0, 0);
        for (step, number) in thread.steps.iter().zip(0u32..) {
            if let StepKind::Hole(_) = step.kind {
                hole = (step.time.0, number.saturating_add(1));
            }
            let StepKind::Operated(used) = step.kind else { continue };
            let Some(operation) = timeline.lock_operations.get(used as usize) else { continue };
            let end = step.time.0;
            let mut time = operation.began.0.min(end).max(thread.start.0);
            while let Some(&place) = outer.last() {
                let earlier = all[place];
                if earlier.end <= time {
                    break;
                }
                if earlier.begin.time < time {
                    // The operations overlap, which cannot be: this one is taken to begin at the other's end.
                    time = earlier.end;
                    break;
                }
                self.parent[earlier.begin.used as usize] = used;
                outer.pop();
            }
            let after = outer.last().map_or(0, |&place| all[place].end_step.saturating_add(1));
            let at = first_from(&thread.steps, number as usize, time);
            let after = if hole.0 <= time { after.max(hole.1) } else { after };
            let first_step = u32::try_from(at).unwrap_or(u32::MAX).max(after).min(number);
            outer.push(all.len());
            all.push(Own { begin: Begin { used, time, first_step }, end_step: number, end });
        }
        all
    }

    fn place_steps(
        &mut self,
        timeline: &Timeline,
        thread: &Thread,
        own: &[Own],
        behind: &mut Vec<(u32, u32)>,
    ) {
        let mut next = own.iter().peekable();
        let mut places = Places::new(own);
        let mut last = NONE;
        for (step, number) in thread.steps.iter().zip(0u32..) {
            while next.next_if(|own| own.end_step < number).is_some() {}
            let wakeup = match step.kind {
                StepKind::Wake(wakeup) => wakeup,
                StepKind::Operated(used) => {
                    last = used;
                    continue;
                }
                StepKind::Hole(_) => {
                    last = NONE;
                    continue;
                }
                _ => continue,
            };
            let first = next.peek().map_or(NONE, |own| own.begin.used);
            let found = self.innermost(&mut places, first, |begin| {
                begin.first_step <= number && begin.time <= step.time.0
            });
            if found == NONE && last != NONE {
                behind.push((wakeup, last));
            }
            if let (Some(wake), Some(known)) =
                (self.wake_in.get_mut(wakeup as usize), timeline.wakeups.get(wakeup as usize))
            {
                *wake = found;
                if let Some(woke) = self.woke.get_mut(found as usize) {
                    *woke |= known.ended.is_some();
                }
            }
        }
    }

    fn place_waits(&mut self, timeline: &Timeline, thread: &Thread, own: &[Own]) {
        // An operation without a length contains no wait.
        let lasts = |used: u32| {
            timeline.lock_operations.get(used as usize).is_some_and(|used| used.began < used.ended)
        };
        let mut next = own.iter().peekable();
        let mut places = Places::new(own);
        let mut waits = vec![NONE; thread.waits.len()];
        for interval in &thread.intervals {
            let State::Blocked(wait) = interval.state else { continue };
            while next.next_if(|own| own.end_step < interval.first_step).is_some() {}
            let first = next.peek().map_or(NONE, |own| own.begin.used);
            let found = self.innermost(&mut places, first, |begin| {
                begin.first_step <= interval.first_step && begin.time <= interval.start.0 && lasts(begin.used)
            });
            if let Some(place) = waits.get_mut(wait as usize) {
                *place = found;
            }
            if let Some(plain) = self.plain.get_mut(found as usize) {
                *plain = false;
            }
            if let Some(slept) = self.slept.get_mut(found as usize) {
                *slept |= thread.waits.get(wait as usize).is_some_and(may_be_for_an_object);
            }
        }
        self.wait_in.push(waits);
    }

    /// The innermost operation that has begun: the first one to end, or one around it.
    fn innermost(&self, places: &mut Places<'_>, first: u32, has_begun: impl Fn(Begin) -> bool) -> u32 {
        self.around(first).find(|used| places.begin(*used).is_some_and(&has_begun)).unwrap_or(NONE)
    }
}

/// Index of the first step at this time or later. The step with index `number` is such a step, and mostly near.
fn first_from(steps: &[Step], number: usize, time: u64) -> usize {
    let is_before = |step: &Step| step.time.0 < time;
    let mut back = 1;
    while number.checked_sub(back).and_then(|place| steps.get(place)).is_some_and(|step| !is_before(step)) {
        back = back.saturating_mul(2);
    }
    let from = number.saturating_sub(back);
    from + steps.get(from..number).unwrap_or_default().partition_point(is_before)
}

/// Whether a wait inside an operation may be for the operation's object. A read of a page from disk is not.
pub(super) fn may_be_for_an_object(wait: &Wait) -> bool {
    match wait.reason {
        WaitReason::Futex(_) => true,
        WaitReason::Kernel { task_state, call, .. } => {
            call == Call::NONE && task_state & UNINTERRUPTIBLE == 0 && !wait.reason.is_stop()
        }
    }
}

/// A thread's operations, sorted by index. Indices grow with the operations' ends.
struct Places<'a>(&'a [Own]);

impl<'a> Places<'a> {
    fn new(own: &'a [Own]) -> Places<'a> {
        Places(own)
    }

    fn begin(&mut self, used: u32) -> Option<Begin> {
        let place = self.0.binary_search_by_key(&used, |own| own.begin.used).ok()?;
        self.0.get(place).map(|own| own.begin)
    }
}
