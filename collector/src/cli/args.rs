//! The arguments of commands. Errors in a single argument are found by clap and [`super::value`]; errors of several
//! together by the code that reads them.

use super::record_args::{RecordArguments, TopArguments, ValidateArguments};
use super::study::{self, Analyzed, PartArguments, Scheduling};
use super::value::{self, List, Maybe};
use crate::export::{Format, Table};
use crate::plan::per::Per;
use crate::present::text::report::By;
use clap::{Args, Parser, Subcommand, ValueHint};
use engine::predict::Io;
use engine::report::Cpus;
use std::ffi::OsString;
use std::path::PathBuf;

/// Which functions and locks limit this multithreaded program, on this and on any other number of CPUs?
#[derive(Debug, Parser)]
#[command(name = "longpole", version, max_term_width = 100, arg_required_else_help = true)]
pub struct Arguments {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Record a running process or a command into a session file
    Record(RecordArguments),
    /// Watch a running process or a command on a live screen
    Top(TopArguments),
    /// Show the critical functions for each CPU count
    Report(ReportArguments),
    /// Predict how the program runs on other numbers of CPUs, and what limits it there
    Predict(PredictArguments),
    /// Show what making each function faster gains: at least, really, and at most
    Slack(study::SlackArguments),
    /// Show which functions, locks and threads keep CPUs idle: time divided by the CPUs that are busy meanwhile
    Parallelism(study::ParallelismArguments),
    /// Show which function each metric names first: CPU profile, Quartz, critical path, slack, zeroing, maximum benefit
    CompareMetrics(study::CompareMetricsArguments),
    /// List the longest paths through the run, and what can be gained at most
    Paths(study::PathsArguments),
    /// Predict what a change would bring: functions scaled, locks split, I/O free
    WhatIf(study::WhatIfArguments),
    /// Compare two recordings of the same program
    Diff(study::DiffArguments),
    /// Check a recording against rules, for CI
    Check(study::CheckArguments),
    /// Store better names in a recording, from debug information found since
    Symbolize(SymbolizeArguments),
    /// Write a recording in another format
    Export(ExportArguments),
    /// Show a recording in a browser: threads, locks and critical paths over time, and all tables
    View(ViewArguments),
    /// Join recordings of several hosts: messages between them become part of critical paths and requests
    Join(JoinArguments),
    /// Show what a recording holds
    Info(InfoArguments),
    /// Show all notes about a recording, and how much each can change the answer
    Notes(NotesArguments),
    /// Run a command on 1, 2, 4 ... CPUs and compare the measured speed-up with the predicted one
    Validate(ValidateArguments),
    /// Check what works on this machine and how to fix what does not
    Doctor(DoctorArguments),
    /// Print a script that completes longpole's commands and options in a shell
    Completions(CompletionsArguments),
    /// Write a manual page for each command
    Man(ManArguments),
    /// Wait for a byte on a pipe, then become the command
    #[command(name = "__gate", hide = true)]
    Gate(GateArguments),
    /// Give up all rights, then read symbols of the binary that comes over standard input
    #[command(name = "__symbols", hide = true)]
    Symbols(SymbolsArguments),
    /// Hold links of probes for the longpole at the other end of standard input
    #[command(name = "__links", hide = true)]
    Links,
}

#[derive(Debug, Args)]
pub struct ReportArguments {
    #[command(flatten)]
    pub input: Analyzed,
    /// CPU counts to predict for, for example 1,2,4-8,inf
    #[arg(long, value_name = "LIST", default_value = "1,2,4,8,16,inf", value_parser = value::cpu_list)]
    pub cpus: List<Cpus>,
    #[command(flatten)]
    pub scheduling: Scheduling,
    /// JSON instead of a table
    #[arg(long)]
    pub json: bool,
    /// Write the page of `longpole view` to this file instead
    #[arg(long, value_name = "OUT.html", conflicts_with_all = ["json", "segments", "stacks", "top", "wide", "all", "by", "raw",
        "probed_only", "model"])]
    pub html: Option<PathBuf>,
    /// List every segment with its weight, too
    #[arg(long)]
    pub segments: bool,
    /// Show at most this many rows [default: 10]; implies --wide
    #[arg(long, value_name = "N", value_parser = value::count::<usize>)]
    pub top: Option<usize>,
    /// Every function with self, total and calls for each CPU count, whole names, all that is known of the recording
    #[arg(long)]
    pub wide: bool,
    /// All rows, unchanged names, standard functions by themselves; with --by lock also locks without a waiter
    #[arg(long)]
    pub all: bool,
    /// What a row of the table is: function, line, file, module, lock, wait or thread
    #[arg(long, value_name = "WHAT", default_value = "function", hide_possible_values = true, value_parser = value::word(&[
        ("function", By::Function), ("line", By::Line), ("file", By::File), ("module", By::Module), ("lock", By::Lock),
        ("wait", By::Wait), ("thread", By::Thread)]))]
    pub by: By,
    /// With --by wait: the stacks in which threads slept, innermost function first
    #[arg(long)]
    pub stacks: bool,
    /// Show single requests instead: calls of functions with this name, as `record --per` recorded them, or what arrives at sockets
    /// (socket, socket:PORT, socket:unix), or usdt:PROVIDER:BEGIN,END or otel as it was recorded. How long requests take, and where slow ones spend more time than fast ones
    #[arg(long, value_name = "NAME|socket|usdt|otel", conflicts_with_all = ["html", "segments", "stacks", "wide", "all", "by", "cpus",
        "probed_only", "model"], value_parser = value::per)]
    pub per: Option<Per>,
    /// Leave the cost of probe hits in the compute time, as it was measured
    #[arg(long)]
    pub raw: bool,
    /// Ignore samples: all time counts for the innermost function with probes
    #[arg(long)]
    pub probed_only: bool,
    #[command(flatten)]
    pub sources: SymbolSources,
}

