//! A thread's own clock: its running time so far, by time of the recording.

use super::super::model::{State, Thread};

/// A stretch in which the thread ran.
#[derive(Clone, Copy, Debug)]
struct Piece {
    interval: usize,
    from_ns: u64,
    until_ns: u64,
    /// Running time before this piece, nanoseconds.
    ran_ns: u64,
}

/// The running stretches of a thread, in order of time.
#[derive(Clone, Debug, Default)]
pub(super) struct Clock(Vec<Piece>);

impl Clock {
    pub(super) fn of(thread: &Thread) -> Clock {
        let mut pieces = Vec::new();
        let mut ran_ns = 0u64;
        for (interval, (start, end, state)) in thread.spans().enumerate() {
            if matches!(state, State::Running { .. }) && start < end {
                pieces.push(Piece { interval, from_ns: start.0, until_ns: end.0, ran_ns });
                ran_ns = ran_ns.saturating_add(end.0 - start.0);
            }
        }
        Clock(pieces)
    }

    /// Total running time, nanoseconds.
    pub(super) fn total_ns(&self) -> u64 {
        self.0.last().map_or(0, |last| last.ran_ns + (last.until_ns - last.from_ns))
    }

    /// Running time up to this instant, nanoseconds.
    pub(super) fn at(&self, time_ns: u64) -> u64 {
        let after = self.0.partition_point(|piece| piece.from_ns <= time_ns);
        let before = after.checked_sub(1).and_then(|last| self.0.get(last));
        before.map_or(0, |piece| piece.ran_ns + (time_ns.min(piece.until_ns) - piece.from_ns))
    }

    /// The interval and instant at which the thread has run for `ran_ns`.
    ///
    /// If the thread was off its CPU just then: `late` gives where it runs again, otherwise where it stopped.
    pub(super) fn when(&self, ran_ns: u64, late: bool) -> Option<(usize, u64)> {
        let begun = |piece: &Piece| if late { piece.ran_ns <= ran_ns } else { piece.ran_ns < ran_ns };
        let at = self.0.partition_point(begun).saturating_sub(1);
        let piece = self.0.get(at)?;
        Some((
            piece.interval,
            piece.from_ns.saturating_add(ran_ns.saturating_sub(piece.ran_ns)).min(piece.until_ns),
        ))
    }

    /// The interval and instant at which the thread runs first, from `time_ns` on.
    pub(super) fn next_run(&self, time_ns: u64) -> Option<(usize, u64)> {
        let at = self.0.partition_point(|piece| piece.until_ns <= time_ns);
        self.0.get(at).map(|piece| (piece.interval, piece.from_ns.max(time_ns)))
    }
}

/// Time in which at least one of these threads ran, nanoseconds.
pub(super) fn any_runs_ns<'a>(clocks: impl Iterator<Item = &'a Clock>) -> u64 {
    let mut pieces: Vec<(u64, u64)> =
        clocks.flat_map(|clock| clock.0.iter().map(|piece| (piece.from_ns, piece.until_ns))).collect();
    pieces.sort_unstable();
    let (mut sum, mut until) = (0_u64, 0);
    for (from_ns, until_ns) in pieces {
        sum = sum.saturating_add(until_ns.saturating_sub(from_ns.max(until)));
        until = until.max(until_ns);
    }
    sum
}
