//! Where a process has its code.

use crate::target::{Code, Process, code};
use engine::event::MappingFact;
use std::time::{Duration, Instant};

/// Between two looks at a process in which unknown addresses come up: it has loaded a library, or makes code.
const AGAIN_AFTER: Duration = Duration::from_millis(20);
const AGAIN_AT_LAST: Duration = Duration::from_secs(2);

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

    /// Whether all these addresses lie in known code.
    pub fn knows(&self, frames: &[u64]) -> bool {
        frames.iter().all(|&frame| self.code_at(frame).is_some())
    }

    /// The code that an address lies in.
    pub fn code_at(&self, address: u64) -> Option<&Code> {
        let after = self.code.partition_point(|code| code.start <= address);
        self.code.get(after.checked_sub(1)?).filter(|code| address < code.end)
    }

    /// Looks at the process again, if it is time to; what is new since.
    pub fn look(&mut self, pid: u32, now_ns: u64) -> Vec<MappingFact> {
        if self.read.is_some_and(|read| read.elapsed() < self.pause) {
            return Vec::new();
        }
        // Addresses that lie nowhere are mostly no addresses.
        self.pause = if self.read.is_some() { (self.pause * 2).min(AGAIN_AT_LAST) } else { AGAIN_AFTER };
        self.read = Some(Instant::now());
        // One that is gone has nothing mapped: what was known stays.
        let Ok(now) = Process::open(pid).and_then(|process| code(&process)) else { return Vec::new() };
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
