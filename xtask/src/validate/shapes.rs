//! Programs of many shapes: `longpole validate` of each.

use std::fmt::Write;
use std::path::Path;

use anyhow::{Context, Result};
use longpole_tests::workload;

use super::speedups::{Errors, Recorded, validation};

/// Source, arguments, what it is. Arguments make a run of some hundred milliseconds on one CPU.
const PROGRAMS: [(&str, &[&str], &str); 19] = [
    ("quicksort.c", &["3"], "parallel quick sort (2001, 4.1)"),
    ("nlargest.c", &["8", "900"], "the n largest (2001, 4.2)"),
    ("billing.c", &[], "billing gateway without I/O (2001, 4.3)"),
    ("billing_io.c", &["8", "65536", "48"], "billing gateway with sockets, disk and requests (1999, 5.2)"),
    ("watchdog.c", &[], "watchdog (2001, Fig. 20)"),
    ("weights.c", &["7"], "weight above one (2001, Fig. 7)"),
    ("weights.c", &["8"], "weight below zero (2001, Fig. 8)"),
    ("convoy.c", &["300", "3", "1000000"], "one hot lock"),
    ("readers.c", &["4", "1200"], "readers and writers"),
    ("phases.c", &["4", "240"], "barrier phases with imbalance"),
    ("pipeline.c", &["401", "4", "200000"], "pipeline with bounded buffers"),
    ("pool.c", &["4", "1500"], "thread pool with futures"),
    ("work_stealing", &["4", "800000000"], "work stealing (rayon)"),
    ("stealing.c", &["4", "400000000"], "work stealing that yields"),
    ("openmp.c", &["40"], OPENMP),
    ("handoff.c", &["997", "3", "200000"], "hand-off chain"),
    ("forkjoin.c", &["11", "5", "8000000"], "fork and join with one long branch"),
    ("forkjoin.c", &["5", "40", "2000000"], "oversubscription: 41 threads"),
    ("spinblock.c", &["4", "6000"], "adaptive and spin locks"),
];

/// It has as many threads as CPUs, and each number of them its own recording.
const OPENMP: &str = "OpenMP loops, static and dynamic";

/// The table over all of them.
///
/// # Errors
/// longpole fails on one.
pub fn compare(longpole: &Path, runs: usize) -> Result<String> {
    let mut text = format!(
        "## Programs of many shapes\n\nEach is recorded on one CPU (`longpole validate --runs {runs} -- PROGRAM`), and run \
         without longpole on 1, 2, 4 … CPUs, in turn.\nMeasured and predicted are the middle (smallest–largest of single \
         rounds and of three recordings). *CPU time* is how much\nmore of it the same work takes there (caches, memory, \
         hardware threads), which a recording on one CPU does not hold. The\nlast column is the error with that put into the \
         prediction: the simulation's own. OpenMP starts as many threads as there\nare CPUs, so each number of them has \
         recordings of its own.\n\n\
         | program | CPUs | measured | predicted | error | CPU time | simulation's error |\n|---|---|---|---|---|---|---|\n"
    );
    let mut errors = Errors::default();
    for (source, arguments, what) in PROGRAMS {
        let program = workload::build(source)?;
        eprintln!("{what}");
        let mut command = vec![program.display().to_string()];
        command.extend(arguments.iter().map(|text| (*text).to_owned()));
        let recorded = if what == OPENMP { Recorded::Each } else { Recorded::On(1) };
        let document =
            validation(longpole, &command, runs, recorded, None).with_context(|| what.to_owned())?;
        for row in document["results"].as_array().into_iter().flatten().skip(1) {
            writeln!(text, "| {what} | {} |", errors.cells(row))?;
        }
        for finding in document["findings"].as_array().into_iter().flatten() {
            if finding["kind"] == "busy_machine" {
                eprintln!("  {}", finding["text"].as_str().unwrap_or_default());
            }
        }
    }
    write!(
        text,
        "\n{}\n\
         The papers: at most 5.2 on five programs of SPLASH-2, 9.6 on the others without spinning, 61.8 with it, 6.1 on the\n\
         billing gateway.",
        errors.told()
    )?;
    Ok(text)
}
