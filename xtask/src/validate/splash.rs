//! The ten programs of the 1999 paper's Tables 1 and 2, from the sources of Splash-4, compared with the paper's figures.
//!
//! The sources are not part of longpole: `git clone https://github.com/OdnetninI/Splash-4`, then
//! `./x validate splash --sources Splash-4`. They are built with barriers of a mutex and a condition variable, as in
//! SPLASH-2, instead of barriers that spin on an atomic counter.

use std::fmt::Write;
use std::path::Path;
use std::process::Command;

use anyhow::{Result, bail};
use serde_json::Value;

use super::speedups::{Errors, LIMIT};
use crate::command;

/// Flags for make's command line, where they replace flags that a program's Makefile adds (include folders of
/// radiosity).
const C_FLAGS: &str = "CFLAGS=-O2 -pthread -D_XOPEN_SOURCE=500 -D_POSIX_C_SOURCE=200112 -std=c11 -g \
                       -fno-strict-aliasing -I./glibdumb -I./glibps";
const M4_FLAGS: &str = "M4FLAGS=-Ulen -Uindex -P";

struct Program {
    name: &'static str,
    folder: &'static str,
    /// A line of shell, run in the program's folder; `{cpus}` is the number of threads. The shell must execute the
    /// program, because the process that was started is recorded, not its children.
    script: &'static str,
    /// The data set, if it differs from that of the paper.
    data: &'static str,
    /// The paper's predicted and real speed-ups on 2, 4 and 8 processors; of two rows, the one with spinning.
    paper: [(f64, f64); 3],
}

const PROGRAMS: [Program; 10] = [
    Program {
        name: "Ocean",
        folder: "ocean-contiguous_partitions",
        script: "exec ./OCEAN-CONT -p{cpus} -n514",
        data: "",
        paper: [(1.95, 1.97), (3.75, 3.87), (6.47, 6.65)],
    },
    Program {
        name: "Water-spatial",
        folder: "water-spatial",
        script: "exec ./WATER-SPATIAL <<END\n1.5e-18 8000 3 6\n-1 3000 3 0\n{cpus} 6.212752\nEND",
        data: "8000 molecules, 3 steps",
        paper: [(1.97, 1.99), (3.86, 3.95), (7.27, 7.67)],
    },
    Program {
        name: "FFT",
        folder: "fft",
        script: "exec ./FFT -p{cpus} -m22",
        data: "",
        paper: [(1.52, 1.55), (2.06, 2.14), (2.57, 2.62)],
    },
    Program {
        name: "Radix",
        folder: "radix",
        script: "exec ./RADIX -p{cpus} -n16777216 -r1024",
        data: "",
        paper: [(1.99, 2.00), (3.98, 3.99), (7.91, 7.79)],
    },
    Program {
        name: "LU",
        folder: "lu-contiguous_blocks",
        script: "exec ./LU-CONT -p{cpus} -n1536 -b16",
        data: "1536 x 1536",
        paper: [(1.82, 1.79), (3.08, 3.15), (4.72, 4.82)],
    },
    Program {
        name: "Raytrace",
        folder: "raytrace",
        script: "exec ./RAYTRACE -p{cpus} -a16 -m64 inputs/teapot.env",
        data: "teapot, 16 rays a pixel",
        paper: [(1.67, 1.73), (2.19, 2.69), (3.38, 3.73)],
    },
    Program {
        name: "Radiosity",
        folder: "radiosity",
        script: "exec ./RADIOSITY -p {cpus} -batch -en 0.5",
        data: "-en 0.5",
        paper: [(1.74, 1.91), (3.09, 3.72), (5.25, 6.20)],
    },
    Program {
        name: "Barnes",
        folder: "barnes",
        script: "exec ./BARNES < inputs/n16384-p{cpus}",
        data: "16384 bodies",
        paper: [(1.72, 1.95), (2.85, 3.34), (4.28, 5.77)],
    },
    Program {
        name: "Cholesky",
        folder: "cholesky",
        script: "exec ./CHOLESKY -p{cpus} inputs/tk29.O",
        data: "",
        paper: [(1.37, 1.62), (1.98, 2.31), (2.42, 2.89)],
    },
    Program {
        name: "FMM",
        folder: "fmm",
        script: "exec ./FMM < inputs/input.{cpus}.16384",
        data: "16384 bodies",
        paper: [(1.58, 1.90), (1.99, 3.50), (1.98, 5.19)],
    },
];

