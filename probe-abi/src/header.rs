//! The header of every record.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// The first 24 bytes of every record.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct Header {
    /// Time of the event: `CLOCK_MONOTONIC`, nanoseconds.
    pub time_ns: u64,
    /// Number of records that this CPU (or this ring, if `cpu` is [`Header::NO_CPU`]) tried to write before this one,
    /// modulo 2^32. A missing number is a lost record. An interrupt may take the next number after a record got its
    /// number and before it is written, so neighbours can arrive swapped. Readers must compare sets of numbers and not
    /// rely on their order.
    pub sequence: u32,
    /// The CPU that wrote the record; [`Header::NO_CPU`] if the writer cannot know its CPU.
    pub cpu: u16,
    /// A [`Kind`] as a byte.
    pub kind: u8,
    /// What the CPU was doing: a [`Context`] as a byte.
    pub context: u8,
    /// The thread that was current on the CPU; 0 is the idle task. In interrupt context, the interrupt merely came
    /// while this thread ran.
    pub tid: u32,
    /// Process (tgid) of `tid`.
    pub pid: u32,
}

impl Header {
    /// The value of `cpu` in records that the target's own threads write, because they do not know their CPU.
    pub const NO_CPU: u16 = u16::MAX;
}

/// The kind of record that the header belongs to.
#[repr(u8)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// [`crate::Switch`]
    Switch = 1,
    /// [`crate::Waking`]
    Waking = 2,
    /// [`crate::Fork`]
    Fork = 3,
    /// [`crate::Exec`]
    Exec = 4,
    /// [`crate::Exit`]
    Exit = 5,
    /// [`crate::Rename`]
    Rename = 6,
    /// [`crate::FunctionEnter`]
    FunctionEnter = 7,
    /// [`crate::FunctionExit`]
    FunctionExit = 8,
    /// [`crate::Operation`]
    Operation = 9,
    /// [`crate::Sample`]
    Sample = 10,
    /// [`crate::Ran`]
    Ran = 11,
    /// [`crate::Burst`]
    Burst = 12,
    /// [`crate::Answer`]
    Answer = 13,
    /// [`crate::Exchange`]
    Exchange = 14,
    /// [`crate::ThreadContext`]
    ThreadContext = 15,
}

impl Kind {
    /// Every kind of record, ordered by its byte.
    pub const ALL: [Kind; 15] = [
        Kind::Switch,
        Kind::Waking,
        Kind::Fork,
        Kind::Exec,
        Kind::Exit,
        Kind::Rename,
        Kind::FunctionEnter,
        Kind::FunctionExit,
        Kind::Operation,
        Kind::Sample,
        Kind::Ran,
        Kind::Burst,
        Kind::Answer,
        Kind::Exchange,
        Kind::ThreadContext,
    ];

    /// The kind with this byte; `None` for a byte that this version does not know.
    pub const fn from_byte(byte: u8) -> Option<Kind> {
        if byte >= 1 && byte as usize <= Kind::ALL.len() { Some(Kind::ALL[byte as usize - 1]) } else { None }
    }
}

/// What a CPU was doing when it wrote a record. Only in `Task` (and in `Idle`) is the current thread the cause of the
/// event. In the other contexts an interrupt is the cause, which came while the current thread ran.
#[repr(u8)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Context {
    /// The CPU ran the current thread's own code, or a system call of that thread.
    Task = 0,
    /// The CPU served a hardware interrupt, or a timer.
    HardIrq = 1,
    /// The CPU did deferred work of an interrupt, while any thread was current.
    SoftIrq = 2,
    /// The CPU served a non-maskable interrupt.
    Nmi = 3,
    /// The CPU ran the idle task.
    Idle = 4,
    /// The programs could not determine the context. Readers never treat it as `Task`.
    Unknown = 5,
}

impl Context {
    /// The context with this byte. A byte from a newer writer gives `Unknown`.
    pub const fn from_byte(byte: u8) -> Context {
        match byte {
            0 => Context::Task,
            1 => Context::HardIrq,
            2 => Context::SoftIrq,
            3 => Context::Nmi,
            4 => Context::Idle,
            _ => Context::Unknown,
        }
    }
}

const _: () = assert!(size_of::<Header>() == 24);
