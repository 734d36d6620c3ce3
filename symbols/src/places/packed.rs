//! Encodes many numbers as one text. longpole and its parser exchange JSON. Reading a hundred thousand places from JSON
//! lists would take longer than finding the places.
//!
//! As in source maps, each character has one of 64 values: five bits of a number, lowest bits first, and one bit that
//! says whether another character of the number follows.

use super::located::{Known, PackedFrame, Row};
use crate::answer::Place;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serializer};

const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
const MORE: u8 = 32;
/// The value of all bytes that are not one of the 64 characters.
const NONE: u8 = 64;
const VALUES: [u8; 256] = {
    let mut values = [NONE; 256];
    let mut at = 0;
    while at < LETTERS.len() {
        values[LETTERS[at] as usize] = at as u8;
        at += 1;
    }
    values
};

/// A value that consists of `N` numbers.
pub trait Numbers<const N: usize>: Sized {
    /// The numbers.
    fn numbers(&self) -> [u64; N];
    /// The value that consists of these numbers; `None` if there is no such value.
    fn of(numbers: [u64; N]) -> Option<Self>;
}

impl Numbers<4> for Row {
    fn numbers(&self) -> [u64; 4] {
        let Row(name, symbol, distance, frames) = *self;
        [name.into(), symbol.into(), distance, frames.into()]
    }

    fn of([name, symbol, distance, frames]: [u64; 4]) -> Option<Row> {
        Some(Row(name.try_into().ok()?, Known::from(symbol), distance, Known::from(frames)))
    }
}

impl Numbers<4> for PackedFrame {
    fn numbers(&self) -> [u64; 4] {
        let PackedFrame(function, file, line, column) = *self;
        [function, file, line, column].map(u64::from)
    }

    fn of([function, file, line, column]: [u64; 4]) -> Option<PackedFrame> {
        let number = |number: u64| u32::try_from(number).ok();
        Some(PackedFrame(number(function)?, number(file)?, number(line)?, number(column)?))
    }
}

impl Numbers<2> for Place {
    fn numbers(&self) -> [u64; 2] {
        match *self {
            Place::FileOffset(offset) => [0, offset],
            Place::Address(address) => [1, address],
        }
    }

    fn of([kind, at]: [u64; 2]) -> Option<Place> {
        match kind {
            0 => Some(Place::FileOffset(at)),
            1 => Some(Place::Address(at)),
            _ => None,
        }
    }
}

/// The serializer for `#[serde(with = "packed")]`: writes the numbers as one text.
pub fn serialize<S: Serializer, const N: usize, T: Numbers<N>>(
    all: &[T],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&text(all))
}

/// The deserializer for `#[serde(with = "packed")]`: reads the numbers of one text.
pub fn deserialize<'de, D: Deserializer<'de>, const N: usize, T: Numbers<N>>(
    deserializer: D,
) -> Result<Vec<T>, D::Error> {
    let text = String::deserialize(deserializer)?;
    read(&text).ok_or_else(|| D::Error::custom("packed numbers that make no sense"))
}

fn text<const N: usize, T: Numbers<N>>(all: &[T]) -> String {
    let mut text = String::with_capacity(all.len().saturating_mul(2 * N));
    for mut number in all.iter().flat_map(T::numbers) {
        loop {
            let rest = number >> 5;
            let digit = (number & 31) as usize | if rest > 0 { usize::from(MORE) } else { 0 };
            text.push(char::from(LETTERS[digit]));
            number = rest;
            if rest == 0 {
                break;
            }
        }
    }
    text
}

fn read<const N: usize, T: Numbers<N>>(text: &str) -> Option<Vec<T>> {
    let mut all = Vec::new();
    let mut letters = text.bytes();
    while letters.len() > 0 {
        let mut numbers = [0; N];
        for number in &mut numbers {
            *number = next(&mut letters)?;
        }
        all.push(T::of(numbers)?);
    }
    Some(all)
}

fn next(letters: &mut std::str::Bytes<'_>) -> Option<u64> {
    let mut number = 0u64;
    for shift in (0..64).step_by(5) {
        let digit = VALUES[usize::from(letters.next()?)];
        if digit == NONE {
            return None;
        }
        let bits = u64::from(digit & (MORE - 1));
        // The last character of a 64-bit number has room for four bits only. More bits are an error.
        if bits << shift >> shift != bits {
            return None;
        }
        number |= bits << shift;
        if digit & MORE == 0 {
            return Some(number);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packed_places_rows_and_frames_are_read_back() {
        let mut places = vec![Place::Address(0), Place::FileOffset(u64::MAX), Place::Address(u64::MAX >> 4)];
        places.extend((0..64).flat_map(|bit| [Place::Address(1 << bit), Place::FileOffset((1 << bit) - 1)]));
        assert_eq!(read(&text(&places)), Some(places));
        let rows = vec![Row(u32::MAX, Known::No(u32::MAX), u64::MAX, Known::Yes(7)), Row::default()];
        assert_eq!(read(&text(&rows)), Some(rows));
        let frames = vec![PackedFrame(1, 2, 3, u32::MAX); 3];
        assert_eq!(read(&text(&frames)), Some(frames));
        assert_eq!(text::<2, Place>(&[]), "");
        assert_eq!(text(&[Place::Address(33)]), "BhB");
    }

    #[test]
    fn malformed_packed_text_is_refused() {
        for nonsense in ["B", "Bh", "CA", "B!", "Bä", "B\"", "B_____________B", "B____________Q", "BA "] {
            assert_eq!(read::<2, Place>(nonsense), None, "{nonsense}");
        }
        // A number too large for a frame.
        assert_eq!(read::<4, PackedFrame>("AAAgggggggE"), None);
    }
}
