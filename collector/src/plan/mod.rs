//! The user's wishes from the command line, checked and independent of clap.

pub mod cpus_in_command;
pub mod keep;
pub mod part;
pub mod per;
pub mod trigger;

use capture::interpose::InterposeMode;
use capture::target::CpuList;
use engine::event::SamplingFact;
use engine::report::Cpus;
use keep::Keep;
use part::RecordingPart;
use per::Per;
use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The target.
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
        /// The CPUs on which the command may run; `None`: the same as longpole's.
        cpus: Option<CpuList>,
    },
}

/// Which functions get probes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selection {
    /// Only functions whose name matches one of these globs get probes. Empty: all functions with a symbol in the main
    /// binary.
    pub functions: Vec<String>,
    /// Functions whose name matches one of these globs never get probes.
    pub exclude: Vec<String>,
    /// Largest number of functions that get probes; larger functions are preferred.
    pub max_functions: usize,
}

/// Where longpole writes breakpoints into the target.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Breakpoints {
    /// Nowhere: no byte of the target is written.
    #[default]
    None,
    /// Nowhere, until the user of `top` asks for a function.
    OnRequest,
    /// Into the functions that `--functions` names.
    Named,
    /// Into functions, and into C library functions whose calls cannot be recorded otherwise.
    Exact,
}

/// Functions of C libraries that take locks. A user whose `--functions` names one of them wants locks recorded.
const LOCK_FUNCTIONS: [&str; 6] = [
    "pthread_mutex_lock",
    "pthread_mutex_unlock",
    "pthread_cond_wait",
    "pthread_rwlock_rdlock",
    "pthread_barrier_wait",
    "sem_wait",
];

/// Whether one of these patterns names a function that takes a lock.
pub fn names_locks(patterns: &[String]) -> bool {
    LOCK_FUNCTIONS.iter().any(|name| patterns.iter().any(|glob| symbols::glob_matches(glob, name)))
}

/// Default for the largest number of functions with probes.
pub const MOST_FUNCTIONS: usize = 4096;

impl Default for Selection {
    fn default() -> Selection {
        Selection { functions: Vec::new(), exclude: Vec::new(), max_functions: MOST_FUNCTIONS }
    }
}

/// Options that `record` and `top` have in common: the target, and what is recorded of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CapturePlan {
    /// The target.
    pub target: TargetPlan,
    /// Child processes are recorded, too.
    pub children: bool,
    /// Recording goes on until a command's children have ended; else it ends when the command does.
    pub children_to_their_end: bool,
    /// Where in the target breakpoints may be written.
    pub breakpoints: Breakpoints,
    /// Which functions get probes.
    pub selection: Selection,
    /// Functions that only wait, as patterns of names.
    pub spin: Vec<String>,
    /// Whether functions get probes only after samples show that they are worth it.
    pub from_samples: bool,
    /// Number of calls per second above which a function loses its probes; at least 1. `None`: the default.
    pub max_rate_hz: Option<u64>,
    /// Limit of the cost of recording, in millionths of the target's own CPU time; `None`: no limit.
    pub budget_ppm: Option<u32>,
    /// Record calls only down to this depth of probed functions (2001, section 3.2); at least 1. `None`: all.
    pub depth: Option<u32>,
    /// Whether a library inside a launched command records its synchronization operations.
    pub interpose: InterposeMode,
    /// How stacks are sampled; `None`: stacks are not sampled.
    pub sampling: Option<SamplingFact>,
    /// Whether the sampling rate is the default: then only as many samples are taken as a share of the budget allows.
    pub fitting_samples: bool,
    /// Size of one ring buffer, bytes: a power of two of at least one page. `None`: the default of the probes.
    pub ring_bytes: Option<u32>,
    /// Requests over sockets are recorded all the time and, those of TCP, at both ends, whatever that costs; else in stretches if
    /// there are many, and only those that the target answers.
    pub every_request: bool,
    /// It is read for which traces threads work.
    pub thread_contexts: bool,
}

