//! A program with a known chain of calls, which is compiled in several ways and recorded by longpole.

use engine::event::{CallGraph, NoteKind, Recording};
use longpole_tests::workload::{self, Problem};
use longpole_tests::{Recorded, run};
use probe_abi::{Record, SampleReason};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

pub const RATE_HZ: f64 = 997.0;
/// The CPU time that the program uses, in seconds.
pub const SECONDS: &str = "1.0";
pub const KEPT: [&str; 2] = ["-fno-omit-frame-pointer", "-DKEPT"];
const LIMIT: Duration = Duration::from_secs(60);

/// A recording of the program, the CPU time that the program used, and the addresses of its functions.
pub struct Sampled {
    pub recording: Recording,
    used_s: f64,
    functions: Vec<(u64, &'static str)>,
    pub program: PathBuf,
}

/// Compiles the program with gcc, because other compilers keep frame pointers by other rules.
pub fn compiled(flags: &[&str]) -> Result<PathBuf, Problem> {
    let flags = [&["-O2", "-no-pie", "-g"], flags].concat();
    workload::compile_text("program", "gcc", &flags, include_str!("program.c"))
}

/// Addresses of the program's functions, ascending. The last entry is the end of the last function.
fn functions(program: &Path) -> Result<Vec<(u64, &'static str)>, Problem> {
    const NAMES: [&str; 7] = ["leaf_one", "leaf_three", "b", "a", "deep", "main", "end_of_known"];
    let listed = run(Command::new("nm").arg(program), LIMIT);
    let text = listed.map_err(|error| Problem::NoCompiler(format!("no nm: {error}")))?.stdout;
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
    assert_eq!(found.len(), NAMES.len(), "{text}");
    Ok(found)
}

impl Sampled {
    /// Records the program with samples and without probes.
    pub fn record(flags: &[&str], how: &str, depth: u32) -> Result<Sampled, Problem> {
        Sampled::record_with(flags, &["--call-graph", how], depth)
    }

    /// Like `record`, with probes on all functions at any cost.
    pub fn record_probed(flags: &[&str]) -> Result<Sampled, Problem> {
        Sampled::record_with(flags, &["--exact", "--overhead", "none"], 0)
    }

    fn record_with(flags: &[&str], options: &[&str], depth: u32) -> Result<Sampled, Problem> {
        let program = compiled(flags)?;
        let functions = functions(&program)?;
        let rate = RATE_HZ.to_string();
        let usual = ["--keep-root", "--interpose", "never", "-F", &rate];
        let recorded = Recorded::good(&[&usual, options].concat(), &program, &[SECONDS, &depth.to_string()]);
        let out = &recorded.ended.stdout;
        let used = out.lines().find_map(|line| line.strip_prefix("used ")).expect("what it used");
        let (recording, info) = recording::read(&recorded.file).expect("a session");
        assert!(info.whole(), "{:?}", info.damage);
        let used_s = used.parse().expect("a number");
        Ok(Sampled { recording, used_s, functions, program })
    }

    pub fn name(&self, address: u64) -> &'static str {
        let at = self.functions.partition_point(|(start, _)| *start <= address);
        match at.checked_sub(1).and_then(|at| self.functions.get(at)) {
            Some((_, "end_of_known")) | None => "?",
            Some((_, name)) => name,
        }
    }

    /// The places of each tick's frames, innermost first, and the sample's flags.
    pub fn places(&self) -> Vec<(Vec<u64>, u8)> {
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
                // A return address is after its call. The innermost frame is the place where the thread was.
                let places = frames.iter().enumerate().map(|(i, &frame)| frame - u64::from(i > 0));
                (places.collect(), sample.flags)
            })
            .collect()
    }

    /// The names of each tick's frames, innermost first, and the sample's flags.
    pub fn ticks(&self) -> Vec<(Vec<&'static str>, u8)> {
        let places = self.places().into_iter();
        places.map(|(places, flags)| (places.into_iter().map(|at| self.name(at)).collect(), flags)).collect()
    }

    /// The number of ticks in the leaves, and the number of those with the whole known chain.
    pub fn chains(&self) -> (usize, usize) {
        let ticks = self.ticks();
        let in_leaf =
            ticks.iter().filter(|(names, _)| names.first().is_some_and(|name| name.starts_with("leaf")));
        let whole = in_leaf.clone().filter(|(names, _)| names.get(1..4) == Some(&["b", "a", "main"]));
        (in_leaf.count(), whole.count())
    }

    /// Checks what must be true in whichever way stacks are read.
    pub fn check(&self, how: CallGraph) {
        let sampling = self.recording.facts.sampling.expect("a fact");
        assert_eq!((f64::from(sampling.rate_hz), sampling.call_graph), (RATE_HZ, how));
        let samples =
            self.recording.events.iter().filter(|record| matches!(record, Record::Sample(_))).count();
        let counts = self.recording.facts.end.as_ref().and_then(|end| end.samples).expect("counts");
        // The last samples may be after the end of the recording.
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
