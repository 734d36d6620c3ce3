//! The arguments as typed. Nothing is checked here beyond their shape: that is [`super::plan_from_args`].

use super::study;
use clap::{Args, Parser, Subcommand};
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
    /// Give a recording better names, with debug information found since, and store them in it
    Symbolize(SymbolizeArguments),
    /// Write a recording in another format
    Export(ExportArguments),
    /// Show a recording in a browser: threads, locks and critical paths over time, and all tables
    View(ViewArguments),
    /// Show what a recording holds
    Info(InfoArguments),
    /// Show all that was noticed of a recording, and how much it can change the answer
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
}

/// What scripts have to know about `record`.
const RECORD_EXIT_CODES: &str = "\
^C goes to COMMAND, too, as to every program of a terminal: mostly it dies of it, and so do its children; the recording \
ends when COMMAND does. A second ^C ends the recording of a COMMAND that goes on. To end only the recording by ^C, start \
the program yourself and attach with -p.
Exit code: that of COMMAND, or its signal, if it ended while it was recorded; otherwise 0. A COMMAND that has not \
ended when the recording does (-d, a second ^C) runs on without longpole, and the summary names its PID.
1 something failed, 2 the command line makes no sense, 77 a permission or kernel feature is missing (see \
`longpole doctor`), 125 to 127 COMMAND could not be started.";

#[derive(Debug, Args)]
pub struct CaptureArguments {
    /// Attach to these running processes, by number or by name
    #[arg(short, long, value_name = "PID|NAME")]
    pub pid: Vec<String>,
    /// Include child processes of -p, too; of a COMMAND, whose children are included anyway, those that outlive it
    #[arg(long, conflicts_with = "no_children")]
    pub children: bool,
    /// Leave out child processes of a COMMAND
    #[arg(long)]
    pub no_children: bool,
    /// Scheduler and futex events only: no probes on functions, nor on libc's for locks
    #[arg(long)]
    pub no_uprobes: bool,
    /// Probe the function of this name, or as much of it as is needed, or all functions with a matching name (hash*), and only
    /// these, at once and without trying first what that costs (may be repeated); without it a running process is tried first
    #[arg(long, value_name = "NAME|GLOB")]
    pub functions: Vec<String>,
    /// Never probe the function of this name, or functions with a matching name (may be repeated)
    #[arg(long, value_name = "NAME|GLOB")]
    pub exclude: Vec<String>,
    /// Functions of this name, or with a matching name, only wait: time in them counts as waiting (may be repeated)
    #[arg(long, value_name = "NAME|GLOB")]
    pub spin: Vec<String>,
    /// Probe at most this many functions, the largest first; a command with more than 1,024 begins without probes unless
    /// this or --functions is given [default: 4096; validate: none, unless functions are chosen or --calibrate asks which ones
    /// need more CPU time]
    #[arg(long, value_name = "N")]
    pub max_functions: Option<String>,
    /// Take the probes off functions called more often than this per second [default: 10000]
    #[arg(long, value_name = "N")]
    pub max_rate: Option<String>,
    /// What recording may cost of the target's CPU time; functions that cost too much lose their probes,
    /// samples become rarer; or: none
    #[arg(long, value_name = "SHARE", default_value = "2%")]
    pub overhead: String,
    /// Take the stacks of running threads this often per second, on each CPU; 0: never [default: 499, or
    /// fewer where three quarters of --overhead do not pay for it; validate: 0]
    #[arg(short = 'F', long = "freq", visible_alias = "rate", value_name = "HZ")]
    pub frequency: Option<String>,
    /// How stacks are read: fp (frame pointers), dwarf (unwind tables, more expensive), or auto: whichever a program's binaries need
    #[arg(long, value_name = "HOW", default_value = "auto")]
    pub call_graph: String,
    /// Record calls only down to this depth of probed functions
    #[arg(long, value_name = "N")]
    pub depth: Option<String>,
    /// Size of each ring buffer, for example 8M [default: 16M]
    #[arg(long, value_name = "SIZE")]
    pub ring_size: Option<String>,
    /// Record the command's locks from inside it, by a library put before its libc, instead of by probes on its libc, which
    /// are more expensive: auto, always or never
    #[arg(long, value_name = "WHEN", default_value = "auto")]
    pub interpose: String,
    /// Let the command run on these CPUs only, for example 0 or 0-3
    #[arg(long, value_name = "CPUS")]
    pub cpu_list: Option<String>,
    /// Under sudo: run the command as root, not as the user behind sudo
    #[arg(long)]
    pub keep_root: bool,
    /// Start this command and watch it until it ends
    #[arg(value_name = "COMMAND", trailing_var_arg = true)]
    pub command: Vec<OsString>,
}

