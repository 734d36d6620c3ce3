//! Rules for finding a function's caller from every instruction of a binary: the content of `.eh_frame` in longpole's
//! own format.
//!
//! DWARF's unwind tables are programs, and so are the expressions in them. A parser process without rights runs these
//! programs once. Of each register that is needed to follow a stack, the parser keeps only the forms that compilers
//! use: two kinds of sums, and the words to which such sums point. The result is rows of six bytes. To look up and
//! apply a row cannot fail, so longpole itself can unwind the stacks of samples.

use super::unwind_rules::{FewRegisters, Rules, rule};
use crate::catch_panic::catch_panic;
use crate::elf::ElfFile;
use crate::error::SymbolError;
use gimli::{BaseAddresses, CieOrFde, EhFrame, EndianSlice, LittleEndian, UnwindContext, UnwindSection as _};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;

/// Size of the largest `.eh_frame` that is read, in bytes.
const MAX_BYTES: u64 = 256 << 20;
/// Largest number of rows that are kept. libc has 40,000, a browser 3 million.
const MOST_ROWS: usize = 8 << 20;
/// Code of at most this size is a stub, which does not show whether the binary keeps frame pointers.
const STUB_BYTES: u64 = 16;
/// Bytes of a row in a message: the row's start (`u32`) and the number of its rule (`u16`).
const ROW: usize = 6;
/// The rule number of rows without a rule: no function is known there.
pub const NO_RULE: u16 = u16::MAX;

/// Where the caller's frame begins (DWARF's canonical frame address). Distances are in bytes, from the stack pointer or
/// from the frame pointer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FrameAt {
    /// At this distance above the stack pointer.
    Stack(i32),
    /// At this distance above the frame pointer.
    Pointer(i32),
    /// At the address that is stored in the word at this distance above the stack pointer. Signal frames need this
    /// form.
    InStack(i32),
    /// At the address that is stored in the word at this distance above the frame pointer. Functions that align their
    /// stack need this form.
    InPointer(i32),
    /// In the linker's table of stubs (`.plt`): 8 bytes above the stack pointer in the first part of each 16-byte stub,
    /// and 16 bytes above from this byte of the stub on.
    Calls(u8),
    /// Cannot be computed from the stack pointer and the frame pointer.
    Unknown,
}

/// Where the caller's frame pointer or the return address is saved. Distances are in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Saved {
    /// In its register: the function has not changed the frame pointer.
    Same,
    /// In the word at this distance above the caller's frame.
    Frame(i32),
    /// At this distance above the stack pointer.
    Stack(i32),
    /// At this distance above the frame pointer.
    Pointer(i32),
    /// In another register, by DWARF number. The register's value is known only for the innermost function.
    Register(u8),
    /// Nowhere: the value is lost.
    Lost,
}

/// How the caller of the function is found at one instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Rule {
    /// Where the frame of the caller begins.
    pub frame: FrameAt,
    /// Where the caller's frame pointer is.
    pub pointer: Saved,
    /// Where the return address is. [`Saved::Lost`] means that there is no caller.
    pub back: Saved,
    /// Whether a signal interrupted the caller. If so, the caller's address is that of the next instruction to execute,
    /// and not of the instruction after a call.
    pub is_signal: bool,
}

/// The unwind rows of a binary; see the module's documentation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UnwindRows {
    base: u64,
    /// Distances from `base`, ascending, bytes.
    starts: Vec<u32>,
    numbers: Vec<u16>,
    rules: Vec<Rule>,
    /// Whether all functions keep frame pointers. A function without one hides its caller from an unwinder that follows
    /// frame pointers. gcc omits frame pointers in functions that call no others, which often use most of the CPU time.
    pub keeps_frame_pointers: bool,
}

/// The metadata of rows, as sent in a message. The bytes of the rows are sent with it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RowsTold {
    base: u64,
    count: usize,
    rules: Vec<Rule>,
    keeps_frame_pointers: bool,
}

impl UnwindRows {
    /// The rows of a file; `None` if it has none.
    pub fn of(elf: &ElfFile) -> Result<Option<UnwindRows>, SymbolError> {
        let Some(section) = elf.section(b".eh_frame").filter(|_| elf.is_x86_64) else { return Ok(None) };
        let frames = elf.section_bytes(section, "the unwind tables", MAX_BYTES)?;
        let stubs: Vec<(u64, u64)> = elf
            .sections
            .iter()
            .filter(|section| section.name.starts_with(b".plt"))
            .map(|section| (section.address, section.address.saturating_add(section.size)))
            .collect();
        Ok(UnwindRows::scan(&frames, section.address, elf.entry, &stubs))
    }

    /// Reads the bytes of `.eh_frame`, which is linked at `at`. For `keeps_frame_pointers`, code at `entry` or in
    /// `stubs` is ignored.
    pub fn scan(frames: &[u8], at: u64, entry: u64, stubs: &[(u64, u64)]) -> Option<UnwindRows> {
        catch_panic(|| UnwindRows::look_through(frames, at, entry, stubs)).flatten()
    }

