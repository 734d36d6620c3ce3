//! Which stretches of the recording are incomplete, walked through in order of time.

use super::machine::{Machine, Now, Tally};
use crate::event::{GapReason, Note, NoteKind};

/// A stretch in which records of these threads may be missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Gap {
    from_ns: u64,
    until_ns: u64,
    /// Process, 0 for all.
    pid: u32,
    cpu: Option<u16>,
}

impl Gap {
    /// Whether records of this thread may be missing. What a thread does while it stays on a CPU is recorded on
    /// that CPU; everything else (who wakes it, where it goes) may have been recorded anywhere.
    fn hits(&self, thread: &Machine) -> bool {
        let elsewhere = match (self.cpu, thread.now) {
            (Some(cpu), Now::Running { cpu: on }) => cpu != on,
            _ => false,
        };
        (self.pid == 0 || self.pid == thread.out.pid) && !elsewhere
    }
}

/// The gaps of a recording; those that are open at the current time.
#[derive(Clone, Debug, Default)]
pub(super) struct Gaps {
    /// Not yet begun, the next one last.
    coming: Vec<Gap>,
    open: Vec<Gap>,
}

impl Gaps {
    /// The gaps of these notes in which scheduler records are missing.
    pub(super) fn new(notes: &[Note], start_ns: u64) -> Gaps {
        let mut coming: Vec<Gap> = notes
            .iter()
            .filter_map(|note| match note.kind {
                NoteKind::Gap { pid, cpu, until_ns, reason: GapReason::RingFull, .. } => {
                    // Lost between records of the same instant: what was known is over all the same.
                    let until_ns = until_ns.max(note.time_ns.saturating_add(1));
                    Some(Gap { from_ns: note.time_ns.max(start_ns), until_ns, pid, cpu })
                }
                _ => None,
            })
            .filter(|gap| gap.until_ns > gap.from_ns)
            .collect();
        coming.sort_by_key(|gap| std::cmp::Reverse((gap.from_ns, gap.until_ns)));
        Gaps { coming, open: Vec::new() }
    }

    /// Opens and closes gaps up to and including `time_ns`.
    #[inline]
    pub(super) fn advance(&mut self, time_ns: u64, threads: &mut [Machine], tally: &mut Tally) {
        if self.open.is_empty() && self.coming.last().is_none_or(|gap| gap.from_ns > time_ns) {
            return;
        }
        self.walk(time_ns, threads, tally);
    }

    fn walk(&mut self, time_ns: u64, threads: &mut [Machine], tally: &mut Tally) {
        loop {
            let begins = self.coming.last().map(|gap| gap.from_ns).filter(|&from| from <= time_ns);
            let ends = self.open.iter().map(|gap| gap.until_ns).min().filter(|&until| until <= time_ns);
            match (begins, ends) {
                (Some(from), ends) if ends.is_none_or(|ends| from <= ends) => {
                    let Some(gap) = self.coming.pop() else { return };
                    for thread in threads.iter_mut().filter(|thread| gap.hits(thread)) {
                        thread.gap_begins(from, tally);
                    }
                    self.open.push(gap);
                }
                (_, Some(until)) => {
                    self.open.retain(|gap| gap.until_ns > until);
                    for thread in threads.iter_mut() {
                        if thread.now == Now::Gap && !self.hit(thread) {
                            thread.gap_ends(until);
                        }
                    }
                }
                _ => return,
            }
        }
    }

    /// Whether records of this thread may be missing now.
    pub(super) fn hit(&self, thread: &Machine) -> bool {
        self.open.iter().any(|gap| gap.hits(thread))
    }

    /// Holds a thread that has just changed its state inside a gap to what the gap leaves known.
    #[inline]
    pub(super) fn hold(&self, time_ns: u64, thread: &mut Machine, tally: &mut Tally) {
        if !self.open.is_empty() && self.hit(thread) {
            thread.gap_begins(time_ns, tally);
        }
    }
}
