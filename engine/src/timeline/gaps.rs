//! Stretches in which records are missing, opened and closed in order of time.
//!
//! Every gap is compared with every thread, so a file with a million of each would take days. Beyond a limit, gaps are
//! joined: a joined gap covers its parts and the time between them. More is then unknown than was lost, never less.

use super::thread::thread_tracker::{RunState, Tally, ThreadTracker};
use crate::event::{GapReason, Note, NoteKind};

/// A stretch in which records of one process, of one CPU, or of all may be missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Gap {
    from_ns: u64,
    until_ns: u64,
    /// Process, 0 for all.
    pid: u32,
    cpu: Option<u16>,
}

impl Gap {
    /// Whether records of this thread may be missing. Records of a thread that stays on its CPU are written there, so
    /// gaps of other CPUs do not matter. Other records about the thread (of its waker, its next CPU) may be from any
    /// CPU.
    fn hits(&self, thread: &ThreadTracker) -> bool {
        let elsewhere = match (self.cpu, thread.state) {
            (Some(cpu), RunState::Running { cpu: on }) => cpu != on,
            _ => false,
        };
        (self.pid == 0 || self.pid == thread.out.pid) && !elsewhere
    }

    /// A gap that covers both gaps.
    fn join(self, other: Gap) -> Gap {
        Gap {
            from_ns: self.from_ns.min(other.from_ns),
            until_ns: self.until_ns.max(other.until_ns),
            pid: if self.pid == other.pid { self.pid } else { 0 },
            cpu: self.cpu.filter(|_| self.cpu == other.cpu),
        }
    }
}

/// Comparisons of threads with gaps before the remaining gaps are joined: some seconds of work. A recording of 10,000 threads
/// reaches this after 25,000 gaps. Tests have a lower limit.
const MOST_LOOKS: u64 = if cfg!(test) { 10_000_000 } else { 500_000_000 };

/// Largest number of gaps that are open at a time before they are joined: each record is compared with all open gaps.
const MOST_OPEN: usize = 128;

/// The gaps of a recording, as of the current time.
#[derive(Clone, Debug, Default)]
pub(super) struct Gaps {
    /// Gaps that have not begun yet, the next one last.
    coming: Vec<Gap>,
    open: Vec<Gap>,
    /// Number of comparisons after which the remaining gaps are joined.
    looks_left: u64,
    /// The value to which `looks_left` is reset when gaps are joined; halved each time.
    looks_next: u64,
    /// Gaps that were merged with other gaps.
    pub(super) joined: u64,
}

impl Gaps {
    /// Makes gaps of the notes that report missing scheduler records.
    pub(super) fn new(notes: &[Note], start_ns: u64) -> Gaps {
        let mut coming: Vec<Gap> = notes
            .iter()
            .filter_map(|note| match note.kind {
                NoteKind::Gap { pid, cpu, until_ns, reason: GapReason::RingFull, .. } => {
                    // Records were lost between two records of the same time. The gap still ends what was known, so it
                    // lasts 1 ns.
                    let until_ns = until_ns.max(note.time_ns.saturating_add(1));
                    Some(Gap { from_ns: note.time_ns.max(start_ns), until_ns, pid, cpu })
                }
                _ => None,
            })
            .filter(|gap| gap.until_ns > gap.from_ns)
            .collect();
        coming.sort_by_key(|gap| std::cmp::Reverse((gap.from_ns, gap.until_ns)));
        Gaps { coming, looks_left: MOST_LOOKS, looks_next: MOST_LOOKS / 2, ..Gaps::default() }
    }

    /// Opens and closes gaps up to and including `time_ns`.
    #[inline]
    pub(super) fn advance(&mut self, time_ns: u64, threads: &mut [ThreadTracker], tally: &mut Tally) {
        if self.open.is_empty() && self.coming.last().is_none_or(|gap| gap.from_ns > time_ns) {
            return;
        }
        self.walk(time_ns, threads, tally);
    }

    fn walk(&mut self, time_ns: u64, threads: &mut [ThreadTracker], tally: &mut Tally) {
        loop {
            let begins = self.coming.last().map(|gap| gap.from_ns).filter(|&from| from <= time_ns);
            let ends = self.open.iter().map(|gap| gap.until_ns).min().filter(|&until| until <= time_ns);
            match (begins, ends) {
                (Some(from), ends) if ends.is_none_or(|ends| from <= ends) => {
                    self.looked_at(threads.len() as u64);
                    let Some(gap) = self.coming.pop() else { return };
                    for thread in threads.iter_mut().filter(|thread| gap.hits(thread)) {
                        thread.gap_begins(from, tally);
                    }
                    self.open.push(gap);
                    if self.open.len() > MOST_OPEN {
                        self.join_open(from, threads, tally);
                    }
                }
                (_, Some(until)) => {
                    // Each thread in a gap is compared with all open gaps.
                    self.looked_at(threads.len() as u64 * self.open.len() as u64);
                    self.open.retain(|gap| gap.until_ns > until);
                    for thread in threads.iter_mut() {
                        if thread.state == RunState::Gap && !self.hit(thread) {
                            thread.gap_ends(until);
                        }
                    }
                }
                _ => return,
            }
        }
    }

    /// Counts comparisons; beyond the limit, joins gaps that have not begun.
    fn looked_at(&mut self, looks: u64) {
        if let Some(left) = self.looks_left.checked_sub(looks) {
            self.looks_left = left;
            return;
        }
        self.looks_left = self.looks_next;
        self.looks_next /= 2;
        // Each gap is compared at its beginning and at its end. At least one group remains, so no gap is dropped.
        let groups = (self.looks_left / looks.saturating_mul(2).max(1)).max(1) as usize;
        let size = self.coming.len().div_ceil(groups);
        if size < 2 {
            return;
        }
        let before = self.coming.len();
        // `coming` is in reverse order: `rchunks` starts with the earliest gap, which is the last.
        let joined = self.coming.rchunks(size).filter_map(|group| group.iter().copied().reduce(Gap::join));
        let mut joined: Vec<Gap> = joined.collect();
        joined.reverse();
        self.joined = self.joined.saturating_add((before - joined.len()) as u64);
        self.coming = joined;
    }

    /// Joins all open gaps into one gap.
    fn join_open(&mut self, now_ns: u64, threads: &mut [ThreadTracker], tally: &mut Tally) {
        let Some(gap) = self.open.iter().copied().reduce(Gap::join) else { return };
        self.joined = self.joined.saturating_add(self.open.len() as u64 - 1);
        self.open = vec![gap];
        for thread in threads.iter_mut().filter(|thread| gap.hits(thread)) {
            thread.gap_begins(now_ns, tally);
        }
    }

    /// Whether records of this thread may be missing at present.
    pub(super) fn hit(&self, thread: &ThreadTracker) -> bool {
        self.open.iter().any(|gap| gap.hits(thread))
    }

    /// Puts a thread that has just changed its state into the gap state, if an open gap affects the thread.
    #[inline]
    pub(super) fn hold(&self, time_ns: u64, thread: &mut ThreadTracker, tally: &mut Tally) {
        if !self.open.is_empty() && self.hit(thread) {
            thread.gap_begins(time_ns, tally);
        }
    }
}