/// Builds and compares all ten.
///
/// # Errors
/// The sources are not there or do not compile, or longpole cannot be run.
pub fn compare(longpole: &Path, sources: &Path, runs: usize) -> Result<String> {
    let suite = sources.join("Splash-4");
    if !suite.is_dir() {
        bail!(
            "no Splash-4 in {}: git clone https://github.com/OdnetninI/Splash-4 and give its folder with --sources",
            sources.display()
        );
    }
    let mut text = format!(
        "## SPLASH\n\nThe ten programs of the 1999 paper's Tables 1 and 2, from the Splash-4 sources with barriers that \
         block. As in the paper\neach number of threads has its own recordings, made on one CPU: three, in turn with {runs} \
         measured runs. Measured and predicted are\nthe middle (smallest–largest of single rounds and recordings). The last \
         columns are the paper's (for programs with two rows, the row with spinning locks), on its machine with its data sets. \
         *data* says where our data sets differ. *CPU time* is by how much the CPU time of the same work grows with \
         that many threads at once. A recording on one CPU does not contain that growth. *Simulation's error* is the \
         error of a prediction that contains it.\n\n\
         | program | data | CPUs | measured | predicted | error | CPU time | simulation's error | 1999: real | predicted | \
         error |\n|---|---|---|---|---|---|---|---|---|---|---|\n"
    );
    let mut errors = Errors::default();
    let mut left_out = Vec::new();
    for program in &PROGRAMS {
        eprintln!("{}", program.name);
        let folder = suite.join(program.folder);
        match build(&folder).and_then(|()| validation(longpole, &folder, program.script, runs)) {
            Ok(document) => rows(&mut text, program, &document, &mut errors)?,
            Err(error) => left_out.push(format!("{}: {error:#}", program.name)),
        }
    }
    write!(text, "\n{}", errors.told())?;
    for reason in left_out {
        write!(text, "\nLeft out: {reason}")?;
    }
    Ok(text)
}

fn build(folder: &Path) -> Result<()> {
    let mut make = Command::new("make");
    make.arg("-C").arg(folder).args([C_FLAGS, M4_FLAGS]);
    command::must(&mut make, "building a program of Splash-4 (it needs make, m4 and a C compiler)")
}

fn rows(text: &mut String, program: &Program, document: &Value, errors: &mut Errors) -> Result<()> {
    for row in document["results"].as_array().into_iter().flatten().skip(1) {
        let place = [2, 4, 8].iter().position(|&cpus| row["cpus"] == cpus);
        let paper = place.map_or_else(
            || "– | – | –".to_owned(),
            |place| {
                let (predicted, real) = program.paper[place];
                format!("{real:.2} | {predicted:.2} | {:.1} %", (real - predicted).abs() / real * 100.0)
            },
        );
        writeln!(text, "| {} | {} | {} | {paper} |", program.name, program.data, errors.cells(row))?;
    }
    Ok(())
}

fn validation(longpole: &Path, folder: &Path, script: &str, runs: usize) -> Result<Value> {
    let mut command = Command::new(longpole);
    command.current_dir(folder);
    // FMM's lock operations come in bursts of hundreds of thousands, which do not fit into a thread's usual ring.
    command.args(["validate", "--json", "--ring-size", "64M", "--runs", &runs.to_string()]);
    command.args(["--", "sh", "-c", script]);
    command::json(&mut command, LIMIT)
}
