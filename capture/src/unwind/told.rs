//! Mappings of a process that the kernel has reported since its mappings were last read: code that replaced other code,
//! with the time, and code that was gone before the next reading.

use crate::probe::NewMapping;
use crate::target::{Code, without_deleted};
use engine::event::{MappingFact, jit_code};
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;
use symbols::{Outline, safe};

/// Largest number of mappings kept between two readings, and of changes kept.
const MOST: usize = 1024;

/// A reported mapping.
#[derive(Clone, Debug)]
pub struct Told {
    mapping: NewMapping,
    /// Other code was there before.
    replaces: bool,
}

/// All reported mappings of one process that are still needed.
#[derive(Debug, Default)]
pub struct AllTold {
    since_look: Vec<Told>,
    /// Times at which code replaced other code, ascending (`CLOCK_MONOTONIC` nanoseconds).
    changes: Vec<u64>,
    looked_ns: u64,
}

impl AllTold {
    /// Notes a mapping. `known`: the process's code as of the last reading.
    pub fn hear(&mut self, mapping: &NewMapping, known: &[Code]) {
        if mapping.start >= mapping.end || mapping.time_ns < self.looked_ns {
            return;
        }
        let last = self.since_look.iter().rev().find(|told| overlap(&told.mapping, span(mapping)));
        let replaces = match last {
            Some(told) => !is_same(mapping, thing(&told.mapping)),
            None => known.iter().any(|code| {
                overlap(mapping, (code.start, code.end)) && !is_same(mapping, (code.inode, bias(code)))
            }),
        };
        if replaces {
            keep_half(&mut self.changes);
            self.changes.push(mapping.time_ns);
        }
        keep_half(&mut self.since_look);
        self.since_look.push(Told { mapping: mapping.clone(), replaces });
    }

    /// Whether known code at one of these addresses had been replaced before `time_ns`.
    pub fn is_stale(&self, frames: &[u64], time_ns: u64) -> bool {
        let is_at = |told: &Told| {
            let (start, end) = span(&told.mapping);
            told.replaces
                && told.mapping.time_ns <= time_ns
                && frames.iter().any(|frame| (start..end).contains(frame))
        };
        self.since_look.iter().any(is_at)
    }

    /// The last change up to `time_ns`: addresses before and after it mean different code.
    pub fn last_change(&self, time_ns: u64) -> Option<u64> {
        let after = self.changes.partition_point(|&change| change <= time_ns);
        self.changes.get(after.checked_sub(1)?).copied()
    }

    /// The mappings since the last reading, for a reading that begins now.
    pub fn since_look(&self) -> Vec<Told> {
        self.since_look.clone()
    }

    /// Notes that a reading began at `at_ns`.
    pub fn looked(&mut self, at_ns: u64) {
        self.looked_ns = at_ns;
        self.since_look.retain(|told| told.mapping.time_ns >= at_ns);
    }
}

/// Removes the older half of the entries if there is no room for one more.
fn keep_half<T>(all: &mut Vec<T>) {
    if all.len() >= MOST {
        all.drain(..MOST / 2);
    }
}

fn span(mapping: &NewMapping) -> (u64, u64) {
    (mapping.start, mapping.end)
}

fn overlap(mapping: &NewMapping, (start, end): (u64, u64)) -> bool {
    mapping.start < end && start < mapping.end
}

fn bias(code: &Code) -> u64 {
    code.start.wrapping_sub(code.file_offset)
}

/// The mapping's file, and the address at which the file's first byte would lie.
fn thing(mapping: &NewMapping) -> (u64, u64) {
    (mapping.inode, mapping.start.wrapping_sub(mapping.file_offset))
}

/// Whether the mapping is of that file at that place, or whether both are memory without a file.
fn is_same(mapping: &NewMapping, (inode, bias): (u64, u64)) -> bool {
    mapping.inode == inode && (inode == 0 || thing(mapping).1 == bias)
}

impl Told {
    /// Whether this reported mapping is that of the code.
    fn is(&self, code: &Code) -> bool {
        overlap(&self.mapping, (code.start, code.end)) && is_same(&self.mapping, (code.inode, bias(code)))
    }
}

/// Since when this code has existed, if that was reported.
pub fn since(told: &[Told], code: &Code) -> Option<u64> {
    told.iter().rev().find(|told| told.is(code)).map(|told| told.mapping.time_ns)
}

/// Present code that replaced other code: each piece once, with the time of its last change.
pub fn changed<'a>(told: &'a [Told], now: &'a [Code]) -> impl Iterator<Item = (&'a Code, u64)> {
    now.iter().filter_map(|code| {
        let last = told.iter().rev().find(|told| told.replaces && told.is(code))?;
        Some((code, last.mapping.time_ns))
    })
}

