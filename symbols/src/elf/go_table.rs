//! Reads Go's own table of functions and lines (`.gopclntab`). Stripped programs have the table, too, because Go's
//! runtime needs it.
//!
//! The layout is that of Go's `runtime/symtab.go` and `internal/abi/symtab.go`, versions 1.16, 1.18 and 1.20.

use super::elf_file::{ElfFile, Section, text_at};
use super::outline::{u32_at, u64_at};
use super::sections::Bytes;
use crate::answer::Frame;
use crate::names::MAX_RAW_BYTES;

/// Largest table that is read, in bytes.
const MAX_TABLE: u64 = 1 << 30;
/// Largest number of entries that are read from one function's table of values.
const MAX_STEPS: usize = 1 << 20;
/// Largest number of functions that are read.
const MAX_FUNCTIONS: usize = 2_000_000;

/// Go's table of functions and lines.
#[derive(Debug)]
pub struct GoTable {
    bytes: Bytes,
    /// Whether addresses are stored as 4-byte offsets from the start of the code (Go 1.18 and later).
    relative: bool,
    quantum: u64,
    count: usize,
    text_start: u64,
    names: usize,
    units: usize,
    files: usize,
    values: usize,
    functions: usize,
}

/// A function in Go's table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GoFunction {
    /// First address, as linked.
    pub address: u64,
    /// The address after the function's last byte.
    pub end: u64,
    /// Position of the function's name in the table.
    pub name_at: u32,
    /// Position of the function's description in the table.
    record: usize,
}

impl GoTable {
    /// The table of a program that Go has built.
    pub fn read(elf: &ElfFile) -> Option<GoTable> {
        let section =
            [&b".gopclntab"[..], b".data.rel.ro.gopclntab"].iter().find_map(|name| elf.section(name))?;
        let bytes = match elf.map(section.offset, section.size) {
            Some(map) => Bytes::Mapped(map),
            None => Bytes::Read(elf.section_bytes(section, "Go's table of functions", MAX_TABLE).ok()?),
        };
        GoTable::parse(bytes, || text_start(elf, section))
    }

    fn parse(bytes: Bytes, start: impl FnOnce() -> Option<u64>) -> Option<GoTable> {
        let magic = u32_at(&bytes, 0)?;
        let relative = match magic {
            0xffff_fff1 | 0xffff_fff0 => true,
            0xffff_fffa => false,
            _ => return None,
        };
        let (quantum, pointer) = (*bytes.get(6)?, *bytes.get(7)?);
        if pointer != 8 || !matches!(quantum, 1 | 2 | 4) {
            return None;
        }
        let word = |index: usize| u64_at(&bytes, 8 + 8 * index);
        let place = |index: usize| usize::try_from(word(index)?).ok();
        let first = if relative { 3 } else { 2 };
        let text_start = match relative {
            true => match word(2)? {
                0 => start()?,
                known => known,
            },
            false => 0,
        };
        let mut table = GoTable {
            relative,
            quantum: u64::from(quantum),
            count: place(0)?,
            text_start,
            names: place(first)?,
            units: place(first + 1)?,
            files: place(first + 2)?,
            values: place(first + 3)?,
            functions: place(first + 4)?,
            bytes: Bytes::default(),
        };
        let row = if relative { 8 } else { 16 };
        let room = bytes.len().checked_sub(table.functions)? / row;
        if table.count > room.min(MAX_FUNCTIONS) {
            return None;
        }
        table.bytes = bytes;
        Some(table)
    }