/// Options of `longpole record`.
#[derive(Clone, Debug, PartialEq)]
pub struct RecordPlan {
    /// The target, and what is recorded of it.
    pub capture: CapturePlan,
    /// Where the file is written; `None`: `longpole-NAME-PID-TIME.lp` in the current directory.
    pub output: Option<PathBuf>,
    /// An existing file may be replaced.
    pub force: bool,
    /// Recording ends after this time; `None`: when the target ends or on ^C.
    pub duration: Option<Duration>,
    /// Runs of the command on several numbers of CPUs, after the recording.
    pub cpu_runs: Option<CpuRunsPlan>,
    /// Which part of the recording is kept.
    pub keep: Keep,
    /// What counts as a request.
    pub per: Option<Per>,
}

/// Runs of a command on several numbers of CPUs, in addition to its recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CpuRunsPlan {
    /// Numbers of CPUs, ascending; at least two.
    pub cpus: Vec<u32>,
    /// Runs on each number of CPUs.
    pub rounds: u32,
}

/// Options of `longpole top`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopPlan {
    /// The target, and what is recorded of it.
    pub capture: CapturePlan,
    /// CPU counts, in the order of the columns; not empty.
    pub cpus: Vec<Cpus>,
    /// Time between two screens.
    pub refresh: Duration,
    /// Length of the sliding window; at least `refresh`.
    pub window: Duration,
    /// What counts as a request; `None`: single requests are not shown.
    pub per: Option<Per>,
    /// How long the screen is shown; `None`: until the user leaves.
    pub duration: Option<Duration>,
    /// Whether only one window is shown; that needs no terminal.
    pub once: bool,
    /// Whether screens are printed as text, one after the other; that needs no terminal.
    pub batch: bool,
    /// Whether `once` and `batch` print JSON instead of text.
    pub json: bool,
    /// Where reports are served over HTTP, too.
    pub listen: Option<ListenPlan>,
}

/// Options of `longpole top --listen`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListenPlan {
    /// The address.
    pub address: SocketAddr,
    /// The file with the token; `None`: a random token.
    pub token: Option<PathBuf>,
}

/// Options of `longpole validate`.
#[derive(Clone, Debug, PartialEq)]
pub struct ValidatePlan {
    /// What is recorded; the runs use the command's CPUs.
    pub capture: CapturePlan,
    /// Numbers of CPUs to measure, ascending; the first is 1.
    pub cpus: Vec<u32>,
    /// Measured runs on each number of CPUs.
    pub runs: usize,
    /// Recordings of each command; the median of their predictions counts.
    pub recordings: usize,
    /// Number of CPUs of the recording; `None`: a recording on each number of CPUs.
    pub record_on: Option<u32>,
    /// Errors above this share are a failure.
    pub max_error: Option<f64>,
    /// Where the recording is kept.
    pub output: Option<PathBuf>,
    /// An existing file may be replaced.
    pub force: bool,
    /// JSON instead of a table.
    pub json: bool,
}

/// The input of an analysis command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InputPlan {
    /// The file or other source of the input.
    pub source: Source,
    /// Which part of the recording the command analyses.
    pub part: RecordingPart,
}

/// The sources from which an analysis command can read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// A session or a program, distinguished by content.
    File(PathBuf),
    /// Standard input: `-`.
    Stdin,
    /// The newest recording of the current folder, if no file was named.
    Newest,
}

impl InputPlan {
    /// The source that the argument FILE stands for.
    pub fn of(file: Option<PathBuf>, part: RecordingPart) -> InputPlan {
        let source = match file {
            None => Source::Newest,
            Some(file) if is_dash(&file) => Source::Stdin,
            Some(file) => Source::File(file),
        };
        InputPlan { source, part }
    }

    /// A complete file as input.
    pub fn whole(file: PathBuf) -> InputPlan {
        InputPlan {
            source: Source::File(file),
            part: RecordingPart { whole: true, ..RecordingPart::default() },
        }
    }
}

/// Whether a file's name is `-`: standard input or output.
pub fn is_dash(file: &Path) -> bool {
    file.as_os_str() == "-"
}
