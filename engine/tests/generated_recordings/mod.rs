//! Generated recordings with known answers, all the way: records → merge → timeline → program → report; and invariants of any
//! recording, however broken.

mod cases;
mod checks;
mod generator;
mod nonsense;
mod parallelism;
mod requests;
mod window;

use cases::case;
use checks::{assert_no_deadlock, assert_tiles};
use engine::attribution::Grouping;
use engine::event::Merger;
use engine::predict::{Io, Model, Scheduler};
use engine::program::{Program, Thread};
use engine::report::{Cpus, Detail, Report, report_by};
use engine::synth::{Doing, Execution, Generated, generate};
use engine::timeline::{State, Timeline, build};
use engine::translation::from_timeline;
use probe_abi::Record;
use proptest::prelude::*;

fn bare(program: &Program) -> Program {
    let bare =
        |thread: &Thread| Thread { process: None, moves: Vec::new(), background: None, ..thread.clone() };
    Program {
        threads: program.threads.iter().map(bare).collect(),
        edges: Vec::new(),
        trust: Default::default(),
        findings: Vec::new(),
        recorded: Default::default(),
        machine: None,
        ..program.clone()
    }
}

/// The true states of each thread as (state, start), without empty ones, and with equal neighbours joined.
fn true_spans(generated: &Generated, from_ns: u64) -> Vec<(u32, Vec<(Doing, u64)>)> {
    let lives = generated.truth.iter().map(|life| {
        let mut changes: Vec<(Doing, u64)> = Vec::new();
        for (i, &(at, doing)) in life.changes.iter().enumerate() {
            let until = life.changes.get(i + 1).map_or(u64::MAX, |next| next.0);
            if until <= at.max(from_ns)
                || doing == Doing::Ended
                || changes.last().is_some_and(|l| l.0 == doing)
            {
                continue;
            }
            changes.push((doing, at.max(from_ns)));
        }
        (life.tid, changes)
    });
    lives.filter(|(_, changes)| !changes.is_empty()).collect()
}

fn spans(timeline: &Timeline) -> Vec<(u32, Vec<(Doing, u64)>)> {
    let threads = timeline.threads.iter().map(|thread| {
        let mut changes: Vec<(Doing, u64)> = Vec::new();
        for (start, end, state) in thread.spans() {
            let doing = match state {
                State::Running { .. } => Doing::Running,
                State::Runnable => Doing::Runnable,
                State::Blocked(_) => Doing::Blocked,
                State::Unknown(reason) => panic!("unknown: {reason:?} {start:?} {thread:#?}"),
            };
            if start < end && changes.last().is_none_or(|last| last.0 != doing) {
                changes.push((doing, start.0));
            }
        }
        (thread.tid, changes)
    });
    threads.filter(|(_, changes)| !changes.is_empty()).collect()
}

