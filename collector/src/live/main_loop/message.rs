//! Everything that can happen while longpole records: one closed list. A thread that notices something sends
//! a message; one loop reads all messages.

use crate::exit::UserError;
use crate::live::keep::Saved;
use crate::live::probes::{HotFunctions, Tally};
use crate::live::rings::Probed;
use crate::threads::Failure;
use crate::tui::{LiveCounts, PromptKind, Snapshot};
use capture::probe::{LibcProbes, ProbeFunction};
use crossterm::event::KeyEvent;
use engine::event::{FunctionFact, FunctionId, ModuleFact, OperationsTried};
use probe_abi::SyncFamily;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// See the module.
#[derive(Debug)]
pub enum Message {
    /// SIGINT, SIGTERM, SIGHUP or SIGQUIT.
    Signal(i32),
    /// The output has no reader any more.
    ReaderGone,
    /// The terminal cannot be read any more.
    TerminalGone,
    /// `--duration` is over.
    TimeUp,
    /// Time to check whether processes are alive, and to paint the clock.
    Tick,
    /// A key on the live screen.
    Key(KeyEvent),
    /// The terminal has another size.
    Resized,
    /// A process was born, changed its program or ended, as the kernel's records say.
    Process(ProcessChange),
    /// The functions to probe in a new process or program were found.
    Chosen(Chosen),
    /// The outcome of a user's request, or of functions found in samples or tallies.
    Granted(Granted),
    /// The C library of a new process or program was found.
    Libc(LibcChosen),
    /// The operations of a process are not recorded, for this reason.
    NoLibc(String),
    /// The operations of this family lost their probes in a process because of too many calls, or never got any because
    /// of a trial's result.
    OperationsOff(SyncFamily, Option<OperationsTried>),
    /// Up-to-date counts.
    Counts(Box<LiveCounts>),
    /// New processes got no function probes.
    Unprobed(UnprobedCounts),
    /// These functions got probes, or were refused them.
    Probed(Probed),
    /// These functions lost their probes because of too many calls.
    TakenOff(Vec<FunctionId>),
    /// These functions got their probes back.
    BackOn(Vec<FunctionId>),
    /// The outcome of what a key asked for: a sentence.
    Answer(String),
    /// A new report.
    Report(Arc<Snapshot>),
    /// Functions without probes that samples found.
    HotFunctions(HotFunctions),
    /// A tally of where threads ran in the last seconds.
    Tallied(Tally),
    /// SIGUSR2: save the ring.
    Save,
    /// The ring was saved. `Err`: it could not be saved, and recording goes on.
    Saved(Result<Box<Saved>, UserError>),
    /// The file needs a snapshot of the threads.
    SnapshotWanted,
    /// Probes are detached, and every record is in the file or the window.
    Detached,
    /// The last report is made.
    Finished,
    /// A thread failed.
    Failed(Failure),
}

/// A change of a recorded process, as reported by the kernel's records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessChange {
    /// The process's pid (tgid).
    pub pid: u32,
    /// Time of the change (`CLOCK_MONOTONIC` nanoseconds).
    pub time_ns: u64,
    /// The kind of change.
    pub kind: ChangeKind,
}

/// See [`ProcessChange`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeKind {
    /// The process was forked.
    Forked {
        /// The parent's pid.
        parent: u32,
    },
    /// The process runs a new program.
    Executed {
        /// Whether the leading thread executed the program. Otherwise the executing thread became the leader.
        by_leader: bool,
    },
    /// The process has mapped a file to execute code from it.
    Mapped {
        /// Whether the file may be a C library, judged by its name.
        libc: bool,
    },
    /// Its last thread has ended.
    Ended,
}

/// A request of a user at the screen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FunctionRequest {
    /// What to do with the functions.
    pub what: PromptKind,
    /// A pattern of names.
    pub pattern: String,
}

