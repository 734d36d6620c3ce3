//! Which rank of MPI ended the wait of another one.
//!
//! Messages between ranks leave no trace, so of several ranks the one that worked longest during the wait is assumed. Of a
//! collective call that all ranks must enter, this is the last one. A rank that waits for a CPU is at work, too.

use super::pieces::Piece;
use super::{Ran, SEEN_WITHIN_NS, Source, Stretch};

/// What a rank did, apart from waiting.
#[derive(Clone, Debug, Default)]
pub(super) struct Works {
    /// Its work, ascending.
    all: Vec<Work>,
    /// Times at which it got a CPU for which it had waited, ascending.
    resumed: Vec<u64>,
}

/// A stretch of work: begin, end, and the work before, ns.
#[derive(Clone, Copy, Debug)]
struct Work {
    from: u64,
    to: u64,
    before_ns: u64,
    /// Whether the thread slept before.
    after_sleep: bool,
}

impl Works {
    pub(super) fn of(pieces: &[Piece]) -> Works {
        let mut all: Vec<Work> = Vec::new();
        let mut resumed = Vec::new();
        let mut goes_on = false;
        let mut ran_until = u64::MAX;
        for piece in pieces {
            if !piece.after_break && piece.from.saturating_sub(ran_until) >= SEEN_WITHIN_NS {
                resumed.push(piece.from);
            }
            ran_until = piece.to;
            if piece.spins {
                goes_on = false;
                continue;
            }
            let sum = all.last().map_or(0, |last| last.before_ns.saturating_add(last.to - last.from));
            match all.last_mut() {
                Some(last) if goes_on && !piece.after_break => last.to = piece.to,
                _ => all.push(Work {
                    from: piece.from,
                    to: piece.to,
                    before_ns: sum,
                    after_sleep: piece.after_break,
                }),
            }
            goes_on = true;
        }
        Works { all, resumed }
    }

    /// The work that began last before this time.
    fn last(&self, time: u64) -> Option<&Work> {
        let before = self.all.partition_point(|work| work.from < time);
        self.all.get(before.checked_sub(1)?)
    }

    /// The first work that begins at this time or later.
    fn next(&self, time: u64) -> Option<&Work> {
        self.all.get(self.all.partition_point(|work| work.from < time))
    }

    /// When the rank got a CPU last before this time.
    fn resumed(&self, time: u64) -> u64 {
        let before = self.resumed.partition_point(|resumed| *resumed < time);
        before.checked_sub(1).and_then(|last| self.resumed.get(last)).copied().unwrap_or(0)
    }

    /// Length of the work between two times.
    fn within(&self, from: u64, to: u64) -> u64 {
        let until = |time: u64| {
            self.last(time).map_or(0, |work| work.before_ns.saturating_add(time.min(work.to) - work.from))
        };
        until(to).saturating_sub(until(from))
    }
}

/// The rank that ended the wait, and when. Moves the end of the stretch to that time.
///
/// `others`: threads that call MPI in other ranks. `seen_ns`: how far from the wait's end its last sample may be.
pub(super) fn source(
    index: usize,
    stretch: &mut Stretch,
    others: &[usize],
    rans: &[Ran],
    seen_ns: u64,
) -> Option<Source> {
    let (from, to) = (stretch.from, stretch.to);
    let mut works: Option<(u64, usize)> = None;
    let mut woken: Option<(u64, usize)> = None;
    let mut stopped: Option<(u64, usize)> = None;
    // The rank's own work after the wait: the wait cannot end later.
    let own = rans.get(index).and_then(|ran| ran.works.next(to)).filter(|work| work.from == to);
    let latest = own.map_or(to, |work| work.to.min(to.saturating_add(seen_ns)));
    for &other in others {
        let Some(ran) = rans.get(other) else { continue };
        if let Some(last) = ran.works.last(to) {
            if last.to >= to {
                let length = ran.works.within(from, to);
                works = works.filter(|(most, _)| *most >= length).or(Some((length, other)));
            } else {
                // A rank takes and passes messages only while it has a CPU.
                let stop = last.to.max(ran.works.resumed(to));
                if stop > from {
                    stopped = stopped.filter(|(time, _)| *time >= stop).or(Some((stop, other)));
                }
            }
        }
        let next = ran.works.next(to).filter(|next| next.after_sleep && next.from <= latest);
        if let Some(next) = next {
            woken = woken.filter(|(time, _)| *time <= next.from).or(Some((next.from, other)));
        }
    }
    let is_guess = others.len() > 1;
    let source = match (works, woken, stopped) {
        (Some((_, thread)), ..) => Source { thread, time: to, is_guess },
        // A rank that slept meanwhile goes on just when the last sample of the wait ends.
        (None, Some((time, thread)), _) => Source { thread, time, is_guess },
        // From then on both ranks are in MPI: the messages themselves take that time, so it stays computing.
        (None, None, Some((time, thread))) => Source { thread, time, is_guess: true },
        (None, None, None) => return None,
    };
    stretch.ran_ns = stretch.ran_ns.min(source.time.saturating_sub(from));
    stretch.to = source.time;
    Some(source)
}

#[cfg(test)]
mod tests;
