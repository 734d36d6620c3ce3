//! Decides when the program of a new process is read. Most programs that `make`, `configure` and shells start live for
//! less than [`NEW_PROCESS_DELAY`]: they would end before their symbols are read, and pay for probes without a benefit.
//! Pure: changes and the time come in, due processes go out.

use crate::live::main_loop::{ChangeKind, ProcessChange};
use std::collections::BTreeMap;
use std::time::Duration;

/// How long a program has to run before its functions and its C library are read.
pub const NEW_PROCESS_DELAY: Duration = Duration::from_millis(200);

/// What to do after a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Inspect {
    /// Read the process now.
    Now,
    /// Read the process later, or never.
    Later,
    /// The process ended before it was read. The value is the change that began its program.
    TooShort(ProcessChange),
}

/// Programs that began a moment ago.
#[derive(Debug, Default)]
pub struct NewProcessDelay {
    /// For each process: the change, and the time at which the process is to be read.
    waiting: BTreeMap<u32, Waiting>,
    /// The command at the gate: its program is already read, and gets its probes before it runs.
    held: Option<u32>,
}

#[derive(Clone, Copy, Debug)]
struct Waiting {
    change: ProcessChange,
    due_ns: u64,
}

impl NewProcessDelay {
    /// Starts without processes. `held`: pid of a command at the gate, whose first program is already read.
    pub fn new(held: Option<u32>) -> NewProcessDelay {
        NewProcessDelay { waiting: BTreeMap::new(), held }
    }

    /// Takes a change. If a waiting process runs another program, its delay starts again.
    pub fn changed(&mut self, change: ProcessChange) -> Inspect {
        let ProcessChange { pid, time_ns, kind } = change;
        let due_ns = time_ns.saturating_add(u64::try_from(NEW_PROCESS_DELAY.as_nanos()).unwrap_or(u64::MAX));
        match kind {
            ChangeKind::Forked { .. } => {
                // A pid that is used again: the record of the former process's end was lost.
                self.waiting.insert(pid, Waiting { change, due_ns });
                Inspect::Later
            }
            ChangeKind::Executed { .. } if self.held.take_if(|held| *held == pid).is_some() => Inspect::Now,
            ChangeKind::Executed { by_leader } => {
                let before = self.waiting.get(&pid).map(|waiting| waiting.change);
                let all_by_leader = before
                    .is_none_or(|before| !matches!(before.kind, ChangeKind::Executed { by_leader: false }));
                let change = ProcessChange {
                    time_ns: before.map_or(time_ns, |before| before.time_ns.min(time_ns)),
                    kind: ChangeKind::Executed { by_leader: by_leader && all_by_leader },
                    ..change
                };
                self.waiting.insert(pid, Waiting { change, due_ns });
                Inspect::Later
            }
            // When the process is read, all its mappings are read.
            ChangeKind::Mapped { .. } if self.waiting.contains_key(&pid) => Inspect::Later,
            ChangeKind::Mapped { .. } => Inspect::Now,
            ChangeKind::Ended => match self.waiting.remove(&pid) {
                Some(waiting) => Inspect::TooShort(waiting.change),
                None => Inspect::Now,
            },
        }
    }

    /// Changes of processes that are due to be read, in the order in which they became due.
    pub fn due(&mut self, now_ns: u64) -> Vec<ProcessChange> {
        let due = self.waiting.extract_if(.., |_, waiting| waiting.due_ns <= now_ns);
        let mut due: Vec<Waiting> = due.map(|(_, waiting)| waiting).collect();
        due.sort_by_key(|waiting| waiting.due_ns);
        due.into_iter().map(|waiting| waiting.change).collect()
    }

    /// Time until the next process is due; `None`: no process waits.
    pub fn next(&self, now_ns: u64) -> Option<Duration> {
        let due_ns = self.waiting.values().map(|waiting| waiting.due_ns).min()?;
        Some(Duration::from_nanos(due_ns.saturating_sub(now_ns)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn change(pid: u32, at_ms: u64, kind: ChangeKind) -> ProcessChange {
        ProcessChange { pid, time_ns: at_ms * MS, kind }
    }

    fn forked(pid: u32, at_ms: u64) -> ProcessChange {
        change(pid, at_ms, ChangeKind::Forked { parent: 1 })
    }

    fn executed(pid: u32, at_ms: u64) -> ProcessChange {
        change(pid, at_ms, ChangeKind::Executed { by_leader: true })
    }

    /// If each short-lived compiler got probes, `make -j2` of a small project would take ten times as long.
    #[test]
    fn a_new_process_is_looked_at_after_its_program_has_run_for_a_while() {
        let mut new_processes = NewProcessDelay::new(None);
        assert_eq!(new_processes.next(0), None);
        assert_eq!(new_processes.changed(forked(7, 100)), Inspect::Later);
        assert_eq!(new_processes.changed(executed(7, 250)), Inspect::Later);
        assert_eq!(new_processes.changed(change(7, 251, ChangeKind::Mapped { libc: true })), Inspect::Later);
        assert_eq!(new_processes.changed(forked(8, 260)), Inspect::Later);
        assert_eq!(new_processes.due(300 * MS), [], "another program runs since");
        assert_eq!(new_processes.next(300 * MS), Some(Duration::from_millis(150)));
        // The calls of the process are missing since it was forked.
        let whole = ProcessChange { time_ns: 100 * MS, ..executed(7, 250) };
        assert_eq!(new_processes.due(460 * MS), [whole, forked(8, 260)]);
        assert_eq!((new_processes.due(900 * MS), new_processes.next(900 * MS)), (vec![], None));
        assert_eq!(new_processes.changed(change(7, 901, ChangeKind::Mapped { libc: false })), Inspect::Now);
        assert_eq!(new_processes.changed(change(7, 902, ChangeKind::Ended)), Inspect::Now);
    }

    #[test]
    fn a_process_that_ends_within_the_delay_is_reported_as_too_short() {
        let mut new_processes = NewProcessDelay::new(None);
        new_processes.changed(forked(7, 100));
        new_processes.changed(executed(7, 101));
        let whole = ProcessChange { time_ns: 100 * MS, ..executed(7, 101) };
        assert_eq!(new_processes.changed(change(7, 150, ChangeKind::Ended)), Inspect::TooShort(whole));
        assert_eq!(new_processes.due(900 * MS), []);
    }

    #[test]
    fn a_held_command_s_first_program_is_looked_at_at_once() {
        let mut new_processes = NewProcessDelay::new(Some(7));
        assert_eq!(new_processes.changed(executed(8, 1)), Inspect::Later);
        assert_eq!(new_processes.changed(executed(7, 1)), Inspect::Now);
        assert_eq!(new_processes.changed(executed(7, 2)), Inspect::Later);
    }

    #[test]
    fn an_exec_by_another_thread_is_kept_when_the_leader_execs_next() {
        let mut new_processes = NewProcessDelay::new(None);
        new_processes.changed(change(7, 1, ChangeKind::Executed { by_leader: false }));
        new_processes.changed(executed(7, 2));
        assert_eq!(new_processes.due(900 * MS), [change(7, 1, ChangeKind::Executed { by_leader: false })]);
    }
}
