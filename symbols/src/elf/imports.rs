//! Finds the functions and variables that a program imports from its libraries, and the slots through which
//! instructions refer to them.

use super::elf_file::{ElfFile, Section, text_at};

/// Largest number of bytes that are read of each table: symbols, their names, and relocations.
const MOST: u64 = 16 << 20;
const SYMBOL: usize = 24;
const RELOCATION: usize = 24;
/// `SHT_RELA`, and the x86-64 relocations that fill a slot for calls (System V ABI, AMD64 supplement).
const RELA: u32 = 4;
const GLOB_DAT: u32 = 6;
const JUMP_SLOT: u32 = 7;

/// A function or variable that a file imports.
pub struct Import {
    /// The import's name, without a version.
    pub name: Vec<u8>,
    /// Linked addresses of the slots that contain the import's address at run time.
    pub slots: Vec<u64>,
    /// Whether the import's address is also in the program's data or in a constant. Then the program can call the
    /// import through a pointer.
    pub taken: bool,
}

/// All imports of a file. A table that cannot be read counts as empty.
pub fn imports(elf: &ElfFile) -> Vec<Import> {
    let bytes = |section: &Section| elf.section_bytes(section, "the names it asks for", MOST).ok();
    let named = |name: &[u8]| bytes(elf.section(name)?);
    let (Some(symbols), Some(names)) = (named(b".dynsym"), named(b".dynstr")) else { return Vec::new() };
    let symbols = symbols.as_chunks::<SYMBOL>().0;
    let mut imports: Vec<Import> = Vec::new();
    let mut numbers = vec![None; symbols.len()];
    for (number, symbol) in symbols.iter().enumerate().skip(1).filter(|(_, symbol)| symbol[6..8] == [0, 0]) {
        numbers[number] = Some(imports.len());
        let offset = u32::from_le_bytes([symbol[0], symbol[1], symbol[2], symbol[3]]);
        // In code that is not position-independent, an undefined symbol has a value if the program takes its address.
        let taken = symbol[8..16] != [0; 8];
        imports.push(Import { name: text_at(&names, offset, 64).to_vec(), slots: Vec::new(), taken });
    }
    let relocations = elf.sections.iter().filter(|section| section.kind == RELA).take(16).filter_map(bytes);
    for relocations in relocations {
        for relocation in relocations.as_chunks::<RELOCATION>().0 {
            let [a, b, c, d, e, f, g, h, k0, k1, k2, k3, n0, n1, n2, n3, ..] = *relocation;
            let number = u32::from_le_bytes([n0, n1, n2, n3]) as usize;
            let Some(import) = numbers.get(number).copied().flatten().and_then(|at| imports.get_mut(at))
            else {
                continue;
            };
            match u32::from_le_bytes([k0, k1, k2, k3]) {
                GLOB_DAT | JUMP_SLOT => import.slots.push(u64::from_le_bytes([a, b, c, d, e, f, g, h])),
                _ => import.taken = true,
            }
        }
    }
    imports
}