#[derive(Debug, Args)]
#[command(after_help = RECORD_EXIT_CODES)]
pub struct RecordArguments {
    /// Where to write [default: longpole-NAME-PID-TIME.lp, counted up until the name is free]
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Replace FILE if it exists
    #[arg(long)]
    pub force: bool,
    /// Stop after this long, for example 10s [default: when the target ends, or on ^C]; a COMMAND that has not
    /// ended by then runs on
    #[arg(short, long, value_name = "TIME")]
    pub duration: Option<String>,
    #[command(flatten)]
    pub capture: CaptureArguments,
}

/// What has to be known about `top`.
const TOP_HELP: &str = "\
^C on the screen, as q, is for longpole alone: COMMAND, or what -p names, runs on. With --once and --batch there is no \
screen, and ^C goes to COMMAND, too: mostly it dies of it. ? on the screen shows its keys.";

#[derive(Debug, Args)]
#[command(after_help = TOP_HELP)]
pub struct TopArguments {
    /// CPU counts to predict for
    #[arg(long, value_name = "LIST", default_value = "1,2,4,8,16,inf")]
    pub cpus: String,
    /// Time between two screens
    #[arg(long, value_name = "TIME", default_value = "1s")]
    pub refresh: String,
    /// Length of the sliding window
    #[arg(long, value_name = "TIME", default_value = "10s")]
    pub window: String,
    /// Detach and leave after this long, for example 10m [default: when you leave]
    #[arg(short, long, value_name = "TIME")]
    pub duration: Option<String>,
    /// Print one screen of a whole window and end; needs no terminal
    #[arg(long)]
    pub once: bool,
    /// Print one screen after the other; needs no terminal
    #[arg(long, conflicts_with = "once")]
    pub batch: bool,
    /// With --once and --batch: JSON, an object a line
    #[arg(long)]
    pub json: bool,
    /// Serve metrics (/metrics, OpenMetrics) and a page here, for example 9464, which is 127.0.0.1:9464; needs no terminal
    #[arg(long, value_name = "ADDRESS", conflicts_with = "once")]
    pub listen: Option<String>,
    /// The token in this file opens the page, and on an address that others can reach the metrics [default: a new one]
    #[arg(long, value_name = "FILE", requires = "listen")]
    pub listen_token: Option<PathBuf>,
    #[command(flatten)]
    pub capture: CaptureArguments,
}

#[derive(Debug, Args)]
pub struct ReportArguments {
    /// A session or a program JSON; - reads a program from standard input [default: the newest *.lp of this folder]
    #[arg(value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// CPU counts to predict for, for example 1,2,4-8,inf
    #[arg(long, value_name = "LIST", default_value = "1,2,4,8,16,inf")]
    pub cpus: String,
    /// How threads share CPUs: eevdf (as Linux), ideal (infinitely small slices at no cost), or auto: eevdf for what was
    /// recorded, ideal for a program that was written by hand
    #[arg(long, value_name = "MODEL", default_value = "auto")]
    pub model: String,
    /// JSON instead of a table
    #[arg(long)]
    pub json: bool,
    /// Write the page of `longpole view` to this file instead
    #[arg(long, value_name = "OUT.html", conflicts_with_all = ["json", "segments", "top", "wide", "all", "by", "raw",
        "probed_only", "model"])]
    pub html: Option<PathBuf>,
    /// List every segment with its weight, too
    #[arg(long)]
    pub segments: bool,
    /// Show at most this many rows [default: 10]; implies --wide
    #[arg(long, value_name = "N")]
    pub top: Option<String>,
    /// Every function with self, total and calls for each CPU count, whole names, all that is known of the recording
    #[arg(long)]
    pub wide: bool,
    /// On the usual screen: all rows, names as they are, standard functions by themselves
    #[arg(long)]
    pub all: bool,
    /// What a row of the table is: function, line, file, module, lock or wait
    #[arg(long, value_name = "WHAT", default_value = "function")]
    pub by: String,
    /// Leave the cost of probe hits in the compute time, as it was measured
    #[arg(long)]
    pub raw: bool,
    /// Leave out what samples say: all time counts for the innermost function with probes
    #[arg(long)]
    pub probed_only: bool,
    #[command(flatten)]
    pub sources: SymbolSources,
}

