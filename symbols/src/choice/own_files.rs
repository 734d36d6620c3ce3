//! Finds out whether a program reads its own file or the list of its mappings. A program that compares its code with
//! its file would find the breakpoints.

use super::protecting_calls::{Asked, References, any_piece, relative};
use crate::elf::{ElfFile, Import};
use iced_x86::{Decoder, DecoderOptions, FlowControl};

/// Where a binary contains the names `/proc/self/exe` and `/proc/self/maps`, and what its instructions do with them.
#[derive(Default)]
pub(super) struct OwnFiles {
    /// Linked addresses of the names.
    names: Vec<u64>,
    /// References to functions that take a path without opening the file.
    paths: References,
    uses: usize,
    reads: usize,
}

impl OwnFiles {
    /// Finds the names. A program without imports contains its C library, which uses both names itself: there all names
    /// are ignored.
    pub(super) fn of(elf: &ElfFile, imports: &[Import]) -> OwnFiles {
        const NAMES: [&[u8]; 2] = [b"/proc/self/exe\0", b"/proc/self/maps\0"];
        let mut own = OwnFiles::default();
        if imports.is_empty() {
            return own;
        }
        any_piece(
            elf,
            |name| name == b".rodata",
            false,
            |bytes, at| {
                for name in NAMES {
                    own.names.extend(
                        memchr::memmem::find_iter(bytes, name).map(|place| at.wrapping_add(place as u64)),
                    );
                }
                false
            },
        );
        if !own.names.is_empty() {
            let watched: Vec<(&Import, Asked)> = imports
                .iter()
                .filter_map(|import| Some((import, Asked::about_paths(&import.name)?)))
                .collect();
            own.paths = References::of(elf, &watched);
        }
        own
    }

    /// Counts how instructions use the names, in a piece of code that begins at the linked address `at`.
    pub(super) fn look(&mut self, code: &[u8], at: u64) {
        if self.names.is_empty() {
            return;
        }
        for place in 0..code.len() {
            let (named, length) = match code[place..] {
                // An instruction that loads the name's address: relative (`lea`), or absolute (`mov`, in the next
                // pattern).
                [0x48 | 0x4c, 0x8d, mode, ..] if mode & 0xc7 == 0x05 => (relative(code, place + 3, at), 7),
                [0xb8..=0xbf, a, b, c, d, ..] => (Some(u64::from(u32::from_le_bytes([a, b, c, d]))), 5),
                _ => continue,
            };
            if !named.is_some_and(|named| self.names.contains(&named)) {
                continue;
            }
            self.uses += 1;
            let rest = code.get(place + length..).unwrap_or_default();
            let next = called_next(rest, at.wrapping_add((place + length) as u64));
            self.reads += usize::from(!next.is_some_and(|next| self.paths.has(next)));
        }
    }

    /// Whether the program may read one of the files. If no instruction uses a name, the answer is yes, because a
    /// pointer in data may refer to the name.
    pub(super) fn are_read(&self) -> bool {
        !self.names.is_empty() && (self.uses == 0 || self.reads > 0)
    }
}

/// The target of the first call in this code: the address of a function, or of the slot that contains the function's
/// address.
fn called_next(code: &[u8], at: u64) -> Option<u64> {
    const MOST: usize = 32;
    let decoder = Decoder::with_ip(64, code, at, DecoderOptions::NONE);
    let called = decoder.into_iter().take(MOST).find_map(|instruction| match instruction.flow_control() {
        FlowControl::Next | FlowControl::ConditionalBranch => None,
        FlowControl::Call | FlowControl::UnconditionalBranch => Some(Some(instruction.near_branch_target())),
        FlowControl::IndirectCall | FlowControl::IndirectBranch if instruction.is_ip_rel_memory_operand() => {
            Some(Some(instruction.ip_rel_memory_address()))
        }
        _ => Some(None),
    });
    called.flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_call_after_a_file_name_is_found_in_the_code() {
        // xor %eax, %eax; je; call +0x10; call *0x20(%rip); jmp *%rax; ret
        let next = |code: &[u8]| called_next(code, 0x1000);
        assert_eq!(next(&[0x31, 0xc0, 0x74, 2, 0xe8, 0x10, 0, 0, 0]), Some(0x1019));
        assert_eq!(next(&[0xff, 0x15, 0x20, 0, 0, 0]), Some(0x1026));
        assert_eq!(next(&[0xe9, 0, 1, 0, 0]), Some(0x1105));
        for unknown in [&[0xff, 0xe0][..], &[0xc3], &[0x31, 0xc0], &[]] {
            assert_eq!(next(unknown), None, "{unknown:x?}");
        }
    }
}
