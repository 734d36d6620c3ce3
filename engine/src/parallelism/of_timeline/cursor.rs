//! Walks through one thread of a timeline as a sequence of changes in order of time, by merging sorted lists.

use crate::event::FunctionId;
use crate::program::Turn;
use crate::timeline::{Hit, StackSample, State, Step, StepKind, Thread};
use std::collections::BTreeMap;

/// A change in a thread.
#[derive(Clone, Copy, Debug)]
pub(super) enum Change {
    /// A sample with a stack.
    Sample(StackSample),
    /// The thread is in this state from now on.
    State(State),
    /// The thread's base stack with this number: functions open at the bottom.
    Base(usize),
    Enter(FunctionId),
    Leave,
    /// The thread creates another one, given by its index in the timeline.
    Create(u32),
    /// The thread arrives at this object, this many times at once.
    Comes(u32, u32),
    /// The thread's wait for this object ends.
    Gets(u32),
    /// The thread has released this object.
    Gives(u32),
    /// Whether the thread spins whenever it runs, from now on.
    Spins(bool),
    /// The work of a probe begins (true) or ends.
    Probe(bool),
    /// The thread wakes another: number of the wake-up.
    Wakes(u32),
    /// A step without meaning here.
    Nothing,
    /// The thread's life in the window ends.
    Ends,
}

/// A position in one thread's sequence of changes; see the module.
pub(super) struct Cursor<'a> {
    thread: &'a Thread,
    interval: usize,
    base: usize,
    step: usize,
    seen: usize,
    turns: &'a [Turn],
    turn: usize,
    /// Open turns by the time of their next change, and whether the thread has got the object.
    open: BTreeMap<(u64, usize), (Turn, bool)>,
    spins: &'a [(u64, u64)],
    spin: (usize, bool),
    hits: &'a [Hit],
    hit: (usize, bool),
    /// End of the last probe's work: the next one's begins no earlier.
    probed_until: u64,
    /// For each list: the time of its next change. If two lists change at the same time, the list with the smaller
    /// number comes first.
    times: [u64; LISTS],
    /// The earliest time in `times`, and the number of its list.
    next: (u64, usize),
    ended: bool,
}

/// Number of lists: samples, turns that continue, base stacks, steps, turns that begin, intervals, spinning, hits.
const LISTS: usize = 8;
/// The time of a list that has ended.
const NEVER: u64 = u64::MAX;

impl<'a> Cursor<'a> {
    pub(super) fn new(thread: &'a Thread, turns: &'a [Turn], spins: &'a [(u64, u64)]) -> Cursor<'a> {
        let mut cursor = Cursor {
            thread,
            interval: 0,
            base: 0,
            step: 0,
            seen: 0,
            turns,
            turn: 0,
            open: BTreeMap::new(),
            spins,
            spin: (0, false),
            hits: &thread.hits,
            hit: (0, false),
            probed_until: 0,
            times: [NEVER; LISTS],
            next: (NEVER, 0),
            ended: false,
        };
        for list in 0..LISTS {
            cursor.look(list);
        }
        cursor.choose();
        cursor
    }

    fn hit_time(&self) -> Option<u64> {
        let hit = self.hits.get(self.hit.0)?;
        let from = hit.time.0.saturating_sub(u64::from(hit.before_ns)).max(self.probed_until);
        let to = hit.time.0.saturating_add(u64::from(hit.after_ns)).max(from);
        Some(if self.hit.1 { to } else { from })
    }

    fn base_time(&self) -> Option<u64> {
        let base = self.thread.base_stacks.get(self.base)?;
        let step = self.thread.steps.get(base.first_step as usize).map_or(u64::MAX, |step| step.time.0);
        Some(base.time.0.min(step))
    }

    /// Updates the time of a list's next change.
    fn look(&mut self, list: usize) {
        let time = match list {
            0 => self.thread.samples.get(self.seen).map(|seen| seen.time.0),
            1 => self.open.first_key_value().map(|((time, _), _)| *time),
            2 => self.base_time(),
            3 => self.thread.steps.get(self.step).map(|step| step.time.0),
            4 => self.turns.get(self.turn).map(|turn| turn.came),
            5 => self.thread.intervals.get(self.interval).map(|interval| interval.start.0),
            6 => self.spins.get(self.spin.0).map(|(from, to)| if self.spin.1 { *to } else { *from }),
            _ => self.hit_time(),
        };
        if let Some(next) = self.times.get_mut(list) {
            *next = time.unwrap_or(NEVER);
        }
    }

    fn choose(&mut self) {
        let first = |next: (u64, usize), (list, time): (usize, &u64)| {
            if *time < next.0 { (*time, list) } else { next }
        };
        self.next = self.times.iter().enumerate().fold((NEVER, 0), first);
    }

    /// Time of the next change, ns.
    #[inline]
    pub(super) fn next_time(&self) -> Option<u64> {
        (!self.ended).then(|| self.next.0.min(self.thread.end.0))
    }

    /// The next change.
    #[inline]
    pub(super) fn advance(&mut self) -> Option<Change> {
        let (now, list) = self.next;
        if self.ended || now >= self.thread.end.0 {
            let is_new = !std::mem::replace(&mut self.ended, true);
            return is_new.then_some(Change::Ends);
        }
        let change = self.take(list, now)?;
        self.look(list);
        if list == 4 {
            self.look(1);
        }
        self.choose();
        Some(change)
    }

    /// Takes the next change of a list.
    fn take(&mut self, which: usize, now: u64) -> Option<Change> {
        Some(match which {
            0 => {
                let seen = self.thread.samples.get(self.seen).copied()?;
                self.seen += 1;
                Change::Sample(seen)
            }
            1 => self.goes_on(now)?,
            2 => {
                self.base += 1;
                Change::Base(self.base - 1)
            }
            3 => {
                let step = self.thread.steps.get(self.step).copied()?;
                self.step += 1;
                change(&step)
            }
            4 => {
                let turn = *self.turns.get(self.turn)?;
                self.turn += 1;
                self.open.insert((turn.got.max(now), self.turn), (turn, false));
                Change::Comes(turn.object, turn.times)
            }
            5 => {
                let interval = self.thread.intervals.get(self.interval)?;
                self.interval += 1;
                Change::State(interval.state)
            }
            6 => {
                self.spin = if self.spin.1 { (self.spin.0 + 1, false) } else { (self.spin.0, true) };
                Change::Spins(self.spin.1)
            }
            _ => {
                if self.hit.1 {
                    self.probed_until = now;
                }
                self.hit = if self.hit.1 { (self.hit.0 + 1, false) } else { (self.hit.0, true) };
                Change::Probe(self.hit.1)
            }
        })
    }

    /// The next change of an open turn.
    fn goes_on(&mut self, now: u64) -> Option<Change> {
        let ((_, number), (turn, has_got)) = self.open.pop_first()?;
        if has_got {
            return Some(Change::Gives(turn.object));
        }
        self.open.insert((turn.gave.max(turn.got).max(now), number), (turn, true));
        Some(Change::Gets(turn.object))
    }
}

fn change(step: &Step) -> Change {
    match step.kind {
        StepKind::Enter(function) => Change::Enter(function),
        StepKind::Leave => Change::Leave,
        StepKind::Create(child) => Change::Create(child),
        StepKind::Wake(wakeup) => Change::Wakes(wakeup),
        StepKind::Join(_) | StepKind::Operated(_) | StepKind::Hole(_) => Change::Nothing,
    }
}
