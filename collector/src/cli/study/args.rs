//! Arguments of these commands.

use super::value::{self as study, Threads, Threshold};
use crate::cli::value::{self, List, Maybe};
use crate::plan::InputPlan;
use crate::plan::part::{Moment, RecordingPart};
use crate::present::study::parallelism::screen::Class;
use clap::Args;
use engine::predict::Scheduler;
use engine::report::Cpus;
use std::path::PathBuf;

/// What is read.
#[derive(Debug, Args)]
pub struct Analyzed {
    /// A session or a program JSON; - reads a program from standard input [default: the newest *.lp of this folder]
    #[arg(value_name = "FILE")]
    pub file: Option<PathBuf>,
    #[command(flatten)]
    pub part: PartArguments,
}

/// Which part of it, all of which is taken however large it is: results of several recordings are compared, or with a limit.
#[derive(Clone, Copy, Debug, Args)]
pub struct Between {
    /// Take the recording from here on: a time after the start (90s) or a time of day (10:32:05)
    #[arg(long, value_name = "TIME", value_parser = value::moment)]
    pub from: Option<Moment>,
    /// Take the recording up to here
    #[arg(long, value_name = "TIME", value_parser = value::moment)]
    pub to: Option<Moment>,
}

impl From<Between> for RecordingPart {
    fn from(Between { from, to }: Between) -> RecordingPart {
        RecordingPart { from, to, whole: true }
    }
}

/// Which part of it.
#[derive(Clone, Copy, Debug, Args)]
pub struct PartArguments {
    #[command(flatten)]
    pub between: Between,
    /// Take the whole recording, which may take long: without this, longpole takes of more than 500,000 records the 250,000 most like all,
    /// fewer where a record stands for many lock operations
    #[arg(long)]
    pub whole: bool,
}

impl From<PartArguments> for RecordingPart {
    fn from(PartArguments { between, whole }: PartArguments) -> RecordingPart {
        RecordingPart { whole, ..between.into() }
    }
}

/// What is read as a whole.
#[derive(Debug, Args)]
pub struct Whole {
    /// A session or a program JSON; - reads a program from standard input [default: the newest *.lp of this folder]
    #[arg(value_name = "FILE")]
    pub file: Option<PathBuf>,
    #[command(flatten)]
    pub between: Between,
}

impl Whole {
    /// The input that FILE means.
    pub fn plan(&self) -> InputPlan {
        InputPlan::of(self.file.clone(), self.between.into())
    }
}

impl Analyzed {
    /// The input that FILE means.
    pub fn plan(&self) -> InputPlan {
        InputPlan::of(self.file.clone(), self.part.into())
    }
}

/// On which model of a scheduler.
#[derive(Debug, Args)]
pub struct Scheduling {
    /// How threads share CPUs: eevdf (as Linux), ideal (infinitely small slices at no cost), or auto: eevdf for a
    /// recording, ideal for a program written by hand
    #[arg(long, value_name = "MODEL", default_value = "auto", hide_possible_values = true, value_parser = value::model())]
    pub model: Maybe<Scheduler>,
}

/// What is studied.
#[derive(Debug, Args)]
pub struct Studied {
    #[command(flatten)]
    pub input: Analyzed,
    /// Ignore samples: all time counts for the innermost function with probes
    #[arg(long)]
    pub probed_only: bool,
    #[command(flatten)]
    pub scheduling: Scheduling,
}

#[derive(Debug, Args)]
pub struct SlackArguments {
    /// List every operation with its early and late times and its slack, too
    #[arg(long)]
    pub segments: bool,
    /// Show at most this many functions
    #[arg(long, value_name = "N", default_value = "10", value_parser = value::count::<usize>)]
    pub top: usize,
    /// List standard functions, too; by default their time counts for their callers
    #[arg(long)]
    pub all: bool,
    #[command(flatten)]
    pub studied: Studied,
    /// JSON instead of a table
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct ParallelismArguments {
    /// Of the run predicted on these CPU counts, for example 1,2,4-8,inf [default: the recorded run; of a
    /// program JSON: inf]
    #[arg(long, value_name = "LIST", value_parser = value::cpu_list)]
    pub cpus: Option<List<Cpus>>,
    /// What to list: function, lock (barriers and conditions, too) or thread [default: the first of each]
    #[arg(long, value_name = "KIND", hide_possible_values = true, value_parser = value::word(&[
        ("function", Class::Functions), ("lock", Class::Objects), ("thread", Class::Threads)]))]
    pub by: Option<Class>,
    /// Show this function, lock or thread alone: its histogram, who calls it, what it calls
    #[arg(long, value_name = "NAME")]
    pub of: Option<String>,
    /// Show at most this many rows of each kind
    #[arg(long, value_name = "N", value_parser = value::count::<usize>)]
    pub top: Option<usize>,
    #[command(flatten)]
    pub studied: Studied,
    /// JSON instead of a screen
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct CompareMetricsArguments {
    /// Of the run predicted on this many CPUs: a number, or inf [default: the recorded number; of a program JSON:
    /// inf]
    #[arg(long, value_name = "N", value_parser = study::one_cpu_count)]
    pub cpus: Option<Cpus>,
    /// Show at most this many functions
    #[arg(long, value_name = "N", default_value = "10", value_parser = value::count::<usize>)]
    pub top: usize,
    /// List standard functions, too; by default their time counts for their callers
    #[arg(long)]
    pub all: bool,
    #[command(flatten)]
    pub studied: Studied,
    /// JSON instead of a table
    #[arg(long)]
    pub json: bool,
}

