//! Real recordings without a random tenth of their records: answers get vaguer, never absurd. The same test for generated
//! recordings is in `engine/tests/lock_replay/lossy.rs`.

use engine::event::{Merger, Recording};
use engine::program::Program;
use engine::report::{CpuResult, Cpus, Detail, Report, report};
use engine::timeline::build;
use engine::translation::from_timeline;
use probe_abi::{Header, Record};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Number of times that each recording loses records, other ones each time.
const SEEDS: u64 = 6;
/// Plausible shares: 0 to 1, with room for chance and rounding.
const SHARES: std::ops::RangeInclusive<f64> = -0.05..=1.05;
/// Largest factor by which the predicted time of the recorded machine may be off: without a tenth of the records, more than
/// a tenth of the time is uncertain, since a thread's state is unknown until its next record.
const FACTOR: f64 = 2.0;

fn recordings() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/data/recordings");
    let entries = std::fs::read_dir(folder).expect("the folder is there");
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "lp"));
    paths.sort();
    assert!(paths.len() >= 8, "{paths:?}");
    paths
}

/// Pseudo-random numbers (xorshift*, Vigna 2016).
struct Random(u64);

impl Random {
    fn is_one_in_ten(&mut self) -> bool {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 32).is_multiple_of(10)
    }
}

/// The recording with each record lost with a chance of one in ten: the numbers of the others show the holes.
fn without_a_tenth(recording: &Recording, seed: u64) -> Recording {
    let mut random = Random(seed.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let mut rings: BTreeMap<(u16, u32), Vec<Record>> = BTreeMap::new();
    for record in &recording.events {
        if random.is_one_in_ten() {
            continue;
        }
        let Header { cpu, tid, .. } = *record.header();
        let thread = if cpu == Header::NO_CPU { tid } else { 0 };
        rings.entry((cpu, thread)).or_default().push(*record);
    }
    let mut merger = Merger::new(rings.len());
    for (ring, records) in rings.into_values().enumerate() {
        records.into_iter().for_each(|record| merger.push(ring, record));
    }
    let events = merger.finish();
    let mut notes = recording.notes.clone();
    notes.extend(merger.take_notes());
    notes.sort_by_key(|note| note.time_ns);
    Recording { facts: recording.facts.clone(), events, notes }
}

fn counts(program: &Program) -> Vec<Cpus> {
    let own = program.recorded_cpus.map_or("2".to_owned(), |cpus| cpus.to_string());
    Cpus::parse_list(&format!("{own},1,4,16,inf")).expect("counts")
}

fn answer(recording: &Recording, cpus: u32) -> Report {
    let mut program = from_timeline(&build(recording));
    program.recorded_cpus = Some(cpus);
    report(&program, &counts(&program), Detail::Functions)
}

/// Absurd things in a report.
fn absurd(report: &Report, whole: &Report) -> Vec<String> {
    let mut found = Vec::new();
    let deadlocks = report.findings.iter().filter(|finding| finding.kind().starts_with("deadlock"));
    found.extend(deadlocks.map(|finding| format!("{finding:?}")));
    if report.results.len() != whole.results.len() {
        found.push(format!("{} results", report.results.len()));
    }
    for CpuResult { cpus, time_ns, functions, waits, .. } in &report.results {
        if !(time_ns.is_finite() && *time_ns > 0.0) {
            found.push(format!("{time_ns} ns on {cpus:?}"));
            continue;
        }
        let own = functions.iter().map(|row| (row.function.as_str(), row.tet_ns));
        let total = functions.iter().map(|row| (row.function.as_str(), row.tetid_ns));
        let waits = waits.iter().map(|row| (row.kind.name(), row.weighted_ns));
        for (what, ns) in own.chain(total).chain(waits) {
            let share = ns / time_ns;
            if !SHARES.contains(&share) {
                found.push(format!("{what} has {:.0} % on {cpus:?}", share * 100.0));
            }
        }
    }
    if let (Some(lossy), Some(whole)) = (report.results.first(), whole.results.first()) {
        let factor = lossy.time_ns / whole.time_ns;
        if !(1.0 / FACTOR..=FACTOR).contains(&factor) {
            found.push(format!("{factor:.2} times the time on {:?}", whole.cpus));
        }
    }
    found
}

#[test]
fn a_recording_without_a_tenth_of_its_records_gives_no_absurd_answer() {
    let mut found = Vec::new();
    for path in recordings() {
        let (recording, info) = recording::read(&path).expect("it can be read");
        let cpus = info.meta.map_or(2, |meta| meta.cpu_count);
        let whole = answer(&recording, cpus);
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        found.extend(absurd(&whole, &whole).into_iter().map(|what| format!("{name}, whole: {what}")));
        for seed in 0..SEEDS {
            let lossy = answer(&without_a_tenth(&recording, seed), cpus);
            found.extend(
                absurd(&lossy, &whole).into_iter().map(|what| format!("{name}, seed {seed}: {what}")),
            );
        }
    }
    assert!(found.is_empty(), "{found:#?}");
}
