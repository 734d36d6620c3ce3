//! Arguments of the commands that record.

use super::value::{self, List, Maybe};
use crate::plan::per::Per;
use crate::plan::trigger::Condition;
use capture::interpose::InterposeMode;
use capture::target::CpuList;
use clap::builder::NonEmptyStringValueParser;
use clap::{Args, ValueHint};
use engine::event::CallGraph;
use engine::report::Cpus;
use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// Help below the options of `record`, mainly for scripts.
const RECORD_EXIT_CODES: &str = "\
^C goes to COMMAND, too, as to every program of a terminal: usually COMMAND and its children end, and the recording ends with COMMAND. If COMMAND goes on, a second ^C ends the recording. To end only the recording by ^C, start the program yourself and attach with -p.
Exit code: that of COMMAND, or its signal, if COMMAND ended while recorded; otherwise 0. A COMMAND that has not \
ended when the recording does (-d, a second ^C) runs on without longpole, and the summary names its PID.
1 something failed, 2 the command line makes no sense, 77 a permission or kernel feature is missing (see \
`longpole doctor`), 125 to 127 COMMAND could not be started.";

#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("probes").args(["exact", "functions"]).multiple(true))]
pub struct CaptureArguments {
    /// Attach to these running processes, by number or by name
    #[arg(short, long, value_name = "PID|NAME")]
    pub pid: Vec<String>,
    /// Include child processes of -p, too; with a COMMAND, whose children are always included, also children that outlive it
    #[arg(long, conflicts_with = "no_children")]
    pub children: bool,
    /// Leave out child processes of a COMMAND
    #[arg(long)]
    pub no_children: bool,
    /// Count calls instead of sampling them, by breakpoints (uprobes) in functions, and in the C library's where locks cannot
    /// be recorded otherwise; the program's code contains the breakpoints during the recording
    #[arg(long)]
    pub exact: bool,
    /// The default: no breakpoint is written into the program
    #[arg(long, hide = true, conflicts_with_all = ["functions", "exact"])]
    pub no_uprobes: bool,
    /// Count the calls of the function of this name (an unambiguous part is enough), or of all functions with a matching name
    /// (hash*), by breakpoints only in these functions, unless --exact is given, too (may be repeated)
    #[arg(long, value_name = "NAME|GLOB", value_parser = NonEmptyStringValueParser::new())]
    pub functions: Vec<String>,
    /// With --exact: never probe the function of this name, or functions with a matching name (may be repeated)
    #[arg(long, requires = "probes", value_name = "NAME|GLOB", value_parser = NonEmptyStringValueParser::new())]
    pub exclude: Vec<String>,
    /// Functions of this name, or with a matching name, only wait: time in them counts as waiting (may be repeated)
    #[arg(long, value_name = "NAME|GLOB", value_parser = NonEmptyStringValueParser::new())]
    pub spin: Vec<String>,
    /// With --exact: probe at most this many functions, the largest first; a command with more than 1,024 begins without
    /// probes unless this or --functions is given [default: 4096]
    #[arg(long, requires = "probes", value_name = "N", value_parser = value::count::<usize>)]
    pub max_functions: Option<usize>,
    /// With --exact: remove the probes of functions called more often than this per second [default: 10000]
    #[arg(long, requires = "probes", value_name = "N", value_parser = value::count::<u64>)]
    pub max_rate: Option<u64>,
    /// What recording may cost, as a share of the target's CPU time; expensive functions lose their probes,
    /// samples become rarer; none: no limit
    #[arg(long, value_name = "SHARE", default_value = "2%", value_parser = value::budget)]
    pub overhead: Maybe<u32>,
    /// Take the stacks of running threads this often per second, on each CPU; 0: never [default: 499, or
    /// fewer to keep to --overhead; validate: 0]
    #[arg(short = 'F', long = "freq", visible_alias = "rate", value_name = "HZ", value_parser = value::frequency)]
    pub frequency: Option<u32>,
    /// How stacks are read: fp (frame pointers), dwarf (unwind tables, more expensive), or auto: as a program's binaries need
    #[arg(long, value_name = "HOW", default_value = "auto", hide_possible_values = true, value_parser = value::word(&[
        ("auto", CallGraph::Auto), ("fp", CallGraph::Fp), ("dwarf", CallGraph::Dwarf)]))]
    pub call_graph: CallGraph,
    /// With --exact: record calls only down to this depth of probed functions
    #[arg(long, requires = "probes", value_name = "N", value_parser = value::count::<u32>)]
    pub depth: Option<u32>,
    /// Size of each ring buffer, for example 8M [default: 8M]
    #[arg(long, value_name = "SIZE", value_parser = value::ring_bytes)]
    pub ring_size: Option<u32>,
    /// Record the command's locks from inside it, by a library put before its libc: auto, always or never
    #[arg(long, value_name = "WHEN", default_value = "auto", hide_possible_values = true, value_parser = value::word(&[
        ("auto", InterposeMode::Auto), ("always", InterposeMode::Always), ("never", InterposeMode::Never)]))]
    pub interpose: InterposeMode,
    /// Let the command run on these CPUs only, for example 0 or 0-3
    #[arg(long, value_name = "CPUS", value_parser = value::cpus_to_run_on)]
    pub cpu_list: Option<CpuList>,
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
    /// Where to write [default: longpole-NAME-PID-TIME.lp, with a number until the name is free]
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::AnyPath, value_parser = value::recording())]
    pub output: Option<PathBuf>,
    /// Replace FILE if it exists
    #[arg(long)]
    pub force: bool,
    /// Record each request, so that `report --per` shows where slow requests spend more time than fast ones (may be repeated).
    /// NAME: each call of this function is a request, as with --functions; socket, socket:PORT or socket:unix: each message to the
    /// program, until its answer begins; usdt:PROVIDER:BEGIN,END: from one USDT probe to another in a thread (END|END: either);
    /// otel: each trace that the program publishes as OpenTelemetry's thread context
    #[arg(long, value_name = "NAME|socket|usdt|otel", group = "probes", value_parser = value::per)]
    pub per: Vec<Per>,
    /// Stop after this long, for example 10s [default: when the target ends, or on ^C]; a COMMAND that has not
    /// ended by then runs on
    #[arg(short, long, value_name = "TIME", value_parser = value::duration)]
    pub duration: Option<Duration>,
    /// Record COMMAND on the largest of these numbers of CPUs, then run it on each number with samples only: which work costs
    /// more on more CPUs, and by how much. {cpus} in COMMAND stands for the number
    #[arg(long, value_name = "LIST", conflicts_with_all = ["pid", "duration"], value_parser = value::cpu_counts)]
    pub cpus: Option<List<u32>>,
    /// Keep only the last part of this length, for example 60s, in at most 256 MiB of memory. longpole writes it to FILE when the
    /// recording ends, and on SIGUSR2 or a --trigger to FILE, the next time under a free name
    #[arg(long, value_name = "TIME", conflicts_with_all = ["cpus", "max_size"], value_parser = value::duration)]
    pub ring: Option<Duration>,
    /// With --ring: write the part when a condition was true for a time, for example 'parallelism<1.5 for 2s' or 'lock_wait>20% for 5s'
    /// (may be repeated). parallelism: threads that run at a time; lock_wait: the share of threads' time asleep in futex calls
    #[arg(long, value_name = "COND", value_parser = value::condition)]
    pub trigger: Vec<Condition>,
    /// Keep FILE below this size, for example 2G, without the oldest part
    #[arg(long, value_name = "SIZE", conflicts_with = "cpus", value_parser = value::file_bytes)]
    pub max_size: Option<u64>,
    /// With --cpus: runs on each number of CPUs
    #[arg(long, value_name = "N", requires = "cpus", default_value = "3", value_parser = value::count::<u32>)]
    pub runs: u32,
    #[command(flatten)]
    pub capture: CaptureArguments,
}