/// The report without costs of the recorded machine and without limits of its devices.
fn ideal(program: &Program, cpus: &[Cpus]) -> Report {
    let model = Model { scheduler: Some(Scheduler::Ideal), io: Io::Unlimited, ..Model::default() };
    report_by(program, cpus, Detail::Segments, Grouping::Function, &model)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// The executed program is restored from its recording, and its report is the same.
    #[test]
    fn a_generated_recording_gives_the_executed_program_back(case in case()) {
        let generated = &case.generated;
        let recording = generated.recording();
        let timeline = build(&recording);
        assert_tiles(&timeline);
        prop_assert_eq!(spans(&timeline), true_spans(generated, 0));
        prop_assert_eq!(timeline.counts.contradictions, 0);
        prop_assert_eq!(timeline.counts.unknown.0, 0);
        prop_assert_eq!(timeline.counts.unmatched, 0);
        prop_assert_eq!(timeline.counts.stray_exits, 0);
        prop_assert_eq!(timeline.counts.lost, 0);
        let program = from_timeline(&timeline);
        prop_assert_eq!(bare(&program), generated.expected.clone());
        assert_no_deadlock(&program);
        let cpus = [1, 2, 3].map(|n| Cpus::count(n).expect("not 0"));
        let (got, wanted) =
            (ideal(&bare(&program), &cpus), ideal(&generated.expected, &cpus));
        prop_assert_eq!(got.results, wanted.results);
        prop_assert!(!timeline.findings.iter().any(|finding| finding.kind() == "cpu_time"), "{:?}", timeline.findings);
    }

    /// Any interleaving of the rings and any batch size gives the same records.
    #[test]
    fn a_merged_recording_does_not_depend_on_batches_and_interleaving(case in case(), turns in prop::collection::vec((0usize..4, 1usize..9), 0..40)) {
        let generated = &case.generated;
        let reference = generated.recording();
        let rings = generated.rings.len();
        let mut merger = Merger::new(rings);
        let mut at = vec![0; rings];
        let mut events = Vec::new();
        let all = (0..rings).map(|ring| (ring, usize::MAX));
        for (ring, count) in turns.into_iter().map(|(ring, n)| (ring % rings, n)).chain(all) {
            for record in generated.rings[ring].iter().skip(at[ring]).take(count) {
                merger.push(ring, *record);
                at[ring] += 1;
            }
            events.extend(merger.release());
        }
        events.extend(merger.finish());
        prop_assert_eq!(&events, &reference.events);
        prop_assert!(merger.take_notes().is_empty());
    }

    /// Attached in the middle, intervals from there on are those of the whole run.
    #[test]
    fn a_recording_attached_in_the_middle_has_the_whole_run_s_intervals(case in case(), part in 0u64..1000) {
        // Only its waker distinguishes the second wake-up of a thread from the first one.
        let execution = Execution { second_wakings: false, ..case.execution };
        let generated = generate(&case.program, &execution).expect("supported");
        let start = generated.facts.start_ns;
        let end = generated.facts.end.as_ref().map_or(start, |end| end.end_ns);
        let at = start + (end - start) * part / 1000;
        let cut = generated.clone().attached_at(at);
        let timeline = build(&cut.recording());
        assert_tiles(&timeline);
        prop_assert_eq!(spans(&timeline), true_spans(&generated, at));
        prop_assert_eq!(timeline.counts.contradictions, 0);
        assert_no_deadlock(&from_timeline(&timeline));
        prop_assert!(!timeline.findings.iter().any(|finding| finding.kind() == "cpu_time"), "{:?}", timeline.findings);
    }

    /// Whatever is lost, intervals tile the window, the program can be scheduled, and no time counts as computing that was
    /// not.
    #[test]
    fn a_lossy_recording_shows_no_computing_that_was_none(case in case(), loss in 1u64..100, seed in any::<u64>()) {
        let generated = &case.generated;
        // A loss shows as a hole in a CPU's sequence, so not before its first or after its last record.
        let mut edges = std::collections::HashMap::new();
        for header in generated.rings.iter().flatten().map(Record::header) {
            let times = edges.entry(header.cpu).or_insert((header.time_ns, header.time_ns));
            *times = (times.0.min(header.time_ns), times.1.max(header.time_ns));
        }
        let lossy = generated.clone().lossy(|record| {
            let header = record.header();
            let (first, last) = edges[&header.cpu];
            if header.time_ns == first || header.time_ns == last {
                return false;
            }
            // Lose all records of an instant or none: real records of one CPU never share a nanosecond.
            let mixed = (header.time_ns ^ seed).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            ((mixed ^ (mixed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 33) % 100 < loss
        });
        let recording = lossy.recording();
        let timeline = build(&recording);
        assert_tiles(&timeline);
        let program = from_timeline(&timeline);
        assert_no_deadlock(&program);
        for thread in &timeline.threads {
            let Some(truth) = generated.truth.iter().find(|life| life.tid == thread.tid) else { continue };
            for (start, end, state) in thread.spans() {
                if !matches!(state, State::Running { .. }) {
                    continue;
                }
                let doing = truth.changes.iter().take_while(|(at, _)| *at <= start.0).last();
                let next = truth.changes.iter().find(|(at, _)| *at > start.0).map_or(u64::MAX, |change| change.0);
                prop_assert_eq!(doing.map(|(_, doing)| *doing), Some(Doing::Running), "{:?} {:#?}", start, thread);
                prop_assert!(end.0 <= next, "{:?} {:?} {:#?}", start, next, thread);
            }
        }
    }
}