    fn look_through(frames: &[u8], at: u64, entry: u64, stubs: &[(u64, u64)]) -> Option<UnwindRows> {
        let bases = BaseAddresses::default().set_eh_frame(at);
        let mut section = EhFrame::from(EndianSlice::new(frames, LittleEndian));
        section.set_address_size(8);
        let mut entries = section.entries(&bases);
        let mut context = UnwindContext::<usize, FewRegisters>::new_in();
        let mut rules = Rules::default();
        let mut spans: Vec<(u64, u64, u16)> = Vec::new();
        let (mut functions, mut with_pointer) = (0u64, 0u64);
        while let Ok(Some(found)) = entries.next() {
            let CieOrFde::Fde(partial) = found else { continue };
            let Ok(fde) = partial.parse(EhFrame::cie_from_offset) else { continue };
            let (start, end) = (fde.initial_address(), fde.end_address());
            let mut known_up_to = start;
            let mut by_pointer = false;
            if let Ok(mut table) = fde.rows(&section, &bases, &mut context) {
                while let Ok(Some(row)) = table.next_row() {
                    if spans.len() >= MOST_ROWS {
                        break;
                    }
                    let rule = rule(row, &section, &fde);
                    by_pointer |= matches!(rule.frame, FrameAt::Pointer(_));
                    spans.push((
                        row.start_address().max(start),
                        row.end_address().min(end),
                        rules.number(rule),
                    ));
                    known_up_to = row.end_address();
                }
            }
            if known_up_to < end {
                // A part that cannot be read gets the rule `UNKNOWN`. Code without an entry gets no rule.
                spans.push((known_up_to, end, rules.number(Rule::UNKNOWN)));
            }
            let is_function = end.saturating_sub(start) > STUB_BYTES
                && start != entry
                && !stubs.iter().any(|(from, to)| (*from..*to).contains(&start));
            if is_function {
                functions += 1;
                with_pointer += u64::from(by_pointer);
            }
            if spans.len() >= MOST_ROWS {
                break;
            }
        }
        let keeps_frame_pointers = functions > 0 && with_pointer == functions;
        UnwindRows::flat(spans, rules.list, keeps_frame_pointers)
    }

    /// Makes rows of spans. Where two spans overlap, the span that begins first wins.
    pub fn flat(
        mut spans: Vec<(u64, u64, u16)>,
        rules: Vec<Rule>,
        keeps_frame_pointers: bool,
    ) -> Option<UnwindRows> {
        spans.retain(|(from, to, _)| from < to);
        spans.sort_by_key(|(from, ..)| *from);
        let base = spans.first()?.0;
        let mut rows = UnwindRows { base, rules, keeps_frame_pointers, ..UnwindRows::default() };
        let mut end = base;
        for (from, to, number) in spans {
            let from = from.max(end);
            if from >= to {
                continue;
            }
            if from > end {
                rows.push(end, NO_RULE);
            }
            rows.push(from, number);
            end = to;
        }
        rows.push(end, NO_RULE);
        Some(rows)
    }

    fn push(&mut self, from: u64, number: u16) {
        // Compilers write no code of more than 4 GiB, so a distance that does not fit into 32 bits is an error in the
        // table.
        let Some(start) = from.checked_sub(self.base).and_then(|start| u32::try_from(start).ok()) else {
            return;
        };
        if self.numbers.last() != Some(&number) {
            self.starts.push(start);
            self.numbers.push(number);
        }
    }

    /// The rule for an instruction at a linked address; `None` if no function is known there.
    pub fn rule(&self, address: u64) -> Option<&Rule> {
        let at = u32::try_from(address.checked_sub(self.base)?).ok()?;
        let after = self.starts.partition_point(|start| *start <= at);
        let number = *self.numbers.get(after.checked_sub(1)?)?;
        self.rules.get(usize::from(number))
    }

    /// Size in memory, in bytes.
    pub fn bytes(&self) -> usize {
        self.starts
            .len()
            .saturating_mul(ROW)
            .saturating_add(self.rules.len().saturating_mul(size_of::<Rule>()))
    }

    /// The metadata and the bytes of all rows, to be sent to a process that does not trust the parser.
    pub fn told(&self) -> (RowsTold, Vec<u8>) {
        let mut bytes = Vec::with_capacity(self.starts.len().saturating_mul(ROW));
        for (start, number) in self.starts.iter().zip(&self.numbers) {
            bytes.extend(start.to_le_bytes());
            bytes.extend(number.to_le_bytes());
        }
        let (rules, keeps_frame_pointers) = (self.rules.clone(), self.keeps_frame_pointers);
        (RowsTold { base: self.base, count: self.starts.len(), rules, keeps_frame_pointers }, bytes)
    }
}

