//! The executable mappings of a process, and when they are read again.

use super::told::{self, AllTold, Told};
use crate::probe::{NewMapping, now_ns};
use crate::target::{Code, Process, code};
use engine::event::{MappingFact, jit_code};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Pause between two readings of a process's mappings. They are read when unknown addresses occur, since the process
/// may have loaded a library or generated code. The pause doubles each time that nothing is found, up to
/// `AGAIN_AT_LAST`.
const AGAIN_AFTER: Duration = Duration::from_millis(20);
const AGAIN_AT_LAST: Duration = Duration::from_secs(2);
/// If the kernel reports later mappings, readings that find nothing may take at most this fraction (one part in
/// `LOOKS_TAKE`) of the time. Stacks through hand-written machine code have addresses outside of all code again and
/// again, and reading the mappings of a program with a hundred libraries takes milliseconds (x264: by a profile, a
/// fifth of the ring reader's time).
const LOOKS_TAKE: u32 = 2_000;
const AGAIN_AT_VERY_LAST: Duration = Duration::from_secs(60);

/// The executable mappings of one process.
#[derive(Debug, Default)]
pub struct AddressSpace {
    /// Time at which the process began to run its program (`CLOCK_MONOTONIC` nanoseconds); 0: before the recording.
    pub since_ns: u64,
    /// The process's executable mappings as of the last reading, in order of address.
    pub code: Arc<Vec<Code>>,
    /// Mappings that the kernel has reported since then.
    pub told: AllTold,
    read: Option<Instant>,
    pause: Duration,
    /// The pause before the reading that is under way; `None`: that reading is the first one.
    before: Option<Duration>,
}

impl AddressSpace {
    /// The address space of a process that has run its program since `since_ns`.
    pub fn new(since_ns: u64) -> AddressSpace {
        AddressSpace { since_ns, pause: AGAIN_AFTER, ..AddressSpace::default() }
    }

    /// Notes a reported executable mapping: the next unknown address is then a reason to read the mappings.
    pub fn mapped(&mut self, mapping: &NewMapping) {
        self.pause = self.pause.min(AGAIN_AFTER);
        self.told.hear(mapping, &self.code);
    }

    /// Whether all these addresses were in known code at `time_ns`.
    pub fn knows(&self, frames: &[u64], time_ns: u64) -> bool {
        frames.iter().all(|&frame| self.code_at(frame).is_some()) && !self.told.is_stale(frames, time_ns)
    }

    /// Time since which the addresses have had the meaning that they had at `time_ns`, according to the reported
    /// mappings, ns.
    pub fn same_since(&self, time_ns: u64) -> u64 {
        self.told.last_change(time_ns).unwrap_or(self.since_ns)
    }

    /// The code at an address.
    pub fn code_at(&self, address: u64) -> Option<&Code> {
        let after = self.code.partition_point(|code| code.start <= address);
        self.code.get(after.checked_sub(1)?).filter(|code| address < code.end)
    }

    /// Whether the pause before the next reading is over.
    pub fn is_due(&self) -> bool {
        self.read.is_none_or(|read| read.elapsed() >= self.pause)
    }

    /// Notes that a reading ([`look`]) is under way, so that no other one is started.
    pub fn begin_look(&mut self) {
        // The pause is kept: addresses outside of all code are mostly none.
        self.before = self.read.replace(Instant::now()).map(|_| self.pause);
    }

    /// Adds the result of a reading. Returns whether there is new code. `is_told`: new mappings are reported by
    /// [`AddressSpace::mapped`].
    pub fn looked(&mut self, seen: &CodeFound, is_told: bool) -> bool {
        self.pause = pause_after(self.before, if is_told { seen.took } else { Duration::ZERO });
        self.told.looked(seen.at_ns);
        // A process that has ended has no mappings; the known ones stay.
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

/// The result of reading a process's mappings.
#[derive(Debug, Default)]
pub struct CodeFound {
    /// The process's executable mappings in order of address; empty if it has ended.
    pub now: Arc<Vec<Code>>,
    /// New mappings, and mappings that came and went between two readings.
    pub new: Vec<MappingFact>,
    /// Time at which the reading began (`CLOCK_MONOTONIC` nanoseconds).
    pub at_ns: u64,
    /// How long the reading took.
    pub took: Duration,
}

/// Reads the executable mappings of a process, and the build-id of each new file. `since_ns`: time since which new
/// mappings may exist that were not reported. `told`: the mappings that were reported.
pub fn look(pid: u32, since_ns: u64, known: &[Code], told: &[Told]) -> CodeFound {
    let (began, at_ns) = (Instant::now(), now_ns());
    let now = Process::open(pid).and_then(|process| code(&process)).unwrap_or_default();
    let fact = |code: &Code, since_ns: u64| MappingFact {
        pid,
        since_ns,
        start: code.start,
        end: code.end,
        // In code that the process has generated, offsets are addresses.
        file_offset: if code.is_made() { code.start } else { code.file_offset },
        path: if code.is_made() { jit_code(pid) } else { code.path.clone() },
        build_id: code.build_id().map(|id| id.to_string()),
    };
    let mut new = told::gone(pid, told, &now);
    let changed: Vec<(&Code, u64)> = told::changed(told, &now).collect();
    let is_changed = |code: &Code| changed.iter().any(|(other, _)| other.start == code.start);
    for code in now.iter().filter(|code| !holds(known, code) && !is_changed(code)) {
        // Mappings that the first reading finds may have existed from the start.
        let told_ns = told::since(told, code).filter(|_| !known.is_empty());
        new.push(fact(code, told_ns.unwrap_or(since_ns)));
    }
    new.extend(changed.iter().map(|(code, since_ns)| fact(code, *since_ns)));
    CodeFound { new, now: Arc::new(now), at_ns, took: began.elapsed() }
}

/// Whether `known`, which is in order of address, contains this code.
pub fn holds(known: &[Code], code: &Code) -> bool {
    let at = known.partition_point(|known| known.start < code.start);
    known.get(at).is_some_and(|known| known == code)
}

/// The pause after a reading that found nothing and took `took`. `before`: the pause before that reading, unless it was
/// the first one.
fn pause_after(before: Option<Duration>, took: Duration) -> Duration {
    let Some(before) = before else { return AGAIN_AFTER };
    let affordable = took.saturating_mul(LOOKS_TAKE).clamp(AGAIN_AT_LAST, AGAIN_AT_VERY_LAST);
    before.saturating_mul(2).min(affordable)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_that_find_no_new_mapping_become_as_rare_as_expensive() {
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
    fn a_reported_mapping_makes_the_next_look_due_at_once() {
        let read = Instant::now().checked_sub(2 * AGAIN_AFTER);
        let mut space = AddressSpace { read, pause: AGAIN_AT_VERY_LAST, ..AddressSpace::default() };
        assert!(!space.is_due());
        space.mapped(&NewMapping::default());
        assert!(space.is_due());
        space.begin_look();
        assert!(!space.is_due(), "one look at a time");
    }

    #[test]
    fn a_look_reports_new_mappings_and_keeps_those_of_an_ended_process() {
        // The test uses the parent process, which runs the tests, since longpole does not read its own process.
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