/// Where symbols come from that were not there when the recording was made.
#[derive(Debug, Args)]
pub struct SymbolSources {
    /// Look for binaries and debug files in this folder, too (may be repeated)
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, value_parser = value::folder())]
    pub symbol_dir: Vec<PathBuf>,
    /// Ask the servers in DEBUGINFOD_URLS for debug information that this machine lacks
    #[arg(long)]
    pub debuginfod: bool,
    /// Functions of this name, or with a matching name, only wait: time in them counts as waiting (may be repeated)
    #[arg(long, value_name = "NAME|GLOB")]
    pub spin: Vec<String>,
}

impl SymbolSources {
    /// Whether the user names a place with symbols that the recording could not use.
    pub fn is_given(&self) -> bool {
        self.debuginfod || !self.symbol_dir.is_empty()
    }
}

#[derive(Debug, Args)]
pub struct JoinArguments {
    /// Recordings of different hosts, made with --per socket at the same time; the first one's clock counts
    #[arg(value_name = "FILE", required = true, num_args = 2..)]
    pub files: Vec<PathBuf>,
    /// Where to write [default: joined.lp, with a number until the name is free]
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::AnyPath, value_parser = value::recording())]
    pub output: Option<PathBuf>,
    /// Replace FILE if it exists
    #[arg(long)]
    pub force: bool,
}

#[derive(Debug, Args)]
pub struct SymbolizeArguments {
    /// A session; longpole replaces the file by one with more names
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    #[command(flatten)]
    pub sources: SymbolSources,
}

/// Help below the options of `predict`.
const PREDICT_HELP: &str = "\
Times such as 3ms, 1.5us or 0; a bare number is seconds. Values that are not given come from the recording; a program written by hand has no costs. Several FILEs are recordings of the same command: the prediction is the middle of their predictions, the band is the spread. A deadlock that the program did not have in reality is a finding, and exit code 0.";

#[derive(Debug, Args)]
#[command(after_help = PREDICT_HELP)]
pub struct PredictArguments {
    /// Sessions or program JSONs of the same command; - reads a program from standard input [default: the newest *.lp of
    /// this folder]
    #[arg(value_name = "FILE")]
    pub files: Vec<PathBuf>,
    #[command(flatten)]
    pub part: PartArguments,
    /// CPU counts to predict for, for example 1-64
    #[arg(long, value_name = "LIST", default_value = "1,2,4,8,16,32,64", value_parser = value::cpu_list)]
    pub cpus: List<Cpus>,
    /// JSON instead of a table
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub scheduling: Scheduling,
    /// How long a thread may go on while another wants its CPU [default: as recorded, else Linux's]
    #[arg(long, value_name = "TIME", value_parser = value::longer_ns)]
    pub slice: Option<u64>,
    /// What putting another thread on a CPU costs [default: as recorded]
    #[arg(long, value_name = "TIME", value_parser = value::time_ns)]
    pub switch_cost: Option<u64>,
    /// From waking a thread to its first instruction on an idle CPU [default: as recorded, else as measured]
    #[arg(long, value_name = "TIME", value_parser = value::time_ns)]
    pub wake_latency: Option<u64>,
    /// CPU time that waking a thread on an idle CPU takes from the waker [default: as measured if recorded on one CPU, else 0]
    #[arg(long, value_name = "TIME", value_parser = value::time_ns)]
    pub wake_cost: Option<u64>,
    /// How long an idle CPU that found no waiting thread waits before it looks again; 0: it takes a thread at once [default: the
    /// kernel's tick, where idle CPUs ask others by chance only]
    #[arg(long, value_name = "TIME", value_parser = value::time_ns)]
    pub idle_tick: Option<u64>,
    /// CPU time that the program may use, as a cgroup's quota, for example 250%; none: no limit [default: as recorded]
    #[arg(long, value_name = "PERCENT", value_parser = value::quota)]
    pub quota: Option<u32>,
    /// How many waits a device serves at once, for example disk=4 (may be repeated)
    #[arg(long, value_name = "NAME=N", value_parser = value::device)]
    pub devices: Vec<(String, u32)>,
    /// How many waits all other devices serve at once: recorded, serial or unlimited
    #[arg(long, value_name = "HOW", default_value = "recorded", hide_possible_values = true, value_parser = value::word(&[
        ("recorded", Io::AsRecorded), ("serial", Io::Serial), ("unlimited", Io::Unlimited)]))]
    pub io: Io,
    /// Seed of the random numbers that decide what the model leaves open
    #[arg(long, value_name = "N", default_value = "0", value_parser = value::number)]
    pub seed: u64,
    /// How many times each CPU count is run, with other decisions each time
    #[arg(long, value_name = "N", default_value = "5", value_parser = value::count_to::<1000>)]
    pub runs: u32,
}

