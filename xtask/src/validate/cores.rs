//! Programs of many threads on a machine with many CPUs: `longpole validate` for each, recorded on one CPU and on two.
//! Also predictions from attaching to programs that repeat themselves.
//!
//! Most machines that run the tests have two CPUs. This validation gives the rows for 4, 8 and 16 CPUs. With
//! `--longpole`, nothing is compiled on the large machine: a binary that was compiled on another machine of the same
//! kind is used.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::attached;
use super::speedups::{Recorded, number, predict, rows, validation};
use crate::measure::{Measurement, Need, Results, Runs, Setting, Side, built};
use crate::sample::Sample;

/// Smallest number of CPUs: more than the usual test machine has.
const FEWEST: usize = 4;

/// A program: how it starts, its arguments, the index of the argument that is its number of repetitions, and its
/// description.
type Case = (What, &'static str, Option<usize>, &'static str);

#[derive(Clone, Copy)]
enum What {
    /// A workload.
    Built(&'static str),
    /// A workload in Go. Its runtime would otherwise make only as many threads as the recording has CPUs.
    Go(&'static str),
    /// An installed command that compresses a file.
    Shell,
}

/// Programs with sixteen threads, if the number of threads can be chosen. Each takes from some hundred milliseconds to
/// a second on one CPU.
const PROGRAMS: [Case; 24] = [
    (What::Built("quicksort.c"), "2", None, "parallel quick sort (2001, 4.1)"),
    (What::Built("nlargest.c"), "16 600", None, "the n largest (2001, 4.2)"),
    (What::Built("billing.c"), "15000000", None, "billing gateway without I/O (2001, 4.3)"),
    (What::Built("convoy.c"), "40 16 1000000", Some(0), "one hot lock"),
    (What::Built("readers.c"), "16 300", Some(1), "readers and writers"),
    (What::Built("phases.c"), "16 50", Some(1), "barrier phases with imbalance"),
    (What::Built("pipeline.c"), "401 4 200000", Some(0), "pipeline with bounded buffers"),
    (What::Built("pool.c"), "16 1500", Some(1), "thread pool with futures"),
    (What::Built("work_stealing"), "16 400000000", Some(1), "work stealing (rayon)"),
    (What::Built("stealing.c"), "16 400000000", Some(1), "work stealing that yields"),
    (What::Built("openmp.c"), "30", None, OPENMP),
    (What::Built("handoff.c"), "997 16 200000", Some(0), "hand-off chain"),
    (What::Built("forkjoin.c"), "11 15 2000000", Some(0), "fork and join with one long branch"),
    (What::Built("forkjoin.c"), "5 40 2000000", Some(0), "fork and join: 41 threads"),
    (What::Built("spinblock.c"), "16 1500", Some(1), "adaptive and spin locks"),
    (What::Built("zoo/shapes.c"), "lock 2000", Some(1), "a lock held half of the time, 4 threads"),
    (What::Built("zoo/hash_table.cpp"), "1500 16", Some(0), "hash table with one lock"),
    (What::Built("zoo/shared_mutex.cpp"), "5000", Some(0), "`std::shared_mutex`"),
    (What::Go("zoo/work.go"), "tiles 3", Some(1), "Go: 200 goroutines"),
    (What::Go("zoo/work.go"), "mutex 1200", Some(1), "Go: a hot mutex, 4 goroutines"),
    (What::Shell, "pigz -p16 -9 -c", None, "pigz -9, 16 threads"),
    (What::Shell, "zstd -q -T16 -12 -B512KiB -c", None, "zstd -12, 16 threads"),
    (What::Shell, "xz -T16 -1 --block-size=512KiB -c", None, "xz -1, 16 threads"),
    (What::Shell, "pbzip2 -p16 -b3 -c", None, "pbzip2, 16 threads"),
];
/// The program with as many threads as CPUs. Each number of CPUs has recordings of its own.
const OPENMP: &str = "OpenMP loops, static and dynamic";

/// The CPU counts of the table.
const COLUMNS: [u64; 4] = [2, 4, 8, 16];
/// Factor for the repetitions of a program to which longpole attaches.
const LONGER: u64 = 20;
/// Length of an attached recording in seconds, and the CPUs of the program.
const WINDOW: f64 = 2.0;
const ATTACHED_ON: &str = "0,1";
/// Name of the answers from a launched recording. The next one is for an attached recording.
const LAUNCHED: &str = "launched";
const ATTACHED: &str = "attached";

pub const CORES: Measurement = Measurement {
    name: "cores",
    about: "The same on a machine of many CPUs, for programs of many threads",
    title: "A machine of many CPUs",
    needs: &[Need::Asked, Need::Recorder],
    runs: Runs::Inside(7),
    sides: |setting| {
        let cpus = std::thread::available_parallelism().map_or(1, usize::from);
        let is_large = cpus >= FEWEST || setting.wishes.resume;
        ensure!(is_large, "this needs a machine of {FEWEST} CPUs or more; here are {cpus}");
        let mut code = std::fs::read(&setting.longpole).context("cannot read a file to compress")?;
        code.truncate(8 << 20);
        std::fs::write(setting.file("data"), code)?;
        // Recordings and figures are kept, so that later predictions can be compared with the same measurements.
        std::fs::create_dir_all(kept(setting))?;
        let start = Instant::now();
        let mut sides = Vec::new();
        for (on, case) in [1, 2].into_iter().flat_map(|on| PROGRAMS.iter().map(move |case| (on, case))) {
            let label = match (case.3, on) {
                (OPENMP, 1) => format!("{OPENMP} | each"),
                (OPENMP, _) => continue,
                (what, on) => format!("{what} | {on}"),
            };
            // If a program fails, the table has no row for it but names it: the machine may not be available a second
            // time.
            sides.push(Side::new(label, move |_| compared(setting, on, case, start)).may_fail());
        }
        Ok(sides)
    },
    says: "Programs of 16 threads, where a program can have any number, on a larger machine. Each is recorded on one \
           CPU\nand on two (`longpole validate --runs {runs} --record-on N -- PROGRAM`), and run without longpole on \
           1, 2, 4 …\nCPUs, in turn. A cell is the measured speed-up (the middle of the rounds), the predicted one \
           (the middle of three\nrecordings), and the error. *CPU time* is by how much the CPU time of the same work \
           grows on the largest number of CPUs. A recording on fewer CPUs does not contain that growth. The \
           simulation's own errors below are those of predictions that contain it.\n*Attached*: recorded once with \
           `record -p` for 2 s while it ran on two CPUs, 20 times as long.",
    heads: "program | recorded on | 2 CPUs | 4 | 8 | 16 | CPU time",
    rows: Some(|results| {
        let mut lines = Vec::new();
        for (label, documents) in results.values() {
            lines.push(format!("{label} | {}", cells(&documents[LAUNCHED])));
            if documents[ATTACHED].is_object() {
                lines.push(format!("{label}, attached | {}", cells(&documents[ATTACHED])));
            }
        }
        Ok(lines)
    }),
    ends: |results| {
        let mut text = [
            errors(results, "Recorded on one CPU", LAUNCHED, |label| !label.ends_with("| 2")),
            errors(results, "Recorded on two CPUs", LAUNCHED, |label| label.ends_with("| 2")),
            errors(results, "Attached on two CPUs", ATTACHED, |_| true),
        ]
        .join("\n");
        for (label, documents) in results.values() {
            if let Some(why) = documents[ATTACHED].as_str() {
                text.push_str(&format!("\n\nFailed: {label}, attached: {why}"));
            }
        }
        Ok(text)
    },
    ..Measurement::NEW
};

fn kept(setting: &Setting) -> PathBuf {
    setting.workspace.target.join("cores")
}

/// Compares a program's measurements with the answers from a launched recording and from an attached one. If there is
/// no attached recording, the result says why.
fn compared(setting: &Setting, on: usize, case: &Case, start: Instant) -> Result<Value> {
    let name: String = case.3.chars().filter(char::is_ascii_alphanumeric).collect();
    let figures = kept(setting).join(format!("{name}-{on}.json"));
    let document: Value = if setting.wishes.resume && figures.exists() {
        serde_json::from_slice(&std::fs::read(&figures)?)?
    } else {
        let is_time_over = |limit| start.elapsed() >= Duration::from_secs(60 * limit);
        ensure!(!setting.wishes.minutes.is_some_and(is_time_over), "no time was left");
        let recorded = if case.3 == OPENMP { Recorded::Each } else { Recorded::On(on) };
        let recording = figures.with_extension("lp");
        validation(setting, &command(case, &setting.file("data"))?, recorded, Some(&recording))?
    };
    std::fs::write(&figures, document.to_string())?;
    let mut documents = json!({ LAUNCHED: document });
    if let (2, Some(place)) = (on, case.2) {
        let file = figures.with_extension("attached.lp");
        let attached = longer(case, place)
            .and_then(|program| attached(setting, &program, &file, documents[LAUNCHED].clone()));
        documents[ATTACHED] = attached.unwrap_or_else(|error| json!(format!("{error:#}")));
    }
    Ok(documents)
}

/// Command line of a program that repeats itself and runs longer than its recording.
fn longer(case: &Case, place: usize) -> Result<Vec<String>> {
    // The program's arguments are the last ones.
    let mut command = command(case, Path::new(""))?;
    let place = command.len() - case.1.split(' ').count() + place;
    let times = command.get_mut(place).context("no such argument")?;
    *times = (times.parse::<u64>().context("an argument that is no number")? * LONGER).to_string();
    Ok(command)
}

/// Replaces the predictions in a document by those from attaching to the program. The measurements stay.
fn attached(setting: &Setting, program: &[String], file: &Path, mut document: Value) -> Result<Value> {
    attached::record(setting, program, None, (ATTACHED_ON, WINDOW), file)?;
    let predicted = attached::predicted(setting, &COLUMNS, file)?;
    for row in document["results"].as_array_mut().into_iter().flatten() {
        let place = COLUMNS.iter().position(|cpus| row["cpus"].as_u64() == Some(*cpus));
        if let Some(place) = place.filter(|_| row["measured_speedup"].is_number()) {
            predict(row, predicted[place]);
        }
    }
    Ok(document)
}

/// Command line of a program.
fn command(&(program, arguments, ..): &Case, data: &Path) -> Result<Vec<String>> {
    let mut command = match program {
        What::Built(source) => vec![built(source)?],
        What::Go(source) => vec!["env".into(), "GOMAXPROCS=16".into(), built(source)?],
        What::Shell => {
            let script = format!("exec {arguments} {} > /dev/null", data.display());
            return Ok(vec!["sh".into(), "-c".into(), script]);
        }
    };
    command.extend(arguments.split(' ').map(str::to_owned));
    Ok(command)
}

/// The cells with measured and predicted speed-ups for each number of CPUs.
fn cells(document: &Value) -> String {
    let cell = |cpus: u64| {
        let row = rows(document).find(|row| row["cpus"].as_u64() == Some(cpus));
        row.map_or("–".to_owned(), |row| {
            let [measured, predicted] =
                ["measured_speedup", "predicted_speedup"].map(|name| number(row, name));
            format!("{measured:.2} / {predicted:.2}, {:.0} %", number(row, "error") * 100.0)
        })
    };
    let inflation = rows(document).last().map_or(f64::NAN, |row| number(row, "inflation"));
    format!("{} | {inflation:.2}×", COLUMNS.map(cell).join(" | "))
}

/// The errors of these answers in the table, as a sentence.
fn errors(results: &Results, name: &str, which: &str, wanted: fn(&str) -> bool) -> String {
    let documents = results.values().filter(|(label, _)| wanted(label));
    let in_table = |row: &&Value| row["cpus"].as_u64().is_some_and(|cpus| COLUMNS.contains(&cpus));
    let all: Vec<&Value> = documents.flat_map(|(_, all)| rows(&all[which])).filter(in_table).collect();
    let errors: Sample = all.iter().map(|row| number(row, "error") * 100.0).collect();
    let own = all.iter().filter_map(|row| Some(row["scheduling_error"].as_f64()? * 100.0));
    let own: Sample = own.collect();
    let own = if own.len() == 0 { String::new() } else { format!("; the simulation's own: {own}") };
    let count = errors.len();
    format!("{name}: errors in percent, middle (smallest–largest) of {count} rows: {errors}{own}.")
}
