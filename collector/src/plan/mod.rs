//! What the modules below the command line need to know of it, checked and without a trace of clap.

pub mod cpus_in_command;
pub mod keep;
pub mod part;
pub mod trigger;

use capture::interpose::InterposeMode;
use capture::target::CpuList;
use engine::event::SamplingFact;
use engine::report::Cpus;
use keep::Keep;
use part::Part;
use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

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
    /// Into functions, and into those of the C library whose calls cannot be recorded otherwise.
    Exact,
}

/// Functions of C libraries that take locks. A user who names one of them with `--functions` means locks.
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

/// Most functions with probes unless something else is asked for.
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
    /// Where breakpoints may be written.
    pub breakpoints: Breakpoints,
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
#[derive(Clone, Debug, PartialEq)]
pub struct RecordPlan {
    /// Whom and what.
    pub capture: CapturePlan,
    /// Where to write; `None`: `longpole-NAME-PID-TIME.lp` in the current directory.
    pub output: Option<PathBuf>,
    /// Replace a file that exists.
    pub force: bool,
    /// Stop after this long; `None`: when the target ends or on ^C.
    pub duration: Option<Duration>,
    /// Run the command again, on several numbers of CPUs.
    pub cpu_runs: Option<CpuRunsPlan>,
    /// How much of it is kept.
    pub keep: Keep,
    /// The function whose calls are requests.
    pub per: Option<String>,
}

/// On how many CPUs a command is run in addition to its recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CpuRunsPlan {
    /// Numbers of CPUs, ascending; at least two.
    pub cpus: Vec<u32>,
    /// Runs on each.
    pub rounds: u32,
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
    /// Errors above this share are a failure.
    pub max_error: Option<f64>,
    /// Keep the recording here.
    pub output: Option<PathBuf>,
    /// Replace a file that exists.
    pub force: bool,
    /// JSON instead of a table.
    pub json: bool,
}

/// What an analysis command reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InputPlan {
    /// From where.
    pub source: Source,
    /// How much of it.
    pub part: Part,
}

/// Where an analysis command reads from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// A session or a program, distinguished by content.
    File(PathBuf),
    /// `-`
    Stdin,
    /// Nothing was given: the newest recording of the current folder.
    Newest,
}

impl InputPlan {
    /// What FILE means.
    pub fn of(file: Option<PathBuf>, part: Part) -> InputPlan {
        let source = match file {
            None => Source::Newest,
            Some(file) if is_dash(&file) => Source::Stdin,
            Some(file) => Source::File(file),
        };
        InputPlan { source, part }
    }

    /// All of a file.
    pub fn whole(file: PathBuf) -> InputPlan {
        InputPlan { source: Source::File(file), part: Part { whole: true, ..Part::default() } }
    }
}

/// `-` in place of a file: standard input or output.
pub fn is_dash(file: &Path) -> bool {
    file.as_os_str() == "-"
}
