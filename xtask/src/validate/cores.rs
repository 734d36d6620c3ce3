//! Programs of many threads on a machine of many CPUs: `longpole validate` of each, recorded on one CPU and on two; and
//! predictions from attaching to programs that repeat themselves.
//!
//! Most machines that run the tests have two CPUs; these are the rows for 4, 8 and 16. With `--longpole`, nothing is compiled
//! on the large machine: a binary compiled on another machine of the same kind is enough.

use std::fmt::Write;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use longpole_tests::workload;
use serde_json::Value;

use super::speedups::{Recorded, validation};
use crate::bench::Scratch;
use crate::sample::Sample;
use crate::workspace::Workspace;

/// Least number of CPUs, which must be more than the machine for tests has.
const FEWEST: usize = 4;

/// Sixteen threads where a program can have any number; each takes some hundred milliseconds to a second on one CPU.
const PROGRAMS: [Case; 24] = [
    (What::Built("quicksort.c"), &["2"], None, "parallel quick sort (2001, 4.1)"),
    (What::Built("nlargest.c"), &["16", "600"], None, "the n largest (2001, 4.2)"),
    (What::Built("billing.c"), &["15000000"], None, "billing gateway without I/O (2001, 4.3)"),
    (What::Built("convoy.c"), &["40", "16", "1000000"], Some(0), "one hot lock"),
    (What::Built("readers.c"), &["16", "300"], Some(1), "readers and writers"),
    (What::Built("phases.c"), &["16", "50"], Some(1), "barrier phases with imbalance"),
    (What::Built("pipeline.c"), &["401", "4", "200000"], Some(0), "pipeline with bounded buffers"),
    (What::Built("pool.c"), &["16", "1500"], Some(1), "thread pool with futures"),
    (What::Built("work_stealing"), &["16", "400000000"], Some(1), "work stealing (rayon)"),
    (What::Built("stealing.c"), &["16", "400000000"], Some(1), "work stealing that yields"),
    (What::Built("openmp.c"), &["30"], None, OPENMP),
    (What::Built("handoff.c"), &["997", "16", "200000"], Some(0), "hand-off chain"),
    (What::Built("forkjoin.c"), &["11", "15", "2000000"], Some(0), "fork and join with one long branch"),
    (What::Built("forkjoin.c"), &["5", "40", "2000000"], Some(0), "fork and join: 41 threads"),
    (What::Built("spinblock.c"), &["16", "1500"], Some(1), "adaptive and spin locks"),
    (What::Built("zoo/shapes.c"), &["lock", "2000"], Some(1), "a lock held half of the time, 4 threads"),
    (What::Built("zoo/hash_table.cpp"), &["1500", "16"], Some(0), "hash table with one lock"),
    (What::Built("zoo/shared_mutex.cpp"), &["5000"], Some(0), "`std::shared_mutex`"),
    (What::Go("zoo/work.go"), &["tiles", "3"], Some(1), "Go: 200 goroutines"),
    (What::Go("zoo/work.go"), &["mutex", "1200"], Some(1), "Go: a hot mutex, 4 goroutines"),
    (What::Shell, &["pigz -p16 -9 -c"], None, "pigz -9, 16 threads"),
    (What::Shell, &["zstd -q -T16 -12 -B512KiB -c"], None, "zstd -12, 16 threads"),
    (What::Shell, &["xz -T16 -1 --block-size=512KiB -c"], None, "xz -1, 16 threads"),
    (What::Shell, &["pbzip2 -p16 -b3 -c"], None, "pbzip2, 16 threads"),
];

/// CPU counts of the table.
const COLUMNS: [u64; 4] = [2, 4, 8, 16];

/// An answer about a recording that takes longer fails.
const ANSWER: Duration = Duration::from_secs(120);
/// Factor for the repetitions of a program that longpole attaches to.
const LONGER: u64 = 20;
/// Seconds for which such a program is recorded, and its CPUs.
const WINDOW: f64 = 2.0;
const ATTACHED_ON: &str = "0,1";

/// The program with as many threads as CPUs: each number of CPUs has its own recordings.
const OPENMP: &str = "OpenMP loops, static and dynamic";

/// How a program is started: what to run, its arguments, the index of the argument that is its number of repetitions,
/// and its description.
type Case = (What, &'static [&'static str], Option<usize>, &'static str);

