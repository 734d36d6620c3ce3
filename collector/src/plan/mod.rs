//! What to do, checked and without a trace of the command line library.

mod study;

use crate::export::{Format, Table};
use capture::interpose::InterposeMode;
use capture::target::CpuList;
use engine::event::SamplingFact;
use engine::predict::Model;
use engine::report::Cpus;
use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;
pub use study::{
    CheckPlan, CompareMetricsPlan, DiffPlan, EditPlan, Listed, ParallelismPlan, PathsPlan, Question,
    SlackPlan, ThreadsPlan, Threshold, WhatIfPlan,
};

/// One command with everything it needs to know.
#[derive(Clone, Debug, PartialEq)]
pub enum Plan {
    /// `longpole record`
    Record(RecordPlan),
    /// `longpole top`
    Top(TopPlan),
    /// `longpole report`
    Report(ReportPlan),
    /// `longpole predict`
    Predict(PredictPlan),
    /// `longpole slack`
    Slack(SlackPlan),
    /// `longpole parallelism`
    Parallelism(ParallelismPlan),
    /// `longpole compare-metrics`
    CompareMetrics(CompareMetricsPlan),
    /// `longpole paths`
    Paths(PathsPlan),
    /// `longpole what-if`
    WhatIf(WhatIfPlan),
    /// `longpole diff`
    Diff(DiffPlan),
    /// `longpole check`
    Check(CheckPlan),
    /// `longpole symbolize`
    Symbolize(SymbolizePlan),
    /// `longpole export`
    Export(ExportPlan),
    /// `longpole view`, and `report --html`
    View(ViewPlan),
    /// `longpole info`
    Info(InfoPlan),
    /// `notes`
    Notes(NotesPlan),
    /// `longpole validate`
    Validate(ValidatePlan),
    /// `longpole doctor`
    Doctor(DoctorPlan),
    /// `longpole completions`
    Completions(clap_complete::Shell),
    /// `longpole man`, and the folder for the pages.
    Man(PathBuf),
    /// The hidden `longpole __gate FD -- CMD`: waits on the pipe `fd`, then becomes the command.
    Gate(GatePlan),
    /// The hidden `longpole __symbols`: reads symbols in a process without rights.
    Symbols(symbols::sandbox::Limits),
}

/// The watched subject.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TargetPlan {
    /// Running processes. Not empty, no pid is 0, no pid twice.
    Attach {
        /// Host process ids.
        pids: Vec<u32>,
    },
    /// A command that longpole starts.
    Launch {
        /// Program and arguments; not empty.
        command: Vec<OsString>,
        /// Under sudo: run it as root instead of as the invoking user.
        keep_root: bool,
        /// The only CPUs it may run on; `None`: as longpole.
        cpus: Option<CpuList>,
    },
}

/// Which functions get probes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selection {
    /// Only functions whose name matches one of these globs; empty: all with a symbol in the main binary.
    pub functions: Vec<String>,
    /// Never functions whose name matches one of these globs.
    pub exclude: Vec<String>,
    /// At most this many, the largest first.
    pub max_functions: usize,
}

/// Function probes unless something else is asked for.
pub const MOST_FUNCTIONS: usize = 4096;

impl Default for Selection {
    fn default() -> Selection {
        Selection { functions: Vec::new(), exclude: Vec::new(), max_functions: MOST_FUNCTIONS }
    }
}

