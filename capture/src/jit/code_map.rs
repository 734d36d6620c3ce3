//! Code that a program made while it runs, by address. Addresses are used again: what came later counts.

use std::collections::BTreeMap;
use std::sync::Arc;
use symbols::Frame;

/// Most pieces kept.
const MOST_PIECES: usize = 4_000_000;
/// Largest piece believed: no compiler makes more code at once.
const MOST_BYTES: u64 = 256 << 20;

/// A piece of code.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Code {
    /// Address after its last byte.
    pub end: u64,
    /// First address, also when its start has been overwritten since.
    pub start: u64,
    /// Its name, as the program tells it.
    pub name: String,
    /// Lines, ascending by distance from `start`.
    pub lines: Arc<[CodeLine]>,
}

/// A line from some distance on: distance, file, number.
pub type CodeLine = (u64, String, u32);

/// See the module.
#[derive(Clone, Debug, Default)]
pub struct JitCodeMap {
    pieces: BTreeMap<u64, Code>,
    /// Entries that could not be true.
    pub refused: u64,
}

impl JitCodeMap {
    /// Adds a piece, replacing what was there. A size or an address that no program has is refused and
    /// counted.
    pub fn add(&mut self, code: Code) {
        let size = code.end.saturating_sub(code.start);
        let in_user_space = code.end <= 1 << 56;
        if size == 0 || size > MOST_BYTES || !in_user_space || self.pieces.len() >= MOST_PIECES {
            self.refused = self.refused.saturating_add(1);
            return;
        }
        self.clear(code.start, code.end);
        self.pieces.insert(code.start, code);
    }

    /// Adds all pieces of another one.
    pub fn add_all(&mut self, other: JitCodeMap) {
        self.refused = self.refused.saturating_add(other.refused);
        // One whose beginning was overwritten begins at its key.
        for (from, code) in other.pieces {
            self.clear(from, code.end);
            if self.pieces.len() < MOST_PIECES {
                self.pieces.insert(from, code);
            }
        }
    }

    /// Takes away what lies between two addresses. Each piece is taken away once, so all of it takes time in proportion to
    /// the entries, however they overlap.
    fn clear(&mut self, start: u64, end: u64) {
        if let Some((&from, before)) = self.pieces.range(..start).next_back()
            && before.end > start
        {
            let mut rest = before.clone();
            let tail = (rest.end > end).then(|| rest.clone());
            rest.end = start;
            self.pieces.insert(from, rest);
            if let Some(tail) = tail {
                self.pieces.insert(end, tail);
            }
        }
        while let Some((&from, _)) = self.pieces.range(start..end).next() {
            let Some(code) = self.pieces.remove(&from) else { break };
            if code.end > end {
                self.pieces.insert(end, code);
            }
        }
    }

    /// Moves a piece.
    pub fn moved(&mut self, from: u64, to: u64) {
        if let Some(code) = self.pieces.remove(&from) {
            let end = code.end.wrapping_add(to.wrapping_sub(from));
            self.add(Code { start: to, end, ..code });
        }
    }

    /// The piece that holds an address.
    pub fn at(&self, address: u64) -> Option<&Code> {
        let (_, code) = self.pieces.range(..=address).next_back()?;
        (address < code.end).then_some(code)
    }
}

impl Code {
    /// The line at an address.
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
mod tests {
    use super::*;

    fn code(start: u64, end: u64, name: &str) -> Code {
        Code { start, end, name: name.into(), lines: Arc::default() }
    }

    #[test]
    fn what_came_later_counts() {
        let mut map = JitCodeMap::default();
        for piece in
            [code(100, 200, "old"), code(300, 400, "kept"), code(150, 160, "inner"), code(190, 310, "over")]
        {
            map.add(piece);
        }
        let name = |at| map.at(at).map(|code| code.name.as_str());
        let wanted = [
            (99, None),
            (100, Some("old")),
            (149, Some("old")),
            (150, Some("inner")),
            (160, Some("old")),
            (189, Some("old")),
            (190, Some("over")),
            (309, Some("over")),
            (310, Some("kept")),
            (400, None),
        ];
        for (at, wanted) in wanted {
            assert_eq!(name(at), wanted, "{at}");
        }
    }

    #[test]
    fn what_cannot_be_true_is_refused() {
        let mut map = JitCodeMap::default();
        map.add(code(0, u64::MAX, "everything"));
        map.add(code(5, 5, "nothing"));
        map.add(code(0xffff_ffff_8000_0000, 0xffff_ffff_8000_1000, "kernel"));
        assert!(map.pieces.is_empty());
        assert_eq!(map.refused, 3);
    }

    /// A map of a hundred thousand entries, each over all before it, took minutes in other readers.
    #[test]
    fn overlapping_entries_take_no_time() {
        let mut map = JitCodeMap::default();
        for n in 0..100_000u64 {
            map.add(code(0x10_0000 - n, 0x10_0000 + n + 1, "x"));
        }
        assert_eq!(map.pieces.len(), 1);
    }

    #[test]
    fn code_moves_with_its_lines() {
        let mut map = JitCodeMap::default();
        let lines = vec![(0, "a.js".into(), 3), (10, "b.js".into(), 9)];
        map.add(Code { lines: lines.into(), ..code(100, 120, "f") });
        map.moved(100, 500);
        assert!(map.at(100).is_none());
        let frame = map.at(511).and_then(|code| code.frame(511)).expect("a line");
        assert_eq!((frame.file.as_deref(), frame.line), (Some("b.js"), Some(9)));
    }
}