/// Where symbols come from that were not there when the recording was made.
#[derive(Debug, Args)]
pub struct SymbolSources {
    /// Look for binaries and debug files in this folder, too (may be repeated)
    #[arg(long, value_name = "DIR")]
    pub symbol_dir: Vec<PathBuf>,
    /// Ask the servers in DEBUGINFOD_URLS for what is nowhere here
    #[arg(long)]
    pub debuginfod: bool,
    /// Functions of this name, or with a matching name, only wait: time in them counts as waiting (may be repeated)
    #[arg(long, value_name = "NAME|GLOB")]
    pub spin: Vec<String>,
}

#[derive(Debug, Args)]
pub struct SymbolizeArguments {
    /// A session; it is replaced by one with more names
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    #[command(flatten)]
    pub sources: SymbolSources,
}

/// What has to be known about `predict`.
const PREDICT_HELP: &str = "\
Times such as 3ms, 1.5us or 0; a bare number is seconds. What is not given comes from the recording; a program written by \
hand has no costs. Several FILEs are recordings of the same command: the prediction is their middle, the band their \
spread. A deadlock that the program did not have in reality is a finding, and exit code 0.";

#[derive(Debug, Args)]
#[command(after_help = PREDICT_HELP)]
pub struct PredictArguments {
    /// Sessions or program JSONs of the same command; - reads a program from standard input [default: the newest *.lp of
    /// this folder]
    #[arg(value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// CPU counts to predict for, for example 1-64
    #[arg(long, value_name = "LIST", default_value = "1,2,4,8,16,32,64")]
    pub cpus: String,
    /// JSON instead of a table
    #[arg(long)]
    pub json: bool,
    /// How threads share CPUs: eevdf (as Linux), ideal (infinitely small slices at no cost), or auto: eevdf for what was
    /// recorded, ideal for a program that was written by hand
    #[arg(long, value_name = "MODEL", default_value = "auto")]
    pub model: String,
    /// How long a thread may go on while another wants its CPU [default: as recorded, else Linux's]
    #[arg(long, value_name = "TIME")]
    pub slice: Option<String>,
    /// What putting another thread on a CPU costs [default: as recorded]
    #[arg(long, value_name = "TIME")]
    pub switch_cost: Option<String>,
    /// From waking a thread to its first instruction on an idle CPU [default: as recorded, else as measured]
    #[arg(long, value_name = "TIME")]
    pub wake_latency: Option<String>,
    /// What waking a thread on an idle CPU takes of who wakes it [default: as measured if recorded on one CPU, else 0]
    #[arg(long, value_name = "TIME")]
    pub wake_cost: Option<String>,
    /// How long until an idle CPU that has not found a waiting thread looks again; 0: it takes one at once [default: the
    /// kernel's tick, where idle CPUs ask others by chance only]
    #[arg(long, value_name = "TIME")]
    pub idle_tick: Option<String>,
    /// CPU time that the program may use, as a cgroup's quota, for example 250%
    #[arg(long, value_name = "PERCENT")]
    pub quota: Option<String>,
    /// How many waits a device serves at once, for example disk=4 (may be repeated)
    #[arg(long, value_name = "NAME=N")]
    pub devices: Vec<String>,
    /// The same for devices that are not named: recorded, serial or unlimited
    #[arg(long, value_name = "HOW", default_value = "recorded")]
    pub io: String,
    /// Where the numbers begin that decide what the model leaves open
    #[arg(long, value_name = "N", default_value = "0")]
    pub seed: String,
    /// How many times each CPU count is run, with other decisions each time
    #[arg(long, value_name = "N", default_value = "5")]
    pub runs: String,
}

