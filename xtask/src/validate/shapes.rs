//! Programs of many shapes: `longpole validate` of each.

use std::fmt::Write;
use std::path::Path;

use anyhow::{Context, Result};
use longpole_tests::workload;
use serde_json::Value;

use super::attached;
use super::speedups::{Errors, Recorded, validation};
use crate::bench::Scratch;
use crate::sample::Sample;
use crate::workspace::Workspace;

/// A program. Its arguments make it run for about four seconds on one CPU if it repeats itself.
struct Shape {
    source: &'static str,
    arguments: &'static [&'static str],
    what: &'static str,
    /// Whether the program does the same again and again: then a part of its run is like all of it, so longpole also
    /// attaches to it.
    repeats: bool,
    /// Whether the program has as many OpenMP threads as CPUs, so that each number of CPUs needs its own recordings.
    openmp: bool,
}

const fn once(source: &'static str, arguments: &'static [&'static str], what: &'static str) -> Shape {
    Shape { source, arguments, what, repeats: false, openmp: false }
}

const fn repeating(source: &'static str, arguments: &'static [&'static str], what: &'static str) -> Shape {
    Shape { repeats: true, ..once(source, arguments, what) }
}

const SHAPES: [Shape; 19] = [
    once("quicksort.c", &["3"], "parallel quick sort (2001, 4.1)"),
    once("nlargest.c", &["8", "900"], "the n largest (2001, 4.2)"),
    once("billing.c", &[], "billing gateway without I/O (2001, 4.3)"),
    once(
        "billing_io.c",
        &["8", "65536", "48"],
        "billing gateway with sockets, disk and requests (1999, 5.2)",
    ),
    once("watchdog.c", &[], "watchdog (2001, Fig. 20)"),
    once("weights.c", &["7"], "weight above one (2001, Fig. 7)"),
    once("weights.c", &["8"], "weight below zero (2001, Fig. 8)"),
    repeating("convoy.c", &["600", "3", "1000000"], "one hot lock"),
    repeating("readers.c", &["4", "9000"], "readers and writers"),
    repeating("phases.c", &["4", "1400"], "barrier phases with imbalance"),
    repeating("pipeline.c", &["1601", "4", "200000"], "pipeline with bounded buffers"),
    repeating("pool.c", &["4", "11000"], "thread pool with futures"),
    repeating("work_stealing", &["4", "4000000000"], "work stealing (rayon)"),
    repeating("stealing.c", &["4", "2400000000"], "work stealing that yields"),
    Shape { openmp: true, ..repeating("openmp.c", &["150"], "OpenMP loops, static and dynamic") },
    repeating("handoff.c", &["9997", "3", "200000"], "hand-off chain"),
    repeating("forkjoin.c", &["35", "5", "8000000"], "fork and join with one long branch"),
    repeating("forkjoin.c", &["27", "40", "2000000"], "oversubscription: 41 threads"),
    repeating("spinblock.c", &["4", "32000"], "adaptive and spin locks"),
];

/// Seconds for which longpole is attached to a program.
const WINDOW: f64 = 3.0;

/// Makes the table of all programs.
///
/// # Errors
/// longpole fails on a program.
pub fn compare(workspace: &Workspace, longpole: &Path, runs: usize) -> Result<String> {
    let scratch = Scratch::new(workspace, "shapes")?;
    let mut text = format!(
        "## Programs of many shapes\n\nEach is recorded on one CPU (`longpole validate --runs {runs} -- PROGRAM`), and run \
         without longpole on 1, 2, 4 … CPUs, in turn.\nMeasured and predicted are the middle (smallest–largest of single \
         rounds and of three recordings). *CPU time* is by how much the CPU time of the same work grows there \
         (caches, memory, hardware threads). A recording on one CPU does not contain that growth.\n*Simulation's \
         error* is the error of a prediction that contains it. *Attached*: programs that repeat themselves, \
         also\nrecorded by `record -p` for {} s while \
         they run on one CPU, and what is predicted from that. OpenMP starts as many\nthreads as there are CPUs, so each \
         number of them has recordings of its own.\n\n\
         | program | CPUs | measured | predicted | error | CPU time | simulation's error | attached | error |\n\
         |---|---|---|---|---|---|---|---|---|\n",
        WINDOW
    );
    let mut errors = Errors::default();
    let mut attached_errors = Sample::default();
    for shape in &SHAPES {
        let what = shape.what;
        eprintln!("{what}");
        let program = workload::build(shape.source)?;
        let mut command = vec![program.display().to_string()];
        command.extend(shape.arguments.iter().map(|text| (*text).to_owned()));
        let recorded = if shape.openmp { Recorded::Each } else { Recorded::On(1) };
        let document =
            validation(longpole, &command, runs, recorded, None).with_context(|| what.to_owned())?;
        for row in document["results"].as_array().into_iter().flatten().skip(1) {
            let attached = match shape.repeats {
                true => attached_cells(longpole, &scratch.0, &command, shape, row, &mut attached_errors)?,
                false => "– | –".to_owned(),
            };
            writeln!(text, "| {what} | {} | {attached} |", errors.cells(row))?;
        }
        for finding in document["findings"].as_array().into_iter().flatten() {
            if finding["kind"] == "busy_machine" {
                eprintln!("  {}", finding["text"].as_str().unwrap_or_default());
            }
        }
    }
    write!(
        text,
        "\n{}\nAttached, of the {} rows: {attached_errors}. Spin locks without \
         probes leave a trace only\nwhere a thread spins, and are not put back as mutexes, read-write locks and barriers \
         are.\n\
         The papers: at most 5.2 on five programs of SPLASH-2, 9.6 on the others without spinning, 61.8 with it, 6.1 on the\n\
         billing gateway.",
        errors.told(),
        attached_errors.len()
    )?;
    Ok(text)
}

/// A row's cells for attaching: the predicted speed-up, and its error.
fn attached_cells(
    longpole: &Path,
    folder: &Path,
    command: &[String],
    shape: &Shape,
    row: &Value,
    errors: &mut Sample,
) -> Result<String> {
    let cpus = row["cpus"].as_u64().context("a row without CPUs")?;
    let threads = shape.openmp.then(|| ("OMP_NUM_THREADS", cpus.to_string()));
    let file = folder.join("attached.lp");
    let speedups = attached::speedups(longpole, command, threads.as_slice(), cpus, WINDOW, &file)?;
    let (measured, predicted) = (row["measured_speedup"].as_f64().unwrap_or(f64::NAN), speedups.median());
    let error = (measured - predicted).abs() / measured * 100.0;
    errors.push(error);
    Ok(format!("{speedups} | {error:.1} %"))
}
