//! Lists the fields of each kind of record after the header, and how each field's value is predicted.

use probe_abi::Kind;

/// One field of a record, after the header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    pub width: Width,
    pub code: Code,
}

/// Size of a field, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Width {
    One = 1,
    Two = 2,
    Four = 4,
    Eight = 8,
}

/// How the values of a field are encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    /// The value itself.
    Plain,
    /// The difference to the last value in this column.
    Last,
    /// The difference to the last value in this column for the same thread (`tid` in the header).
    SameThread,
    /// The difference to the last value in this column for the same value of the preceding field.
    SameAsFor,
    /// A part of a system call. If the thread that sleeps or is woken is asleep, the difference to the last value of
    /// this part for that thread. Otherwise the difference to the value for no call.
    Sleeper(u8),
    /// A thread id, as a number in the chunk's list of threads.
    Thread,
    /// A time shortly before the header's time, as the difference to it.
    Time,
}

const fn field(width: Width, code: Code) -> Field {
    Field { width, code }
}

const TID: Field = field(Width::Four, Code::Thread);
const PID_OF_TID: Field = field(Width::Four, Code::SameAsFor);
const NUMBER: Field = field(Width::Four, Code::Plain);
const NAME_PART: Field = field(Width::Eight, Code::Last);
const WAKER_CALL: Field = field(Width::Four, Code::Last);
const ADDRESS: Field = field(Width::Eight, Code::SameThread);

const CALL: Field = field(Width::Four, Code::Sleeper(0));
const ARGUMENT_1: Field = field(Width::Four, Code::Sleeper(1));
const ARGUMENT_0: Field = field(Width::Eight, Code::Sleeper(2));

const SWITCH: &[Field] = &[TID, PID_OF_TID, NUMBER, NUMBER, ADDRESS, CALL, ARGUMENT_1, ARGUMENT_0];
const WAKING: &[Field] = &[TID, PID_OF_TID, NUMBER, NUMBER, WAKER_CALL, NUMBER, CALL, ARGUMENT_1, ARGUMENT_0];
const FORK: &[Field] = &[TID, PID_OF_TID, field(Width::Eight, Code::Last), NAME_PART, NAME_PART];
const EXEC: &[Field] = &[TID, NUMBER, NAME_PART, NAME_PART];
const EXIT: &[Field] = &[NUMBER, NUMBER];
const RENAME: &[Field] = &[TID, PID_OF_TID, NAME_PART, NAME_PART];
const FUNCTION: &[Field] = &[NUMBER, NUMBER, ADDRESS];
const OPERATION: &[Field] = &[
    field(Width::Eight, Code::Time),
    ADDRESS,
    ADDRESS,
    ADDRESS,
    field(Width::Two, Code::Plain),
    field(Width::Two, Code::Plain),
    NUMBER,
];

const SAMPLE: &[Field] = &[
    field(Width::Four, Code::SameThread),
    field(Width::One, Code::Plain),
    field(Width::One, Code::Plain),
    field(Width::Two, Code::Plain),
];

const RAN: &[Field] = &[field(Width::Eight, Code::Plain)];

const BURST: &[Field] = &[
    ADDRESS,
    ADDRESS,
    NUMBER,
    NUMBER,
    NUMBER,
    NUMBER,
    field(Width::Four, Code::SameThread),
    field(Width::Two, Code::Plain),
    field(Width::Two, Code::Plain),
];

const ANSWER: &[Field] = &[
    field(Width::Eight, Code::Time),
    field(Width::Eight, Code::Time),
    TID,
    field(Width::Two, Code::Last),
    field(Width::Two, Code::Plain),
];

const EXCHANGE: &[Field] = &[
    field(Width::Eight, Code::Time),
    field(Width::Eight, Code::Time),
    field(Width::Eight, Code::Time),
    TID,
    field(Width::Four, Code::Plain),
    field(Width::Four, Code::Plain),
    field(Width::Two, Code::Last),
    field(Width::Two, Code::Plain),
];

const THREAD_CONTEXT: &[Field] = &[
    field(Width::Eight, Code::Time),
    field(Width::Eight, Code::SameThread),
    field(Width::Eight, Code::Plain),
    field(Width::Eight, Code::Plain),
];

/// The fields of a record of this kind that follow the header.
pub const fn body(kind: Kind) -> &'static [Field] {
    match kind {
        Kind::Switch => SWITCH,
        Kind::Waking => WAKING,
        Kind::Fork => FORK,
        Kind::Exec => EXEC,
        Kind::Exit => EXIT,
        Kind::Rename => RENAME,
        Kind::FunctionEnter | Kind::FunctionExit => FUNCTION,
        Kind::Operation => OPERATION,
        Kind::Sample => SAMPLE,
        Kind::Ran => RAN,
        Kind::Burst => BURST,
        Kind::Answer => ANSWER,
        Kind::Exchange => EXCHANGE,
        Kind::ThreadContext => THREAD_CONTEXT,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_columns_of_every_record_kind_cover_its_bytes() {
        for kind in Kind::ALL {
            let bytes: usize = body(kind).iter().map(|field| field.width as usize).sum();
            assert_eq!(
                size_of::<probe_abi::Header>() + bytes,
                probe_abi::Record::size_of(kind),
                "{kind:?}: a record changed, so change its fields here and ABI_VERSION"
            );
            assert!(body(kind).len() <= 16);
            assert!(probe_abi::Record::size_of(kind) <= super::super::ROOM);
        }
    }
}
