//! Names of code that a program made at run time, by address and time: addresses are used again.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use symbols::{Frame, demangled};

/// Largest number of entries that are kept for wanted addresses.
const MOST_ENTRIES: usize = 4_000_000;
/// Largest piece of code that is believed: no compiler makes more at once.
const MOST_BYTES: u64 = 256 << 20;

/// A piece of code that a program made at run time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Code {
    /// First address.
    pub start: u64,
    /// First address after the code.
    pub end: u64,
    /// Name of the code, as the program gives it.
    pub name: String,
    /// Lines, ascending by distance from `start`.
    pub lines: Arc<[CodeLine]>,
}

/// A source line: distance of its first byte from the code's start, file, line number.
pub type CodeLine = (u64, String, u32);

/// A piece of code at an address, and the time since which it is there (`CLOCK_MONOTONIC` nanoseconds; 0: unknown).
pub type Version = (u64, Arc<Code>);

/// The versions of code at wanted addresses.
#[derive(Debug)]
pub struct JitHistory<'a> {
    wanted: &'a BTreeSet<u64>,
    /// For each address: the code there, in order of time.
    versions: BTreeMap<u64, Vec<Version>>,
    entries: usize,
    /// Entries that were impossible, or too many.
    pub refused: u64,
}

impl<'a> JitHistory<'a> {
    /// An empty history of these addresses.
    pub fn of(wanted: &'a BTreeSet<u64>) -> JitHistory<'a> {
        JitHistory { wanted, versions: BTreeMap::new(), entries: 0, refused: 0 }
    }

    /// Whether a wanted address lies in this range.
    pub fn wants(&self, start: u64, end: u64) -> bool {
        start < end && self.wanted.range(start..end).next().is_some()
    }

    /// Adds a piece of code that is there from `since_ns` on. Entries come in order; impossible ones are refused and counted.
    pub fn add(&mut self, since_ns: u64, code: &Arc<Code>) {
        let size = code.end.saturating_sub(code.start);
        let in_user_space = code.end <= 1 << 56;
        if size == 0 || size > MOST_BYTES || !in_user_space {
            self.refused = self.refused.saturating_add(1);
            return;
        }
        for &address in self.wanted.range(code.start..code.end) {
            if self.entries >= MOST_ENTRIES {
                self.refused = self.refused.saturating_add(1);
                return;
            }
            self.entries += 1;
            let versions = self.versions.entry(address).or_default();
            match versions.last_mut() {
                Some((_, last)) if last.start == code.start && last.name == code.name => {
                    *last = Arc::clone(code)
                }
                Some((before_ns, last)) if *before_ns >= since_ns => *last = Arc::clone(code),
                _ => versions.push((since_ns, Arc::clone(code))),
            }
        }
    }

    /// Adds the versions of the other history for addresses of which this one has none.
    #[must_use]
    pub fn or(mut self, other: JitHistory<'a>) -> JitHistory<'a> {
        for (address, versions) in other.versions {
            self.versions.entry(address).or_insert(versions);
        }
        self.refused = self.refused.saturating_add(other.refused);
        self
    }

    /// The code at an address, in order of time.
    pub fn at(&self, address: u64) -> &[Version] {
        self.versions.get(&address).map_or(&[], Vec::as_slice)
    }
}

/// A program's name for code, safe to print. V8's mark for the compiler's tier is removed, since the function is the
/// same.
pub fn name(raw: &[u8]) -> String {
    let name = demangled(&String::from_utf8_lossy(raw));
    let kinds = ["JS:", "LazyCompile:"];
    let found = kinds.iter().find_map(|kind| Some((kind, name.strip_prefix(kind)?)));
    found.map_or_else(
        || name.clone(),
        |(kind, rest)| format!("{kind}{}", rest.strip_prefix(['*', '~', '^', '+', '\'']).unwrap_or(rest)),
    )
}

impl Code {
    /// The source line at an address.
    pub fn frame(&self, address: u64) -> Option<Frame> {
        let distance = address.checked_sub(self.start)?;
        let behind = self.lines.partition_point(|(at, ..)| *at <= distance);
        let (_, file, line) = self.lines.get(behind.checked_sub(1)?)?;
        Some(Frame {
            function: Some(self.name.clone()),
            file: (!file.is_empty()).then(|| file.clone()),
            line: Some(*line),
            column: None,
        })
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Names and times of an address.
    pub fn names<'a>(history: &'a JitHistory<'_>, address: u64) -> Vec<(u64, &'a str)> {
        history.at(address).iter().map(|(since_ns, code)| (*since_ns, code.name.as_str())).collect()
    }

    fn code(start: u64, end: u64, name: &str) -> Arc<Code> {
        Arc::new(Code { start, end, name: name.into(), lines: Arc::default() })
    }

    /// An address that is used again has each name only for that code's time.
    #[test]
    fn a_jit_address_has_each_name_for_that_code_s_time_only() {
        let wanted = BTreeSet::from([150, 195, 350]);
        let mut history = JitHistory::of(&wanted);
        for (since_ns, code) in [
            (10, code(100, 200, "old")),
            (20, code(300, 400, "kept")),
            (30, code(150, 160, "inner")),
            (40, code(190, 310, "over")),
            (50, code(150, 160, "inner")),
        ] {
            history.add(since_ns, &code);
        }
        assert_eq!(names(&history, 150), [(10, "old"), (30, "inner")]);
        assert_eq!(names(&history, 195), [(10, "old"), (40, "over")]);
        assert_eq!(names(&history, 350), [(20, "kept")]);
        assert!(history.wants(350, 351) && !history.wants(351, 400) && history.at(351).is_empty());
        // If times are unknown, the later entry counts.
        history.add(0, &code(100, 200, "new"));
        assert_eq!(names(&history, 150), [(10, "old"), (30, "new")]);
        let mut other = JitHistory::of(&wanted);
        other.add(0, &code(100, 400, "other"));
        assert_eq!(names(&JitHistory::of(&wanted).or(other), 350), [(0, "other")]);
    }

    /// The tiers in which V8 compiles a function have one name.
    #[test]
    fn v8_s_tiers_of_a_function_have_one_name() {
        for tier in ["", "~", "^", "+", "*"] {
            assert_eq!(name(format!("JS:{tier}add /a.js:3:9").as_bytes()), "JS:add /a.js:3:9");
        }
        assert_eq!(name(b"Builtin:~x"), "Builtin:~x");
    }

    #[test]
    fn impossible_ranges_of_jit_code_are_refused_and_counted() {
        let wanted = BTreeSet::from([5, 0xffff_ffff_8000_0000]);
        let mut history = JitHistory::of(&wanted);
        history.add(1, &code(0, u64::MAX, "everything"));
        history.add(1, &code(5, 5, "nothing"));
        history.add(1, &code(0xffff_ffff_8000_0000, 0xffff_ffff_8000_1000, "kernel"));
        assert!(history.versions.is_empty());
        assert_eq!(history.refused, 3);
    }
}
