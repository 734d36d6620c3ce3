//! The ten programs in Tables 1 and 2 of the 1999 paper, built from the sources of Splash-4 and compared with the
//! paper's figures.
//!
//! The sources are not part of longpole: `git clone https://github.com/OdnetninI/Splash-4`, then `./x validate splash
//! --sources Splash-4`. The programs are built with barriers made of a mutex and a condition variable, as in SPLASH-2.
//! Splash-4's own barriers spin on an atomic counter.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::speedups::{LIMIT, cells, rows, told_errors};
use crate::command;
use crate::measure::{Measurement, Need, Runs, Setting, Side};

/// Compiler flags on make's command line. There they replace the flags in a program's Makefile (radiosity's include
/// folders), so these are repeated here.
const C_FLAGS: &str = "CFLAGS=-O2 -pthread -D_XOPEN_SOURCE=500 -D_POSIX_C_SOURCE=200112 -std=c11 -g \
                       -fno-strict-aliasing -I./glibdumb -I./glibps";
const M4_FLAGS: &str = "M4FLAGS=-Ulen -Uindex -P";
const PLACE: &str = "https://github.com/OdnetninI/Splash-4";

/// The parameters of Water.
const WATER: &str = "./WATER-SPATIAL <<END\n1.5e-18 8000 3 6\n-1 3000 3 0\n{cpus} 6.212752\nEND";

/// A program: name, folder, a command that runs there with `{cpus}` threads, and the data set if it differs from the
/// paper's. Last come the paper's predicted and real speed-ups on 2, 4 and 8 processors. Where the paper has two rows,
/// the row with spinning is used.
type Program = (&'static str, &'static str, &'static str, &'static str, [(f64, f64); 3]);

#[rustfmt::skip]
const PROGRAMS: [Program; 10] = [
    ("Ocean", "ocean-contiguous_partitions", "./OCEAN-CONT -p{cpus} -n514", "",
        [(1.95, 1.97), (3.75, 3.87), (6.47, 6.65)]),
    ("Water-spatial", "water-spatial", WATER, "8000 molecules, 3 steps",
        [(1.97, 1.99), (3.86, 3.95), (7.27, 7.67)]),
    ("FFT", "fft", "./FFT -p{cpus} -m22", "",
        [(1.52, 1.55), (2.06, 2.14), (2.57, 2.62)]),
    ("Radix", "radix", "./RADIX -p{cpus} -n16777216 -r1024", "",
        [(1.99, 2.00), (3.98, 3.99), (7.91, 7.79)]),
    ("LU", "lu-contiguous_blocks", "./LU-CONT -p{cpus} -n1536 -b16", "1536 x 1536",
        [(1.82, 1.79), (3.08, 3.15), (4.72, 4.82)]),
    ("Raytrace", "raytrace", "./RAYTRACE -p{cpus} -a16 -m64 inputs/teapot.env", "teapot, 16 rays a pixel",
        [(1.67, 1.73), (2.19, 2.69), (3.38, 3.73)]),
    ("Radiosity", "radiosity", "./RADIOSITY -p {cpus} -batch -en 0.5", "-en 0.5",
        [(1.74, 1.91), (3.09, 3.72), (5.25, 6.20)]),
    ("Barnes", "barnes", "./BARNES < inputs/n16384-p{cpus}", "16384 bodies",
        [(1.72, 1.95), (2.85, 3.34), (4.28, 5.77)]),
    ("Cholesky", "cholesky", "./CHOLESKY -p{cpus} inputs/tk29.O", "",
        [(1.37, 1.62), (1.98, 2.31), (2.42, 2.89)]),
    ("FMM", "fmm", "./FMM < inputs/input.{cpus}.16384", "16384 bodies",
        [(1.58, 1.90), (1.99, 3.50), (1.98, 5.19)]),
];

pub const SPLASH: Measurement = Measurement {
    name: "splash",
    about: "The SPLASH programs of the 1999 paper",
    title: "SPLASH",
    needs: &[Need::Sources(PLACE), Need::Recorder],
    runs: Runs::Inside(7),
    sides: |setting| {
        let sources = setting.wishes.sources.as_ref().context("no sources")?;
        let suite = sources.join("Splash-4");
        ensure!(
            suite.is_dir(),
            "no Splash-4 in {}: git clone {PLACE} and give its folder with --sources",
            sources.display()
        );
        let side = |(name, folder, script, ..): Program| {
            let folder = suite.join(folder);
            Side::new(name, move |_| validation(setting, &folder, script)).may_fail()
        };
        Ok(PROGRAMS.map(side).into())
    },
    says: "The ten programs of the 1999 paper's Tables 1 and 2, from the Splash-4 sources with barriers that block. \
           As in the paper\neach number of threads has its own recordings, made on one CPU: three, in turn with \
           {runs} measured runs. Measured and predicted are\nthe middle (smallest–largest of single rounds and \
           recordings). The last columns are the paper's (for programs with two rows, the row with spinning locks), \
           on its machine with its data sets. *data* says where our data sets differ. *CPU time* is by how much the \
           CPU time of the same work grows with that many threads at once. A recording on one CPU does not contain \
           that growth. *Simulation's error* is the error of a prediction that contains it.",
    heads: "program | data | CPUs | measured | predicted | error | CPU time | simulation's error | 1999: real | predicted | error",
    rows: Some(|results| {
        let mut lines = Vec::new();
        for (side, (name, _, _, data, paper)) in results.sides.iter().zip(PROGRAMS) {
            for row in side.last().into_iter().flat_map(rows) {
                let place = [2, 4, 8].iter().position(|&cpus| row["cpus"] == cpus);
                let paper = place.map_or_else(
                    || "– | – | –".to_owned(),
                    |place| {
                        let (predicted, real) = paper[place];
                        let error = (real - predicted).abs() / real * 100.0;
                        format!("{real:.2} | {predicted:.2} | {error:.1} %")
                    },
                );
                lines.push(format!("{name} | {data} | {} | {paper}", cells(row)));
            }
        }
        Ok(lines)
    }),
    ends: |results| Ok(told_errors(results)),
    ..Measurement::NEW
};

/// Builds a program, and runs `longpole validate` on it.
fn validation(setting: &Setting, folder: &Path, script: &str) -> Result<Value> {
    let mut make = Command::new("make");
    make.arg("-C").arg(folder).args([C_FLAGS, M4_FLAGS]);
    command::must(&mut make, "building a program of Splash-4 (it needs make, m4 and a C compiler)")?;
    // FMM makes hundreds of thousands of lock operations at a time, which do not fit into a thread's usual ring.
    let mut validate = setting.call("validate --json --ring-size 64M --runs");
    validate.current_dir(folder).arg(setting.runs.to_string());
    // The shell executes the program in its own process (`exec`), because only the started process is recorded and not
    // its children.
    command::json(validate.args(["--", "sh", "-c", &format!("exec {script}")]), LIMIT)
}