impl RowsTold {
    /// Takes the bytes of the rows from the file that contains all rows. `None` if the rows make no sense. The file is
    /// read once, and never mapped.
    pub fn believed(self, file: &File) -> io::Result<Option<UnwindRows>> {
        let metadata = file.metadata()?;
        let size = self.count.saturating_mul(ROW);
        let fits = metadata.is_file() && metadata.len() == size as u64;
        if !fits || self.count > MOST_ROWS || self.rules.len() > usize::from(NO_RULE) {
            return Ok(None);
        }
        let mut bytes = vec![0; size];
        file.read_exact_at(&mut bytes, 0)?;
        let RowsTold { base, count, rules, keeps_frame_pointers } = self;
        let mut rows = UnwindRows { base, rules, keeps_frame_pointers, ..UnwindRows::default() };
        rows.starts.reserve_exact(count);
        rows.numbers.reserve_exact(count);
        for row in bytes.as_chunks::<ROW>().0 {
            let [a, b, c, d, e, f] = *row;
            rows.starts.push(u32::from_le_bytes([a, b, c, d]));
            rows.numbers.push(u16::from_le_bytes([e, f]));
        }
        // A lookup in unsorted rows would do no harm, but an honest parser never sends unsorted rows.
        Ok(rows.starts.is_sorted_by(|a, b| a < b).then_some(rows))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;
    use std::path::Path;

    fn own() -> UnwindRows {
        let elf = ElfFile::open(Path::new("/proc/self/exe")).expect("this test");
        UnwindRows::of(&elf).expect("readable").expect("tables")
    }

    fn file(bytes: &[u8]) -> File {
        let mut file = tempfile::tempfile().expect("file");
        file.write_all(bytes).expect("written");
        file
    }

    #[test]
    fn unwind_rows_of_this_test_are_known_and_checked_when_read_back() {
        let rows = own();
        assert!(rows.starts.len() > 1000 && rows.rules.len() > 10, "{} rows", rows.starts.len());
        let known = rows.rules.iter().filter(|rule| rule.frame != FrameAt::Unknown).count();
        assert!(known * 10 > rows.rules.len() * 8, "{:?}", rows.rules);
        let (told, bytes) = rows.told();
        assert_eq!(told.clone().believed(&file(&bytes)).expect("read"), Some(rows));
        assert_eq!(told.clone().believed(&file(&bytes[1..])).expect("read"), None, "cut");
        let mut mixed = bytes.clone();
        mixed[..ROW].fill(0xff);
        assert_eq!(told.clone().believed(&file(&mixed)).expect("read"), None, "not in order");
        let more = RowsTold { count: MOST_ROWS + 1, ..told.clone() };
        assert_eq!(more.believed(&file(&bytes)).expect("read"), None);
        let folder = File::open("/").expect("a folder");
        assert_eq!(told.believed(&folder).expect("looked at"), None);
    }

    #[test]
    fn unwind_rows_end_where_their_functions_end() {
        let at = |from: u64| Rule { frame: FrameAt::Stack(from as i32), ..Rule::UNKNOWN };
        let spans = vec![(300, 400, 1), (100, 200, 0), (150, 250, 1), (380, 380, 0), (1 << 40, 1 << 41, 0)];
        let rows = UnwindRows::flat(spans, vec![at(8), at(16)], false).expect("some");
        let frame = |address| rows.rule(address).map(|rule| rule.frame);
        let (first, second) = (Some(FrameAt::Stack(8)), Some(FrameAt::Stack(16)));
        let found = [0, 99, 100, 199, 200, 249, 250, 300, 399, 400, u64::MAX].map(frame);
        assert_eq!(found, [None, None, first, first, second, second, None, second, second, None, None]);
    }

    /// Every changed file is read to its end without a panic, and every address can be looked up in the result.
    #[test]
    fn changed_unwind_tables_are_read_to_their_end() {
        let elf = ElfFile::open(Path::new("/bin/sh")).expect("a shell");
        let section = elf.section(b".eh_frame").expect("tables");
        let whole = elf.section_bytes(section, "tables", MAX_BYTES).expect("read");
        let mut seed = 0x2545_f491_4f6c_dd1du64;
        for round in 0..300 {
            let mut bytes = whole.clone();
            for _ in 0..1 + round % 40 {
                seed ^= seed << 13;
                seed ^= seed >> 7;
                seed ^= seed << 17;
                let at = (seed % bytes.len() as u64) as usize;
                bytes[at] = (seed >> 32) as u8;
            }
            let Some(rows) = UnwindRows::scan(&bytes, section.address, 0, &[]) else { continue };
            assert!(rows.starts.is_sorted_by(|a, b| a < b));
            for address in [0, rows.base, section.address, u64::MAX] {
                let _ = rows.rule(address);
            }
        }
    }
}