#[derive(Debug, Args)]
pub struct ExportArguments {
    #[command(flatten)]
    pub input: Analyzed,
    /// What to write: program (JSON, which all commands read); perfetto, firefox or chrome (what happened over time); pprof,
    /// speedscope, folded or svg (call stacks); dot (the longest paths); csv, ndjson or parquet (tables: FILE is a folder)
    #[arg(short, long, value_name = "FORMAT", default_value = "program", value_parser = value::format)]
    pub format: Maybe<Format>,
    /// CPU counts whose critical paths to write, for example 2,8,inf [default: 1,2,4,8,16,inf; folded and svg, which show
    /// one: CPU time instead]
    #[arg(long, value_name = "LIST", value_parser = value::cpu_list)]
    pub cpus: Option<List<Cpus>>,
    /// With csv, ndjson and parquet: only this table, for example functions or intervals
    #[arg(long, value_name = "NAME", value_parser = value::table)]
    pub table: Option<&'static Table>,
    /// With -f folded: time of these requests (see `report --per`). Two numbers a stack, for flame graphs of a difference:
    /// nanoseconds of a fast request and of a slow one
    #[arg(long, value_name = "NAME|socket|otel", conflicts_with = "cpus", value_parser = value::per)]
    pub per: Option<Per>,
    /// Where to write; - is standard output
    #[arg(short, long, value_name = "FILE", default_value = "-")]
    pub output: PathBuf,
    /// Replace the output file if it exists
    #[arg(long)]
    pub force: bool,
    /// Leave the cost of probe hits in the compute time, as it was measured
    #[arg(long)]
    pub raw: bool,
}

/// Help below the options of `view`.
const VIEW_HELP: &str = "\
The page is one file that needs neither network nor server. The page holds all names of the recording and, with --sources, source lines: pass it only to people who may see them.";

#[derive(Debug, Args)]
#[command(after_help = VIEW_HELP)]
pub struct ViewArguments {
    #[command(flatten)]
    pub input: Analyzed,
    /// Where to write [default: FILE with .html at its end]; - is standard output
    #[arg(short, long, value_name = "OUT.html")]
    pub output: Option<PathBuf>,
    /// CPU counts to predict for, for example 1,2,4-8,inf
    #[arg(long, value_name = "LIST", default_value = "1,2,4,8,16,inf", value_parser = value::cpu_list)]
    pub cpus: List<Cpus>,
    /// Write the page without opening a browser
    #[arg(long)]
    pub no_open: bool,
    /// Put the source lines around functions and samples into the page
    #[arg(long)]
    pub sources: bool,
    /// Another recording of the same command, on another number of CPUs: its length is a point of the speed-up curve (may be
    /// repeated)
    #[arg(long, value_name = "FILE")]
    pub measured: Vec<PathBuf>,
    /// Replace OUT.html even if longpole did not write it
    #[arg(long)]
    pub force: bool,
    #[command(flatten)]
    pub symbols: SymbolSources,
}

#[derive(Debug, Args)]
pub struct InfoArguments {
    /// A session or a program JSON; - reads a program from standard input [default: the newest *.lp of this folder]
    #[arg(value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// JSON instead of text
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct NotesArguments {
    #[command(flatten)]
    pub input: Analyzed,
}

#[derive(Debug, Args)]
pub struct DoctorArguments {
    /// JSON instead of text
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct CompletionsArguments {
    /// The shell
    #[arg(value_name = "SHELL")]
    pub shell: clap_complete::Shell,
}

#[derive(Debug, Args)]
pub struct ManArguments {
    /// The folder to write into
    #[arg(value_name = "DIR", default_value = ".")]
    pub folder: PathBuf,
}

#[derive(Debug, Args)]
pub struct SymbolsArguments {
    pub memory_bytes: u64,
    pub cpu_seconds: u64,
}

#[derive(Debug, Args)]
pub struct GateArguments {
    pub fd: i32,
    #[arg(last = true, required = true)]
    pub command: Vec<OsString>,
}
