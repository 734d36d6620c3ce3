//! Names of the code in stacks, by binary and offset: the same for all processes that run the binary.

use super::{Facts, MappingFact, NoteKind, Recording};
use crate::json::is_zero;
use rustc_hash::{FxHashMap, FxHashSet};
use serde::{Deserialize, Serialize};

/// Facts about a place in a binary.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CodeFact {
    /// Path of the binary, as [`MappingFact::path`].
    pub path: String,
    /// Its build-id, as [`MappingFact::build_id`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub build_id: Option<String>,
    /// Offset in the file: of the innermost frame's instruction, for other frames of the byte before the return address.
    pub offset: u64,
    /// Time from which the address has this code (`CLOCK_MONOTONIC` nanoseconds): a program may write other code to the
    /// same address later. 0: from the start.
    #[serde(skip_serializing_if = "is_zero")]
    pub since_ns: u64,
    /// Name of the function from symbols; `None`: it has no name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub function: Option<String>,
    /// Offset in the file of the function's first instruction, if known. It identifies the function, whatever the
    /// function's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub entry: Option<u64>,
    /// `file:line` of the function's first line, if debug information has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub declared: Option<String>,
    /// `file:line` of the place. In inlined code it is the line in the function itself, not in its caller.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<String>,
    /// Functions inlined at this place, the innermost first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub inlined: Vec<InlinedFact>,
    /// The place is in a loop that only polls: a thread that is there waits.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub waits: bool,
    /// That loop tries to take a lock, spinning while the lock is not free.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub tries: bool,
    /// Calls before this place that take a lock, with no release in between: offsets in the file, as [`CodeFact::offset`].
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub under: Vec<u64>,
}

/// A function that was inlined into another.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct InlinedFact {
    /// Its name, if known.
    pub function: String,
    /// `file:line` in the inlined function.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<String>,
}

/// A place in a binary.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CodePlace {
    /// As [`CodeFact::path`].
    pub path: String,
    /// As [`CodeFact::build_id`].
    pub build_id: Option<String>,
    /// As [`CodeFact::offset`].
    pub offset: u64,
}

/// The mappings of processes, for fast look-up of many addresses.
#[derive(Debug, Default)]
pub struct CodeMap<'a> {
    /// For each process: its mappings in order of time.
    mappings: FxHashMap<u32, Vec<&'a MappingFact>>,
}

impl<'a> CodeMap<'a> {
    /// Sorts the mappings in these facts.
    pub fn of(facts: &'a Facts) -> CodeMap<'a> {
        CodeMap::of_mappings(&facts.mappings)
    }

    /// Sorts these mappings.
    pub fn of_mappings(all: &'a [MappingFact]) -> CodeMap<'a> {
        let mut mappings: FxHashMap<u32, Vec<&MappingFact>> = FxHashMap::default();
        for mapping in all {
            mappings.entry(mapping.pid).or_default().push(mapping);
        }
        for of_process in mappings.values_mut() {
            of_process.sort_by_key(|mapping| mapping.since_ns);
        }
        CodeMap { mappings }
    }

    /// The mapping at a process's address at a time, and the offset in its file.
    ///
    /// The mapping is the latest one at that time, or else the first later one, since a mapping is noticed some time
    /// after it was made.
    pub fn at(&self, pid: u32, address: u64, time_ns: u64) -> Option<(&'a MappingFact, u64)> {
        let holds = |mapping: &&&MappingFact| (mapping.start..mapping.end).contains(&address);
        let all = self.mappings.get(&pid)?;
        let by_then = all.partition_point(|mapping| mapping.since_ns <= time_ns);
        let (before, after) = all.split_at(by_then);
        let mapping = before.iter().rev().find(holds).or_else(|| after.iter().find(holds))?;
        Some((mapping, mapping.file_offset.checked_add(address - mapping.start)?))
    }
}

/// Names of places in code, for look-up by place and time.
#[derive(Debug, Default)]
pub struct CodeNames<'a> {
    named: FxHashMap<Key<'a>, &'a CodeFact>,
    /// Places whose code has changed: all their facts, in order of time.
    reused: FxHashMap<Key<'a>, Vec<&'a CodeFact>>,
}

/// Path, build-id and offset.
type Key<'a> = (&'a str, Option<&'a str>, u64);

impl<'a> CodeNames<'a> {
    /// Sorts these facts. If two facts have the same place and time, the later one in the list is used.
    pub fn of(all: &'a [CodeFact]) -> CodeNames<'a> {
        let mut names = CodeNames::default();
        for code in all {
            let key = (code.path.as_str(), code.build_id.as_deref(), code.offset);
            let before = names.named.insert(key, code);
            if let Some(before) = before.filter(|other| other.since_ns != code.since_ns) {
                names.reused.entry(key).or_insert_with(|| vec![before]);
            }
            if let Some(versions) = names.reused.get_mut(&key) {
                versions.push(code);
            }
        }
        for versions in names.reused.values_mut() {
            versions.reverse();
            versions.sort_by_key(|code| code.since_ns);
            versions.dedup_by_key(|code| code.since_ns);
        }
        names
    }

    /// The fact about a place in a mapping at a time: the latest fact at that time, or else the first later one.
    pub fn at(&self, mapping: &MappingFact, offset: u64, time_ns: u64) -> Option<&'a CodeFact> {
        let key = (mapping.path.as_str(), mapping.build_id.as_deref(), offset);
        let Some(versions) = self.reused.get(&key) else { return self.named.get(&key).copied() };
        let by_then = versions.partition_point(|code| code.since_ns <= time_ns);
        versions.get(by_then.saturating_sub(1)).copied()
    }

