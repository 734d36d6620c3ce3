//! Encodes records into columns.

use super::super::varint;
use super::layout::Width;
use super::model::{Direction, Malformed, Model};
use super::{COLUMNS, ROOM};
use probe_abi::{Kind, Record};
use rustc_hash::FxHashMap;

/// Encodes the records of one chunk as columns.
pub struct Encoder {
    model: Model,
    columns: Columns,
    records: u32,
}

impl Default for Encoder {
    fn default() -> Encoder {
        Encoder::new()
    }
}

impl Encoder {
    /// Creates an encoder whose chunk is empty.
    pub fn new() -> Encoder {
        Encoder {
            model: Model::new(),
            columns: Columns {
                bytes: Box::new([const { Vec::new() }; COLUMNS]),
                threads: FxHashMap::default(),
            },
            records: 0,
        }
    }

    /// Number of records so far.
    pub fn records(&self) -> u32 {
        self.records
    }

    /// Adds a record. Returns `false` without adding it if the record's kind byte names another kind of record.
    pub fn push(&mut self, record: &Record) -> bool {
        let bytes = record.as_bytes();
        if Kind::from_byte(record.header().kind) != Some(record.kind()) {
            return false;
        }
        let mut room = [0; ROOM];
        match record {
            // A copy of a fixed number of bytes is compiled without a call of a copying function.
            Record::Operation(operation) => room = zerocopy::transmute!(*operation),
            _ => room[..bytes.len()].copy_from_slice(bytes),
        }
        // The encoder never returns an error, so the walk cannot fail.
        let walked = self.model.walk(&mut self.columns, &mut room);
        self.records += 1;
        walked.is_ok()
    }

    /// The payload so far.
    pub fn payload(&self) -> Vec<u8> {
        let columns = &self.columns;
        let mut payload = Vec::with_capacity(columns.bytes.iter().map(|column| column.len() + 8).sum());
        varint::put(&mut payload, u64::from(self.records));
        for (column, bytes) in columns.bytes.iter().enumerate().filter(|(_, bytes)| !bytes.is_empty()) {
            varint::put(&mut payload, column as u64);
            varint::put(&mut payload, bytes.len() as u64);
            payload.extend_from_slice(bytes);
        }
        payload
    }

    /// Returns the payload and empties the encoder, which keeps its memory.
    pub fn finish(&mut self) -> Vec<u8> {
        let payload = self.payload();
        self.columns.bytes.iter_mut().for_each(Vec::clear);
        self.columns.threads.clear();
        self.model.forget();
        self.records = 0;
        payload
    }
}

struct Columns {
    bytes: Box<[Vec<u8>; COLUMNS]>,
    /// The number of each thread id in this chunk. Numbers count up in order of appearance.
    threads: FxHashMap<u32, u32>,
}

impl Direction for Columns {
    #[inline(always)]
    fn plain(&mut self, column: usize, _: Width, value: u64) -> Result<u64, Malformed> {
        varint::put(&mut self.bytes[column], value);
        Ok(value)
    }

    #[inline(always)]
    fn near(&mut self, column: usize, width: Width, guess: u64, value: u64) -> Result<u64, Malformed> {
        let mut difference = value.wrapping_sub(guess);
        if width == Width::Four {
            // A 32-bit counter that has wrapped around is still close to its last value.
            difference = difference as u32 as i32 as u64;
        }
        varint::put(&mut self.bytes[column], varint::zigzag(difference));
        Ok(value)
    }

    #[inline]
    fn thread(&mut self, column: usize, guess: u32, value: u32) -> Result<u32, Malformed> {
        // A guess other than 0 has been written before, so the decoder can make the same guess.
        if value == guess && value != 0 {
            debug_assert!(self.threads.contains_key(&value), "guessed a thread that was never written");
            self.bytes[column].push(0);
            return Ok(value);
        }
        let next = self.threads.len() as u32;
        let number = *self.threads.entry(value).or_insert(next);
        let code = if number == next {
            // 1 means a new thread id, which follows.
            varint::put(&mut self.bytes[column], 1);
            u64::from(value)
        } else if value == guess {
            0
        } else {
            u64::from(number) + 2
        };
        varint::put(&mut self.bytes[column], code);
        Ok(value)
    }
}