/// More paths than this are refused: they need some hundred bytes each.
const MOST_PATHS: u32 = 1_000_000;

#[derive(Debug, Args)]
pub struct PathsArguments {
    /// List this many paths, the longest first [default: 100]
    #[arg(short, value_name = "N", value_parser = value::count_to::<MOST_PATHS>)]
    pub k: Option<u32>,
    /// List the paths that are at most this much shorter than the longest, for example 5% [at most -k, default 10000]
    #[arg(long, value_name = "PERCENT", value_parser = study::part)]
    pub within: Option<f64>,
    /// Show the path with this rank edge by edge
    #[arg(long, value_name = "N", value_parser = value::count_to::<MOST_PATHS>)]
    pub show: Option<u32>,
    /// List one path, and the next one for each line of standard input (Enter), until q or the input's end
    #[arg(long, conflicts_with_all = ["k", "within", "show", "segments", "top", "json"])]
    pub next: bool,
    /// Also list how many of the paths go through each operation
    #[arg(long)]
    pub segments: bool,
    /// Show at most this many functions, locks and threads each
    #[arg(long, value_name = "N", default_value = "10", value_parser = value::count::<usize>)]
    pub top: usize,
    /// List standard functions, too; by default their time counts for their callers
    #[arg(long)]
    pub all: bool,
    #[command(flatten)]
    pub studied: Studied,
    /// JSON instead of a table
    #[arg(long)]
    pub json: bool,
}

/// Help below the options of `what-if`.
const WHAT_IF_HELP: &str = "\
parse=0.8 leaves four fifths of parse's time, parse=0 nothing, parse=2 doubles it. NAME may be a pattern ('hash*') or an unambiguous part of the name ('update' for 'shop::update(int)'). A factor scales what a function computes itself, and the standard functions (memcpy, malloc) that mostly this function uses; not other functions that it calls, nor its waits.

Would more CPUs help? --cpus 4,8,16. Would more threads? --threads +1, or --threads 8 for eight of the threads that do the same and most of the work. Their work is divided among more threads, except work under a lock that threads wait for.";

/// What is to be changed: all of it together.
#[derive(Debug, Args)]
#[group(id = "changes", multiple = true)]
pub struct Changes {
    /// A function takes this many times as long, for example parse=0.8 (may be repeated)
    #[arg(long, value_name = "NAME=FACTOR", value_parser = study::scale)]
    pub scale: Vec<(String, f64)>,
    /// A lock becomes this many locks, for example cache=4 (may be repeated)
    #[arg(long, value_name = "LOCK=N", value_parser = study::split_lock)]
    pub split_lock: Vec<(String, u32)>,
    /// A semaphore begins with this many permits, for example connections=8 (may be repeated)
    #[arg(long, value_name = "SEMAPHORE=N", value_parser = study::permits)]
    pub permits: Vec<(String, u32)>,
    /// No thread waits for this lock: the most that any change to the lock gains (may be repeated)
    #[arg(long, value_name = "LOCK")]
    pub free_lock: Vec<String>,
    /// A function computes before it takes a lock, not under the lock, for example parse=cache (may be repeated)
    #[arg(long, value_name = "FUNCTION=LOCK", value_parser = study::move_out)]
    pub move_out: Vec<(String, String)>,
    /// The thread that computes most of a function divides that among this many threads, for example parse=4 (may be repeated)
    #[arg(long, value_name = "FUNCTION=N", value_parser = study::divide)]
    pub divide: Vec<(String, u32)>,
    /// Threads that wait for each other have the same amount of work
    #[arg(long)]
    pub divide_evenly: bool,
    /// Waiting for devices takes no time
    #[arg(long)]
    pub free_io: bool,
    /// No thread sleeps or waits for a timer
    #[arg(long)]
    pub no_sleeps: bool,
    /// Threads that wait for a spin lock yield their CPUs
    #[arg(long)]
    pub no_spinning: bool,
    /// Waking threads and putting them on CPUs takes no time
    #[arg(long)]
    pub free_wakeups: bool,
    /// No limit on the CPU time of the program's container
    #[arg(long)]
    pub no_quota: bool,
}

impl Changes {
    /// Whether the user asks for a change.
    pub fn any(&self) -> bool {
        let Changes { scale, split_lock, permits, free_lock, move_out, divide, .. } = self;
        let of_locks = [split_lock.len(), permits.len(), free_lock.len(), move_out.len()];
        let lists = [scale.len(), divide.len()].into_iter().chain(of_locks);
        lists.into_iter().any(|length| length > 0)
            || [self.divide_evenly, self.free_io, self.no_sleeps, self.no_spinning].contains(&true)
            || self.free_wakeups
            || self.no_quota
    }
}

