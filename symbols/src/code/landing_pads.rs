//! The landing pads of a function's exceptions: the call-site table of `.gcc_except_table` (Itanium C++ ABI, exception
//! handling, section 7.3; Rust uses the same form).

use gimli::constants as pe;
use gimli::{DwEhPe, EndianSlice, LittleEndian, Reader as _};

/// Reads the landing pads from a table. `bytes` begin with the table, and `at` is the linked address of the table.
/// `function` is the start of its function. `None` if the form of the table is not understood.
pub fn read(bytes: &[u8], at: u64, function: u64) -> Option<Vec<u64>> {
    let mut cursor = Cursor { bytes: EndianSlice::new(bytes, LittleEndian), at };
    let start = match cursor.encoding()? {
        pe::DW_EH_PE_omit => function,
        encoding => cursor.value(encoding)?,
    };
    if cursor.encoding()? != pe::DW_EH_PE_omit {
        cursor.uleb()?;
    }
    let encoding = cursor.encoding()?;
    let size = usize::try_from(cursor.uleb()?).ok()?;
    let end = cursor.bytes.len().checked_sub(size)?;
    let mut pads = Vec::new();
    while cursor.bytes.len() > end {
        cursor.value(encoding)?;
        cursor.value(encoding)?;
        let pad = cursor.value(encoding)?;
        cursor.uleb()?;
        // A landing pad is given as a distance from the function's start. The distance 0 means that there is none.
        if pad != 0 {
            pads.push(start.checked_add(pad)?);
        }
    }
    pads.sort_unstable();
    pads.dedup();
    Some(pads)
}

struct Cursor<'a> {
    bytes: EndianSlice<'a, LittleEndian>,
    at: u64,
}

impl Cursor<'_> {
    fn counted<T>(&mut self, read: impl FnOnce(&mut Self) -> gimli::Result<T>) -> Option<T> {
        let before = self.bytes.len();
        let value = read(self).ok()?;
        self.at = self.at.checked_add((before - self.bytes.len()) as u64)?;
        Some(value)
    }

    fn encoding(&mut self) -> Option<DwEhPe> {
        self.counted(|cursor| cursor.bytes.read_u8()).map(DwEhPe)
    }

    fn uleb(&mut self) -> Option<u64> {
        self.counted(|cursor| cursor.bytes.read_uleb128())
    }

    /// Reads a number in one of the encodings that compilers use here: plain, or relative to the number's own place.
    fn value(&mut self, encoding: DwEhPe) -> Option<u64> {
        let place = self.at;
        let value = self.counted(|cursor| match encoding.format() {
            pe::DW_EH_PE_uleb128 => cursor.bytes.read_uleb128(),
            pe::DW_EH_PE_udata2 => cursor.bytes.read_u16().map(u64::from),
            pe::DW_EH_PE_udata4 => cursor.bytes.read_u32().map(u64::from),
            pe::DW_EH_PE_udata8 | pe::DW_EH_PE_sdata8 | pe::DW_EH_PE_absptr => cursor.bytes.read_u64(),
            pe::DW_EH_PE_sdata4 => cursor.bytes.read_i32().map(|value| i64::from(value).cast_unsigned()),
            _ => Err(gimli::Error::UnknownPointerEncoding(encoding)),
        })?;
        match encoding.application() {
            pe::DW_EH_PE_absptr => Some(value),
            pe::DW_EH_PE_pcrel => Some(place.wrapping_add(value)),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn landing_pads_count_from_their_function_s_start() {
        // LPStart omitted; types at +9 (uleb128); call sites in uleb128: (0,5,0,0) (5,5,0x20,1).
        let table = [0xff, 0x9b, 0x09, 0x01, 0x08, 0, 5, 0, 0, 5, 5, 0x20, 1, 0xaa];
        assert_eq!(read(&table, 0x5000, 0x1000), Some(vec![0x1020]));
    }

    #[test]
    fn landing_pads_in_another_part_of_a_function_are_found() {
        // LPStart as 4 signed bytes relative to its own place (0x5001): 0x5001 - 0x3001 = 0x2000.
        let mut table = vec![0x1b];
        table.extend((-0x3001i32).to_le_bytes());
        table.extend([0xff, 0x01, 0x04, 1, 1, 7, 0]);
        assert_eq!(read(&table, 0x5000, 0x1000), Some(vec![0x2007]));
    }

    #[test]
    fn cut_and_strange_tables_of_landing_pads_are_refused() {
        let table = [0xff, 0xff, 0x01, 0x04, 1, 1, 7, 0];
        assert_eq!(read(&table, 0, 0x1000), Some(vec![0x1007]));
        for cut in 0..table.len() {
            assert_eq!(read(&table[..cut], 0, 0x1000), None, "{cut}");
        }
        assert_eq!(read(&[0x50, 0, 0, 0, 0], 0, 0), None);
    }
}
