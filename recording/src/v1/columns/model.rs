//! Predicts the next value of each field. Encoding and decoding share the function that walks over a record's fields. A
//! wrong prediction makes the file a byte longer but never causes a wrong value.

use super::layout::{self, Code, Field, Width};
use super::{COLUMNS, ROOM};
use probe_abi::{Call, Kind, SwitchFlags};

/// Columns of the header's fields.
pub const KIND: usize = 0;
const CONTEXT: usize = 1;
const CPU: usize = 2;
const TIME: usize = 3;
const SEQUENCE: usize = 4;
const TID: usize = 5;
const PID: usize = 6;

/// The column of field `i` after the header, for a kind of record.
const fn body_column(kind: Kind, i: usize) -> usize {
    16 + 16 * kind as usize + i
}

/// The error for a payload that no encoder makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed;

/// One direction of the walk: encoding or decoding. The encoder writes the value that it gets; the decoder ignores its
/// argument and reads the value. Encoder and decoder return the value.
pub trait Direction {
    /// A plain number.
    fn plain(&mut self, column: usize, width: Width, value: u64) -> Result<u64, Malformed>;
    /// A number that is likely to be near `guess`.
    fn near(&mut self, column: usize, width: Width, guess: u64, value: u64) -> Result<u64, Malformed>;
    /// A thread id that is likely to be `guess`.
    fn thread(&mut self, column: usize, guess: u32, value: u32) -> Result<u32, Malformed>;
}

/// What is known about the record when the walk reaches a field.
#[derive(Clone, Copy)]
struct Around {
    /// The time in the record's header.
    time: u64,
    /// The thread in the record's header.
    tid: u32,
    /// The value of the preceding field.
    before: u64,
    /// The thread whose system call the record has.
    sleeper: Sleeper,
}

/// First column for the parts of system calls in the tables. These columns lie between those of the header and those of
/// the first kind.
const CALL: usize = 8;

/// Number of entries of a table, a power of two. Two keys with the same entry only make predictions worse.
const ENTRIES: usize = 1024;

/// Number that is XORed with a CPU's key for samples. A CPU numbers its samples separately from its other records.
const SAMPLES_OF_CPU: u64 = ENTRIES as u64 / 2;

/// The values of the chunk so far, from which the next ones are predicted. Encoder and decoder have the same values.
pub struct Model {
    /// Last value of each column.
    last: Box<[u64; COLUMNS]>,
    /// The last value for each column and key. `None` until the column uses its table.
    tables: Box<[Option<Box<Table>>; COLUMNS]>,
    /// The thread on each CPU.
    running: Box<[u32; ENTRIES]>,
}

type Table = [u64; ENTRIES];

impl Model {
    pub fn new() -> Model {
        Model {
            last: Box::new([0; COLUMNS]),
            tables: Box::new([const { None }; COLUMNS]),
            running: Box::new([0; ENTRIES]),
        }
    }

    /// Forgets all values, as for a new chunk.
    pub fn forget(&mut self) {
        self.last.fill(0);
        self.tables.iter_mut().flatten().for_each(|table| table.fill(0));
        self.running.fill(0);
    }

    #[inline(always)]
    fn remembered(&mut self, column: usize, key: u64) -> &mut u64 {
        let table = self.tables[column].get_or_insert_with(|| Box::new([0; ENTRIES]));
        &mut table[slot(key)]
    }