/// What `record` and `top` have in common: whom and what to capture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CapturePlan {
    /// The subject.
    pub target: TargetPlan,
    /// Child processes, too.
    pub children: bool,
    /// A command's children that outlive it are waited for; else the recording ends when the command does.
    pub children_to_their_end: bool,
    /// Function probes; without them scheduler and futex events only.
    pub uprobes: bool,
    /// Which functions.
    pub selection: Selection,
    /// Functions that only wait: patterns of names.
    pub spin: Vec<String>,
    /// Functions get probes only when samples show that they are worth it.
    pub from_samples: bool,
    /// A function hit more often than this per second loses its probes; at least 1. `None`: the default of the
    /// overhead controller.
    pub max_rate_hz: Option<u64>,
    /// What recording may cost, in millionths of the target's own CPU time; `None`: no limit.
    pub budget_ppm: Option<u32>,
    /// Record calls only down to this depth of probed functions (2001, section 3.2); at least 1. `None`: all.
    pub depth: Option<u32>,
    /// Whether synchronization operations of a launched command are recorded from inside it.
    pub interpose: InterposeMode,
    /// How stacks are sampled; `None`: not at all.
    pub sampling: Option<SamplingFact>,
    /// The default rate: as many samples as a share of the budget pays for.
    pub fitting_samples: bool,
    /// Bytes of one ring buffer: a power of two of at least one page. `None`: the default of the probes.
    pub ring_bytes: Option<u32>,
}

/// `longpole record`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordPlan {
    /// Whom and what.
    pub capture: CapturePlan,
    /// Where to write; `None`: `longpole-NAME-PID-TIME.lp` in the current directory.
    pub output: Option<PathBuf>,
    /// Replace a file that exists.
    pub force: bool,
    /// Stop after this long; `None`: when the target ends or on ^C.
    pub duration: Option<Duration>,
}

/// `longpole top`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopPlan {
    /// Whom and what.
    pub capture: CapturePlan,
    /// CPU counts, in the order of the columns; not empty.
    pub cpus: Vec<Cpus>,
    /// Time between two screens.
    pub refresh: Duration,
    /// Length of the sliding window; at least `refresh`.
    pub window: Duration,
    /// How long; `None`: until the user leaves.
    pub duration: Option<Duration>,
    /// One window, then the end; no terminal needed.
    pub once: bool,
    /// One screen after the other as text; no terminal needed.
    pub batch: bool,
    /// With `once` and `batch`: JSON instead of text.
    pub json: bool,
    /// Where to serve it, too.
    pub listen: Option<ListenPlan>,
}

/// `longpole top --listen`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListenPlan {
    /// Where.
    pub address: SocketAddr,
    /// The file with the token; `None`: a new one.
    pub token: Option<PathBuf>,
}

/// `longpole validate`.
#[derive(Clone, Debug, PartialEq)]
pub struct ValidatePlan {
    /// What to record; the command's CPUs are those to choose from.
    pub capture: CapturePlan,
    /// Numbers of CPUs to measure, ascending; the first is 1.
    pub cpus: Vec<u32>,
    /// Runs of each.
    pub runs: usize,
    /// Recordings of each command; the middle of what they predict counts.
    pub recordings: usize,
    /// CPUs that the recording is made on; `None`: a recording for each number of CPUs, on that many.
    pub record_on: Option<u32>,
    /// Record on the largest number of CPUs, too, and take the functions' CPU times from there.
    pub calibrate: bool,
    /// Errors above this share are a failure.
    pub max_error: Option<f64>,
    /// Keep the recording here.
    pub output: Option<PathBuf>,
    /// Replace a file that exists.
    pub force: bool,
    /// JSON instead of a table.
    pub json: bool,
}

/// Where an analysis command reads from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InputPlan {
    /// A session or a program, distinguished by content.
    File(PathBuf),
    /// `-`
    Stdin,
    /// Nothing was given: the newest recording of the current folder.
    Newest,
}

impl InputPlan {
    /// What FILE means.
    pub fn of(file: Option<PathBuf>) -> InputPlan {
        match file {
            None => InputPlan::Newest,
            Some(file) if file.as_os_str() == "-" => InputPlan::Stdin,
            Some(file) => InputPlan::File(file),
        }
    }
}

/// Where an export goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OutputPlan {
    /// A new file, or an older export.
    File(PathBuf),
    /// `-`, the default.
    Stdout,
}