/// The outcome of a [`FunctionRequest`], or of functions found in samples.
#[derive(Clone, Debug, Default)]
pub struct Granted {
    /// Functions to probe.
    pub chosen: Vec<Chosen>,
    /// C libraries whose families of lock functions were tried.
    pub libc: Vec<LibcChosen>,
    /// Reasons why processes have no C library that could be probed; one for each such process.
    pub without_libc: Vec<String>,
    /// Functions that lose their probes.
    pub off: Vec<FunctionId>,
    /// The outcome, for people; empty: no user asked.
    pub sentence: String,
}

/// Functions to probe in a process.
#[derive(Clone, Debug)]
pub struct Chosen {
    /// The process.
    pub pid: u32,
    /// Time from which the process's function calls are missing (`CLOCK_MONOTONIC` nanoseconds).
    pub missing_since_ns: u64,
    /// The functions. `Err`: why there are none; the process's calls stay missing.
    pub functions: Result<NewFunctions, Unprobed>,
    /// Whether the process keeps the probes that it has.
    pub placing: Placing,
}

/// See [`Chosen::placing`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placing {
    /// The process runs another program: earlier probes go.
    Instead,
    /// Earlier probes stay; the new ones are on a library that the process has loaded.
    Beside,
    /// Earlier probes stay; a user wants the new ones, even if they were removed before.
    Wanted,
}

/// Why a process has no function probes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unprobed {
    /// The process ended before its probes were attached.
    Ended,
    /// The process was refused probes, for this reason (a text for people).
    Refused(String),
}

impl std::fmt::Display for Unprobed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Unprobed::Ended => f.write_str("it ended before they were in place"),
            Unprobed::Refused(why) => f.write_str(why),
        }
    }
}

/// Processes without function probes, counted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UnprobedCounts {
    /// Number of processes that ended before their probes were attached.
    pub ended: usize,
    /// Processes that were refused probes.
    pub refused: usize,
    /// Why the first process without probes was refused them.
    pub why: Option<String>,
}

impl UnprobedCounts {
    /// Counts this number of processes that ended before they got probes.
    pub fn ended(ended: usize) -> UnprobedCounts {
        UnprobedCounts { ended, ..UnprobedCounts::default() }
    }

    /// Counts one process that was refused probes.
    pub fn refused(why: String) -> UnprobedCounts {
        UnprobedCounts { refused: 1, why: Some(why), ..UnprobedCounts::default() }
    }

    /// Adds counts; the first reason stays.
    pub fn add(&mut self, more: UnprobedCounts) {
        self.ended += more.ended;
        self.refused += more.refused;
        self.why = self.why.take().or(more.why);
    }
}

/// The C library to probe in a new process or program.
#[derive(Clone, Debug)]
pub struct LibcChosen {
    /// Time from which the process's operations are missing, if it has no probes yet (`CLOCK_MONOTONIC` nanoseconds).
    pub missing_since_ns: u64,
    /// The library's files and functions; without files, probes are decided on later.
    pub probes: LibcProbes,
    /// Set if the process runs another program than before: whether its leading thread executed that.
    pub executed: Option<bool>,
}

/// How the lock operations of processes without the preloaded library are recorded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LibcCounts {
    /// Processes whose C library has, or had, probes.
    pub probed: BTreeSet<u32>,
    /// Processes whose C library has none.
    pub without: usize,
    /// Why the C library of the first such process has no probes.
    pub why: Option<String>,
    /// Families of lock functions that lost their probes in some process.
    pub off: BTreeSet<SyncFamily>,
    /// Families that never had probes in some process, with the most expensive result of trials.
    pub unfit: BTreeMap<SyncFamily, OperationsTried>,
}

/// See [`Chosen`].
#[derive(Clone, Debug, Default)]
pub struct NewFunctions {
    /// The functions to probe; empty if the program has no functions to probe.
    pub probes: Vec<ProbeFunction>,
    /// Functions not yet in the recording's table.
    pub facts: Vec<FunctionFact>,
    /// Binaries not yet in the recording.
    pub modules: Vec<ModuleFact>,
    /// Time at which the process was read (`CLOCK_MONOTONIC` nanoseconds): a program that is executed later is another
    /// one.
    pub looked_ns: u64,
}

impl From<Failure> for Message {
    fn from(failure: Failure) -> Message {
        Message::Failed(failure)
    }
}