    /// Walks over the fields of one record. An encoder reads `bytes`; a decoder fills them. `Ok(None)`: this version
    /// does not know the record's kind, so the walk covered only the header.
    pub fn walk(
        &mut self,
        direction: &mut impl Direction,
        bytes: &mut [u8; ROOM],
    ) -> Result<Option<Kind>, Malformed> {
        let time = direction.near(TIME, Width::Eight, self.last[TIME], get(bytes, 0, Width::Eight))?;
        self.last[TIME] = time;
        put(bytes, 0, Width::Eight, time);
        let cpu = direction.plain(CPU, Width::Two, get(bytes, 12, Width::Two))?;
        put(bytes, 12, Width::Two, cpu);

        let kind = direction.plain(KIND, Width::One, get(bytes, 14, Width::One))?;
        put(bytes, 14, Width::One, kind);
        let context = direction.plain(CONTEXT, Width::One, get(bytes, 15, Width::One))?;
        put(bytes, 15, Width::One, context);

        let tid = direction.thread(TID, self.running[slot(cpu)], get(bytes, 16, Width::Four) as u32)?;
        self.running[slot(cpu)] = tid;
        put(bytes, 16, Width::Four, u64::from(tid));
        let last = self.remembered(PID, u64::from(tid));
        let pid = direction.near(PID, Width::Four, *last, get(bytes, 20, Width::Four))?;
        *last = pid;
        put(bytes, 20, Width::Four, pid);

        // A record without a CPU has a number of its thread's ring.
        let numbered_by = match cpu {
            _ if kind == Kind::Sample as u64 => SAMPLES_OF_CPU ^ cpu,
            _ if cpu == u64::from(probe_abi::Header::NO_CPU) => u64::from(tid),
            _ => cpu,
        };
        let last = self.remembered(SEQUENCE, numbered_by);
        let guess = last.wrapping_add(1) & u64::from(u32::MAX);
        let sequence = direction.near(SEQUENCE, Width::Four, guess, get(bytes, 8, Width::Four))?;
        *last = sequence;
        put(bytes, 8, Width::Four, sequence);

        let Some(kind) = u8::try_from(kind).ok().and_then(Kind::from_byte) else {
            return Ok(None);
        };
        let around = Around { time, tid, before: 0, sleeper: Sleeper::default() };
        match kind {
            // A recording has millions of operations but only thousands of most other kinds. So `body` is compiled
            // separately for the fields of operations.
            Kind::Operation => self.body::<{ Kind::Operation as u8 }>(direction, around, bytes)?,
            Kind::Switch => {
                self.body::<{ Kind::Switch as u8 }>(direction, around, bytes)?;
                self.running[slot(cpu)] = get(bytes, size_of::<probe_abi::Header>(), Width::Four) as u32;
            }
            Kind::Waking => self.body::<{ Kind::Waking as u8 }>(direction, around, bytes)?,
            _ => self.any_body(kind, direction, around, bytes)?,
        }
        Ok(Some(kind))
    }

    /// Walks over the fields after the header of a rare kind of record. None of these kinds contains a system call.
    fn any_body(
        &mut self,
        kind: Kind,
        direction: &mut impl Direction,
        mut around: Around,
        bytes: &mut [u8; ROOM],
    ) -> Result<(), Malformed> {
        let mut at = size_of::<probe_abi::Header>();
        for (i, field) in layout::body(kind).iter().enumerate() {
            let value =
                self.field(direction, *field, body_column(kind, i), around, get(bytes, at, field.width))?;
            put(bytes, at, field.width, value);
            around.before = value;
            at += field.width as usize;
        }
        Ok(())
    }

    /// Walks over the fields after the header, for the kind with the number `KIND`. The function is compiled for the
    /// fields of that kind, so it looks up nothing for each record.
    #[expect(unused_assignments, reason = "the last field is before no other")]
    #[inline(always)]
    fn body<const KIND: u8>(
        &mut self,
        direction: &mut impl Direction,
        mut around: Around,
        bytes: &mut [u8; ROOM],
    ) -> Result<(), Malformed> {
        const fn kind(number: u8) -> Kind {
            match Kind::from_byte(number) {
                Some(kind) => kind,
                None => Kind::Ran,
            }
        }
        /// Field `i` after the header, and its offset in the record.
        const fn field(kind: Kind, i: usize) -> Option<(Field, usize)> {
            let body = layout::body(kind);
            let (mut at, mut before) = (size_of::<probe_abi::Header>(), 0);
            while before < i && before < body.len() {
                at += body[before].width as usize;
                before += 1;
            }
            if i < body.len() { Some((body[i], at)) } else { None }
        }
        macro_rules! walk {
            ($($i:literal)*) => {$(
                if let Some((field, at)) = const { field(kind(KIND), $i) } {
                    let column = const { body_column(kind(KIND), $i) };
                    let value = self.field(direction, field, column, around, get(bytes, at, field.width))?;
                    around.sleeper.learns(const { kind(KIND) }, $i, around.tid, value);
                    put(bytes, at, field.width, value);
                    around.before = value;
                }
            )*};
        }
        const { assert!(layout::body(kind(KIND)).len() <= 9) };
        walk!(0 1 2 3 4 5 6 7 8);
        Ok(())
    }

