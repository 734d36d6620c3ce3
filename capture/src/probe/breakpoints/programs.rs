//! Remembers since when each process has run its present program, according to the records. Probes that were chosen for
//! one program do not fit the next: a choice that arrives after the change is too late.

use std::{collections::HashMap, mem::offset_of};

use probe_abi::{Exec, Fork, Header, Kind, Record};

/// With more processes than this, processes that have ended are forgotten.
const MANY: usize = 4096;

/// The start times of all processes' programs, and recent starts.
#[derive(Debug, Default)]
pub(crate) struct Programs {
    since: HashMap<u32, u64>,
    news: Vec<NewProgram>,
}

/// A process runs another program than before, or was born with a PID that another process may have had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NewProgram {
    /// The process.
    pub pid: u32,
    /// Since when (`CLOCK_MONOTONIC` nanoseconds).
    pub at_ns: u64,
    /// How the process came to run the program.
    pub began: Began,
}

/// How a process came to run its program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Began {
    /// The process was born with the program.
    Born,
    /// The leading thread of the process started the program: links on the same file still work.
    ByLeader,
    /// Another thread started the program. No link works any more: a link knows its process by the thread that led it
    /// when the link was made, and that thread is dead.
    ByAnother,
}

impl Programs {
    /// Whether a record is of a kind that may start a program.
    pub(crate) fn are_told_of_in(bytes: &[u8]) -> bool {
        let kind = bytes.get(offset_of!(Header, kind)).copied().and_then(Kind::from_byte);
        matches!(kind, Some(Kind::Exec | Kind::Fork))
    }

    /// Takes note of a record that may start a program.
    pub(crate) fn see(&mut self, bytes: &[u8]) {
        let new = match Record::decode(bytes) {
            Ok(Record::Exec(Exec { header, old_tid, .. })) => {
                let began = if old_tid == header.tid { Began::ByLeader } else { Began::ByAnother };
                NewProgram { pid: header.pid, at_ns: header.time_ns, began }
            }
            Ok(Record::Fork(Fork { header, child_pid, .. })) if child_pid != header.pid => {
                NewProgram { pid: child_pid, at_ns: header.time_ns, began: Began::Born }
            }
            _ => return,
        };
        // Rings of different CPUs come in any order.
        let since = self.since.entry(new.pid).or_default();
        *since = new.at_ns.max(*since);
        self.news.push(new);
    }

    /// Whether a process has started another program since `chosen_ns`.
    pub(crate) fn is_another_since(&self, pid: u32, chosen_ns: u64) -> bool {
        self.since.get(&pid).is_some_and(|&since_ns| since_ns > chosen_ns)
    }

    /// Starts since the last call. If many processes are known, those that `is_there` denies are forgotten.
    pub(crate) fn take(&mut self, is_there: &dyn Fn(u32) -> bool) -> Vec<NewProgram> {
        if self.since.len() > MANY {
            self.since.retain(|&pid, _| is_there(pid));
        }
        std::mem::take(&mut self.news)
    }

    /// Whether [`Programs::take`] would return anything.
    pub(crate) fn has_news(&self) -> bool {
        !self.news.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use zerocopy::{FromZeros as _, IntoBytes as _};

    fn header(kind: Kind, pid: u32, time_ns: u64) -> Header {
        Header { kind: kind as u8, pid, tid: pid, time_ns, ..Header::new_zeroed() }
    }

    fn exec(pid: u32, old_tid: u32, time_ns: u64) -> Exec {
        Exec { header: header(Kind::Exec, pid, time_ns), old_tid, ..Exec::new_zeroed() }
    }

    #[test]
    fn a_process_s_program_is_the_last_one_begun_in_any_order_of_records() {
        let mut programs = Programs::default();
        programs.see(exec(7, 7, 50).as_bytes());
        programs.see(exec(7, 9, 30).as_bytes());
        let fork =
            |pid, child_pid| Fork { header: header(Kind::Fork, pid, 60), child_pid, ..Fork::new_zeroed() };
        programs.see(fork(7, 7).as_bytes());
        programs.see(fork(7, 8).as_bytes());
        programs.see(&[]);
        assert!(programs.is_another_since(7, 49) && !programs.is_another_since(7, 50));
        assert!(programs.is_another_since(8, 59) && !programs.is_another_since(9, 0));
        let new = |pid, at_ns, began| NewProgram { pid, at_ns, began };
        assert!(programs.has_news());
        assert_eq!(
            programs.take(&|_| true),
            [new(7, 50, Began::ByLeader), new(7, 30, Began::ByAnother), new(8, 60, Began::Born)]
        );
        assert!(!programs.has_news());
    }

    #[test]
    fn ended_processes_are_forgotten_when_there_are_many() {
        let mut programs = Programs::default();
        for pid in 0..=MANY as u32 {
            programs.see(exec(pid, pid, 5).as_bytes());
        }
        programs.take(&|pid| pid < 3);
        assert_eq!(programs.since.len(), 3);
    }
}
