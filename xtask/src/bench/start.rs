//! CPU time of a start of `longpole record`: recordings of programs that do nothing, from longpole's first instruction to
//! its last, with its helpers.

use std::fmt::Write;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use longpole_tests::Background;

use super::Scratch;
use super::sample::Sample;
use crate::command;
use crate::workspace::Workspace;

const SAMPLES: usize = 7;
/// The kernel counts the time of ended children in steps of 10 ms: each sample is the mean of this many runs.
const RUNS: u32 = 10;
const LIMIT: Duration = Duration::from_secs(60);

/// Launches and attaches, several times each.
///
/// # Errors
/// Something cannot be run, or longpole fails.
pub fn measure(workspace: &Workspace, longpole: &Path) -> Result<String> {
    let scratch = Scratch::new(workspace, "start")?;
    let record = |options: &[&str]| {
        let mut record = Command::new(longpole);
        record.args(["record", "--force", "-o"]).arg(scratch.0.join("start.lp"));
        record.args(options);
        record
    };
    let target = Background::start(Command::new("sleep").arg("600")).context("cannot start the program")?;
    let pid = target.pid().to_string();
    let mut text = String::from("## What a start takes\n\n");
    write!(
        text,
        "Recordings of programs that do nothing, without probes on functions: CPU time of longpole and its helpers, the \
         program's own included, and time until the end. The target is 80 ms of CPU time. {SAMPLES} times the mean of \
         {RUNS}.\n\n| recording | CPU ms | ms |\n|---|---|---|"
    )?;
    let cases: [(&str, &[&str]); 3] = [
        ("`record -- true`", &["--", "true"]),
        ("`record -- python3 -c pass`", &["--", "python3", "-c", "pass"]),
        ("`record -p PID --duration 0.1`, of a `sleep`", &["-p", &pid, "--duration", "0.1"]),
    ];
    for (name, options) in cases {
        let (mut cpu, mut wall) = (Sample::default(), Sample::default());
        // The first start after a boot would measure the machine.
        run(&mut record(options))?;
        for _ in 0..SAMPLES {
            let (before, began) = (children_ms()?, Instant::now());
            for _ in 0..RUNS {
                run(&mut record(options))?;
            }
            cpu.push((children_ms()? - before) / f64::from(RUNS));
            wall.push(began.elapsed().as_secs_f64() * 1e3 / f64::from(RUNS));
        }
        write!(text, "\n| {name} | {cpu} | {wall} |")?;
    }
    Ok(text)
}

fn run(record: &mut Command) -> Result<()> {
    command::well(longpole_tests::run(record, LIMIT)?, "longpole record")?;
    Ok(())
}

/// CPU time of all children that have ended, and of their children, ms.
fn children_ms() -> Result<f64> {
    /// The kernel's unit in /proc/self/stat, on all machines.
    const TICK_MS: f64 = 10.0;
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    let (_, after_name) = stat.rsplit_once(')').context("no name in /proc/self/stat")?;
    // Fields 16 and 17, where the state is the third (proc(5)).
    let times = after_name.split_whitespace().skip(13).take(2);
    let ticks: f64 =
        times.map(str::parse::<f64>).sum::<Result<f64, _>>().context("no times in /proc/self/stat")?;
    Ok(ticks * TICK_MS)
}
