//! Where a process has its code.

use super::told::{self, AllTold, Told};
use crate::probe::{NewMapping, now_ns};
use crate::target::{Code, Process, code};
use engine::event::{MappingFact, jit_code};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Between two looks at a process in which unknown addresses come up: it has loaded a library, or makes code. Twice as long
/// each time that nothing was found.
const AGAIN_AFTER: Duration = Duration::from_millis(20);
const AGAIN_AT_LAST: Duration = Duration::from_secs(2);
/// Where the kernel reports later mappings, looks that find nothing may take one part in this many of the
/// time: stacks through hand-written machine code have frames that are nowhere, again and again, and a look
/// at a program of a hundred libraries takes milliseconds (x264: by a profile, a fifth of the ring reader's
/// time).
const LOOKS_TAKE: u32 = 2_000;
const AGAIN_AT_VERY_LAST: Duration = Duration::from_secs(60);

/// One process.
#[derive(Debug, Default)]
pub struct AddressSpace {
    /// When it began to run its program (`CLOCK_MONOTONIC` nanoseconds), 0 if before the recording.
    pub since_ns: u64,
    /// Its executable mappings in order of address.
    pub code: Arc<Vec<Code>>,
    /// What was mapped since that was read.
    pub told: AllTold,
    read: Option<Instant>,
    pause: Duration,
    /// The pause before the look that is under way; `None`: it is the first one.
    before: Option<Duration>,
}

impl AddressSpace {
    /// A process that runs a program since this time.
    pub fn new(since_ns: u64) -> AddressSpace {
        AddressSpace { since_ns, pause: AGAIN_AFTER, ..AddressSpace::default() }
    }

    /// It has mapped something to execute: the next unknown address is worth a look.
    pub fn mapped(&mut self, mapping: &NewMapping) {
        self.pause = self.pause.min(AGAIN_AFTER);
        self.told.hear(mapping, &self.code);
    }

    /// Whether all these addresses lay in known code at a time.
    pub fn knows(&self, frames: &[u64], time_ns: u64) -> bool {
        frames.iter().all(|&frame| self.code_at(frame).is_some()) && !self.told.is_stale(frames, time_ns)
    }

    /// Since when its addresses mean what they did at a time, as far as that was told.
    pub fn same_since(&self, time_ns: u64) -> u64 {
        self.told.last_change(time_ns).unwrap_or(self.since_ns)
    }

    /// The code that an address lies in.
    pub fn code_at(&self, address: u64) -> Option<&Code> {
        let after = self.code.partition_point(|code| code.start <= address);
        self.code.get(after.checked_sub(1)?).filter(|code| address < code.end)
    }

    /// Whether it is time to look at the process again.
    pub fn is_due(&self) -> bool {
        self.read.is_none_or(|read| read.elapsed() >= self.pause)
    }

    /// A look ([`look`]) is under way: no other one is started.
    pub fn begin_look(&mut self) {
        // Addresses that lie nowhere are mostly no addresses.
        self.before = self.read.replace(Instant::now()).map(|_| self.pause);
    }

    /// What a look has found; whether there is more now. `is_told`: a caller reports when there is more
    /// ([`AddressSpace::mapped`]).
    pub fn looked(&mut self, seen: &CodeFound, is_told: bool) -> bool {
        self.pause = pause_after(self.before, if is_told { seen.took } else { Duration::ZERO });
        self.told.looked(seen.at_ns);
        // One that is gone has nothing mapped: what was known stays.
        if seen.now.is_empty() {
            return false;
        }
        self.code = Arc::clone(&seen.now);
        if seen.new.is_empty() {
            return false;
        }
        self.pause = AGAIN_AFTER;
        true
    }
}

/// What a look at a process has brought.
#[derive(Debug, Default)]
pub struct CodeFound {
    /// Its executable mappings in order of address; none if it is gone.
    pub now: Arc<Vec<Code>>,
    /// Those that are new, and what came and went between two looks.
    pub new: Vec<MappingFact>,
    /// When it began (`CLOCK_MONOTONIC` nanoseconds).
    pub at_ns: u64,
    /// How long it took.
    pub took: Duration,
}

/// Looks at a process. `since_ns`: since when what is new may have been there, where nothing was `told` of it. Reads of each
/// new file what it is called.
pub fn look(pid: u32, since_ns: u64, known: &[Code], told: &[Told]) -> CodeFound {
    let (began, at_ns) = (Instant::now(), now_ns());
    let now = Process::open(pid).and_then(|process| code(&process)).unwrap_or_default();
    let fact = |code: &Code, since_ns: u64| MappingFact {
        pid,
        since_ns,
        start: code.start,
        end: code.end,
        // Places in code that the process has made are its addresses.
        file_offset: if code.is_made() { code.start } else { code.file_offset },
        path: if code.is_made() { jit_code(pid) } else { code.path.clone() },
        build_id: code.build_id().map(|id| id.to_string()),
    };
    let mut new = told::gone(pid, told, &now);
    let changed: Vec<(&Code, u64)> = told::changed(told, &now).collect();
    let is_changed = |code: &Code| changed.iter().any(|(other, _)| other.start == code.start);
    for code in now.iter().filter(|code| !holds(known, code) && !is_changed(code)) {
        // What is there at the first look may always have been.
        let told_ns = told::since(told, code).filter(|_| !known.is_empty());
        new.push(fact(code, told_ns.unwrap_or(since_ns)));
    }
    new.extend(changed.iter().map(|(code, since_ns)| fact(code, *since_ns)));
    CodeFound { new, now: Arc::new(now), at_ns, took: began.elapsed() }
}

/// Whether it is among these, which are in order of address.
pub fn holds(known: &[Code], code: &Code) -> bool {
    let at = known.partition_point(|known| known.start < code.start);
    known.get(at).is_some_and(|known| known == code)
}

/// How long there is no further look after one that found nothing and took this long; `before`: after the
/// look before it, if there was one.
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
        let read = Instant::now().checked_sub(2 * AGAIN_AFTER);
        let mut space = AddressSpace { read, pause: AGAIN_AT_VERY_LAST, ..AddressSpace::default() };
        assert!(!space.is_due());
        space.mapped(&NewMapping::default());
        assert!(space.is_due());
        space.begin_look();
        assert!(!space.is_due(), "one look at a time");
    }

    #[test]
    fn a_look_tells_what_is_new_and_a_process_that_is_gone_keeps_its_code() {
        // The process that runs the tests: longpole does not look at itself.
        let pid = std::os::unix::process::parent_id();
        let first = look(pid, 7, &[], &[]);
        assert_eq!(first.new.len(), first.now.len());
        assert!(first.new.iter().all(|fact| fact.since_ns == 7 && fact.pid == pid) && !first.new.is_empty());
        let mut space = AddressSpace::default();
        assert!(space.looked(&first, false));
        assert_eq!(look(pid, 8, &space.code, &[]).new, []);
        let (hidden, rest) = space.code.split_first().expect("code");
        assert_eq!(
            look(pid, 9, rest, &[]).new.iter().map(|fact| fact.start).collect::<Vec<_>>(),
            [hidden.start]
        );
        assert!(!space.looked(&look(u32::MAX, 10, &space.code.clone(), &[]), false));
        assert!(space.knows(&[first.now[0].start], 7));
    }
}
