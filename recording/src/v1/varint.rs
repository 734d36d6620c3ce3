//! Variable-length numbers (LEB128: seven bits in each byte, lowest bits first), and zigzag encoding, which turns small
//! negative differences into small numbers.

/// Appends `value` to `out`.
#[inline]
pub fn put(out: &mut Vec<u8>, value: u64) {
    // Nearly all numbers fit into one byte. A fixed number of bytes is stored directly, without a call of a copying
    // function.
    if value < 0x80 {
        out.push(value as u8);
    } else if value < 1 << 14 {
        out.extend_from_slice(&[value as u8 | 0x80, (value >> 7) as u8]);
    } else if value < 1 << 21 {
        out.extend_from_slice(&[value as u8 | 0x80, (value >> 7) as u8 | 0x80, (value >> 14) as u8]);
    } else {
        put_long(out, value);
    }
}

fn put_long(out: &mut Vec<u8>, mut value: u64) {
    let mut bytes = [0; 10];
    let mut length = 0;
    while value >= 0x80 {
        bytes[length] = value as u8 | 0x80;
        value >>= 7;
        length += 1;
    }
    bytes[length] = value as u8;
    out.extend_from_slice(&bytes[..=length]);
}

/// Removes a number from the front of `bytes`. `None` if there is no number, or if the number needs more than 64 bits.
pub fn take(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0u64;
    for (i, &byte) in bytes.iter().enumerate().take(10) {
        let part = u64::from(byte & 0x7f);
        if i == 9 && part > 1 {
            return None;
        }
        value |= part << (7 * i);
        if byte < 0x80 {
            *bytes = &bytes[i + 1..];
            return Some(value);
        }
    }
    None
}

/// Encodes a signed difference: 0, −1, 1, −2, … become 0, 1, 2, 3, …. The argument is the difference modulo 2^64.
pub fn zigzag(difference: u64) -> u64 {
    (difference << 1) ^ ((difference as i64 >> 63) as u64)
}

/// The inverse of [`zigzag`].
pub fn unzigzag(code: u64) -> u64 {
    (code >> 1) ^ (code & 1).wrapping_neg()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_number_is_read_back_as_a_varint(values in proptest::collection::vec(any::<u64>(), 0..50)) {
            let mut bytes = Vec::new();
            for value in &values {
                put(&mut bytes, *value);
            }
            let mut rest = bytes.as_slice();
            for value in &values {
                prop_assert_eq!(take(&mut rest), Some(*value));
                prop_assert_eq!(unzigzag(zigzag(*value)), *value);
            }
            prop_assert!(rest.is_empty());
        }
    }

    #[test]
    fn small_differences_take_one_byte() {
        for difference in [-64i64, -1, 0, 1, 63] {
            let mut bytes = Vec::new();
            put(&mut bytes, zigzag(difference as u64));
            assert_eq!(bytes.len(), 1, "{difference}");
        }
    }

    #[test]
    fn a_malformed_varint_is_none() {
        assert_eq!(take(&mut [].as_slice()), None);
        assert_eq!(take(&mut [0x80].as_slice()), None);
        assert_eq!(take(&mut [0xff; 10].as_slice()), None);
        let mut most: &[u8] = &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1];
        assert_eq!(take(&mut most), Some(u64::MAX));
    }
}
