//! Reading the numbers of DWARF out of unchecked bytes.

/// A place in bytes. Every reading past the end is `None`.
#[derive(Clone, Copy, Debug)]
pub struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    /// From `at` on.
    pub fn new(bytes: &'a [u8], at: usize) -> Cursor<'a> {
        Cursor { bytes, at }
    }

    /// Bytes read.
    #[inline]
    pub fn at(&self) -> usize {
        self.at
    }

    /// Whether everything has been read.
    #[inline]
    pub fn is_at_end(&self) -> bool {
        self.at >= self.bytes.len()
    }

    /// Goes somewhere else.
    #[inline]
    pub fn go_to(&mut self, at: usize) {
        self.at = at;
    }

    /// The next byte.
    #[inline]
    pub fn byte(&mut self) -> Option<u8> {
        let byte = *self.bytes.get(self.at)?;
        self.at += 1;
        Some(byte)
    }

    /// `count` bytes, at most eight, the lowest first.
    #[inline]
    pub fn number(&mut self, count: usize) -> Option<u64> {
        let end = self.at.checked_add(count)?;
        let bytes = self.bytes.get(self.at..end)?;
        self.at = end;
        Some(bytes.iter().rev().fold(0, |number, &byte| number << 8 | u64::from(byte)))
    }

    /// Over some bytes.
    #[inline]
    pub fn skip(&mut self, count: usize) -> Option<()> {
        let at = self.at.checked_add(count)?;
        (at <= self.bytes.len()).then(|| self.at = at)
    }

    /// An unsigned number of variable length.
    #[inline]
    pub fn unsigned(&mut self) -> Option<u64> {
        let first = self.byte()?;
        if first & 0x80 == 0 { Some(u64::from(first)) } else { self.long_unsigned(first) }
    }

    fn long_unsigned(&mut self, first: u8) -> Option<u64> {
        let mut number = u64::from(first & 0x7f);
        for shift in (7..63).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(number);
            }
        }
        match self.byte()? {
            last @ 0..=1 => Some(number | u64::from(last) << 63),
            _ => None,
        }
    }

    /// A signed number of variable length, at most nine bytes: no real line needs more.
    #[inline]
    pub fn signed(&mut self) -> Option<i64> {
        let mut number = 0i64;
        for shift in (0..63).step_by(7) {
            let byte = self.byte()?;
            number |= i64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                // The highest bit that was read is the sign.
                let unused = 64 - (shift + 7);
                return Some(number << unused >> unused);
            }
        }
        None
    }

    /// Over a number of variable length.
    #[inline]
    pub fn skip_variable(&mut self) -> Option<()> {
        while self.byte()? & 0x80 != 0 {}
        Some(())
    }

    /// Over a text and the zero at its end.
    #[inline]
    pub fn skip_text(&mut self) -> Option<()> {
        while self.byte()? != 0 {}
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gimli::{EndianSlice, LittleEndian, Reader as _};

    #[test]
    fn numbers_are_those_that_gimli_reads() {
        let mut random = 0x9e37_79b9_7f4a_7c15u64;
        for round in 0..100_000usize {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            // Long runs of continued bytes are rare in random ones.
            let mut bytes = random.to_le_bytes().repeat(2);
            bytes.iter_mut().take(round % 12).for_each(|byte| *byte |= 0x80);
            bytes.truncate(1 + round % 13);
            let theirs = |read: fn(&mut EndianSlice<'_, LittleEndian>) -> Option<i128>| {
                let mut slice = EndianSlice::new(&bytes, LittleEndian);
                read(&mut slice).map(|number| (number, bytes.len() - slice.len()))
            };
            let mut cursor = Cursor::new(&bytes, 0);
            let ours = cursor.unsigned().map(|number| (i128::from(number), cursor.at()));
            assert_eq!(ours, theirs(|slice| slice.read_uleb128().ok().map(i128::from)), "{bytes:x?}");
            let mut cursor = Cursor::new(&bytes, 0);
            if let Some(number) = cursor.signed() {
                let ours = (i128::from(number), cursor.at());
                assert_eq!(
                    Some(ours),
                    theirs(|slice| slice.read_sleb128().ok().map(i128::from)),
                    "{bytes:x?}"
                );
            }
        }
    }

    #[test]
    fn nothing_is_read_past_the_end() {
        let mut cursor = Cursor::new(&[1, 2, 3], 1);
        assert_eq!(cursor.number(2), Some(0x0302));
        assert_eq!(
            (cursor.byte(), cursor.skip(1), cursor.number(1), cursor.unsigned()),
            (None, None, None, None)
        );
        cursor.go_to(usize::MAX);
        assert_eq!((cursor.skip(1), cursor.skip_text(), cursor.number(8)), (None, None, None));
        assert!(cursor.is_at_end());
    }
}