/// Help below the options of `top`.
const TOP_HELP: &str = "\
^C on the screen, like q, ends only longpole: COMMAND, or the process of -p, runs on. With --once and --batch there is no screen, and ^C goes to COMMAND, too, which usually ends. ? on the screen shows its keys.";

#[derive(Debug, Args)]
#[command(after_help = TOP_HELP)]
pub struct TopArguments {
    /// CPU counts to predict for
    #[arg(long, value_name = "LIST", default_value = "1,2,4,8,16,inf", value_parser = value::cpu_list)]
    pub cpus: List<Cpus>,
    /// Time between two screens
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = value::duration)]
    pub refresh: Duration,
    /// Length of the sliding window
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = value::duration)]
    pub window: Duration,
    /// Show requests (key r): how many a second, their latencies, and what the slow ones spend more time on than the fast half.
    /// NAME, socket, socket:PORT, socket:unix, usdt:PROVIDER:BEGIN,END or otel, as in `record --per`
    #[arg(long, value_name = "NAME|socket|usdt|otel", group = "probes", value_parser = value::per)]
    pub per: Option<Per>,
    /// Detach and leave after this long, for example 10m [default: when you leave]
    #[arg(short, long, value_name = "TIME", value_parser = value::duration)]
    pub duration: Option<Duration>,
    /// Print one screen of a whole window and end; needs no terminal
    #[arg(long, group = "printed")]
    pub once: bool,
    /// Print one screen after the other; needs no terminal
    #[arg(long, group = "printed")]
    pub batch: bool,
    /// With --once and --batch: JSON, an object a line; with --per, the requests of each report are the next line
    #[arg(long, requires = "printed")]
    pub json: bool,
    /// Serve metrics (/metrics, OpenMetrics) and a page at this address, for example 9464, which is 127.0.0.1:9464; needs no terminal
    #[arg(long, value_name = "ADDRESS", conflicts_with = "once", value_parser = value::address)]
    pub listen: Option<SocketAddr>,
    /// File with the token for the page, and, on an address that others can reach, for the metrics [default: a new token]
    #[arg(long, value_name = "FILE", requires = "listen")]
    pub listen_token: Option<PathBuf>,
    #[command(flatten)]
    pub capture: CaptureArguments,
}

