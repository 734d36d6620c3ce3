//! perf and longpole must find the same stacks by frame pointers: the same names in the same order, equally often.

use super::support::{KEPT, RATE_HZ, SECONDS, Sampled, compiled};
use longpole_tests::{binary, run, skip, skip_unless_built, skip_unless_live};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::time::Duration;
use symbols::{Parsers, Place};

const LIMIT: Duration = Duration::from_secs(60);

/// The name of all places outside of the program.
const ELSEWHERE: &str = "?";

/// Number of samples of each stack. A stack is a list of names up to `main`, innermost first.
type Stacks = BTreeMap<Vec<String>, usize>;

/// Counts stacks up to `main`. The callers of `main` are functions of the C library without frame pointers, so the
/// frames found there are chance.
fn count(stacks: impl Iterator<Item = Vec<String>>) -> Stacks {
    let mut counts = Stacks::new();
    for mut stack in stacks {
        if let Some(main) = stack.iter().position(|name| name == "main") {
            stack.truncate(main + 1);
        }
        // Only stacks in which the program's own code was interrupted count, not those in the kernel or the C library.
        if stack.first().is_some_and(|name| name != ELSEWHERE) {
            *counts.entry(stack).or_default() += 1;
        }
    }
    counts
}

/// longpole's stacks, with the names that longpole gives.
fn ours(sampled: &Sampled) -> Stacks {
    let ticks = sampled.places();
    let mut places: Vec<u64> = ticks.iter().flat_map(|(places, _)| places.iter().copied()).collect();
    places.sort_unstable();
    places.dedup();
    let parsers = Parsers::sandboxed(binary());
    let mut parser = parsers.open(&sampled.program, "program").expect("readable");
    let asked: Vec<Place> = places.iter().map(|&place| Place::Address(place)).collect();
    let names: Vec<String> = parser
        .locate(&asked)
        .expect("an answer")
        .locations()
        .into_iter()
        .map(|location| if location.symbol.is_ok() { location.name } else { ELSEWHERE.to_owned() })
        .collect();
    let name = |place: &u64| names[places.binary_search(place).expect("asked for")].clone();
    count(ticks.iter().map(|(places, _)| places.iter().map(name).collect()))
}

/// perf's stacks, with the names that perf gives; or why perf gives none.
fn theirs(program: &Path, depth: u32) -> Result<Stacks, String> {
    let folder = tempfile::tempdir().expect("a folder");
    let data = folder.path().join("perf.data");
    let (rate, depth) = (RATE_HZ.to_string(), depth.to_string());
    let mut record = Command::new("perf");
    record.args(["record", "-q", "-e", "cpu-clock", "-F", &rate, "--call-graph", "fp", "-o"]);
    record.arg(&data).arg("--").arg(program).args([SECONDS, &depth]);
    let mut script = Command::new("perf");
    script.args(["script", "--no-inline", "-F", "ip,sym,dso", "-i"]).arg(&data);
    let mut text = String::new();
    for mut command in [record, script] {
        let ended = run(&mut command, LIMIT).map_err(|error| format!("perf: {error}"))?;
        if ended.code != Some(0) {
            let why = ended.stderr.lines().next().unwrap_or("it may not sample here");
            return Err(format!("perf: {why}"));
        }
        text = ended.stdout;
    }
    // In perf's output, a line is a frame (address, name, and the file in brackets), and an empty line ends a stack.
    let path = format!("({})", program.display());
    let stacks = text.split("\n\n").map(|stack| {
        let frames = stack.lines().filter(|line| !line.trim().is_empty());
        let name = |line: &str| match line.trim().strip_suffix(&path) {
            Some(line) => line.split_whitespace().nth(1).unwrap_or(ELSEWHERE).to_owned(),
            None => ELSEWHERE.to_owned(),
        };
        frames.map(name).collect()
    });
    Ok(count(stacks))
}

/// The number of stacks, and the share of each function as the innermost one.
fn leaves(stacks: &Stacks) -> (f64, BTreeMap<&str, f64>) {
    let all: usize = stacks.values().sum();
    let mut shares = BTreeMap::new();
    for (stack, count) in stacks {
        *shares.entry(stack[0].as_str()).or_insert(0.0) += *count as f64 / all as f64;
    }
    (all as f64, shares)
}

#[test]
fn stacks_by_frame_pointers_are_those_that_perf_sees() {
    skip_unless_live!();
    for depth in [0, 12] {
        let program = skip_unless_built!(compiled(&KEPT));
        let theirs = match theirs(&program, depth) {
            Ok(theirs) => theirs,
            Err(why) => skip!("{why}"),
        };
        let sampled = skip_unless_built!(Sampled::record(&KEPT, "fp", depth));
        let ours = ours(&sampled);
        // A stack that one of the two finds more than now and then must be found by the other one, too.
        for (who, some, other) in [("perf", &theirs, &ours), ("longpole", &ours, &theirs)] {
            for (stack, count) in some {
                assert!(
                    *count <= 20 || other.contains_key(stack),
                    "{who} alone, {count} times: {stack:?}\n{other:?}"
                );
            }
        }
        let chain: Vec<&str> = ["leaf_three", "b", "a"]
            .into_iter()
            .chain((0..=depth).filter(|_| depth > 0).map(|_| "deep"))
            .chain(["main"])
            .collect();
        let seen = |stacks: &Stacks| {
            stacks.iter().find(|(stack, _)| **stack == chain).map_or(0, |(_, count)| *count)
        };
        assert!(seen(&theirs) > 300 && seen(&ours) > 300, "{chain:?}: {theirs:?}\n{ours:?}");
        let ((all_theirs, theirs), (all_ours, ours)) = (leaves(&theirs), leaves(&ours));
        for (name, share) in &theirs {
            let our = ours.get(name).copied().unwrap_or_default();
            let together = (share * all_theirs + our * all_ours) / (all_theirs + all_ours);
            // Five times the standard deviation of pure chance: one run in two million exceeds this.
            let chance = (together * (1.0 - together) * (1.0 / all_theirs + 1.0 / all_ours)).sqrt();
            let off = (share - our).abs();
            assert!(off <= 5.0 * chance + 0.01, "{name}: perf {share}, longpole {our}, chance {chance}");
        }
        println!(
            "depth {depth}: {all_theirs} stacks of perf's, {all_ours} of longpole's; leaves {theirs:?}, {ours:?}"
        );
    }
}
