//! What lies inside which synchronization operation: the waits of a thread, the wake-ups that it gave, and other
//! operations (of a signal handler, or of what `pthread_once` runs).

use crate::timeline::{LockOperation, NO_OBJECT, State, Step, StepKind, Thread, Timeline, Wait, WaitReason};
use probe_abi::Call;

/// The kernel's `TASK_UNINTERRUPTIBLE`.
const UNINTERRUPTIBLE: u32 = 2;

/// No operation.
pub(in crate::program) const NONE: u32 = u32::MAX;

/// Operations inside operations are followed this far up: a recording may be made to nest without end.
const DEEPEST: usize = 64;

/// Where an operation begins among the steps of its thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::program) struct Begin {
    /// Index in [`Timeline::uses`].
    pub(in crate::program) used: u32,
    /// When it began; never before the thread or inside an earlier operation.
    pub(in crate::program) time: u64,
    /// The first step inside it, or its end.
    pub(in crate::program) first_step: u32,
}

/// See above. Everything by number of operation is as long as [`Timeline::uses`].
#[derive(Clone, Debug, Default)]
pub(in crate::program) struct Nesting {
    /// The operation that each operation is in, or [`NONE`].
    pub(super) parent: Vec<u32>,
    /// Whether the thread slept for a futex inside the operation itself.
    pub(super) slept: Vec<bool>,
    /// Whether it ended another thread's wait inside.
    pub(super) woke: Vec<bool>,
    /// Whether nothing happened inside but that others were woken.
    plain: Vec<bool>,
    /// The first step inside the operation, and the step that is its end.
    steps: Vec<(u32, u32)>,
    /// By number of the wake-up: the innermost operation in which it was given.
    pub(super) wake_in: Vec<u32>,
    /// By thread and number of the wait.
    pub(super) wait_in: Vec<Vec<u32>>,
    /// By thread: where operations begin, in that order, the outer one first.
    pub(super) begins: Vec<Vec<Begin>>,
}

/// An operation of the thread at hand.
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
            // Of two that begin together the outer one ends later, and is later in the list.
            begins.reverse();
            begins.sort_by_key(|begin| (begin.first_step, begin.time));
            nesting.begins.push(begins);
        }
        nesting.place_behind(timeline, &behind);
        nesting
    }

    /// A release that is recorded as an instant comes before what it wakes, where a thread began to wait just
    /// then. A wake-up outside of operations belongs to the release if the woken thread waits for the same
    /// object. `behind` has the wake-ups outside of operations, with the operation before.
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

    /// The number of the operation that a wait of a thread is in.
    pub(super) fn of_wait(&self, thread: usize, wait: usize) -> Option<u32> {
        self.wait_in.get(thread)?.get(wait).copied().filter(|used| *used != NONE)
    }

    /// The operation that a wait of a thread is in.
    pub(in crate::program) fn operation<'t>(
        &self,
        timeline: &'t Timeline,
        thread: usize,
        wait: u32,
    ) -> Option<&'t LockOperation> {
        timeline.lock_operations.get(self.of_wait(thread, wait as usize)? as usize)
    }

    /// Whether nothing but computing happened inside the operation, and waking others.
    pub(super) fn is_plain(&self, used: u32) -> bool {
        self.plain.get(used as usize) == Some(&true)
    }

    /// Whether the end of `other`, of the same thread, is before the beginning of this operation.
    pub(super) fn is_after(&self, used: u32, other: u32) -> bool {
        match (self.steps.get(used as usize), self.steps.get(other as usize)) {
            (Some((first, _)), Some((_, end))) => end < first,
            _ => false,
        }
    }

    /// The operations that this one is in, itself first.
    pub(super) fn around(&self, used: u32) -> impl Iterator<Item = u32> + '_ {
        let next =
            move |used: &u32| self.parent.get(*used as usize).copied().filter(|parent| *parent != NONE);
        std::iter::successors(Some(used).filter(|used| *used != NONE), next).take(DEEPEST)
    }

    /// The thread's operations in order of their ends, and which is in which.
    fn nest(&mut self, timeline: &Timeline, thread: &Thread) -> Vec<Own> {
        let mut all: Vec<Own> = Vec::new();
        // Those that are in no other so far, as places in `all`.
        let mut outer: Vec<usize> = Vec::new();
        // The last hole: its time, and the step after it.
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
                    // Neither in it nor after it: that cannot be.
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
        // Nothing is waited for in an instant.
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

    /// The innermost operation that has begun, of the first to end and those around it.
    fn innermost(&self, places: &mut Places<'_>, first: u32, has_begun: impl Fn(Begin) -> bool) -> u32 {
        self.around(first).find(|used| places.begin(*used).is_some_and(&has_begun)).unwrap_or(NONE)
    }
}

/// The first step at this time or later; the one with this number is. Mostly it is near.
fn first_from(steps: &[Step], number: usize, time: u64) -> usize {
    let is_before = |step: &Step| step.time.0 < time;
    let mut back = 1;
    while number.checked_sub(back).and_then(|place| steps.get(place)).is_some_and(|step| !is_before(step)) {
        back = back.saturating_mul(2);
    }
    let from = number.saturating_sub(back);
    from + steps.get(from..number).unwrap_or_default().partition_point(is_before)
}

/// Whether a wait inside an operation may be for its object: a page that is read from disk is not.
pub(super) fn may_be_for_an_object(wait: &Wait) -> bool {
    match wait.reason {
        WaitReason::Futex(_) => true,
        WaitReason::Kernel { task_state, call, .. } => {
            call == Call::NONE && task_state & UNINTERRUPTIBLE == 0 && !wait.reason.is_stop()
        }
    }
}

/// The begins of a thread's operations by their number: numbers grow with the ends.
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