/// Help below the options of `validate`, mainly for scripts.
const VALIDATE_HELP: &str = "\
{cpus} in COMMAND stands for the number of CPUs: for programs with an option for the number of threads. Each number then has its own recording (longpole validate -- ./sort --threads {cpus}). Child processes of COMMAND are always recorded.
Exit code: 0, or 3 if an error is above --max-error; 1 something failed, also COMMAND itself.";

#[derive(Debug, Args)]
#[command(after_help = VALIDATE_HELP)]
pub struct ValidateArguments {
    /// CPU counts to measure, for example 1,2,4 [default: 1,2,4 ... up to the machine]
    #[arg(long, value_name = "LIST", value_parser = value::cpu_counts)]
    pub cpus: Option<List<u32>>,
    /// Runs on each number of CPUs
    #[arg(long, value_name = "N", default_value = "7", value_parser = value::count::<usize>)]
    pub runs: usize,
    /// Recordings, in turn with the runs; the prediction is the middle of their predictions
    #[arg(long, value_name = "N", default_value = "3", value_parser = value::count::<usize>)]
    pub recordings: usize,
    /// Record on this many CPUs, or `each`: one recording for each number of CPUs, on that many
    #[arg(long, value_name = "N", default_value = "1", value_parser = value::count_or_each)]
    pub record_on: Maybe<u32>,
    /// Exit with 3 if an error is above this, for example 5%
    #[arg(long, value_name = "PERCENT", value_parser = value::share)]
    pub max_error: Option<f64>,
    /// Keep the first recording here
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::AnyPath, value_parser = value::recording())]
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

#[cfg(test)]
mod tests {
    use crate::cli::args::Arguments;
    use clap::Parser as _;

    #[test]
    fn options_about_probes_are_accepted_with_requests_that_have_probes() {
        let parsed = |option: &[&str]| {
            let line = ["longpole", "record"].into_iter().chain(option.iter().copied());
            Arguments::try_parse_from(line.chain(["--max-rate", "9", "--", "true"])).map(drop)
        };
        assert!(parsed(&["--per", "usdt:shop:a,b"]).is_ok() && parsed(&["--exact"]).is_ok());
        let error = parsed(&[]).expect_err("nothing has probes").to_string();
        assert!(error.contains("--exact|--functions"), "{error}");
    }
}