    #[inline(always)]
    fn field(
        &mut self,
        direction: &mut impl Direction,
        field: Field,
        column: usize,
        around: Around,
        value: u64,
    ) -> Result<u64, Malformed> {
        let keyed = |key| slot(key) as u64;
        match field.code {
            Code::Plain => direction.plain(column, field.width, value),
            Code::Thread => {
                // The thread id is often the same as in the previous record.
                let guess = self.last[column] as u32;
                let value = direction.thread(column, guess, value as u32)?;
                self.last[column] = u64::from(value);
                Ok(u64::from(value))
            }
            Code::Time => direction.near(column, field.width, around.time, value),
            Code::Last => {
                let value = direction.near(column, field.width, self.last[column], value)?;
                self.last[column] = value;
                Ok(value)
            }
            Code::Sleeper(part) => {
                let sleeper = around.sleeper;
                if !sleeper.asleep {
                    let none = [u64::from(Call::NONE.number), 0, 0];
                    let guess = none.get(usize::from(part)).copied().unwrap_or(0);
                    return direction.near(column, field.width, guess, value);
                }
                let (remembered, key) = (CALL + usize::from(part), keyed(u64::from(sleeper.tid)));
                let last = self.remembered(remembered, key);
                *last = direction.near(column, field.width, *last, value)?;
                Ok(*last)
            }
            Code::SameThread | Code::SameAsFor => {
                let same_thread = field.code == Code::SameThread;
                let key = keyed(if same_thread { u64::from(around.tid) } else { around.before });
                let last = self.remembered(column, key);
                *last = direction.near(column, field.width, *last, value)?;
                Ok(*last)
            }
        }
    }
}

/// The thread whose system call a record contains, as far as the record's fields have been read.
#[derive(Clone, Copy, Debug, Default)]
struct Sleeper {
    tid: u32,
    asleep: bool,
}

impl Sleeper {
    fn learns(&mut self, kind: Kind, field: usize, tid: u32, value: u64) {
        match (kind, field) {
            (Kind::Switch, 0) => self.tid = tid,
            (Kind::Switch, 2) => self.asleep = value != 0,
            (Kind::Switch, 3) => {
                let flags = value as u32;
                let left = flags & SwitchFlags::PREV_TRACKED != 0 && flags & SwitchFlags::PREEMPTED == 0;
                self.asleep = self.asleep && left;
            }
            (Kind::Waking, 0) => self.tid = value as u32,
            (Kind::Waking, 3) => self.asleep = value != 0,
            _ => {}
        }
    }
}

#[inline(always)]
fn slot(key: u64) -> usize {
    ((key ^ (key >> 10) ^ (key >> 20)) % ENTRIES as u64) as usize
}

/// Each width has code of its own. Copying a number of bytes that is known only at run time would need a function call,
/// eight times for each record.
#[inline(always)]
fn get(bytes: &[u8; ROOM], at: usize, width: Width) -> u64 {
    fn read<const N: usize>(bytes: &[u8; ROOM], at: usize) -> [u8; N] {
        bytes.get(at..).and_then(|rest| rest.first_chunk()).copied().unwrap_or([0; N])
    }
    match width {
        Width::One => u64::from(u8::from_le_bytes(read(bytes, at))),
        Width::Two => u64::from(u16::from_le_bytes(read(bytes, at))),
        Width::Four => u64::from(u32::from_le_bytes(read(bytes, at))),
        Width::Eight => u64::from_le_bytes(read(bytes, at)),
    }
}

#[inline(always)]
fn put(bytes: &mut [u8; ROOM], at: usize, width: Width, value: u64) {
    fn write<const N: usize>(bytes: &mut [u8; ROOM], at: usize, value: [u8; N]) {
        if let Some(place) = bytes.get_mut(at..).and_then(|rest| rest.first_chunk_mut()) {
            *place = value;
        }
    }
    match width {
        Width::One => write(bytes, at, (value as u8).to_le_bytes()),
        Width::Two => write(bytes, at, (value as u16).to_le_bytes()),
        Width::Four => write(bytes, at, (value as u32).to_le_bytes()),
        Width::Eight => write(bytes, at, value.to_le_bytes()),
    }
}
