//! The unwind tables of a binary, looked through before anybody believes them.
//!
//! They come from the target. framehop runs what they say without a limit: an expression that jumps back to its own
//! beginning would never end. So every entry is read once when the binary is loaded, and only those are handed on whose
//! instructions are few and whose expressions go straight on, by a search table of our own making. The same reading
//! tells whether its functions keep frame pointers.

use crate::symbols::{ElfFile, contained};
use gimli::{
    BaseAddresses, CallFrameInstruction, CieOrFde, EhFrame, EndianSlice, LittleEndian, Operation, Register,
    UnwindExpression, UnwindSection as _,
};
use std::sync::Arc;

/// Largest section read, and most entries kept of one.
const MAX_BYTES: u64 = 64 << 20;
const MAX_ENTRIES: usize = 2 << 20;
/// Most instructions of an entry, and operations of an expression. Compilers use some tens.
const MAX_INSTRUCTIONS: usize = 4096;
const MAX_OPERATIONS: usize = 64;
/// x86-64's frame pointer in DWARF's numbering.
const FRAME_POINTER: Register = Register(6);
/// Code shorter than this is a stub, whatever the rest of the binary does.
const STUB_BYTES: u64 = 16;

type Bytes<'a> = EndianSlice<'a, LittleEndian>;

/// Tables that can be unwound with.
#[derive(Clone, Debug)]
pub struct Tables {
    /// `.eh_frame`, and its address as linked.
    pub frames: Arc<[u8]>,
    /// See `frames`.
    pub frames_at: u64,
    /// A search table over the entries that are fit for use, in the form of `.eh_frame_hdr`, at `frames_at`, too.
    pub search: Arc<[u8]>,
    /// All functions keep frame pointers. One that does not would hide its caller, and gcc leaves them out of those that call
    /// none, which is where the time goes.
    pub keeps_frame_pointers: bool,
}

impl Tables {
    /// Those of a file; `None` if it has none.
    pub fn of(elf: &ElfFile) -> Option<Tables> {
        let section = elf.section(b".eh_frame")?;
        let frames = elf.section_bytes(section, "the unwind tables", MAX_BYTES).ok()?;
        let stubs: Vec<(u64, u64)> = elf
            .sections
            .iter()
            .filter(|section| section.name.starts_with(b".plt"))
            .map(|section| (section.address, section.address.saturating_add(section.size)))
            .collect();
        Tables::scan(frames, section.address, elf.entry, &stubs)
    }

    /// Looks through `frames`, which lie at an address. What starts at `entry` or in `stubs` says nothing about frame
    /// pointers.
    pub fn scan(frames: Vec<u8>, frames_at: u64, entry: u64, stubs: &[(u64, u64)]) -> Option<Tables> {
        let (search, keeps_frame_pointers) = contained(|| look_through(&frames, frames_at, entry, stubs))??;
        Some(Tables { frames: frames.into(), frames_at, search: search.into(), keeps_frame_pointers })
    }
}

fn look_through(frames: &[u8], at: u64, entry: u64, stubs: &[(u64, u64)]) -> Option<(Vec<u8>, bool)> {
    // As framehop has them.
    let bases = BaseAddresses::default().set_eh_frame(at).set_eh_frame_hdr(at).set_text(0).set_got(0);
    let mut section = EhFrame::from(EndianSlice::new(frames, LittleEndian));
    section.set_address_size(8);
    let mut entries = section.entries(&bases);
    let mut kept: Vec<(i32, i32)> = Vec::new();
    let (mut functions, mut with_pointer) = (0u64, 0u64);
    while let Ok(Some(found)) = entries.next() {
        let CieOrFde::Fde(partial) = found else { continue };
        let Ok(fde) = partial.parse(EhFrame::cie_from_offset) else { continue };
        let encoding = fde.cie().encoding();
        let straight = |expression: UnwindExpression<usize>| {
            expression.get(&section).is_ok_and(|expression| {
                let mut operations = expression.operations(encoding);
                for _ in 0..MAX_OPERATIONS {
                    match operations.next() {
                        Ok(None) => return true,
                        Ok(Some(Operation::Bra { .. } | Operation::Skip { .. } | Operation::Call { .. }))
                        | Err(_) => return false,
                        Ok(Some(_)) => {}
                    }
                }
                false
            })
        };
        let of_cie = check(fde.cie().instructions(&section, &bases), straight);
        let Some((own, common)) = check(fde.instructions(&section, &bases), straight).zip(of_cie) else {
            continue;
        };
        let start = fde.initial_address();
        let is_function = fde.len() > STUB_BYTES
            && start != entry
            && !stubs.iter().any(|(from, to)| (*from..*to).contains(&start));
        if is_function {
            functions += 1;
            with_pointer += u64::from(own || common);
        }
        let place = u64::try_from(fde.offset()).ok()?;
        let distance = |to: u64| i32::try_from(to.wrapping_sub(at) as i64).ok();
        if let Some(row) = distance(start).zip(i32::try_from(place).ok())
            && kept.len() < MAX_ENTRIES
        {
            kept.push(row);
        }
    }
    kept.sort_unstable();
    kept.dedup_by_key(|(start, _)| *start);
    let keeps = functions > 0 && with_pointer == functions;
    (!kept.is_empty()).then(|| (search_table(&kept), keeps))
}

/// Whether the frame is found by the frame pointer at some instruction; `None` if these instructions are not fit for
/// use.
fn check(
    mut instructions: gimli::CallFrameInstructionIter<'_, Bytes<'_>>,
    straight: impl Fn(UnwindExpression<usize>) -> bool,
) -> Option<bool> {
    let mut by_pointer = false;
    for _ in 0..MAX_INSTRUCTIONS {
        match instructions.next().ok()? {
            None => return Some(by_pointer),
            Some(CallFrameInstruction::DefCfaExpression { expression })
            | Some(CallFrameInstruction::Expression { expression, .. })
            | Some(CallFrameInstruction::ValExpression { expression, .. }) => {
                if !straight(expression) {
                    return None;
                }
            }
            Some(CallFrameInstruction::DefCfa { register, .. })
            | Some(CallFrameInstruction::DefCfaSf { register, .. })
            | Some(CallFrameInstruction::DefCfaRegister { register }) => {
                by_pointer |= register == FRAME_POINTER;
            }
            Some(_) => {}
        }
    }
    None
}

/// As a linker writes it (Linux Standard Base, "The .eh_frame_hdr section"): rows of two signed 4-byte distances from
/// its own address, which is taken to be that of the frames.
fn search_table(rows: &[(i32, i32)]) -> Vec<u8> {
    const SIGNED_4_BYTES_FROM_HERE: u8 = 0x1b;
    const UNSIGNED_4_BYTES: u8 = 0x03;
    const SIGNED_4_BYTES_FROM_TABLE: u8 = 0x3b;
    let mut table = vec![1, SIGNED_4_BYTES_FROM_HERE, UNSIGNED_4_BYTES, SIGNED_4_BYTES_FROM_TABLE];
    // From this field, 4 bytes into the table, to the frames.
    table.extend((-4i32).to_le_bytes());
    table.extend(u32::try_from(rows.len()).unwrap_or(u32::MAX).to_le_bytes());
    for (start, place) in rows {
        table.extend(start.to_le_bytes());
        table.extend(place.to_le_bytes());
    }
    table
}