    /// All functions, in the order of the table, which is by address.
    pub fn functions(&self) -> impl Iterator<Item = GoFunction> + '_ {
        (0..self.count).filter_map(|index| {
            let (address, record) = self.row(index)?;
            let (end, _) = self.row(index + 1)?;
            let record = self.functions.checked_add(record)?;
            let name_at = u32_at(&self.bytes, record.checked_add(if self.relative { 4 } else { 8 })?)?;
            (end > address).then_some(GoFunction { address, end, name_at, record })
        })
    }

    /// A function's name.
    pub fn name(&self, name_at: u32) -> &[u8] {
        text_at(self.bytes.get(self.names..).unwrap_or_default(), name_at, MAX_RAW_BYTES)
    }

    /// Function, file and line at an address. In inlined code, the line is that of the inlined function but the name is
    /// that of the outer function. Go keeps the chain of inlined functions, too, but a stripped program does not say
    /// where.
    pub fn frame(&self, address: u64) -> Option<Frame> {
        let (mut low, mut high) = (0, self.count);
        while low < high {
            let middle = low + (high - low) / 2;
            match self.row(middle)?.0 <= address {
                true => low = middle + 1,
                false => high = middle,
            }
        }
        let (start, record) = self.row(low.checked_sub(1)?)?;
        let (end, _) = self.row(low)?;
        if !(start..end).contains(&address) {
            return None;
        }
        let fields = self.functions.checked_add(record)?.checked_add(if self.relative { 4 } else { 8 })?;
        let field = |index: usize| u32_at(&self.bytes, fields.checked_add(4 * index)?);
        let name = String::from_utf8_lossy(self.name(field(0)?)).into_owned();
        let line = self.value(field(5)?, start, address).and_then(|line| u32::try_from(line).ok());
        let file = self.value(field(4)?, start, address).and_then(|number| self.file(field(7)?, number));
        Some(Frame {
            function: (!name.is_empty()).then(|| crate::names::safe(&name)),
            file,
            line: line.filter(|&line| line > 0),
            column: None,
        })
    }

    /// The address of a function, and the position of its description. The last row contains only the end address of
    /// the last function.
    fn row(&self, index: usize) -> Option<(u64, usize)> {
        if index > self.count {
            return None;
        }
        if self.relative {
            let at = self.functions.checked_add(index.checked_mul(8)?)?;
            let address = self.text_start.checked_add(u64::from(u32_at(&self.bytes, at)?))?;
            Some((address, u32_at(&self.bytes, at + 4).unwrap_or_default() as usize))
        } else {
            let at = self.functions.checked_add(index.checked_mul(16)?)?;
            let record = u64_at(&self.bytes, at + 8).unwrap_or_default();
            Some((u64_at(&self.bytes, at)?, usize::try_from(record).ok()?))
        }
    }

    /// The value at an address. A table of values lists changes of the value, each with the number of bytes for which
    /// the value holds.
    fn value(&self, table: u32, start: u64, address: u64) -> Option<i64> {
        let mut at = self.values.checked_add(table as usize)?;
        let (mut value, mut place) = (-1i64, start);
        for step in 0..MAX_STEPS {
            let change = self.number(&mut at)?;
            if change == 0 && step > 0 {
                return None;
            }
            let signed = (change >> 1) as i64 ^ -((change & 1) as i64);
            value = value.wrapping_add(signed);
            place = place.checked_add(self.number(&mut at)?.checked_mul(self.quantum)?)?;
            if address < place {
                return Some(value);
            }
        }
        None
    }

    fn number(&self, at: &mut usize) -> Option<u64> {
        let mut number = 0u64;
        for shift in (0..35).step_by(7) {
            let byte = *self.bytes.get(*at)?;
            *at += 1;
            number |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(number);
            }
        }
        None
    }

    fn file(&self, unit: u32, number: i64) -> Option<String> {
        let index = usize::try_from(number).ok()?.checked_add(unit as usize)?;
        let at = u32_at(&self.bytes, self.units.checked_add(index.checked_mul(4)?)?)?;
        if at == u32::MAX {
            return None;
        }
        let name = text_at(self.bytes.get(self.files..)?, at, 4096);
        (!name.is_empty()).then(|| crate::names::safe_bytes(name))
    }
}

/// The start of the code, for headers without this address. The relocation of the header's field has it; else it is the
/// start of `.text`.
fn text_start(elf: &ElfFile, table: &Section) -> Option<u64> {
    let field = table.address.checked_add(8 + 2 * 8)?;
    let relocated = [&b".rela"[..], b".rela.dyn"].iter().find_map(|name| {
        let bytes = elf.section_bytes(elf.section(name)?, "relocations", 256 << 20).ok()?;
        let row = bytes.as_chunks::<24>().0.iter().find(|row| u64_at(&row[..], 0) == Some(field))?;
        u64_at(&row[..], 16)
    });
    relocated.or_else(|| Some(elf.section(b".text")?.address))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn damaged_go_tables_give_nothing_and_end() {
        let mut random = 0x1234_5678_9abc_def1u64;
        for round in 0..2_000 {
            let mut bytes = vec![0u8; 512];
            for byte in &mut bytes {
                random ^= random << 13;
                random ^= random >> 7;
                random ^= random << 17;
                *byte = if random.is_multiple_of(3) { random as u8 } else { (random % 5) as u8 };
            }
            bytes[..8].copy_from_slice(&[
                if round % 2 == 0 { 0xf1 } else { 0xfa },
                0xff,
                0xff,
                0xff,
                0,
                0,
                1,
                8,
            ]);
            for word in 1..8 {
                bytes[8 + 8 * word + 2..16 + 8 * word].fill(0);
            }
            bytes[10..16].fill(0);
            let Some(table) = GoTable::parse(Bytes::Read(bytes), || Some(0)) else { continue };
            let functions: Vec<_> = table.functions().take(1000).collect();
            for function in functions {
                table.name(function.name_at);
                table.frame(function.address);
            }
            table.frame(u64::MAX);
        }
    }
}
