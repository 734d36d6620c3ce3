//! Where a process has its code.

use crate::target::{Code, Process, code};
use engine::event::MappingFact;
use std::time::{Duration, Instant};

/// Between two looks at a process in which unknown addresses come up: it has loaded a library, or makes code. Twice as long
/// each time that nothing was found.
const AGAIN_AFTER: Duration = Duration::from_millis(20);
const AGAIN_AT_LAST: Duration = Duration::from_secs(2);
/// Where the kernel tells what is mapped later, looks that find nothing may take one part in so many of the time: stacks
/// through hand-written machine code have frames that are nowhere, again and again, and a look at a program of a hundred
/// libraries takes milliseconds (x264: by a profile a fifth of what the thread did that empties the rings).
const LOOKS_TAKE: u32 = 2_000;
const AGAIN_AT_VERY_LAST: Duration = Duration::from_secs(60);

/// One process.
#[derive(Debug, Default)]
pub struct Space {
    /// When it began to run its program (`CLOCK_MONOTONIC` nanoseconds), 0 if before the recording.
    pub since_ns: u64,
    /// Its executable mappings in order of address.
    pub code: Vec<Code>,
    read: Option<Instant>,
    pause: Duration,
}

impl Space {
    /// A process that runs a program since this time.
    pub fn new(since_ns: u64) -> Space {
        Space { since_ns, pause: AGAIN_AFTER, ..Space::default() }
    }

    /// It has mapped something to execute: the next unknown address is worth a look.
    pub fn mapped(&mut self) {
        self.pause = self.pause.min(AGAIN_AFTER);
    }

    /// Whether all these addresses lie in known code.
    pub fn knows(&self, frames: &[u64]) -> bool {
        frames.iter().all(|&frame| self.code_at(frame).is_some())
    }

    /// The code that an address lies in.
    pub fn code_at(&self, address: u64) -> Option<&Code> {
        let after = self.code.partition_point(|code| code.start <= address);
        self.code.get(after.checked_sub(1)?).filter(|code| address < code.end)
    }

    /// Looks at the process again, if it is time to; what is new since. `is_told`: somebody says when there is more
    /// ([`Space::mapped`]).
    pub fn look(&mut self, pid: u32, now_ns: u64, is_told: bool) -> Vec<MappingFact> {
        if self.read.is_some_and(|read| read.elapsed() < self.pause) {
            return Vec::new();
        }
        let began = Instant::now();
        // One that is gone has nothing mapped: what was known stays.
        let now = Process::open(pid).and_then(|process| code(&process));
        // Addresses that lie nowhere are mostly no addresses.
        let before = self.read.replace(began).map(|_| self.pause);
        self.pause = pause_after(before, if is_told { began.elapsed() } else { Duration::ZERO });
        let Ok(now) = now else { return Vec::new() };
        if now.is_empty() {
            return Vec::new();
        }
        let first = self.code.is_empty();
        let since_ns = if first { self.since_ns } else { now_ns };
        let new = now.iter().filter(|code| !self.code.contains(code));
        let facts = new.map(|code| MappingFact {
            pid,
            since_ns,
            start: code.start,
            end: code.end,
            file_offset: code.file_offset,
            path: code.path.clone(),
            build_id: code.build_id().map(|id| id.to_string()),
        });
        let facts: Vec<MappingFact> = facts.collect();
        if !facts.is_empty() {
            self.pause = AGAIN_AFTER;
        }
        self.code = now;
        facts
    }
}

/// How long nobody looks after a look that found nothing and took so long; `before`: after the look before it, if there
/// was one.
fn pause_after(before: Option<Duration>, took: Duration) -> Duration {
    let Some(before) = before else { return AGAIN_AFTER };
    let affordable = took.saturating_mul(LOOKS_TAKE).clamp(AGAIN_AT_LAST, AGAIN_AT_VERY_LAST);
    before.saturating_mul(2).min(affordable)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_that_find_nothing_become_as_rare_as_they_are_dear() {
        let after_many = |took: Duration| {
            (0..30).fold(None, |before, _| Some(pause_after(before, took))).unwrap_or_default()
        };
        assert_eq!(pause_after(None, Duration::from_secs(1)), AGAIN_AFTER, "the very first one");
        assert_eq!(pause_after(Some(AGAIN_AFTER), Duration::from_secs(1)), 2 * AGAIN_AFTER);
        assert_eq!(after_many(Duration::from_micros(100)), AGAIN_AT_LAST);
        assert_eq!(after_many(Duration::from_millis(5)), Duration::from_secs(10));
        assert_eq!(after_many(Duration::from_secs(9)), AGAIN_AT_VERY_LAST);
    }
    #[test]
    fn what_is_mapped_is_looked_for_at_once_however_long_nothing_was_found() {
        // Whoever runs the tests: longpole does not look at itself.
        let pid = std::os::unix::process::parent_id();
        let read = Instant::now().checked_sub(2 * AGAIN_AFTER);
        let mut space = Space { read, pause: AGAIN_AT_VERY_LAST, ..Space::default() };
        assert!(space.look(pid, 0, true).is_empty());
        space.mapped();
        assert!(!space.look(pid, 0, true).is_empty());
    }
}
