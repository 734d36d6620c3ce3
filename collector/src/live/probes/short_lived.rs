//! Collects processes that ended before they got function probes. A shell's loop may start thousands of them in a
//! second, so they share one note.

use engine::event::{Note, NoteKind};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// Longest time from the first such process until they are reported: processes that are not yet reported are lost if
/// longpole is killed.
const TOGETHER: Duration = Duration::from_millis(100);
/// A note is full with this many processes.
const MOST: usize = 1_000;

/// Processes that are not reported yet.
#[derive(Debug, Default)]
pub struct ShortLived {
    /// Pids. A process may be added twice: when it was forked, and when it ran its program.
    pids: BTreeSet<u32>,
    since_ns: u64,
    until_ns: u64,
    /// Time at which the first of these processes was added.
    first: Option<Instant>,
}

impl ShortLived {
    /// Adds a process: since when its calls are missing, and when it was found to have ended (`CLOCK_MONOTONIC` nanoseconds).
    pub fn add(&mut self, pid: u32, since_ns: u64, until_ns: u64) {
        if self.first.is_none() {
            (self.since_ns, self.until_ns) = (since_ns, until_ns);
            self.first = Some(Instant::now());
        }
        self.pids.insert(pid);
        (self.since_ns, self.until_ns) = (since_ns.min(self.since_ns), until_ns.max(self.until_ns));
    }

    /// Time until the processes are reported; `None`: there are none.
    pub fn due_in(&self) -> Option<Duration> {
        let first = self.first?;
        Some(if self.pids.len() >= MOST { Duration::ZERO } else { TOGETHER.saturating_sub(first.elapsed()) })
    }

    /// The number of these processes, and the note that reports them.
    pub fn take(&mut self) -> Option<(usize, Note)> {
        let ShortLived { pids, since_ns, until_ns, first } = std::mem::take(self);
        first?;
        let pids: Vec<u32> = pids.into_iter().collect();
        Some((pids.len(), Note { time_ns: since_ns, kind: NoteKind::EndedUnprobed { pids, until_ns } }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_lived_processes_are_noted_once_each_and_at_once_if_many() {
        let mut ended = ShortLived::default();
        assert_eq!((ended.due_in(), ended.take()), (None, None));
        for (pid, since_ns, until_ns) in [(7, 30, 40), (8, 20, 25), (7, 35, 50)] {
            ended.add(pid, since_ns, until_ns);
        }
        assert!(ended.due_in().is_some_and(|wait| wait <= TOGETHER));
        let (count, note) = ended.take().expect("some");
        assert_eq!((count, note.time_ns), (2, 20));
        assert_eq!(note.kind, NoteKind::EndedUnprobed { pids: vec![7, 8], until_ns: 50 });
        assert_eq!(ended.take(), None);
        (0..MOST as u32).for_each(|pid| ended.add(pid, 1, 1));
        assert_eq!(ended.due_in(), Some(Duration::ZERO));
    }
}
