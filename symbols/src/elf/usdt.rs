//! Reads USDT probes (user-level statically defined tracing) from a file: places that a program's authors have marked,
//! each by a `nop` and a note.

use super::elf_file::ElfFile;
use super::notes::notes;
use crate::error::SymbolError;
use crate::names::safe_bytes;

/// Largest total size of a file's USDT notes, in bytes. A large database has 100 kB.
const MOST_BYTES: u64 = 16 << 20;
/// Largest number of USDT probes that are read from one file.
const MOST_PROBES: usize = 1 << 16;
/// The number that marks a note as the note of a USDT probe.
const KIND: u32 = 3;

/// One place of a USDT probe. A probe may have several.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsdtProbe {
    /// The name of the library or program that the probe belongs to, safe to print.
    pub provider: String,
    /// The probe's name, safe to print.
    pub name: String,
    /// Address of the `nop`, as linked.
    pub address: u64,
    /// Linked address of a counter of 16 bits; `None` if the probe has none. While the counter is 0, the program skips
    /// the probe.
    pub semaphore: Option<u64>,
}

/// The USDT probes of a file. Incomplete notes, and notes of another form, are ignored.
pub fn usdt_probes(elf: &ElfFile) -> Result<Vec<UsdtProbe>, SymbolError> {
    let base = elf.section(b".stapsdt.base").map(|section| section.address);
    let mut probes = Vec::new();
    let mut left = MOST_BYTES;
    for section in elf.sections.iter().filter(|section| section.name == b".note.stapsdt") {
        let bytes = elf.section_bytes(section, "notes of USDT probes", left)?;
        left = left.saturating_sub(bytes.len() as u64);
        let own = notes(&bytes).filter(|note| note.kind == KIND && note.owner == b"stapsdt\0");
        let room = MOST_PROBES.saturating_sub(probes.len());
        probes.extend(own.filter_map(|note| probe(note.data, base)).take(room));
    }
    Ok(probes)
}

/// Makes a probe of the description in its note. The description contains the probe's address, the base and the address
/// of the counter (3 × u64). After these come provider, name and arguments, each with a NUL at its end.
///
/// `base` is the present address of the section `.stapsdt.base`. If a tool such as prelink has moved the file to
/// another address, all addresses in the note are wrong by the difference between both bases.
fn probe(data: &[u8], base: Option<u64>) -> Option<UsdtProbe> {
    let (words, texts) = data.split_first_chunk::<24>()?;
    let (words, _) = words.as_chunks::<8>();
    let [address, linked_base, semaphore] =
        [0, 1, 2].map(|place| words.get(place).copied().map(u64::from_le_bytes));
    let moved = base.map_or(0, |base| base.wrapping_sub(linked_base.unwrap_or(base)));
    let mut texts = texts.split_inclusive(|byte| *byte == 0);
    let mut text = || texts.next()?.strip_suffix(&[0]).map(safe_bytes).filter(|text| !text.is_empty());
    Some(UsdtProbe {
        provider: text()?,
        name: text()?,
        address: address?.wrapping_add(moved),
        semaphore: semaphore.filter(|at| *at != 0).map(|at| at.wrapping_add(moved)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn data(words: [u64; 3], texts: &[u8]) -> Vec<u8> {
        let mut data: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        data.extend(texts);
        data
    }

    #[test]
    fn a_note_gives_the_names_and_addresses_of_its_probe() {
        let data = data([0x1010, 0x3000, 0x5002], b"shop\0order__start\08@%rdi\0");
        let found = probe(&data, Some(0x3000)).expect("a probe");
        assert_eq!((found.provider.as_str(), found.name.as_str()), ("shop", "order__start"));
        assert_eq!((found.address, found.semaphore), (0x1010, Some(0x5002)));
        let moved = probe(&data, Some(0x2ff0)).expect("a probe");
        assert_eq!((moved.address, moved.semaphore), (0x1000, Some(0x4ff2)));
        assert_eq!(probe(&data, None).map(|probe| probe.address), Some(0x1010));
    }

    #[test]
    fn hostile_notes_are_left_out_and_names_are_safe() {
        let whole = data([u64::MAX, 1, 0], b"shop\0order\0\0");
        let names = whole.iter().rposition(|byte| *byte == b'r').expect("a name") + 1;
        for cut in 0..=names {
            assert_eq!(probe(&whole[..cut], Some(u64::MAX)), None, "{cut}");
        }
        assert_eq!(probe(&whole, Some(u64::MAX)).map(|probe| probe.semaphore), Some(None));
        assert_eq!(probe(&data([1, 1, 1], b"\0order\0\0"), None), None);
        assert_eq!(probe(&data([1, 1, 1], &[b'x'; 100]), None), None);
        let wild = probe(&data([1, 1, 1], b"a\x1b[2J\0\xff\n\0\0"), None).expect("a probe");
        assert!(!wild.provider.contains('\x1b') && !wild.name.contains('\n'), "{wild:?}");
        let long = probe(&data([1, 1, 1], &[&[b'x'; 9_000][..], b"\0y\0\0"].concat()), None);
        assert!(long.expect("a probe").provider.len() <= crate::names::MAX_NAME_BYTES);
    }
}