/// Reported code that no longer exists, as facts.
pub fn gone(pid: u32, told: &[Told], now: &[Code]) -> Vec<MappingFact> {
    let is_gone = |(index, one): (usize, &Told)| {
        let later =
            || told.iter().skip(index + 1).filter(|later| overlap(&later.mapping, span(&one.mapping)));
        // A file that is mapped again at the same place has a later entry.
        let is_again = || later().any(|later| is_same(&later.mapping, thing(&one.mapping)));
        let is_there = || now.iter().any(|code| one.is(code));
        later().any(|later| later.replaces) || one.mapping.inode != 0 && !is_again() && !is_there()
    };
    let gone = told.iter().enumerate().filter(|&one| is_gone(one));
    gone.map(|(_, one)| fact(pid, &one.mapping)).collect()
}

fn fact(pid: u32, mapping: &NewMapping) -> MappingFact {
    let NewMapping { time_ns, start, end, file_offset, inode, path, .. } = mapping;
    let (since_ns, start, end) = (*time_ns, *start, *end);
    if *inode == 0 {
        // In code that the process has generated, offsets are addresses.
        return MappingFact {
            pid,
            since_ns,
            start,
            end,
            file_offset: start,
            path: jit_code(pid),
            build_id: None,
        };
    }
    let raw = String::from_utf8_lossy(path);
    let path = without_deleted(&safe(&raw));
    let places = [PathBuf::from(format!("/proc/{pid}/root{raw}")), PathBuf::from(raw.as_ref())];
    let outline = places.into_iter().find_map(|place| {
        let (file, outline) = Outline::open(&place)?;
        (file.metadata().ok()?.ino() == *inode).then_some(outline)
    });
    let build_id = outline.as_ref().and_then(|outline| outline.build_id.as_ref()).map(|id| id.to_string());
    // If the file could not be opened, another file may have that path by now.
    let path = if outline.is_some() { path } else { format!("{path} (deleted)") };
    MappingFact { pid, since_ns, start, end, file_offset: *file_offset, path, build_id }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mapping(time_ns: u64, inode: u64, path: &str) -> NewMapping {
        let (start, end) = (0x5000, 0x7000);
        NewMapping { pid: u32::MAX, time_ns, start, end, file_offset: 0x1000, inode, path: path.into() }
    }

    fn code(inode: u64) -> Code {
        let (start, end, file_offset) = (0x5000, 0x7000, 0x1000);
        Code { start, end, file_offset, inode, path: "/a".into(), open_path: PathBuf::new() }
    }

    /// A library that is mapped where another one was must not be mistaken for that one.
    #[test]
    fn code_mapped_in_the_place_of_other_code_is_new_from_then_on() {
        let mut all = AllTold::default();
        all.looked(10);
        all.hear(&mapping(5, 2, "/old"), &[code(1)]);
        all.hear(&mapping(20, 1, "/a"), &[code(1)]);
        assert!(!all.is_stale(&[0x5800], 99) && all.last_change(99).is_none(), "seen, or the same file");
        all.hear(&mapping(30, 2, "/b"), &[code(1)]);
        assert_eq!([29, 30].map(|time| all.is_stale(&[0x1, 0x5800], time)), [false, true]);
        assert!(!all.is_stale(&[0x8000], 99));
        all.hear(&mapping(40, 3, "/c"), &[code(1)]);
        assert_eq!([29, 30, 39, 40].map(|time| all.last_change(time)), [None, Some(30), Some(30), Some(40)]);
        let (told, now) = (all.since_look(), [code(3)]);
        assert_eq!(
            changed(&told, &now).map(|(code, since)| (code.inode, since)).collect::<Vec<_>>(),
            [(3, 40)]
        );
        // The mapping in between ended before anything read it.
        let gone = gone(u32::MAX, &told, &now);
        let gone: Vec<_> = gone.iter().map(|fact| (fact.since_ns, fact.path.as_str())).collect();
        assert_eq!(gone, [(20, "/a (deleted)"), (30, "/b (deleted)")]);
        all.looked(50);
        assert!(!all.is_stale(&[0x5800], 99), "known now");
        assert_eq!(all.last_change(99), Some(40));
    }

    #[test]
    fn mappings_made_again_and_again_in_one_place_are_bounded() {
        let mut all = AllTold::default();
        for time in 1..5_000 {
            all.hear(&mapping(time, 0, "//anon"), &[code(0)]);
        }
        assert!(all.last_change(u64::MAX).is_none() && all.since_look.len() <= MOST);
        for time in 5_000..50_000 {
            all.hear(&mapping(time, time, "/plugin"), &[code(0)]);
        }
        assert!(all.since_look.len() <= MOST && all.changes.len() <= MOST);
    }
}
