//! Estimates sections of locks between those that events show: sections of each lock at equal distances, as many as its
//! share of the running time requires. If a sample contradicts the estimate (the thread is under a lock, or under
//! none), all later sections move by the least possible amount.

use super::lengths::Lengths;
use super::sections::{OfThread, Section};

/// Sections of a lock that may be late for lack of room. Without a limit, they would crowd where room begins.
const MOST_DUE: f64 = 4.0;

/// The sections of one thread, as far as they are decided. Times are in the thread's own clock, ns.
pub(super) struct Fill<'a, 'b> {
    thread: &'a mut OfThread<'b>,
    ticks: &'a [(u64, Option<usize>)],
    /// For each lock: when the next section is due; infinite if the thread does not use the lock.
    due: Vec<f64>,
    /// All before this instant is decided.
    at: u64,
    pub(super) sections: Vec<Section>,
}

impl<'a, 'b> Fill<'a, 'b> {
    pub(super) fn new(thread: &'a mut OfThread<'b>, ticks: &'a [(u64, Option<usize>)]) -> Fill<'a, 'b> {
        let mut fill = Fill { thread, ticks, due: Vec::new(), at: 0, sections: Vec::new() };
        fill.due = (0..fill.thread.locks.len())
            .map(|lock| match fill.apart(lock) {
                apart if apart.is_finite() => apart * (fill.thread.chance.below(1024) as f64 / 1024.0),
                never => never,
            })
            .collect();
        fill
    }

    /// Mean time from one acquisition of the lock by the thread to its next one.
    fn apart(&self, lock: usize) -> f64 {
        self.thread.length(lock) / self.thread.share(lock)
    }

    /// Notes a section of `length`: the next one is due later.
    fn had(&mut self, lock: usize, length: u64) {
        let (apart, share) = (self.apart(lock), self.thread.share(lock));
        if let Some(due) = self.due.get_mut(lock) {
            *due = (*due + length as f64 / share).max(self.at as f64 - MOST_DUE * apart);
        }
    }

    /// Adds a section that events show, or passes an instant that no section may span.
    pub(super) fn jump(&mut self, until: u64, section: Option<Section>) {
        self.at = self.at.max(until);
        if let Some(section) = section {
            self.sections.push(section);
            self.had(section.lock, section.until_ns.saturating_sub(section.from_ns));
        }
        self.pass(self.at);
    }

    /// Drops samples before an instant.
    fn pass(&mut self, until: u64) {
        let passed = self.ticks.partition_point(|(at, _)| *at < until);
        self.ticks = self.ticks.get(passed..).unwrap_or_default();
    }

    /// Adds sections up to an instant.
    pub(super) fn up_to(&mut self, until: u64) {
        while self.at < until {
            let due = self.due.iter().copied().enumerate().min_by(|a, b| a.1.total_cmp(&b.1));
            let (lock, due) = due.unwrap_or((0, f64::INFINITY));
            let from = due.max(self.at as f64).min(until as f64) as u64;
            let length = self.thread.one(lock);
            let tick = self.ticks.first().copied().filter(|(at, _)| *at < until);
            let end = from.saturating_add(length);
            match tick {
                Some((at, Some(under))) if at < from || (at < end && under != lock) => {
                    self.meet(at, under, until);
                }
                Some((at, None)) if at < from => self.pass(at + 1),
                Some((at, None)) if at < end => self.avoid(at, lock, from, length),
                _ if end > until => break,
                _ => self.put(lock, from, length),
            }
        }
    }

    fn put(&mut self, lock: usize, from_ns: u64, length: u64) {
        let until_ns = from_ns.saturating_add(length);
        let times = u32::try_from(self.thread.each).unwrap_or(u32::MAX);
        self.sections.push(Section { until_ns, times, ..Section::new(lock, from_ns) });
        self.at = until_ns;
        self.had(lock, length);
        self.pass(until_ns);
    }

    /// Moves all due sections later, or earlier.
    fn shift(&mut self, by: f64) {
        self.due.iter_mut().for_each(|due| *due += by);
    }

    /// A sample found the thread under this lock at a free time. Moves the section before it or the next one to the sample,
    /// whichever is nearer.
    fn meet(&mut self, at: u64, lock: usize, until: u64) {
        self.pass(at + 1);
        let before = self.sections.last_mut().filter(|last| {
            last.lock == lock && last.waited.is_none() && last.woke.is_none() && last.until_ns == self.at
        });
        let due = self.due.get(lock).copied().unwrap_or(f64::INFINITY);
        if let Some(last) = before
            && ((at - last.until_ns) as f64) < due - at as f64
        {
            let late = at + 1 - last.until_ns;
            (last.from_ns, last.until_ns) = (last.from_ns + late, last.until_ns + late);
            self.at = last.until_ns;
            self.shift(late as f64);
            return;
        }
        let length = self.thread.one(lock);
        if due.is_finite() {
            self.shift((at as f64 - due).min(0.0));
        }
        self.put(lock, at, length.min(until - at).max(1));
    }

    /// A sample found the thread under no lock, where a section is due. Moves the section before or behind the sample,
    /// whichever is nearer.
    fn avoid(&mut self, at: u64, lock: usize, from: u64, length: u64) {
        let (early, late) = (from.saturating_add(length) - at, at + 1 - from);
        if early < late && self.at.saturating_add(early) <= from {
            self.shift(-(early as f64));
            self.put(lock, from - early, length);
        } else {
            self.shift(late as f64);
            // Sections that were due earlier must not come before this one.
            self.due.iter_mut().for_each(|due| *due = due.max((at + 1) as f64));
            self.pass(at + 1);
        }
    }
}

impl OfThread<'_> {
    fn lengths(&self, lock: usize) -> Option<&Lengths> {
        self.locks.get(lock).map(|lock| &lock.lengths)
    }

    /// Mean time of an added section of the lock, which stands for `each` sections.
    fn length(&self, lock: usize) -> f64 {
        self.lengths(lock).map_or(1.0, |lengths| lengths.mean_ns() as f64) * self.each as f64
    }

    fn one(&mut self, lock: usize) -> u64 {
        let held = self.locks.get(lock).map_or(&[][..], |lock| &lock.lengths.held);
        Lengths::one(held, &mut self.chance).saturating_mul(self.each)
    }

    fn share(&self, lock: usize) -> f64 {
        self.locks.get(lock).and_then(|lock| lock.shares.get(self.index)).copied().unwrap_or(0.0)
    }
}
