//! A condition that counts (a method of longpole's own): a visit takes one of what other visits give, and waits while
//! there is none.
//!
//! Most condition variables do this (queues, pools, bounded buffers), and other than single signals it can be simulated, as a
//! semaphore. Checked against the recording: each visit that waited must have found nothing, and each other visit something.
//! have found nothing, and each that did not wait must have found something.

use super::super::nesting::NONE;
use super::mutex_history::{MutexHistory, Visit};
use rustc_hash::FxHashSet;

/// When a counted condition's count grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Giving {
    /// Each signal or broadcast adds one.
    Signals,
    /// Each visit of a signalling kind adds one, whether the visit signals or not.
    Visits,
    /// Each signal adds one; a broadcast adds as many as visits take until the next wait.
    Broadcasts,
    /// Each signal adds as many as are taken until the next wait: an opened gate stays open.
    Opening,
    /// Each visit of a signalling kind adds one, and a waiter takes all.
    Countdown,
}

/// How visits are divided into kinds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// By the place in the code where the thread takes the mutex.
    Place,
    /// By the place where the thread takes the mutex, and by its other actions while it holds the mutex.
    Shape,
}

impl Kind {
    pub(super) fn of(self, visit: &Visit) -> u64 {
        match self {
            Kind::Place => visit.place,
            Kind::Shape => visit.shape,
        }
    }
}

/// A condition variable understood as a semaphore.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Counted {
    /// Initial count.
    pub(super) initial: u32,
    /// Visits that take from the count: the visit, and the number that it takes.
    pub(super) takes: Vec<(u32, u32)>,
    /// Signals and broadcasts that add to the count: the operation, and the number that it adds.
    pub(super) gives: Vec<(u32, u32)>,
    /// Visits that add one to the count.
    pub(super) given_by: Vec<u32>,
}

/// A condition in a history, to be tested as a semaphore.
pub(super) struct Question<'h> {
    pub(super) history: &'h MutexHistory,
    pub(super) condition: u32,
    pub(super) kind: Kind,
    /// Kinds of visits that take from the count, in addition to visits that waited.
    pub(super) takers: FxHashSet<u64>,
}

/// The state while walking through the recording.
#[derive(Default)]
struct Sums {
    there: u32,
    /// Index of the last broadcast of unknown count. With `is_open`, the count is unknown since then; `None`: since the
    /// start.
    since: Option<u32>,
    is_open: bool,
    counted: Counted,
    /// Whether the last adding visit signalled, and whether any did not.
    last_gave: bool,
    counts_down: bool,
}