#[derive(Debug, Args)]
#[command(after_help = WHAT_IF_HELP)]
pub struct WhatIfArguments {
    #[command(flatten)]
    pub changes: Changes,
    /// Run with N worker threads (8) or N more (+1); NAME= picks threads by their name in THREADS (xz=+4)
    #[arg(long, value_name = "[NAME=]N|+N", allow_hyphen_values = true, value_parser = study::threads, conflicts_with_all = ["rank",
        "headroom", "changes"])]
    pub threads: Option<Threads>,
    /// How far can this function be made faster before another one takes its place?
    #[arg(long, value_name = "FUNCTION", conflicts_with_all = ["rank", "changes"])]
    pub headroom: Option<String>,
    /// What is gained if a function computes 10, 20, 50 and 100 % less, for every function?
    #[arg(long, conflicts_with = "changes")]
    pub rank: bool,
    /// CPU counts to predict for
    #[arg(long, value_name = "LIST", default_value = "1,2,4,8,16,inf", value_parser = value::cpu_list)]
    pub cpus: List<Cpus>,
    /// With --rank: at most this many functions
    #[arg(long, value_name = "N", default_value = "10", value_parser = value::count::<usize>, requires = "rank",
        conflicts_with_all = ["changes", "threads", "headroom"])]
    pub top: usize,
    /// With --rank: list standard functions, too; by default their time counts for their callers
    #[arg(long, requires = "rank")]
    pub all: bool,
    #[command(flatten)]
    pub studied: Studied,
    /// JSON instead of a table
    #[arg(long)]
    pub json: bool,
}

/// Help below the options of `diff`, mainly for scripts.
const DIFF_HELP: &str = "\
--fail-on +5% is about the predicted time on any of the CPU counts; --fail-on parse=+5% about what parse itself computes on \
the critical path, in percent of the predicted time before (NAME may be a pattern). Of programs that serve requests, they are \
about the mean time of a request, and about parse's CPU time for each request, in percent of all CPU time for it before.
Noise is how much two recordings of one program may differ. From one recording of each it is an estimate that lacks what \
lasts for a whole run, such as a clock frequency. Two or more of each show that: longpole diff A1 A2 A3 -- B1 B2 B3
Exit code: 0, or 3 if something grew by more; 1 something failed, 2 the command line makes no sense.";

#[derive(Debug, Args)]
#[command(after_help = DIFF_HELP, override_usage = "longpole diff [OPTIONS] A B\n       longpole diff [OPTIONS] A1 A2... -- B1 B2...")]
pub struct DiffArguments {
    /// Before and after: a session or a program JSON each; with --, recordings before
    #[arg(value_name = "A B", required = true)]
    pub files: Vec<PathBuf>,
    /// Recordings after: noise then comes from the differences between recordings of one side
    #[arg(value_name = "B", last = true)]
    pub after: Vec<PathBuf>,
    #[command(flatten)]
    pub between: Between,
    /// CPU counts to predict for
    #[arg(long, value_name = "LIST", default_value = "1,2,4,8,16,inf", value_parser = value::cpu_list)]
    pub cpus: List<Cpus>,
    #[command(flatten)]
    pub scheduling: Scheduling,
    /// Exit with 3 if the time grows by more than this, for example +5% or parse=+5% (may be repeated)
    #[arg(long, value_name = "[NAME=]PERCENT", value_parser = study::threshold)]
    pub fail_on: Vec<Threshold>,
    /// Compare recordings of different programs, too
    #[arg(long)]
    pub force: bool,
    /// Show at most this many functions and locks each
    #[arg(long, value_name = "N", default_value = "10", value_parser = value::count::<usize>)]
    pub top: usize,
    /// JSON instead of tables
    #[arg(long)]
    pub json: bool,
}

/// Help below the options of `check`, mainly for scripts.
const CHECK_HELP: &str = "\
The rules file is TOML: one [[rule]] for each rule, with a measure and its limits; docs/guide.md has the grammar.
Exit code: 0, or 3 if a rule is broken; 1 something failed, also a rules file that makes no sense.";

#[derive(Debug, Args)]
#[command(after_help = CHECK_HELP)]
pub struct CheckArguments {
    #[command(flatten)]
    pub input: Whole,
    /// The rules
    #[arg(long, value_name = "FILE")]
    pub rules: PathBuf,
    /// Write the outcome as JUnit XML, to a file or instead of the text
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "-")]
    pub junit: Option<PathBuf>,
    /// Write the outcome as Markdown, to a file or instead of the text
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "-")]
    pub markdown: Option<PathBuf>,
    #[command(flatten)]
    pub scheduling: Scheduling,
    /// JSON instead of text
    #[arg(long)]
    pub json: bool,
}
