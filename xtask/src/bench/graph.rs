//! The algorithms on the activity graph, with generated graphs of the paper's largest size and of 10 million
//! edges, compared with the paper's best-first search.

use std::fmt::Write;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::engine_example;
use crate::command;
use crate::sample::{Sample, digits};
use crate::workspace::Workspace;

const RUNS: usize = 5;
/// The largest graph of 1994 (near-critical paths, Table III).
const SMALL: u32 = 261_776;
const LARGE: u32 = 10_000_000;
const MANY: u32 = 100_000;
/// What the search can be asked for on the large graph: each of its paths is walked from end to end.
const FEW: u32 = 100;

/// What is measured: its name, the way, edges, paths, and how many times in one run.
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

/// Runs all in alternation.
///
/// # Errors
/// It does not compile, or two ways to the same paths do not agree.
pub fn measure(workspace: &Workspace) -> Result<String> {
    let tool = engine_example(workspace, "graph_bench")?;
    let mut ways: Vec<Way> = WAYS.iter().map(|_| Way::default()).collect();
    for run in 0..RUNS {
        for (way, (_, how, edges, k, times)) in ways.iter_mut().zip(WAYS) {
            // The search takes long: once says enough.
            if run == 0 || how != "search" {
                way.once(&tool, how, edges, k, times)?;
            }
        }
    }
    let mut text = String::from(
        "## The activity graph\n\nGenerated graphs of 8 threads: the size of the largest one of the 1994 paper on \
         near-critical paths, and 10 million\nedges. One core, processor time. Targets for the first graph: all slack \
         values in 20 ms and its 100,000 longest paths in\n200 ms. Targets for the second: 20 million edges a second, and its \
         100,000 longest paths within three times that. The search\nis the paper's own algorithm, which lists every \
         path's edges as it goes; ours does that for the paths that are shown.\n\n\
         | what | edges | paths | processor time, ms | million edges/s |\n|---|---|---|---|---|\n",
    );
    for (way, (name, _, edges, k, _)) in ways.iter().zip(WAYS) {
        let rate = f64::from(edges) / way.cpu_ns.median() * 1e3;
        let k = if k == 0 { "–".to_owned() } else { k.to_string() };
        writeln!(text, "| {name} | {edges} | {k} | {} | {} |", way.cpu_ns.scaled(1e-6), digits(rate))?;
    }
    let find = |how: &str, edges: u32, k: u32| {
        let place = WAYS.iter().position(|way| (way.1, way.2, way.3) == (how, edges, k));
        place.and_then(|place| ways.get(place)).context("no such measurement")
    };
    for (edges, k) in [(SMALL, 1_000), (SMALL, MANY), (LARGE, FEW)] {
        let (ours, paper) = (find("paths", edges, k)?, find("search", edges, k)?);
        ensure!(
            ours.answer == paper.answer,
            "path {k} of {edges} edges: {} and {}",
            ours.answer,
            paper.answer
        );
        write!(
            text,
            "\nOn {edges} edges the {k} longest paths take the search {} times as long.",
            digits(paper.cpu_ns.median() / ours.cpu_ns.median())
        )?;
    }
    let (paths, timing) = (find("paths", LARGE, MANY)?, find("timing", LARGE, 0)?);
    write!(
        text,
        "\nAt 10 million edges {MANY} paths take {} times as long as the critical path method.",
        digits(paths.cpu_ns.median() / timing.cpu_ns.median())
    )?;
    Ok(text)
}

#[derive(Default)]
struct Way {
    answer: u64,
    cpu_ns: Sample,
}

impl Way {
    fn once(&mut self, tool: &Path, how: &str, edges: u32, k: u32, times: u32) -> Result<()> {
        let numbers = [edges, k, times].map(|number| number.to_string());
        let line = command::text(Command::new(tool).arg(how).args(numbers))?;
        let value: serde_json::Value = serde_json::from_str(&line).context("graph_bench says no JSON")?;
        self.answer = value["answer"].as_u64().with_context(|| format!("no answer in {line}"))?;
        self.cpu_ns.push(value["cpu_ns"].as_f64().with_context(|| format!("no time in {line}"))?);
        Ok(())
    }
}
