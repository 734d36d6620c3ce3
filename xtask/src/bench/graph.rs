//! Algorithms on the activity graph, for generated graphs of the paper's largest size and of 10 million edges, compared with
//! the paper's best-first search.

use std::fmt::Write;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::{Figures, engine_example};
use crate::sample::digits;
use crate::workspace::Workspace;

const RUNS: usize = 5;
/// The largest graph of 1994 (near-critical paths, Table III).
const SMALL: u32 = 261_776;
const LARGE: u32 = 10_000_000;
const MANY: u32 = 100_000;
/// Number of paths for the search on the large graph, where the search walks each path from end to end.
const FEW: u32 = 100;

/// Each row: its name, the algorithm, edges, paths, and repetitions in one run.
const WAYS: [(&str, &str, u32, u32, u32); 12] = [
    ("early, late and slack of every edge", "timing", SMALL, 0, 20),
    ("longest paths", "paths", SMALL, 1_000, 5),
    ("best-first search (1994)", "search", SMALL, 1_000, 1),
    ("longest paths", "paths", SMALL, MANY, 5),
    ("best-first search (1994)", "search", SMALL, MANY, 1),
    ("slack metric of 64 functions", "slack", SMALL, 0, 5),
    ("logical zeroing of 64 functions", "zeroing", SMALL, 0, 3),
    ("early, late and slack of every edge", "timing", LARGE, 0, 3),
    ("longest paths", "paths", LARGE, FEW, 1),
    ("best-first search (1994)", "search", LARGE, FEW, 1),
    ("longest paths", "paths", LARGE, MANY, 1),
    ("logical zeroing of 64 functions", "zeroing", LARGE, 0, 1),
];

/// Runs all rows in alternation.
///
/// # Errors
/// It does not compile, or two ways to the same paths do not agree.
pub fn measure(workspace: &Workspace) -> Result<String> {
    let tool = engine_example(workspace, "graph_bench")?;
    let mut ways = WAYS.map(|_| Figures::default());
    for run in 0..RUNS {
        for (way, (_, how, edges, k, times)) in ways.iter_mut().zip(WAYS) {
            // The search takes long, and runs once.
            if run == 0 || how != "search" {
                way.add(
                    Command::new(&tool).arg(how).args([edges, k, times].map(|number| number.to_string())),
                )?;
            }
        }
    }
    let mut text = String::from(
        "## The activity graph\n\nGenerated graphs of 8 threads: the size of the largest one of the 1994 paper on \
         near-critical paths, and 10 million\nedges. One core, processor time. Targets for the first graph: all slack \
         values in 20 ms and its 100,000 longest paths in\n200 ms. Targets for the second: 20 million edges a second, and its \
         100,000 longest paths within three times that. The search is the paper's own algorithm, which lists the \
         edges of every path during the search. longpole's algorithm lists only the edges of the paths that are shown.\n\n\
         | what | edges | paths | processor time, ms | million edges/s |\n|---|---|---|---|---|\n",
    );
    for (way, (name, _, edges, k, _)) in ways.iter().zip(WAYS) {
        let cpu_ns = way.of("cpu_ns")?;
        let rate = f64::from(edges) / cpu_ns.median() * 1e3;
        let k = if k == 0 { "–".to_owned() } else { k.to_string() };
        writeln!(text, "| {name} | {edges} | {k} | {} | {} |", cpu_ns.scaled(1e-6), digits(rate))?;
    }
    let find = |how: &str, edges: u32, k: u32| {
        let mut all = ways.iter().zip(WAYS);
        let found = all.find(|(_, way)| (way.1, way.2, way.3) == (how, edges, k));
        let (way, _) = found.context("no such measurement")?;
        anyhow::Ok((way.of("answer")?.median(), way.of("cpu_ns")?.median()))
    };
    for (edges, k) in [(SMALL, 1_000), (SMALL, MANY), (LARGE, FEW)] {
        let ((ours, our_ns), (theirs, their_ns)) = (find("paths", edges, k)?, find("search", edges, k)?);
        ensure!(ours == theirs, "path {k} of {edges} edges: {ours} and {theirs}");
        write!(
            text,
            "\nOn {edges} edges the {k} longest paths take the search {} times as long.",
            digits(their_ns / our_ns)
        )?;
    }
    let ((_, paths_ns), (_, timing_ns)) = (find("paths", LARGE, MANY)?, find("timing", LARGE, 0)?);
    write!(
        text,
        "\nAt 10 million edges {MANY} paths take {} times as long as the critical path method.",
        digits(paths_ns / timing_ns)
    )?;
    Ok(text)
}
