//! Sampling for real: a program with a known chain of calls, compiled in several ways, recorded by longpole itself.

mod against_perf;
mod chosen;
mod hybrid;
mod slow_parser;

use engine::event::{CallGraph, NoteKind, Recording};
use probe_abi::{Record, SampleFlags, SampleReason};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Command;

const RATE_HZ: f64 = 997.0;
const KEPT: [&str; 2] = ["-fno-omit-frame-pointer", "-DKEPT"];

/// A session with what the program said, and where its functions lie.
struct Sampled {
    recording: Recording,
    used_s: f64,
    functions: Vec<(u64, &'static str)>,
    program: PathBuf,
    /// It lies in there.
    _folder: tempfile::TempDir,
}

fn skip(test: &str, why: &str) {
    println!("SKIP {test}: {why}");
}

/// Compiles the program; `None` if that cannot be done here.
fn compiled(folder: &Path, flags: &[&str]) -> Option<PathBuf> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sampling_live/program.c");
    let program = folder.join("program");
    let mut gcc = Command::new("gcc");
    gcc.args(["-O2", "-no-pie", "-g"]).args(flags).arg("-o").arg(&program).arg(source);
    gcc.status().ok()?.success().then_some(program)
}

/// Addresses of the program's functions in order of address, the end of the last one behind them.
fn functions(program: &Path) -> Option<Vec<(u64, &'static str)>> {
    const NAMES: [&str; 7] = ["leaf_one", "leaf_three", "b", "a", "deep", "main", "end_of_known"];
    let output = Command::new("nm").arg(program).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let mut found: Vec<(u64, &'static str)> = text
        .lines()
        .filter_map(|line| {
            let mut words = line.split_whitespace();
            let (address, _, name) = (words.next()?, words.next()?, words.next()?);
            let name = NAMES.into_iter().find(|known| *known == name)?;
            Some((u64::from_str_radix(address, 16).ok()?, name))
        })
        .collect();
    found.sort_unstable();
    (found.len() == NAMES.len()).then_some(found)
}

impl Sampled {
    /// Records the program with samples alone, or says why that cannot be done here.
    fn record(test: &str, flags: &[&str], how: &str, depth: u32) -> Option<Sampled> {
        Sampled::record_with(test, flags, &["--no-uprobes", "--call-graph", how], depth)
    }

    /// The same with all functions probed, whatever that costs.
    fn record_probed(test: &str, flags: &[&str]) -> Option<Sampled> {
        Sampled::record_with(test, flags, &["--overhead", "none"], 0)
    }

    fn record_with(test: &str, flags: &[&str], options: &[&str], depth: u32) -> Option<Sampled> {
        let folder = tempfile::tempdir().expect("a folder");
        let Some(program) = compiled(folder.path(), flags) else {
            skip(test, "no gcc");
            return None;
        };
        let Some(functions) = functions(&program) else {
            skip(test, "no nm");
            return None;
        };
        let session = folder.path().join("session.lp");
        let rate = RATE_HZ.to_string();
        let output = Command::new(env!("CARGO_BIN_EXE_longpole"))
            .args(["record", "--keep-root", "--interpose", "never", "-F", &rate])
            .args(options)
            .arg("-o")
            .arg(&session)
            .arg("--")
            .arg(&program)
            .args(["1.5", &depth.to_string()])
            .output()
            .expect("longpole runs");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        if output.status.code() == Some(77) {
            skip(test, said.lines().next().unwrap_or("not allowed"));
            return None;
        }
        assert!(output.status.success(), "{said}");
        let out = String::from_utf8_lossy(&output.stdout);
        let used = out.lines().find_map(|line| line.strip_prefix("used ")).expect("what it used");
        let (recording, info) = collector::session::read(&session).expect("a session");
        assert!(info.whole(), "{:?}", info.damage);
        let used_s = used.parse().expect("a number");
        Some(Sampled { recording, used_s, functions, program, _folder: folder })
    }

    fn name(&self, address: u64) -> &'static str {
        let at = self.functions.partition_point(|(start, _)| *start <= address);
        match at.checked_sub(1).and_then(|at| self.functions.get(at)) {
            Some((_, "end_of_known")) | None => "?",
            Some((_, name)) => name,
        }
    }

    /// The places of each tick's frames, the innermost first, with the sample's flags.
    fn places(&self) -> Vec<(Vec<u64>, u8)> {
        let mut stacks: HashMap<u32, Vec<u64>> = HashMap::new();
        for note in &self.recording.notes {
            if let NoteKind::Stack { id, frames, .. } = &note.kind {
                assert!(stacks.insert(*id, frames.clone()).is_none(), "number {id} twice");
            }
        }
        let sample = |record: &Record| match record {
            Record::Sample(sample) if sample.reason == SampleReason::Tick as u8 => Some(*sample),
            _ => None,
        };
        let samples = self.recording.events.iter().filter_map(sample);
        samples
            .map(|sample| {
                let frames = stacks.get(&sample.stack).cloned().unwrap_or_default();
                // A call returns behind itself; the innermost frame is where the thread was.
                let places = frames.iter().enumerate().map(|(i, &frame)| frame - u64::from(i > 0));
                (places.collect(), sample.flags)
            })
            .collect()
    }

    /// The names of each tick's frames, the innermost first, with the sample's flags.
    fn ticks(&self) -> Vec<(Vec<&'static str>, u8)> {
        let places = self.places().into_iter();
        places.map(|(places, flags)| (places.into_iter().map(|at| self.name(at)).collect(), flags)).collect()
    }

    /// Of the ticks in the leaves: how many, and how many have the whole known chain.
    fn chains(&self) -> (usize, usize) {
        let ticks = self.ticks();
        let in_leaf =
            ticks.iter().filter(|(names, _)| names.first().is_some_and(|name| name.starts_with("leaf")));
        let whole = in_leaf.clone().filter(|(names, _)| names.get(1..4) == Some(&["b", "a", "main"]));
        (in_leaf.count(), whole.count())
    }

    /// What holds however stacks are read.
    fn check(&self, how: CallGraph) {
        let sampling = self.recording.facts.sampling.expect("a fact");
        assert_eq!((f64::from(sampling.rate_hz), sampling.call_graph), (RATE_HZ, how));
        let samples =
            self.recording.events.iter().filter(|record| matches!(record, Record::Sample(_))).count();
        let counts = self.recording.facts.end.as_ref().and_then(|end| end.samples).expect("counts");
        // The last ones may lie behind the end of the recording.
        assert!(
            counts.taken >= samples as u64 && counts.taken <= samples as u64 + 20,
            "{counts:?}, {samples}"
        );
        let ticks = self.ticks();
        let expected = self.used_s * RATE_HZ;
        let share = (ticks.len() as u64 + counts.lost) as f64 / expected;
        assert!((0.5..1.5).contains(&share), "{} ticks, {expected} expected", ticks.len());
        let of = |leaf| ticks.iter().filter(|(names, _)| names.first() == Some(&leaf)).count() as f64;
        let ratio = of("leaf_three") / of("leaf_one");
        assert!((2.0..4.5).contains(&ratio), "3 : 1, not {ratio}");
        let program = self.recording.facts.mappings.iter().filter(|code| code.path.ends_with("/program"));
        let main = self.functions.iter().find(|(_, name)| *name == "main").expect("main").0;
        assert!(program.into_iter().any(|code| (code.start..code.end).contains(&main)));
    }
}