impl OutputPlan {
    /// What a file name means.
    pub fn of(file: PathBuf) -> OutputPlan {
        if file.as_os_str() == "-" { OutputPlan::Stdout } else { OutputPlan::File(file) }
    }
}

/// `longpole report`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReportPlan {
    /// How threads share CPUs; `None`: as usual for such a program.
    pub scheduler: Option<engine::predict::Scheduler>,
    /// What to read.
    pub input: InputPlan,
    /// CPU counts, in the order asked; not empty.
    pub cpus: Vec<Cpus>,
    /// What a row of the table is.
    pub by: crate::present::text::By,
    /// JSON instead of a table.
    pub json: bool,
    /// With the cost of probe hits in the compute time.
    pub raw: bool,
    /// Without what samples say.
    pub probed_only: bool,
    /// Every segment with its weight, too.
    pub segments: bool,
    /// Rows in the table; `None`: the default of [`crate::present::text`].
    pub top: Option<usize>,
    /// Everything, instead of one screen.
    pub wide: bool,
    /// All rows of the one screen.
    pub all: bool,
    /// Names that the recording lacks: where to look for them.
    pub symbols: SymbolPlan,
}

/// Where symbols come from that were not there when a recording was made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SymbolPlan {
    /// Folders with binaries and debug files.
    pub folders: Vec<PathBuf>,
    /// Ask debuginfod servers.
    pub debuginfod: bool,
    /// Patterns of functions that only wait, in addition to those that the recording names.
    pub spin: Vec<String>,
}

impl SymbolPlan {
    /// Whether there is anywhere to look that the recording could not know.
    pub fn is_given(&self) -> bool {
        self.debuginfod || !self.folders.is_empty()
    }
}

/// `longpole symbolize`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SymbolizePlan {
    /// The session.
    pub file: PathBuf,
    /// Where to look.
    pub symbols: SymbolPlan,
}

/// `longpole predict`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PredictPlan {
    /// What to read: recordings of one command; not empty.
    pub inputs: Vec<InputPlan>,
    /// CPU counts, in the order asked; not empty.
    pub cpus: Vec<Cpus>,
    /// The machine to predict for.
    pub model: Model,
    /// JSON instead of a table.
    pub json: bool,
}

/// `longpole export`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExportPlan {
    /// What to read.
    pub input: InputPlan,
    /// What to write; `None`: the program JSON.
    pub format: Option<Format>,
    /// CPU counts, in the order asked; `None`: those that are usual for the format.
    pub cpus: Option<Vec<Cpus>>,
    /// Of several tables this one.
    pub table: Option<&'static Table>,
    /// With the cost of probe hits in the compute time.
    pub raw: bool,
    /// Where to; of several tables a folder.
    pub output: OutputPlan,
    /// Replace a file that exists.
    pub force: bool,
}

/// `longpole view`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ViewPlan {
    /// What to read.
    pub input: InputPlan,
    /// CPU counts, in the order asked; not empty.
    pub cpus: Vec<Cpus>,
    /// The output file; `None`: next to the input.
    pub output: Option<OutputPlan>,
    /// Opens the page when it is written.
    pub open: bool,
    /// With source lines.
    pub sources: bool,
    /// Replace any output file that exists, not only a page.
    pub force: bool,
    /// Recordings whose lengths are points of the speed-up curve.
    pub measured: Vec<PathBuf>,
    /// Names that the recording lacks: where to look for them.
    pub symbols: SymbolPlan,
}

/// `longpole info`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InfoPlan {
    /// What to read.
    pub input: InputPlan,
    /// JSON instead of text.
    pub json: bool,
}

/// `longpole notes`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotesPlan {
    /// What to read.
    pub input: InputPlan,
}

/// `longpole doctor`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DoctorPlan {
    /// JSON instead of text.
    pub json: bool,
}

/// `longpole __gate`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GatePlan {
    /// File descriptor of the pipe to wait on.
    pub fd: i32,
    /// Program and arguments; not empty.
    pub command: Vec<OsString>,
}