#[derive(Clone, Copy)]
enum What {
    /// A workload.
    Built(&'static str),
    /// A workload in Go, whose runtime would make no more threads than the recording has CPUs.
    Go(&'static str),
    /// A command installed on the machine that compresses a file.
    Shell,
}

/// How much of it is measured.
#[derive(clap::Args)]
pub struct Amount {
    /// For `cores`, on a machine that is lent by the minute: begin no other program after this time
    #[arg(long)]
    minutes: Option<u64>,
    /// For `cores`: programs whose figures are kept in target/cores are not run again
    #[arg(long)]
    resume: bool,
}

/// Makes the table of all programs.
///
/// # Errors
/// The machine is too small, something does not compile, or longpole fails.
pub fn compare(workspace: &Workspace, longpole: &Path, runs: usize, amount: &Amount) -> Result<String> {
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    if cpus < FEWEST && !amount.resume {
        bail!("this needs a machine of {FEWEST} CPUs or more; here are {cpus}");
    }
    let scratch = Scratch::new(workspace, "cores")?;
    let data = scratch.0.join("data");
    let mut code = std::fs::read(longpole).context("cannot read a file to compress")?;
    code.truncate(8 << 20);
    std::fs::write(&data, code)?;
    // Recordings and figures are kept, so that another prediction can be compared with the measurements.
    let kept = workspace.target.join("cores");
    std::fs::create_dir_all(&kept)?;
    let mut table = Table::new(runs);
    let start = Instant::now();
    for (recorded_on, case) in [1, 2].into_iter().flat_map(|on| PROGRAMS.iter().map(move |case| (on, case))) {
        let recorded = if case.3 == OPENMP { Recorded::Each } else { Recorded::On(recorded_on) };
        if recorded == Recorded::Each && recorded_on > 1 {
            continue;
        }
        let row = format!("{}, recorded on {recorded_on}", case.3);
        let name: String = case.3.chars().filter(char::is_ascii_alphanumeric).collect();
        let figures = kept.join(format!("{name}-{recorded_on}.json"));
        let document = if amount.resume && figures.exists() {
            std::fs::read(&figures).map_err(Into::into).and_then(|text| Ok(serde_json::from_slice(&text)?))
        } else if amount.minutes.is_some_and(|limit| start.elapsed() >= Duration::from_secs(60 * limit)) {
            table.not_begun.push(row);
            continue;
        } else {
            eprintln!("{:3} s  {row}", start.elapsed().as_secs());
            let kept = figures.with_extension("lp");
            command(case, &data)
                .and_then(|command| validation(longpole, &command, runs, recorded, Some(&kept)))
        };
        // A program that fails has no row and is named: the machine may not be available again.
        match document {
            Ok(document) => {
                std::fs::write(&figures, document.to_string())?;
                let on = if recorded == Recorded::Each { "each".to_owned() } else { recorded_on.to_string() };
                table.row(case.3, &on, recorded_on - 1, &document);
                if let (Recorded::On(2), Some(long)) = (recorded, longer(case)?) {
                    match attached(longpole, &long, &figures.with_extension("attached.lp"), document) {
                        Ok(document) => table.row(case.3, "2, attached", 2, &document),
                        Err(error) => table.failed.push(format!("{}, attached: {error:#}", case.3)),
                    }
                }
            }
            Err(error) => table.failed.push(format!("{row}: {error:#}")),
        }
    }
    table.text()
}

/// Command line of a program that repeats itself for long enough to outlive its recording; `None` for other programs.
fn longer(case: &Case) -> Result<Option<Vec<String>>> {
    let Some(place) = case.2 else { return Ok(None) };
    // The program's own arguments are the last ones of the command line.
    let mut command = command(case, Path::new(""))?;
    let place = command.len() - case.1.len() + place;
    let times = command.get_mut(place).context("no such argument")?;
    *times = (times.parse::<u64>().context("an argument that is no number")? * LONGER).to_string();
    Ok(Some(command))
}

/// Replaces the predictions in a document by those from attaching to the program; the measurements stay.
fn attached(longpole: &Path, program: &[String], file: &Path, mut document: Value) -> Result<Value> {
    super::attached::record(longpole, program, &[], ATTACHED_ON, WINDOW, file)?;
    let counts = COLUMNS.map(|cpus| cpus.to_string()).join(",");
    let mut predict = Command::new(longpole);
    predict.args(["predict", "--json", "--cpus", &format!("1,{counts}")]).arg(file);
    let answer = crate::command::json(&mut predict, ANSWER)?;
    let time = |cpus: u64| {
        let mut rows = answer["results"].as_array()?.iter();
        rows.find(|row| row["cpus"].as_u64() == Some(cpus))?["time_ns"].as_f64()
    };
    let one = time(1).context("no predicted time")?;
    for row in document["results"].as_array_mut().into_iter().flatten() {
        let (cpus, measured) = (row["cpus"].as_u64(), row["measured_speedup"].as_f64());
        let (Some(time), Some(measured)) = (cpus.and_then(time), measured) else { continue };
        let predicted = one / time;
        row["predicted_speedup"] = predicted.into();
        row["error"] = ((predicted - measured).abs() / measured).into();
        row["scheduling_error"] = Value::Null;
    }
    Ok(document)
}

/// Command line of a program.
fn command(&(program, arguments, _, _): &Case, data: &Path) -> Result<Vec<String>> {
    let built = |source: &str| -> Result<String> { Ok(workload::build(source)?.display().to_string()) };
    let mut command = match program {
        What::Built(source) => vec![built(source)?],
        What::Go(source) => vec!["env".into(), "GOMAXPROCS=16".into(), built(source)?],
        What::Shell => {
            let script = format!("exec {} {} > /dev/null", arguments.join(" "), data.display());
            return Ok(vec!["sh".into(), "-c".into(), script]);
        }
    };
    command.extend(arguments.iter().map(|text| (*text).to_owned()));
    Ok(command)
}

/// The rows of the table, and sums over them.
struct Table {
    text: String,
    /// Errors of all rows: launched on one CPU, launched on two, attached.
    errors: [Sample; 3],
    own_errors: [Sample; 3],
    failed: Vec<String>,
    /// Programs that were not begun because the time of `--minutes` was over.
    not_begun: Vec<String>,
}

impl Table {
    fn new(runs: usize) -> Self {
        let text = format!(
            "## A machine of many CPUs\n\nPrograms of 16 threads, where a program can have any number, on a larger \
             machine. Each is recorded on one CPU\nand on two (`longpole validate --runs {runs} --record-on N -- PROGRAM`), and \
             run without longpole on 1, 2, 4 …\nCPUs, in turn. A cell is the measured speed-up (the middle of the rounds), the \
             predicted one (the middle of three\nrecordings), and the error. *CPU time* is by how much the CPU time \
             of the same work grows on the largest number of CPUs. A recording on fewer CPUs does not contain that \
             growth. The simulation's own errors below are those of predictions that contain it.\n*Attached*: \
             recorded once with `record -p` for {WINDOW} s while it ran on two \
             CPUs, {LONGER} times as long.\n\n\
             | program | recorded on | 2 CPUs | 4 | 8 | 16 | CPU time |\n|---|---|---|---|---|---|---|\n"
        );
        Self {
            text,
            errors: Default::default(),
            own_errors: Default::default(),
            failed: Vec::new(),
            not_begun: Vec::new(),
        }
    }

    /// Adds a row of measured and predicted speed-ups on each number of CPUs; `on` and `group` say how it was recorded.
    fn row(&mut self, what: &str, on: &str, group: usize, document: &Value) {
        // Writing to a string cannot fail.
        let _ = write!(self.text, "| {what} | {on} |");
        let rows = document["results"].as_array().map_or(&[][..], Vec::as_slice);
        for cpus in COLUMNS {
            let Some(row) = rows.iter().find(|row| row["cpus"].as_u64() == Some(cpus)) else {
                self.text.push_str(" – |");
                continue;
            };
            let number = |name: &str| row[name].as_f64().unwrap_or(f64::NAN);
            self.errors[group].push(number("error") * 100.0);
            let own = row["scheduling_error"].as_f64();
            own.into_iter().for_each(|own| self.own_errors[group].push(own * 100.0));
            let _ = write!(
                self.text,
                " {:.2} / {:.2}, {:.0} % |",
                number("measured_speedup"),
                number("predicted_speedup"),
                number("error") * 100.0,
            );
        }
        let inflation = rows.last().and_then(|row| row["inflation"].as_f64()).unwrap_or(f64::NAN);
        let _ = writeln!(self.text, " {inflation:.2}× |");
    }

    fn text(mut self) -> Result<String> {
        for (on, (errors, own)) in ["Recorded on one CPU", "Recorded on two CPUs", "Attached on two CPUs"]
            .iter()
            .zip(self.errors.iter().zip(&self.own_errors))
        {
            let count = errors.len();
            write!(
                self.text,
                "\n{on}: errors in percent, middle (smallest–largest) of {count} rows: {errors}"
            )?;
            if own.len() == 0 {
                self.text.push('.');
            } else {
                write!(self.text, "; the simulation's own: {own}.")?;
            }
        }
        if !self.failed.is_empty() {
            write!(self.text, "\n\nFailed:\n- {}", self.failed.join("\n- "))?;
        }
        if !self.not_begun.is_empty() {
            write!(self.text, "\n\nNo time was left for:\n- {}", self.not_begun.join("\n- "))?;
        }
        Ok(self.text)
    }
}