#[derive(Debug, Args)]
pub struct ExportArguments {
    /// A session or a program JSON; - reads a program from standard input [default: the newest *.lp of this folder]
    #[arg(value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// What to write: program (JSON, which all commands read); perfetto, firefox or chrome (what happened over time); pprof,
    /// speedscope, folded or svg (call stacks); dot (the longest paths); csv, ndjson or parquet (tables: FILE is a folder)
    #[arg(short, long, value_name = "FORMAT", default_value = "program")]
    pub format: String,
    /// CPU counts whose critical paths to write, for example 2,8,inf [default: 1,2,4,8,16,inf; folded and svg, which show
    /// one: CPU time instead]
    #[arg(long, value_name = "LIST")]
    pub cpus: Option<String>,
    /// Of csv, ndjson and parquet only this table, for example functions or intervals
    #[arg(long, value_name = "NAME")]
    pub table: Option<String>,
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

/// What has to be known about `view`.
const VIEW_HELP: &str = "\
The page is one file that needs neither network nor server. It holds all names of the recording and, with --sources, lines of \
the sources: give it to those who may see them.";

#[derive(Debug, Args)]
#[command(after_help = VIEW_HELP)]
pub struct ViewArguments {
    /// A session or a program JSON; - reads a program from standard input [default: the newest *.lp of this folder]
    #[arg(value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// Where to write [default: FILE with .html at its end]; - is standard output
    #[arg(short, long, value_name = "OUT.html")]
    pub output: Option<PathBuf>,
    /// CPU counts to predict for, for example 1,2,4-8,inf
    #[arg(long, value_name = "LIST", default_value = "1,2,4,8,16,inf")]
    pub cpus: String,
    /// Write the page, and open nothing
    #[arg(long)]
    pub no_open: bool,
    /// Put the source lines around functions and samples into the page
    #[arg(long)]
    pub sources: bool,
    /// Another recording of the same command, on another number of CPUs: its length is a point of the speed-up curve (may be
    /// repeated)
    #[arg(long, value_name = "FILE")]
    pub measured: Vec<PathBuf>,
    /// Replace OUT.html even if it is no page of longpole's
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
    /// A session or a program JSON; - reads a program from standard input [default: the newest *.lp of this folder]
    #[arg(value_name = "FILE")]
    pub file: Option<PathBuf>,
}

/// What scripts have to know about `validate`.
const VALIDATE_HELP: &str = "\
{cpus} in COMMAND stands for the number of CPUs: for programs that are told how many threads to make. Each number then \
has its own recording (longpole validate -- ./sort --threads {cpus}). Child processes of COMMAND are always recorded.
Exit code: 0, or 3 if an error is above --max-error; 1 something failed, also COMMAND itself.";

#[derive(Debug, Args)]
#[command(after_help = VALIDATE_HELP)]
pub struct ValidateArguments {
    /// CPU counts to measure, for example 1,2,4 [default: 1,2,4 ... up to the machine]
    #[arg(long, value_name = "LIST")]
    pub cpus: Option<String>,
    /// Runs on each number of CPUs
    #[arg(long, value_name = "N", default_value = "7")]
    pub runs: String,
    /// Recordings, in turn with the runs; the middle of what they predict is the prediction
    #[arg(long, value_name = "N", default_value = "3")]
    pub recordings: String,
    /// How many CPUs the recording is made on, or `each`: one recording for each number of CPUs, on that many
    #[arg(long, value_name = "N", default_value = "1")]
    pub record_on: String,
    /// Record on the largest number of CPUs, too, and take from there how much CPU time each function needs
    #[arg(long)]
    pub calibrate: bool,
    /// Exit with 3 if an error is above this, for example 5%
    #[arg(long, value_name = "PERCENT")]
    pub max_error: Option<String>,
    /// Keep the first recording here
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Replace FILE if it exists
    #[arg(long)]
    pub force: bool,
    /// JSON instead of a table
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub capture: CaptureArguments,
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