impl Question<'_> {
    /// The condition as a semaphore, if the recording agrees.
    pub(super) fn ask(&self, giving: Giving) -> Option<Counted> {
        let takers = self.takers();
        let givers = self.givers();
        let by_visits = matches!(giving, Giving::Visits | Giving::Countdown);
        if by_visits && !takers.is_disjoint(&givers) {
            return None;
        }
        let last = self.last_parts();
        let first_taking = self.taking_parts();
        let mut sums = Sums { is_open: true, ..Sums::default() };
        let mut waiting: FxHashSet<u32> = FxHashSet::default();
        for (part, place) in self.history.parts.iter().zip(0u32..) {
            let visit = self.history.visits.get(part.visit as usize)?;
            let kind = self.kind.of(visit);
            let takes = takers.contains(&kind) && visit.given_by != NONE;
            if takes && first_taking.get(part.visit as usize) == Some(&place) {
                sums.take(part.visit, giving)?;
            }
            waiting.remove(&part.visit);
            let gives = self.history.gives.get(&place).into_iter().flatten();
            let mut signals = false;
            for (_, give) in gives.filter(|(object, _)| *object == self.condition) {
                signals = true;
                let many = giving == Giving::Opening || giving == Giving::Broadcasts && give.is_broadcast;
                if !by_visits {
                    sums.give(give.used, many);
                }
            }
            if by_visits
                && givers.contains(&kind)
                && last.get(part.visit as usize) == Some(&place)
                && visit.given_by != NONE
            {
                let is_missed = giving == Giving::Visits && !signals && !waiting.is_empty();
                sums.visit_gives(part.visit, signals, is_missed)?;
            }
            if part.condition == self.condition {
                waiting.insert(part.visit);
                sums.wait(giving)?;
            }
        }
        if by_visits && !sums.counts_down {
            return None;
        }
        Some(sums.counted)
    }

    /// Kinds of visits that take: those that waited for the condition, and `takers`.
    pub(super) fn takers(&self) -> FxHashSet<u64> {
        let mut takers = self.takers.clone();
        for part in self.history.parts.iter().filter(|part| part.condition == self.condition) {
            takers.extend(self.history.visits.get(part.visit as usize).map(|visit| self.kind.of(visit)));
        }
        takers
    }

    /// Kinds of visits that signalled the condition.
    fn givers(&self) -> FxHashSet<u64> {
        let mut givers = FxHashSet::default();
        for (place, gives) in &self.history.gives {
            if gives.iter().any(|(object, _)| *object == self.condition)
                && let Some(part) = self.history.parts.get(*place as usize)
            {
                givers.extend(self.history.visits.get(part.visit as usize).map(|visit| self.kind.of(visit)));
            }
        }
        givers
    }

    /// The last part of each visit.
    fn last_parts(&self) -> Vec<u32> {
        let mut last = vec![NONE; self.history.visits.len()];
        for (part, place) in self.history.parts.iter().zip(0u32..) {
            if let Some(last) = last.get_mut(part.visit as usize) {
                *last = place;
            }
        }
        last
    }

    /// For each visit: the part after its last wait for the condition; [`NONE`] if that wait timed out.
    fn taking_parts(&self) -> Vec<u32> {
        let mut taking = vec![NONE; self.history.visits.len()];
        // Whether the visit's part before ended in a wait for the condition, and whether that wait timed out.
        let mut waited: Vec<Option<Option<bool>>> = vec![None; taking.len()];
        for (part, place) in self.history.parts.iter().zip(0u32..) {
            let visit = part.visit as usize;
            let (Some(taking), Some(waited)) = (taking.get_mut(visit), waited.get_mut(visit)) else {
                continue;
            };
            let is_waiting = part.condition == self.condition;
            match waited.replace(is_waiting.then_some(part.timed_out)) {
                // The part is the visit's first one, or it follows a wait for the condition.
                None | Some(Some(false)) => *taking = place,
                Some(Some(true)) => *taking = NONE,
                Some(None) => {}
            }
            if is_waiting {
                *taking = NONE;
            }
        }
        taking
    }
}

impl Sums {
    fn take(&mut self, visit: u32, giving: Giving) -> Option<()> {
        if giving == Giving::Countdown {
            let count = std::mem::take(&mut self.there);
            // The last thread that counted down must have signalled.
            if count > 0 && !self.last_gave {
                return None;
            }
            self.counted.takes.push((visit, count));
            return Some(());
        }
        match (self.there, self.is_open, self.since) {
            (0, true, None) => self.counted.initial = self.counted.initial.checked_add(1)?,
            (0, true, Some(place)) => {
                let (_, count) = self.counted.gives.get_mut(place as usize)?;
                *count = count.checked_add(1)?;
            }
            (0, false, _) => return None,
            _ => self.there -= 1,
        }
        self.counted.takes.push((visit, 1));
        Some(())
    }

    fn give(&mut self, used: u32, many: bool) {
        let place = u32::try_from(self.counted.gives.len()).unwrap_or(NONE);
        self.counted.gives.push((used, u32::from(!many)));
        if many {
            self.since = Some(place);
            self.is_open = true;
        } else {
            self.there = self.there.saturating_add(1);
        }
    }

    /// A visit adds one to the count. `is_missed`: a thread waits but gets no signal from this visit.
    fn visit_gives(&mut self, visit: u32, signals: bool, is_missed: bool) -> Option<()> {
        // The thread waits for more than this count.
        if is_missed && self.there == 0 {
            return None;
        }
        self.counts_down |= !signals;
        self.last_gave = signals;
        self.there = self.there.checked_add(1)?;
        self.counted.given_by.push(visit);
        Some(())
    }

    fn wait(&mut self, giving: Giving) -> Option<()> {
        if giving == Giving::Countdown {
            return Some(());
        }
        // The thread waits, so the count was 0, and from here on it is known.
        self.is_open = false;
        (self.there == 0).then_some(())
    }
}
