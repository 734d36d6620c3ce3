//! The program's longest paths on unlimited CPUs as a graph for Graphviz, with a node for each stay of a path in a thread;
//! the critical path is thick. Stays that paths share are one node, so the graph shows what near-critical paths have in
//! common.

use super::Model;
use crate::cell::duration;
use crate::present::study::slack::doing;
use engine::attribution::Owners;
use engine::graph::{PathRow, PathsWanted, Stay, paths_report};
use std::collections::{BTreeMap, HashMap};
use std::io::{self, Write};

/// Largest number of paths that are drawn.
const PATHS: usize = 10;
/// Longer paths are cut after this many stays: a larger picture is unreadable.
const MOST_STAYS: usize = 400;
/// Largest number of functions in a node.
const NAMED: usize = 3;

/// Writes the graph.
pub fn write(model: &Model<'_>, out: &mut dyn Write) -> io::Result<()> {
    let wanted =
        PathsWanted { most: PATHS, within: None, routes: PATHS, shown: None, segments: false, simulated: 0 };
    let owners = Owners::themselves(model.expanded());
    // The program was checked before.
    let report = paths_report(model.expanded(), (model.expanded(), &owners), &wanted, model.machine())
        .map_err(io::Error::other)?;
    writeln!(out, "digraph paths {{")?;
    writeln!(
        out,
        "  graph [rankdir=LR, fontname=\"sans-serif\", labelloc=t, label={}];",
        quoted(&title(&report.paths))
    )?;
    writeln!(
        out,
        "  node [shape=box, style=filled, fillcolor=\"#f4f0e6\", fontname=\"sans-serif\", fontsize=10];"
    )?;
    writeln!(out, "  edge [fontname=\"sans-serif\", fontsize=9, color=\"#777777\"];")?;
    let mut graph = Graph { out, nodes: HashMap::new(), edges: BTreeMap::new() };
    for path in &report.paths {
        graph.path(path)?;
    }
    graph.edges()?;
    writeln!(graph.out, "}}")
}

fn title(paths: &[PathRow]) -> String {
    match paths {
        [] => "longpole: no path".to_owned(),
        [only] => format!("longpole: the critical path on unlimited CPUs, {}", duration(only.length_ns)),
        [first, .., last] => format!(
            "longpole: the {} longest paths on unlimited CPUs, {} down to {}",
            paths.len(),
            duration(first.length_ns),
            duration(last.length_ns)
        ),
    }
}

struct Graph<'w> {
    out: &'w mut dyn Write,
    /// For each place on a path and label: the number of the node.
    nodes: HashMap<(usize, String), usize>,
    /// For each pair of nodes: the rank of the longest path over that edge, and what passes the path on from one node
    /// to the next.
    edges: BTreeMap<(usize, usize), (usize, String)>,
}

impl Graph<'_> {
    fn path(&mut self, path: &PathRow) -> io::Result<()> {
        let Some(route) = &path.route else { return Ok(()) };
        let mut before = None;
        for (place, stay) in route.iter().take(MOST_STAYS).enumerate() {
            let node = self.node(place, label(stay), path.rank)?;
            if let Some(before) = before {
                self.edges.entry((before, node)).or_insert_with(|| (path.rank, stay.by.clone()));
            }
            before = Some(node);
        }
        if let (Some(before), Some(more)) = (before, route.len().checked_sub(MOST_STAYS + 1)) {
            let label = format!("and {} more", more + 1);
            let node = self.node(MOST_STAYS, label, path.rank)?;
            self.edges.entry((before, node)).or_insert_with(|| (path.rank, String::new()));
        }
        Ok(())
    }

    fn node(&mut self, place: usize, label: String, rank: usize) -> io::Result<usize> {
        let next = self.nodes.len();
        let key = (place, label);
        if let Some(node) = self.nodes.get(&key) {
            return Ok(*node);
        }
        let look = if rank == 1 { ", fillcolor=\"#ffd9a8\", penwidth=2" } else { "" };
        writeln!(self.out, "  n{next} [label={}{look}];", quoted(&key.1))?;
        self.nodes.insert(key, next);
        Ok(next)
    }

    fn edges(&mut self) -> io::Result<()> {
        for ((from, to), (rank, by)) in &self.edges {
            let look = if *rank == 1 { ", penwidth=3, color=\"#c04000\"" } else { "" };
            writeln!(self.out, "  n{from} -> n{to} [label={}{look}];", quoted(by))?;
        }
        Ok(())
    }
}

/// A node's label: the thread, what it does longest, and the length of the stay.
fn label(stay: &Stay) -> String {
    let mut sums: BTreeMap<String, f64> = BTreeMap::new();
    for part in &stay.parts {
        *sums.entry(doing(&part.what)).or_insert(0.0) += part.length_ns;
    }
    let mut sums: Vec<(String, f64)> = sums.into_iter().collect();
    sums.sort_by(|a, b| b.1.total_cmp(&a.1));
    let mut lines = vec![format!("{}: {}", stay.thread, duration(stay.length_ns()))];
    lines.extend(sums.iter().take(NAMED).map(|(what, ns)| format!("{what} {}", duration(*ns))));
    if let Some(more) = sums.len().checked_sub(NAMED + 1) {
        lines.push(format!("and {} more", more + 1));
    }
    lines.join("\n")
}

/// A string of the DOT language. A backslash begins an escape in labels. Control characters and characters that change
/// the direction of text are not allowed.
fn quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for c in text.chars() {
        match c {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            c if symbols::is_unsafe(c) => quoted.push(char::REPLACEMENT_CHARACTER),
            // Graphviz interprets entities in labels.
            '&' => quoted.push_str("&amp;"),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}
