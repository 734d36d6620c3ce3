//! Decodes columns into records.

use super::super::varint;
use super::layout::Width;
use super::model::{Direction, KIND, Malformed, Model};
use super::{COLUMNS, ROOM};
use probe_abi::Record;

/// Appends the records of a payload to `records`. Returns the number of further records, whose kinds this version does
/// not know. After an error nothing is appended.
pub fn decode(payload: &[u8], records: &mut Vec<Record>) -> Result<u64, Malformed> {
    let before = records.len();
    let result = decode_all(payload, records);
    if result.is_err() {
        records.truncate(before);
    }
    result
}

fn decode_all(payload: &[u8], records: &mut Vec<Record>) -> Result<u64, Malformed> {
    let mut rest = payload;
    let count = varint::take(&mut rest).ok_or(Malformed)?;
    let mut columns = Columns { bytes: vec![&[]; COLUMNS], threads: Vec::new() };
    while !rest.is_empty() {
        let column = varint::take(&mut rest).ok_or(Malformed)?;
        let bytes = usize::try_from(varint::take(&mut rest).ok_or(Malformed)?).map_err(|_| Malformed)?;
        let bytes = rest.split_off(..bytes).ok_or(Malformed)?;
        // Columns after the last known one belong to kinds of records that a later version has added.
        if let Some(known) = usize::try_from(column).ok().and_then(|i| columns.bytes.get_mut(i)) {
            if bytes.is_empty() || !known.is_empty() {
                return Err(Malformed);
            }
            *known = bytes;
        }
    }
    // Each record takes at least one byte of this column. So a hostile count cannot cause a large allocation.
    if count > columns.bytes[KIND].len() as u64 {
        return Err(Malformed);
    }
    let mut model = Model::new();
    let mut unknown = 0;
    for _ in 0..count {
        let mut bytes = [0; ROOM];
        match model.walk(&mut columns, &mut bytes)? {
            Some(_) => records.push(Record::decode(&bytes).map_err(|_| Malformed)?),
            None => unknown += 1,
        }
    }
    let used_up = |column: &&[u8]| column.is_empty();
    if unknown == 0 && !columns.bytes.iter().all(used_up) {
        return Err(Malformed);
    }
    Ok(unknown)
}

struct Columns<'a> {
    /// The unread rest of each column.
    bytes: Vec<&'a [u8]>,
    /// The thread ids seen so far, in order of appearance.
    threads: Vec<u32>,
}

fn within(width: Width, value: u64) -> Result<u64, Malformed> {
    let fits = match width {
        Width::One => value <= u64::from(u8::MAX),
        Width::Two => value <= u64::from(u16::MAX),
        Width::Four => value <= u64::from(u32::MAX),
        Width::Eight => true,
    };
    if fits { Ok(value) } else { Err(Malformed) }
}

impl Direction for Columns<'_> {
    fn plain(&mut self, column: usize, width: Width, _: u64) -> Result<u64, Malformed> {
        within(width, varint::take(&mut self.bytes[column]).ok_or(Malformed)?)
    }

    fn near(&mut self, column: usize, width: Width, guess: u64, _: u64) -> Result<u64, Malformed> {
        let difference = varint::unzigzag(varint::take(&mut self.bytes[column]).ok_or(Malformed)?);
        let value = guess.wrapping_add(difference);
        if width == Width::Four { Ok(u64::from(value as u32)) } else { within(width, value) }
    }

    fn thread(&mut self, column: usize, guess: u32, _: u32) -> Result<u32, Malformed> {
        match varint::take(&mut self.bytes[column]).ok_or(Malformed)? {
            0 => Ok(guess),
            1 => {
                let value = varint::take(&mut self.bytes[column]).ok_or(Malformed)?;
                let value = u32::try_from(value).map_err(|_| Malformed)?;
                self.threads.push(value);
                Ok(value)
            }
            code => {
                let at = usize::try_from(code - 2).map_err(|_| Malformed)?;
                self.threads.get(at).copied().ok_or(Malformed)
            }
        }
    }
}
