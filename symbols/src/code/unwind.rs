//! Facts about a function from the unwind tables: where its stack is level, and where exceptions land. The stack is
//! level where the stack pointer has the value that it had at the function's entry.
//!
//! In `.eh_frame` the compiler gives the stack's height at every instruction. The height distinguishes a tail call from
//! a jump inside a function.

use super::landing_pads;
use super::unwind_rules::FewRegisters;
use crate::catch_panic::catch_panic;
use crate::elf::ElfFile;
use gimli::{BaseAddresses, EhFrame, LittleEndian, Pointer, UnwindSection as _};

/// Size of the largest table that is read, in bytes.
const MAX_TABLE: u64 = 256 << 20;
/// The DWARF number of x86-64's stack pointer.
const STACK_POINTER: gimli::Register = gimli::Register(7);
/// Largest number of rows read for one function.
const MAX_ROWS: usize = 100_000;

/// The unwind tables of a module.
pub struct UnwindTables {
    header: Vec<u8>,
    header_at: u64,
    frames: Vec<u8>,
    frames_at: u64,
    exceptions: Vec<u8>,
    exceptions_at: u64,
    bases: BaseAddresses,
}

/// Facts about the code of one unwind entry.
#[derive(Debug, Default)]
pub struct UnwindFacts {
    /// Address ranges, ascending, each with whether the stack is level there.
    level: Vec<(u64, u64, bool)>,
    /// The landing pads of exceptions.
    pub landing_pads: LandingPads,
}

/// The addresses at which exceptions continue in a function.
#[derive(Debug, Default, PartialEq, Eq)]
pub enum LandingPads {
    /// The function catches no exception and needs no clean-up when an exception passes.
    #[default]
    None,
    /// All landing pads.
    At(Vec<u64>),
    /// The function has landing pads, but longpole does not understand the form of their table.
    Unreadable,
}

impl UnwindFacts {
    /// Whether the stack is level at the address; `None` if no row contains the address.
    pub fn is_level(&self, address: u64) -> Option<bool> {
        let at = self.level.partition_point(|&(start, ..)| start <= address);
        let &(_, end, level) = self.level.get(at.checked_sub(1)?)?;
        (address < end).then_some(level)
    }
}

impl UnwindTables {
    /// The unwind tables of a file, or `None` if it has no tables that can be searched.
    pub fn read(elf: &ElfFile) -> Option<UnwindTables> {
        let section = |name: &[u8]| {
            let section = elf.section(name)?;
            Some((section.address, elf.section_bytes(section, "the unwind tables", MAX_TABLE).ok()?))
        };
        let (header_at, header) = section(b".eh_frame_hdr")?;
        let (frames_at, frames) = section(b".eh_frame")?;
        let (exceptions_at, exceptions) = section(b".gcc_except_table").unwrap_or_default();
        let bases = BaseAddresses::default().set_eh_frame_hdr(header_at).set_eh_frame(frames_at);
        Some(UnwindTables { header, header_at, frames, frames_at, exceptions, exceptions_at, bases })
    }

    /// The place in `.eh_frame` of the entry of the function that starts at `start`, found in the sorted table
    /// `.eh_frame_hdr`. Only the form that every linker writes is understood: each row has two signed 4-byte distances
    /// from the header's address, to the function and to its entry.
    fn frame_offset(&self, start: u64) -> Option<usize> {
        let (found, offset) = self.row_up_to(start)?;
        (found == start).then_some(offset)
    }

    /// The last row whose function starts at or before this address. Returns the function's start and the place of its
    /// unwind entry in `.eh_frame`.
    fn row_up_to(&self, start: u64) -> Option<(u64, usize)> {
        let (&[1, _, 0x03, 0x3b], rest) = self.header.split_first_chunk::<4>()? else { return None };
        let (&[_, _, _, _, a, b, c, d], rows) = rest.split_first_chunk::<8>()?;
        let count = usize::try_from(u32::from_le_bytes([a, b, c, d])).ok()?;
        let rows = rows.as_chunks::<8>().0.get(..count)?;
        let address = |bytes: &[u8; 8], at: usize| {
            let distance = i32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
            self.header_at.wrapping_add_signed(i64::from(distance))
        };
        let row = rows.get(rows.partition_point(|row| address(row, 0) <= start).checked_sub(1)?)?;
        Some((address(row, 0), usize::try_from(address(row, 4).checked_sub(self.frames_at)?).ok()?))
    }

    /// Start and end of the code whose unwind entry contains the address.
    pub fn stretch_of(&self, address: u64) -> Option<(u64, u64)> {
        let (start, offset) = self.row_up_to(address)?;
        let end = catch_panic(|| {
            let mut frames = EhFrame::new(&self.frames, LittleEndian);
            frames.set_address_size(8);
            let offset = gimli::EhFrameOffset(offset);
            let fde = frames.fde_from_offset(&self.bases, offset, EhFrame::cie_from_offset).ok()?;
            (fde.initial_address() == start).then(|| start.checked_add(fde.len()))?
        })??;
        (address < end).then_some((start, end))
    }

    /// Whether an unwind entry starts at exactly this address.
    pub fn starts_at(&self, address: u64) -> bool {
        self.frame_offset(address).is_some()
    }

    /// The facts about the code whose unwind entry starts at exactly this address.
    pub fn facts(&self, start: u64) -> Option<UnwindFacts> {
        catch_panic(|| self.read_facts(start))?
    }

    fn read_facts(&self, start: u64) -> Option<UnwindFacts> {
        let mut frames = EhFrame::new(&self.frames, LittleEndian);
        frames.set_address_size(8);
        let offset = gimli::EhFrameOffset(self.frame_offset(start)?);
        let fde = frames.fde_from_offset(&self.bases, offset, EhFrame::cie_from_offset).ok()?;
        if fde.initial_address() != start {
            return None;
        }
        let mut context = gimli::UnwindContext::<usize, FewRegisters>::new_in();
        let mut rows = fde.rows(&frames, &self.bases, &mut context).ok()?;
        let mut level = Vec::new();
        while let Some(row) = rows.next_row().ok()? {
            if level.len() >= MAX_ROWS {
                return None;
            }
            let as_at_entry = matches!(row.cfa(),
                gimli::CfaRule::RegisterAndOffset { register, offset: 8 } if *register == STACK_POINTER);
            level.push((row.start_address(), row.end_address(), as_at_entry));
        }
        if !level.is_sorted_by_key(|&(start, ..)| start) {
            return None;
        }
        let landing_pads = match fde.lsda() {
            None => LandingPads::None,
            Some(Pointer::Direct(address)) => {
                self.landing_pads(address, start).map_or(LandingPads::Unreadable, LandingPads::At)
            }
            Some(Pointer::Indirect(_)) => LandingPads::Unreadable,
        };
        Some(UnwindFacts { level, landing_pads })
    }

    fn landing_pads(&self, table: u64, function: u64) -> Option<Vec<u64>> {
        let at = usize::try_from(table.checked_sub(self.exceptions_at)?).ok()?;
        landing_pads::read(self.exceptions.get(at..)?, table, function)
    }
}