    /// Times at which the code at a place changed, ascending, nanoseconds.
    pub fn changes(&self, mapping: &MappingFact, offset: u64) -> Vec<u64> {
        let key = (mapping.path.as_str(), mapping.build_id.as_deref(), offset);
        let versions = self.reused.get(&key).map_or(&[][..], Vec::as_slice);
        versions.iter().skip(1).map(|code| code.since_ns).collect()
    }

    /// Whether the code of every place stayed the same.
    pub fn never_change(&self) -> bool {
        self.reused.is_empty()
    }
}

/// The path that stands for memory in which a process makes code, as [`MappingFact::path`]. Offsets there are addresses.
pub fn jit_code(pid: u32) -> String {
    format!("{MADE}{pid}]")
}

/// Whether a path is [`jit_code`].
pub fn is_jit_code(path: &str) -> bool {
    path.starts_with(MADE)
}

const MADE: &str = "[made by ";

/// Beginning of the folder's name, and file name, of the library that longpole loads before a launched command's libc.
pub const LIBRARY: (&str, &str) = ("longpole-", "longpole-preload.so");

/// Whether a path is that of longpole's library, in any place. Its work is recording, not the program's.
pub fn is_recording_library(path: &str) -> bool {
    let mut parts = path.rsplit('/');
    parts.next() == Some(LIBRARY.1) && parts.next().is_some_and(|folder| folder.starts_with(LIBRARY.0))
}

/// The address of a byte in a frame's code.
///
/// For the innermost frame, the address itself; for others, the byte before the return address, which may be in other code.
pub fn frame_address(index: usize, address: u64) -> u64 {
    if index == 0 { address } else { address.wrapping_sub(1) }
}

/// Places in stacks for which the facts have no name yet, without duplicates and in order.
pub fn unnamed_code(recording: &Recording) -> Vec<CodePlace> {
    let facts = &recording.facts;
    let map = CodeMap::of(facts);
    let named: FxHashSet<(&str, Option<&str>, u64)> =
        facts.code.iter().map(|code| (code.path.as_str(), code.build_id.as_deref(), code.offset)).collect();
    let mut wanted: FxHashSet<(&str, Option<&str>, u64)> = FxHashSet::default();
    let sampled = recording.notes.iter().filter_map(|note| match &note.kind {
        NoteKind::Stack { pid, frames, .. } => Some((*pid, &frames[..], note.time_ns)),
        _ => None,
    });
    let looked_at = facts.end.iter().flat_map(|end| &end.goroutines).flat_map(|of| {
        let starts = of.starts.iter().map(|start| std::slice::from_ref(&start.start));
        let stacks = starts.chain(of.acts.iter().map(|act| &act.frames[..]));
        stacks.map(|frames| (of.pid, frames, u64::MAX))
    });
    for (pid, frames, time_ns) in sampled.chain(looked_at) {
        for (index, address) in frames.iter().enumerate() {
            let Some((mapping, offset)) = map.at(pid, frame_address(index, *address), time_ns) else {
                continue;
            };
            let key = (mapping.path.as_str(), mapping.build_id.as_deref(), offset);
            if !mapping.path.is_empty() && !named.contains(&key) {
                wanted.insert(key);
            }
        }
    }
    let mut places: Vec<CodePlace> = wanted
        .into_iter()
        .map(|(path, build_id, offset)| CodePlace {
            path: path.to_owned(),
            build_id: build_id.map(str::to_owned),
            offset,
        })
        .collect();
    places.sort_unstable();
    places
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Note;

    #[test]
    fn only_longpole_s_own_library_counts_as_the_recording_library() {
        assert!(is_recording_library("/tmp/longpole-812-1f/longpole-preload.so"));
        for other in ["/usr/lib/libc.so.6", "/srv/longpole-preload.so", "longpole-preload.so", ""] {
            assert!(!is_recording_library(other), "{other}");
        }
    }

    fn mapping(since_ns: u64, start: u64, path: &str) -> MappingFact {
        MappingFact {
            pid: 7,
            since_ns,
            start,
            end: start + 0x1000,
            file_offset: 0x2000,
            path: path.to_owned(),
            build_id: None,
        }
    }

    #[test]
    fn an_address_is_in_the_mapping_of_its_time_or_else_in_a_later_one() {
        let all = [mapping(50, 0x1000, "new"), mapping(0, 0x1000, "old"), mapping(90, 0x9000, "late")];
        let map = CodeMap::of_mappings(&all);
        let at = |address, time| map.at(7, address, time).map(|(m, offset)| (m.path.as_str(), offset));
        assert_eq!(at(0x1010, 49), Some(("old", 0x2010)));
        assert_eq!(at(0x1010, 50), Some(("new", 0x2010)));
        assert_eq!(at(0x9010, 10), Some(("late", 0x2010)));
        assert_eq!(at(0x5000, 10), None);
        assert_eq!(map.at(8, 0x1010, 10), None);
    }

    #[test]
    fn a_place_in_jit_code_has_the_name_of_its_time() {
        let made = MappingFact { file_offset: 0x1000, ..mapping(0, 0x1000, &jit_code(7)) };
        let code = |since_ns, name: &str| CodeFact {
            path: jit_code(7),
            offset: 0x1010,
            since_ns,
            function: Some(name.to_owned()),
            ..CodeFact::default()
        };
        let all = [code(50, "second"), code(0, "worse"), code(0, "first"), code(90, "third")];
        let names = CodeNames::of(&all);
        let at = |time| names.at(&made, 0x1010, time).and_then(|code| code.function.as_deref());
        assert_eq!([0, 49, 50, 89, 90].map(at), ["first", "first", "second", "second", "third"].map(Some));
        assert_eq!(names.changes(&made, 0x1010), [50, 90]);
        assert!(names.at(&made, 0x1011, 5).is_none() && !names.never_change());
        assert!(CodeNames::of(&all[..1]).never_change());
    }

    #[test]
    fn unnamed_places_are_listed_once_and_callers_at_their_call() {
        let note = |frames: &[u64]| Note {
            time_ns: 5,
            kind: NoteKind::Stack { id: 1, pid: 7, frames: frames.to_vec(), cut: false },
        };
        let mut recording = Recording {
            facts: Facts { mappings: vec![mapping(0, 0x1000, "a")], ..Facts::default() },
            notes: vec![note(&[0x1010, 0x1020]), note(&[0x1010, 0x1020, 0x77])],
            ..Recording::default()
        };
        let offsets = |recording: &Recording| -> Vec<u64> {
            unnamed_code(recording).iter().map(|place| place.offset).collect()
        };
        assert_eq!(offsets(&recording), [0x2010, 0x201f]);
        let known = CodeFact { path: "a".to_owned(), offset: 0x201f, ..CodeFact::default() };
        recording.facts.code.push(known);
        assert_eq!(offsets(&recording), [0x2010]);
    }
}
