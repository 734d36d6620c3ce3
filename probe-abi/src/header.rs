//! The header of every record.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// The first 24 bytes of every record.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct Header {
    /// Time of the event: `CLOCK_MONOTONIC`, nanoseconds.
    pub time_ns: u64,
    /// Number of records that this CPU (this ring, if `cpu` is [`Header::NO_CPU`]) tried to write before this one,
    /// modulo 2^32. A hole is a lost record. An interrupt may take the next number between a record's numbering and its
    /// writing, so neighbours can arrive swapped: compare sets of numbers, not their order.
    pub sequence: u32,
    /// CPU that wrote the record; [`Header::NO_CPU`] if the writer cannot know it.
    pub cpu: u16,
    /// A [`Kind`] as a byte.
    pub kind: u8,
    /// A [`Context`] as a byte: what the CPU was doing.
    pub context: u8,
    /// Thread that was current on the CPU. In interrupt context it was merely interrupted. 0 is idle.
    pub tid: u32,
    /// Process (tgid) of `tid`.
    pub pid: u32,
}

impl Header {
    /// `cpu` of records written by the target's own threads: their CPU is not known.
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
    /// Every kind of record, in order of its byte.
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

    /// The kind of a byte, or `None` for a byte that this version does not know.
    pub const fn from_byte(byte: u8) -> Option<Kind> {
        if byte >= 1 && byte as usize <= Kind::ALL.len() { Some(Kind::ALL[byte as usize - 1]) } else { None }
    }
}

/// What a CPU was doing when it wrote a record. Only in `Task` (and `Idle`, trivially) is the current thread the cause
/// of what is recorded; in other contexts the current thread was merely interrupted.
#[repr(u8)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Context {
    /// The current thread's own code, or a system call that it makes.
    Task = 0,
    /// A hardware interrupt, timers included.
    HardIrq = 1,
    /// Deferred interrupt work, in the context of any thread.
    SoftIrq = 2,
    /// A non-maskable interrupt.
    Nmi = 3,
    /// The idle task.
    Idle = 4,
    /// The programs could not determine the context. It is never treated as `Task`.
    Unknown = 5,
}

impl Context {
    /// The context of a byte; a byte from a newer writer is `Unknown`.
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
