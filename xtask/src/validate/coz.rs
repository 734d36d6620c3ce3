//! Two shapes of coz's own examples (Curtsinger and Berger, "Coz", 2015), with four answers compared: coz's estimates with a
//! run for each question, longpole's from one recording, those that follow from how the programs are built, and the measured
//! gain of really shortened functions.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use longpole_tests::run;

use crate::bench::Scratch;
use crate::command;
use crate::sample::{Sample, digits};
use crate::workspace::Workspace;

/// Parts of a function's work that are taken off, percent.
const OFF: [u32; 4] = [10, 20, 50, 100];
const LIMIT: Duration = Duration::from_secs(300);

struct Shape {
    source: &'static str,
    title: &'static str,
    /// Arguments: rounds and units.
    size: [&'static str; 2],
    /// Functions in the order of the program's arguments for percentages: name, text in the line of its work, and
    /// largest possible gain on two CPUs or more.
    functions: [(&'static str, &'static str, f64); 2],
}

const SHAPES: [Shape; 2] = [
    Shape {
        source: "toy.c",
        title: "toy: two threads side by side, 67 units of Slow for 64 of Fast",
        size: ["101", "5000000"],
        functions: [("Slow", "sink[0] = burn", 3.0 / 67.0), ("Fast", "sink[1] = burn", 0.0)],
    },
    Shape {
        source: "producer_consumer.c",
        title: "producer–consumer: 10 units of Consume for 7 of Produce",
        size: ["1511", "40000"],
        functions: [("Produce", "sink[0] = burn", 0.0), ("Consume", "sink[1] = burn", 0.3)],
    },
];

/// Compares both shapes of programs; `None` if coz is not installed.
///
/// # Errors
/// A program, coz or longpole fails.
pub fn compare(workspace: &Workspace, longpole: &Path, runs: usize) -> Result<Option<String>> {
    let Ok(known) = run(Command::new("coz").arg("--help"), LIMIT) else { return Ok(None) };
    if known.code != Some(0) {
        return Ok(None);
    }
    let scratch = Scratch::new(workspace, "coz")?;
    let mut text = format!(
        "## longpole and coz\n\nTwo of its example shapes, rebuilt. The numbers are how much shorter the run gets if \
         a function computes less by the percentage *off*. Built to: the gain that follows from the program's \
         construction (on two CPUs or more). longpole: from one \
         recording on all CPUs (`what-if --rank`).\ncoz: 0.2.2, `--end-to-end --fixed-line --fixed-speedup`, \
         one run for each question and one without a speed-up,\nmiddle of {runs}. Measured: the program with less \
         work in that function ({runs} runs, and as many of the unchanged program).\n\n\
         | program | function | off | built to | longpole | coz | measured |\n|---|---|---|---|---|---|---|\n"
    );
    let mut errors = [Sample::default(), Sample::default()];
    let mut spent = [0.0; 2];
    for shape in &SHAPES {
        eprintln!("{}", shape.title);
        let program = build(workspace, shape, &scratch)?;
        let start = Instant::now();
        let ours = ours(longpole, shape, &program, &scratch)?;
        spent[0] += start.elapsed().as_secs_f64();
        let start = Instant::now();
        let coz = coz(workspace, shape, &program, &scratch, runs)?;
        spent[1] += start.elapsed().as_secs_f64();
        let real = real(shape, &program, runs)?;
        for (of, (function, _, most)) in shape.functions.iter().enumerate() {
            for (at, off) in OFF.iter().enumerate() {
                let built = most.min(f64::from(*off) / 100.0) * 100.0;
                let answers = [ours[of][at], coz[of][at], real[of][at]];
                errors[0].push((answers[0] - answers[2]).abs());
                errors[1].push((answers[1] - answers[2]).abs());
                let [ours, coz, real] = answers.map(|gain| format!("{gain:.1} %"));
                let title = shape.title.split(':').next().unwrap_or_default();
                writeln!(
                    text,
                    "| {title} | {function} | {off} % | {built:.1} % | {ours} | {coz} | {real} |"
                )?;
            }
        }
    }
    let [ours, coz] = errors;
    write!(
        text,
        "\nDifference from the measured gain in points of percent, middle (smallest–largest): longpole {ours}, coz {coz}. \
         All\nanswers took longpole {} s with its two runs, coz {} s.",
        digits(spent[0]),
        digits(spent[1])
    )?;
    Ok(Some(text))
}

/// Builds the program with each function's work on a line of its own, and with debug information that coz 0.2.2 can
/// read.
fn build(workspace: &Workspace, shape: &Shape, scratch: &Scratch) -> Result<PathBuf> {
    let program = scratch.0.join(shape.source.trim_end_matches(".c"));
    let mut compile = Command::new("cc");
    compile.args(["-O2", "-g", "-gdwarf-4", "-gno-variable-location-views", "-DBURN_IN_CALLER", "-w", "-o"]);
    compile.arg(&program).arg(source(workspace, shape)).args(["-pthread", "-ldl"]);
    command::good(&mut compile, LIMIT)?;
    Ok(program)
}

fn source(workspace: &Workspace, shape: &Shape) -> PathBuf {
    workspace.root.join("tests/workloads").join(shape.source)
}

type Gains = [[f64; OFF.len()]; 2];

/// Gains that longpole predicts from one recording, percent.
fn ours(longpole: &Path, shape: &Shape, program: &Path, scratch: &Scratch) -> Result<Gains> {
    let file = scratch.0.join("coz.lp");
    let mut record = Command::new(longpole);
    record.args(["record", "--force", "-o"]).arg(&file).arg("--").arg(program).args(shape.size);
    command::good(&mut record, LIMIT)?;
    let cpus = std::thread::available_parallelism().map_or(2, usize::from).max(2);
    let mut rank = Command::new(longpole);
    rank.args(["what-if", "--rank", "--json", "--cpus", &cpus.to_string()]).arg(&file);
    let ended = run(&mut rank, LIMIT)?;
    let value: serde_json::Value = serde_json::from_str(&ended.stdout)
        .with_context(|| format!("longpole what-if failed: {}", ended.stderr.trim()))?;
    let ranking = &value["rank"][0];
    let time = ranking["time_ns"].as_f64().context("no time")?;
    let rows = ranking["functions"].as_array().context("no functions")?;
    let mut gains = Gains::default();
    for (gains, (function, ..)) in gains.iter_mut().zip(&shape.functions) {
        let row = rows.iter().find(|row| row["function"] == *function);
        for (gain, off) in gains.iter_mut().zip(OFF) {
            let ns = row.and_then(|row| row[format!("gain_{off}_ns")].as_f64());
            *gain = ns.unwrap_or(0.0) / time * 100.0;
        }
    }
    Ok(gains)
}

/// Gains from coz's experiments, percent.
fn coz(
    workspace: &Workspace,
    shape: &Shape,
    program: &Path,
    scratch: &Scratch,
    runs: usize,
) -> Result<Gains> {
    let code = std::fs::read_to_string(source(workspace, shape))?;
    let mut gains = Gains::default();
    for (gains, (_, text, _)) in gains.iter_mut().zip(&shape.functions) {
        let line = code.lines().position(|line| line.contains(text)).context("the line is gone")? + 1;
        let line = format!("{}:{line}", source(workspace, shape).display());
        *gains = in_turns(runs, |off| experiment(shape, program, scratch, &line, off))?;
    }
    Ok(gains)
}

/// Gains for each of [`OFF`], percent, from `runs` times without and with the change, in turns.
fn in_turns(runs: usize, time: impl Fn(u32) -> Result<f64>) -> Result<[f64; OFF.len()]> {
    let mut plain = Sample::default();
    let mut times = OFF.map(|_| Sample::default());
    for _ in 0..runs {
        plain.push(time(0)?);
        for (times, off) in times.iter_mut().zip(OFF) {
            times.push(time(off)?);
        }
    }
    Ok(times.map(|time| (plain.median() - time.median()) / plain.median() * 100.0))
}

/// Time of a run with this virtual speed-up, as coz computes it: without the delays that coz inserted. Sometimes a run
/// ends without an experiment; the next run then makes it.
fn experiment(shape: &Shape, program: &Path, scratch: &Scratch, line: &str, off: u32) -> Result<f64> {
    const ATTEMPTS: usize = 5;
    for _ in 0..ATTEMPTS {
        if let Some(duration) = attempt(shape, program, scratch, line, off)? {
            return Ok(duration);
        }
    }
    bail!("coz made no experiment on {line} in {ATTEMPTS} runs")
}

fn attempt(shape: &Shape, program: &Path, scratch: &Scratch, line: &str, off: u32) -> Result<Option<f64>> {
    let profile = scratch.0.join("profile.coz");
    // coz appends to an existing profile.
    drop(std::fs::remove_file(&profile));
    let mut coz = Command::new("coz");
    coz.args(["run", "--end-to-end", "--fixed-line", line, "--fixed-speedup", &off.to_string(), "-o"]);
    coz.arg(&profile).arg("---").arg(program).args(shape.size);
    command::good(&mut coz, LIMIT)?;
    let text = std::fs::read_to_string(&profile).context("coz wrote no profile")?;
    let experiment = text.lines().find(|line| line.starts_with("experiment\t"));
    let duration =
        experiment.and_then(|line| line.split('\t').find_map(|field| field.strip_prefix("duration=")));
    Ok(duration.and_then(|duration| duration.parse().ok()))
}

/// Measured gains with less work in the function, percent.
fn real(shape: &Shape, program: &Path, runs: usize) -> Result<Gains> {
    let mut gains = Gains::default();
    for (of, gains) in gains.iter_mut().enumerate() {
        *gains = in_turns(runs, |off| {
            let mut percent = ["100".to_owned(), "100".to_owned()];
            percent[of] = (100 - off).to_string();
            command::seconds(Command::new(program).args(shape.size).args(percent), LIMIT)
        })?;
    }
    Ok(gains)
}
