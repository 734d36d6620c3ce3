//! Everything that can happen while longpole watches: one closed list. A thread that notices something sends
//! one of these; one loop reads them.

use super::Probed;
use super::hot_functions::HotFunctions;
use super::saved::Saved;
use super::tally::Tally;
use crate::exit::UserError;
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
    /// The reader of the output is gone.
    ReaderGone,
    /// The terminal cannot be read any more.
    TerminalGone,
    /// `--duration` is over.
    TimeUp,
    /// Time to look whether processes are alive, and to paint the clock.
    Tick,
    /// A key on the live screen.
    Key(KeyEvent),
    /// The terminal has another size.
    Resized,
    /// A process was born, changed its program or ended, as the kernel's records say.
    Process(ProcessChange),
    /// What to probe in a new process or program is known.
    Chosen(Chosen),
    /// The result of a request.
    Granted(Granted),
    /// The C library of a process that came later, or runs another program, is known.
    Libc(LibcChosen),
    /// The operations of a process are not recorded: why.
    NoLibc(String),
    /// Operations of this family have no probes in a process any more, since they were called too often; or never had any,
    /// because of what a trial has shown.
    OperationsOff(SyncFamily, Option<OperationsTried>),
    /// Up-to-date counts.
    Counts(Box<LiveCounts>),
    /// Processes that came later got no function probes.
    Unprobed(UnprobedCounts),
    /// These functions got probes, or did not.
    Probed(Probed),
    /// These functions lost their probes: they were called too often.
    TakenOff(Vec<FunctionId>),
    /// Functions that have probes again.
    BackOn(Vec<FunctionId>),
    /// What a key asked for is done, or cannot be: a sentence.
    Answer(String),
    /// A new report.
    Report(Arc<Snapshot>),
    /// What samples show of functions without probes.
    HotFunctions(HotFunctions),
    /// Where threads ran of late.
    Tallied(Tally),
    /// SIGUSR2: the ring is to be saved.
    Save,
    /// The ring was saved; `Err`: it could not be, and goes on.
    Saved(Result<Box<Saved>, UserError>),
    /// It is time for a snapshot of the threads.
    SnapshotWanted,
    /// The probes are gone and every record is where it belongs.
    Detached,
    /// The last report is made, too.
    Finished,
    /// A part failed: what it says.
    Failed(Failure),
}

/// A process of the target in the kernel's records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessChange {
    /// Its pid (tgid).
    pub pid: u32,
    /// When (`CLOCK_MONOTONIC` nanoseconds).
    pub time_ns: u64,
    /// What.
    pub kind: ChangeKind,
}

/// See [`ProcessChange`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeKind {
    /// It was forked from this process.
    Forked {
        /// The parent's pid.
        parent: u32,
    },
    /// It runs a new program.
    Executed {
        /// Its leading thread did it. Otherwise the thread that did it became the leader.
        by_leader: bool,
    },
    /// It has mapped a file to execute.
    Mapped {
        /// By its name it may be a C library.
        libc: bool,
    },
    /// Its last thread has ended.
    Ended,
}

/// What a user at the screen wants done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FunctionRequest {
    /// What to do.
    pub what: PromptKind,
    /// A pattern of names.
    pub pattern: String,
}

/// What came of a [`FunctionRequest`].
#[derive(Clone, Debug, Default)]
pub struct Granted {
    /// Functions to probe.
    pub chosen: Vec<Chosen>,
    /// Families of lock functions to probe, or not.
    pub libc: Vec<LibcChosen>,
    /// For each process without a C library that could be probed, why.
    pub without_libc: Vec<String>,
    /// Functions to take the probes off.
    pub off: Vec<FunctionId>,
    /// For people; empty: nothing was asked.
    pub sentence: String,
}

/// What to probe in a process that came later.
#[derive(Clone, Debug)]
pub struct Chosen {
    /// Whose functions.
    pub pid: u32,
    /// Since when its function calls are missing (`CLOCK_MONOTONIC` nanoseconds).
    pub missing_since_ns: u64,
    /// `Err`: none, and why. Its calls stay missing.
    pub functions: Result<NewFunctions, Unprobed>,
    /// What becomes of those that it has.
    pub placing: Placing,
}

/// See [`Chosen::placing`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placing {
    /// They were of another program: they go.
    Instead,
    /// They stay: these are of a library that it has loaded.
    Beside,
    /// They stay: a user wants these from now on, whatever happened to them before.
    Wanted,
}

/// Why a process has no function probes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unprobed {
    /// It ended before they were in place.
    Ended,
    /// For people.
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
    /// Those that ended before.
    pub ended: usize,
    /// The others.
    pub refused: usize,
    /// The reason for the first of the others.
    pub why: Option<String>,
}

impl UnprobedCounts {
    /// Processes that ended before they got probes.
    pub fn ended(ended: usize) -> UnprobedCounts {
        UnprobedCounts { ended, ..UnprobedCounts::default() }
    }

    /// One with this reason.
    pub fn refused(why: String) -> UnprobedCounts {
        UnprobedCounts { refused: 1, why: Some(why), ..UnprobedCounts::default() }
    }

    /// Further ones.
    pub fn add(&mut self, more: UnprobedCounts) {
        self.ended += more.ended;
        self.refused += more.refused;
        self.why = self.why.take().or(more.why);
    }
}

/// The C library to probe in a process that came later, or runs another program.
#[derive(Clone, Debug)]
pub struct LibcChosen {
    /// Since when its operations are missing, if it has no probes yet (`CLOCK_MONOTONIC` nanoseconds).
    pub missing_since_ns: u64,
    /// Where its probes go; no files: that is decided later.
    pub probes: LibcProbes,
    /// It runs another program than before, and whether its leading thread has started it.
    pub executed: Option<bool>,
}

/// How the synchronization operations of processes without a library of ours inside are recorded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LibcCounts {
    /// Processes whose C library has, or had, probes.
    pub probed: BTreeSet<u32>,
    /// Processes whose C library has none.
    pub without: usize,
    /// The reason for the first of those.
    pub why: Option<String>,
    /// Families that lost their probes in some process.
    pub off: BTreeSet<SyncFamily>,
    /// Families that never had any in some process, and the most expensive of what trials have shown.
    pub unfit: BTreeMap<SyncFamily, OperationsTried>,
}

/// See [`Chosen`].
#[derive(Clone, Debug, Default)]
pub struct NewFunctions {
    /// What to probe; empty if the program has no functions to probe.
    pub probes: Vec<ProbeFunction>,
    /// Functions not yet in the recording's table.
    pub facts: Vec<FunctionFact>,
    /// Binaries not yet in the recording.
    pub modules: Vec<ModuleFact>,
    /// When the process was looked at (`CLOCK_MONOTONIC` nanoseconds): what it runs later is another program.
    pub looked_ns: u64,
}

impl From<Failure> for Message {
    fn from(failure: Failure) -> Message {
        Message::Failed(failure)
    }
}
