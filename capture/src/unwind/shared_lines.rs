//! Cache lines that several threads of a process have used recently, by plain loads and stores.
//!
//! Almost each tick finds such an instruction, and each word would make a stack of its own. So a word counts only if another
//! thread has used its line at the same time, and one of them has changed it.

use engine::event::Access;
use rustc_hash::FxHashMap;
use symbols::MemoryAccess;

/// Bytes of a line on x86-64.
const LINE: u64 = 64;
/// Uses of a line by two threads within this time count as simultaneous. Ticks are 2 ms apart.
const TOGETHER_NS: u64 = 50_000_000;
/// Largest number of cache lines that are known at once.
const LINES: usize = 4096;

/// The lines that were used recently.
#[derive(Debug, Default)]
pub(super) struct SharedLines {
    /// For each process and line: its last uses.
    known: FxHashMap<(u32, u64), Line>,
}

/// The last uses of a line.
#[derive(Clone, Copy, Debug, Default)]
struct Line {
    /// The thread that used the line last, and the time, ns.
    last: (u32, u64),
    /// The last use by a thread other than that one.
    other: Option<(u32, u64)>,
    /// Time at which the line was last changed, ns.
    written_ns: Option<u64>,
}

impl SharedLines {
    /// Notes a thread's use of a word. Returns the kind of access if the thread waits for a line that others use and change.
    pub fn used(&mut self, (pid, tid): (u32, u32), time_ns: u64, access: MemoryAccess) -> Option<Access> {
        let key = (pid, access.address / LINE);
        if self.known.len() >= LINES && !self.known.contains_key(&key) {
            self.known.retain(|_, line| is_near(line.last.1, time_ns));
            if self.known.len() >= LINES {
                return None;
            }
        }
        let line = self.known.entry(key).or_insert(Line { last: (tid, time_ns), ..Line::default() });
        if line.last.0 != tid {
            line.other = Some(line.last);
        }
        line.last = (tid, time_ns);
        if access.writes {
            line.written_ns = Some(time_ns);
        }
        let is_shared = line.other.is_some_and(|(_, other_ns)| is_near(other_ns, time_ns))
            && line.written_ns.is_some_and(|written_ns| is_near(written_ns, time_ns));
        // A store waits for nothing.
        (is_shared && access.reads).then_some(if access.writes { Access::Write } else { Access::Read })
    }
}

/// Whether two times are close together. The rings of CPUs are read in turn, so a time may be a little before the
/// preceding one.
fn is_near(one_ns: u64, other_ns: u64) -> bool {
    one_ns.abs_diff(other_ns) <= TOGETHER_NS
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOAD: MemoryAccess = MemoryAccess { address: 0x5000, reads: true, writes: false };
    const CHANGE: MemoryAccess = MemoryAccess { address: 0x5008, reads: true, writes: true };
    const STORE: MemoryAccess = MemoryAccess { address: 0x5010, reads: false, writes: true };
    const MS: u64 = 1_000_000;

    /// The results of these uses by threads, which are 10 ms apart.
    fn of(uses: &[(u32, MemoryAccess)]) -> Vec<Option<Access>> {
        let mut lines = SharedLines::default();
        let times = (1u64..).map(|turn| turn * 10 * MS);
        uses.iter().zip(times).map(|((tid, access), time)| lines.used((7, *tid), time, *access)).collect()
    }

    #[test]
    fn a_cache_line_counts_where_two_threads_use_it_and_one_changes_it() {
        let (read, write) = (Some(Access::Read), Some(Access::Write));
        assert_eq!(of(&[(1, CHANGE), (2, CHANGE), (1, CHANGE)]), [None, write, write]);
        assert_eq!(of(&[(1, CHANGE), (2, LOAD), (1, CHANGE)]), [None, read, write]);
        assert_eq!(of(&[(1, STORE), (2, LOAD), (1, STORE)]), [None, read, None], "a store does not wait");
        assert_eq!(of(&[(1, CHANGE), (1, CHANGE)]), [None; 2], "one thread's own");
        assert_eq!(of(&[(1, LOAD), (2, LOAD), (1, LOAD), (2, LOAD)]), [None; 4], "a table");
    }

    #[test]
    fn uses_of_a_cache_line_long_ago_do_not_count() {
        let mut lines = SharedLines::default();
        assert_eq!(lines.used((7, 1), 0, CHANGE), None);
        assert_eq!(lines.used((7, 2), 60 * MS, CHANGE), None, "another thread long ago");
        assert_eq!(lines.used((7, 1), 70 * MS, LOAD), Some(Access::Read));
        assert_eq!(lines.used((7, 2), 120 * MS, LOAD), None, "changed long ago");
        assert_eq!(lines.used((8, 1), 121 * MS, CHANGE), None, "another process");
    }

    #[test]
    fn the_number_of_known_cache_lines_is_bounded() {
        let mut lines = SharedLines::default();
        let at = |line: u64| MemoryAccess { address: 0x10_0000 + line * LINE, ..CHANGE };
        for line in 0..2 * LINES as u64 {
            assert_eq!(lines.used((7, 1), line, at(line)), None);
        }
        assert_eq!(lines.known.len(), LINES);
        assert_eq!(lines.used((7, 1), 100 * MS, at(LINES as u64)), None, "the others are old");
        assert_eq!(lines.known.len(), 1);
    }
}
