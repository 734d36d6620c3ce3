//! Algorithms on the activity graph, for generated graphs of the paper's largest size and of 10 million edges. The
//! paper's best-first search is the comparison.

use anyhow::{Context, Result, ensure};

use crate::measure::{Measurement, Results, Runs, Side};
use crate::sample::digits;

/// Number of edges of the largest graph in the paper of 1994 (near-critical paths, Table III).
const SMALL: u32 = 261_776;
const LARGE: u32 = 10_000_000;
const MANY: u32 = 100_000;
/// Number of paths for the search on the large graph, which walks each path from end to end.
const FEW: u32 = 100;
const SEARCH: &str = "search";

/// The rows: name, algorithm, edges, paths, and repetitions in one run.
const WAYS: [(&str, &str, u32, u32, u32); 12] = [
    ("early, late and slack of every edge", "timing", SMALL, 0, 20),
    ("longest paths", "paths", SMALL, 1_000, 5),
    ("best-first search (1994)", SEARCH, SMALL, 1_000, 1),
    ("longest paths", "paths", SMALL, MANY, 5),
    ("best-first search (1994)", SEARCH, SMALL, MANY, 1),
    ("slack metric of 64 functions", "slack", SMALL, 0, 5),
    ("logical zeroing of 64 functions", "zeroing", SMALL, 0, 3),
    ("early, late and slack of every edge", "timing", LARGE, 0, 3),
    ("longest paths", "paths", LARGE, FEW, 1),
    ("best-first search (1994)", SEARCH, LARGE, FEW, 1),
    ("longest paths", "paths", LARGE, MANY, 1),
    ("logical zeroing of 64 functions", "zeroing", LARGE, 0, 1),
];

pub const GRAPH: Measurement = Measurement {
    name: "graph",
    about: "Slack, the longest paths and zeroing on generated activity graphs",
    title: "The activity graph",
    runs: Runs::Times(5),
    sides: |setting| {
        let tool = setting.engine_example("graph_bench")?;
        let side = |(name, how, edges, k, times): (&str, &str, u32, u32, u32)| {
            let paths = if k == 0 { "–".to_owned() } else { k.to_string() };
            let label = format!("{name} | {edges} | {paths}");
            // The search takes so long that it runs only once.
            Side::program(label, &tool, &format!("{how} {edges} {k} {times}")).once(how == SEARCH)
        };
        Ok(WAYS.map(side).into())
    },
    says: "Generated graphs of 8 threads: the size of the largest one of the 1994 paper on near-critical paths, and \
           10 million\nedges. One core, processor time. Targets for the first graph: all slack values in 20 ms and \
           its 100,000 longest paths in\n200 ms. Targets for the second: 20 million edges a second, and its 100,000 \
           longest paths within three times that. The search is the paper's own algorithm, which lists the edges of \
           every path during the search. longpole's algorithm lists only the edges of the paths that are shown.",
    heads: "what | edges | paths",
    columns: &[
        ("processor time, ms", |side, _| side.spread("cpu_ns", 1e-6)),
        ("million edges/s", |side, _| {
            let (_, _, edges, ..) = WAYS[side.at];
            Ok(digits(f64::from(edges) / side.median("cpu_ns")? * 1e3))
        }),
    ],
    ends: |results| {
        let mut lines = Vec::new();
        for (edges, k) in [(SMALL, 1_000), (SMALL, MANY), (LARGE, FEW)] {
            let ((ours, our_ns), (theirs, their_ns)) =
                (find(results, "paths", edges, k)?, find(results, SEARCH, edges, k)?);
            ensure!(ours == theirs, "path {k} of {edges} edges: {ours} and {theirs}");
            let times = digits(their_ns / our_ns);
            lines.push(format!(
                "On {edges} edges the {k} longest paths take the search {times} times as long."
            ));
        }
        let times = find(results, "paths", LARGE, MANY)?.1 / find(results, "timing", LARGE, 0)?.1;
        lines.push(format!(
            "At 10 million edges {MANY} paths take {} times as long as the critical path method.",
            digits(times)
        ));
        Ok(lines.join("\n"))
    },
    ..Measurement::NEW
};

/// Answer and time of an algorithm for this number of edges and paths.
fn find(results: &Results, how: &str, edges: u32, k: u32) -> Result<(f64, f64)> {
    let at = WAYS.iter().position(|way| (way.1, way.2, way.3) == (how, edges, k));
    let side = results.at(at.context("no such measurement")?)?;
    Ok((side.median("answer")?, side.median("cpu_ns")?))
}
