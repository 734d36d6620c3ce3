//! Programs of many shapes, with `longpole validate` for each.

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::attached;
use super::speedups::{Recorded, cells, number, rows, told_errors, validation};
use crate::measure::{Measurement, Need, Runs, Setting, Side, built};
use crate::sample::Sample;

/// What else is compared for a program.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Nothing else.
    Once,
    /// The program repeats the same work, so that a part of its run is like the whole. So longpole also attaches to it.
    Repeats,
    /// As `Repeats`, and the program has as many OpenMP threads as CPUs. So each number of CPUs needs its own
    /// recordings.
    OpenMp,
}

use Kind::{Once, OpenMp, Repeats};

/// Programs with their arguments. With these, programs that repeat themselves run for about four seconds on one CPU.
const PROGRAMS: [(Kind, &str, &str, &str); 19] = [
    (Once, "quicksort.c", "3", "parallel quick sort (2001, 4.1)"),
    (Once, "nlargest.c", "8 900", "the n largest (2001, 4.2)"),
    (Once, "billing.c", "", "billing gateway without I/O (2001, 4.3)"),
    (Once, "billing_io.c", "8 65536 48", "billing gateway with sockets, disk and requests (1999, 5.2)"),
    (Once, "watchdog.c", "", "watchdog (2001, Fig. 20)"),
    (Once, "weights.c", "7", "weight above one (2001, Fig. 7)"),
    (Once, "weights.c", "8", "weight below zero (2001, Fig. 8)"),
    (Repeats, "convoy.c", "600 3 1000000", "one hot lock"),
    (Repeats, "readers.c", "4 9000", "readers and writers"),
    (Repeats, "phases.c", "4 1400", "barrier phases with imbalance"),
    (Repeats, "pipeline.c", "1601 4 200000", "pipeline with bounded buffers"),
    (Repeats, "pool.c", "4 11000", "thread pool with futures"),
    (Repeats, "work_stealing", "4 4000000000", "work stealing (rayon)"),
    (Repeats, "stealing.c", "4 2400000000", "work stealing that yields"),
    (OpenMp, "openmp.c", "150", "OpenMP loops, static and dynamic"),
    (Repeats, "handoff.c", "9997 3 200000", "hand-off chain"),
    (Repeats, "forkjoin.c", "35 5 8000000", "fork and join with one long branch"),
    (Repeats, "forkjoin.c", "27 40 2000000", "oversubscription: 41 threads"),
    (Repeats, "spinblock.c", "4 32000", "adaptive and spin locks"),
];

/// Length of an attached recording, in seconds.
const WINDOW: f64 = 3.0;
/// Number of attached recordings for each speed-up. Their median counts.
const RECORDINGS: usize = 3;

pub const SHAPES: Measurement = Measurement {
    name: "shapes",
    about: "Speed-ups of programs of many shapes",
    title: "Programs of many shapes",
    needs: &[Need::Recorder],
    runs: Runs::Inside(7),
    sides: |setting| {
        let side = |(kind, source, arguments, what)| {
            Side::new(what, move |_| compared(setting, kind, source, arguments))
        };
        Ok(PROGRAMS.map(side).into())
    },
    says: "Each is recorded on one CPU (`longpole validate --runs {runs} -- PROGRAM`), and run without longpole on \
           1, 2, 4 … CPUs, in turn.\nMeasured and predicted are the middle (smallest–largest of single rounds and of \
           three recordings). *CPU time* is by how much the CPU time of the same work grows there (caches, memory, \
           hardware threads). A recording on one CPU does not contain that growth.\n*Simulation's error* is the \
           error of a prediction that contains it. *Attached*: programs that repeat themselves, also\nrecorded by \
           `record -p` for 3 s while they run on one CPU, and what is predicted from that. OpenMP starts as \
           many\nthreads as there are CPUs, so each number of them has recordings of its own.",
    heads: "program | CPUs | measured | predicted | error | CPU time | simulation's error | attached | error",
    rows: Some(|results| {
        let all = results.values().flat_map(|(what, document)| rows(document).map(move |row| (what, row)));
        let line = |(what, row)| {
            let attached = match attached_error(row) {
                Some((speedups, error)) => format!("{speedups} | {error:.1} %"),
                None => "– | –".to_owned(),
            };
            Ok(format!("{what} | {} | {attached}", cells(row)))
        };
        all.map(line).collect()
    }),
    ends: |results| {
        let all = results.values().flat_map(|(_, document)| rows(document));
        let errors: Sample = all.filter_map(|row| Some(attached_error(row)?.1)).collect();
        Ok(format!(
            "{}\nAttached, of the {} rows: {errors}. Spin locks without probes leave a trace only\nwhere a thread spins, and \
             are not put back as mutexes, read-write locks and barriers are.\nThe papers: at most 5.2 on five programs of \
             SPLASH-2, 9.6 on the others without spinning, 61.8 with it, 6.1 on the\nbilling gateway.",
            told_errors(results),
            errors.len()
        ))
    },
    ..Measurement::NEW
};

/// The answer of `longpole validate`. Its rows get the speed-ups that are predicted from attaching.
fn compared(setting: &Setting, kind: Kind, source: &str, arguments: &str) -> Result<Value> {
    let mut command = vec![built(source)?];
    command.extend(arguments.split_whitespace().map(str::to_owned));
    let recorded = if kind == OpenMp { Recorded::Each } else { Recorded::On(1) };
    let mut document = validation(setting, &command, recorded, None)?;
    for finding in document["findings"].as_array().into_iter().flatten() {
        if finding["kind"] == "busy_machine" {
            eprintln!("  {}", finding["text"].as_str().unwrap_or_default());
        }
    }
    if kind == Once {
        return Ok(document);
    }
    let file = setting.file("attached.lp");
    for row in document["results"].as_array_mut().into_iter().flatten().skip(1) {
        let cpus = row["cpus"].as_u64().context("a row without CPUs")?;
        let mut speedups = Vec::new();
        for _ in 0..RECORDINGS {
            let threads = (kind == OpenMp).then_some(cpus);
            attached::record(setting, &command, threads, ("0", WINDOW), &file)?;
            speedups.extend(attached::predicted(setting, &[cpus], &file)?);
        }
        row["attached"] = json!(speedups);
    }
    Ok(document)
}

/// The speed-ups predicted from attaching, and their error in percent.
fn attached_error(row: &Value) -> Option<(Sample, f64)> {
    let speedups: Sample = row["attached"].as_array()?.iter().filter_map(Value::as_f64).collect();
    let measured = number(row, "measured_speedup");
    let error = (measured - speedups.median()).abs() / measured * 100.0;
    Some((speedups, error))
}