fn share(sampled: &Sampled) -> f64 {
    let (all, whole) = sampled.chains();
    assert!(all >= 300, "{all} ticks in the leaves");
    whole as f64 / all as f64
}

#[test]
fn frame_pointers_give_the_known_chain_in_the_known_shares() {
    let test = "frame_pointers_give_the_known_chain_in_the_known_shares";
    let Some(sampled) = Sampled::record(test, &KEPT, "fp", 0) else { return };
    sampled.check(CallGraph::Fp);
    let share = share(&sampled);
    // Between a call and the frame's own first instructions the caller is not seen.
    assert!(share > 0.9, "{share}");
}

#[test]
fn stacks_that_are_too_deep_are_cut_off_and_counted() {
    let test = "stacks_that_are_too_deep_are_cut_off_and_counted";
    let Some(sampled) = Sampled::record(test, &KEPT, "fp", 400) else { return };
    let ticks = sampled.ticks();
    let cut = ticks.iter().filter(|(_, flags)| flags & SampleFlags::TRUNCATED != 0).count();
    assert!(cut * 10 > ticks.len() * 8, "{cut} of {}", ticks.len());
    assert!(ticks.iter().all(|(names, _)| names.len() <= engine::event::MOST_FRAMES));
    let counts = sampled.recording.facts.end.as_ref().and_then(|end| end.samples).expect("counts");
    assert!(counts.truncated >= cut as u64, "{counts:?}");
}

#[test]
fn unwind_tables_give_the_known_chain_without_frame_pointers() {
    let test = "unwind_tables_give_the_known_chain_without_frame_pointers";
    let Some(sampled) = Sampled::record(test, &["-fomit-frame-pointer"], "dwarf", 0) else { return };
    sampled.check(CallGraph::Dwarf);
    let share = share(&sampled);
    assert!(share > 0.95, "{share}");
    let counts = sampled.recording.facts.end.as_ref().and_then(|end| end.samples).expect("counts");
    assert!(counts.truncated * 10 < counts.taken, "up to the thread's first function: {counts:?}");
}

#[test]
fn what_a_copy_does_not_reach_is_cut_off_and_counted() {
    let test = "what_a_copy_does_not_reach_is_cut_off_and_counted";
    let Some(sampled) = Sampled::record(test, &["-fomit-frame-pointer"], "dwarf", 100) else { return };
    let ticks = sampled.ticks();
    let cut = ticks.iter().filter(|(_, flags)| flags & SampleFlags::TRUNCATED != 0).count();
    assert!(cut * 10 > ticks.len() * 8, "{cut} of {}", ticks.len());
}

#[test]
fn how_stacks_are_read_is_chosen_by_what_the_binary_keeps() {
    let test = "how_stacks_are_read_is_chosen_by_what_the_binary_keeps";
    for flags in [&KEPT[..], &["-fomit-frame-pointer"]] {
        let Some(sampled) = Sampled::record(test, flags, "auto", 0) else { return };
        sampled.check(CallGraph::Auto);
        let share = share(&sampled);
        assert!(share > 0.9, "{flags:?}: {share}");
        // Up to the program's first instructions, also where frame pointers lead no further than to main.
        let ticks = sampled.ticks();
        let deep = ticks.iter().filter(|(names, _)| names.len() > 5).count();
        assert!(deep * 10 > ticks.len() * 8, "{flags:?}: {deep} of {}", ticks.len());
    }
}
