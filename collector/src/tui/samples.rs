//! States of the screen for tests.

use super::{LiveCounts, Phase, Snapshot, State};
use engine::event::Overhead;
use engine::report::{CpuResult, Cpus, Finding, FunctionRow, LockRow, Report, Trust};
use std::num::NonZeroU32;
use std::time::Duration;

pub(crate) fn cpus(count: u32) -> Cpus {
    Cpus::Count(NonZeroU32::new(count).expect("not 0"))
}

pub(crate) fn cpu_list() -> Vec<Cpus> {
    vec![cpus(1), cpus(2), cpus(4), cpus(8), cpus(16), Cpus::Infinite]
}

fn function(name: &str, location: Option<&str>, tet_ns: f64, tetid_ns: f64) -> FunctionRow {
    FunctionRow {
        function: name.to_owned(),
        location: location.map(str::to_owned),
        calls: 3,
        tet_ns,
        tetid_ns,
        exact: true,
        folded: name == "swap",
        ..FunctionRow::default()
    }
}

/// Functions whose shares change with the CPU count; one below 0, one above 100 %, one that vanishes.
pub(crate) fn report() -> Report {
    let results = cpu_list()
        .into_iter()
        .enumerate()
        .map(|(i, cpus)| {
            let speedup = [1.0, 1.93, 3.41, 5.02, 5.9, 6.11][i];
            let time_ns = 9.6e9 / speedup;
            let parallel = i as f64 / 5.0;
            let mut functions = vec![
                function("main", Some("quicksort.c:120"), 0.02 * time_ns, time_ns),
                function("sort_parallel", Some("quicksort.c:48"), 0.04 * time_ns, 0.97 * time_ns),
                function(
                    "partition",
                    Some("quicksort.c:20"),
                    (0.31 + 0.5 * parallel) * time_ns,
                    (0.36 + 0.5 * parallel) * time_ns,
                ),
                function("swap", Some("quicksort.c:9"), 0.05 * time_ns, 0.05 * time_ns),
                function("wait_for_disk", None, -0.125 * time_ns, -0.125 * time_ns),
            ];
            if i < 5 {
                functions.push(function(
                    "sort_recursive",
                    Some("quicksort.c:33"),
                    0.4 * (1.0 - parallel) * time_ns,
                    0.62 * (1.0 - parallel) * time_ns,
                ));
            }
            for n in 1..=9 {
                let share = 0.001 * f64::from(n);
                functions.push(function(&format!("helper_{n}"), None, share * time_ns, share * time_ns));
            }
            let locks_held_ns = vec![0.01 * time_ns, 0.25 * time_ns];
            CpuResult {
                cpus,
                time_ns,
                speedup,
                locks_held_ns,
                waits: Vec::new(),
                functions,
                segments: vec![],
            }
        })
        .collect();
    let trust = Trust {
        events: 812_345,
        wakes: 5_120,
        lost: 0,
        unmatched: 2,
        unknown_ns: 1_200_000,
        censored: 7,
        spurious: 0,
    };
    let lock = |lock: &str, acquisitions, holder: Option<&str>| LockRow {
        lock: lock.to_owned(),
        acquisitions,
        holder: holder.map(str::to_owned),
        ..LockRow::default()
    };
    let queue = LockRow { contended: Some(120), wait_ns: Some(3e6), ..lock("mutex queue", 1_000, None) };
    let locks = vec![lock("mutex stats", 10, Some("count")), queue];
    Report { results, trust, locks, ..Report::default() }
}

pub(crate) fn snapshot() -> Snapshot {
    Snapshot {
        report: report(),
        headline: Some(
            "Make partition (quicksort.c:20) faster: on 16 CPUs half its time would save 0.65 s of 1.63 s (1.66 times as fast)."
                .to_owned(),
        ),
        threads: 17,
        thread_ns: 170_000_000_000,
        window_ns: 10_000_000_000,
        took: Duration::from_millis(320),
        cut_by_events: false,
    }
}

pub(crate) fn state() -> State {
    let mut state = State::new("quicksort (pid 4242)".to_owned(), cpu_list(), Duration::from_secs(10));
    state.phase = Phase::Running;
    state.elapsed = Duration::from_secs(94);
    state.counts = LiveCounts {
        events: 7_654_321,
        recent_overhead: Some(Overhead {
            budget_ppm: Some(20_000),
            wall_ns: 10_000_000_000,
            target_ns: 20_000_000_000,
            hits: 12_000,
            hit_ns: 10_800_000,
            events: 140_000,
            event_ns: 42_000_000,
            operations: 0,
            operation_ns: 0,
            left_out: 0,
            left_out_ns: 0,
            samples: 0,
            sample_ns: 0,
            collector_ns: 87_200_000,
            unwinding_ns: 0,
        }),
        ..LiveCounts::default()
    };
    state
}

/// Names that attack the terminal, or are too long for it.
pub(crate) fn hostile_snapshot() -> Snapshot {
    let mut snapshot = snapshot();
    for result in &mut snapshot.report.results {
        result.functions[1].function = "evil\u{1b}[2J\u{1b}]0;owned\u{7}name\r\n".to_owned();
        result.functions[2].function = format!("very::{}::end_of_long_name", "long::".repeat(400));
        result.functions[3].function = "関数名前関数名前関数名前関数名前関数名前関数名前".to_owned();
        result.functions[2].location = Some(format!("{}/file.rs:1", "dir/".repeat(100)));
    }
    snapshot.headline = Some("Make evil\u{1b}[31m faster.".to_owned());
    snapshot.report.findings = vec![Finding::Other {
        kind: "deadlock".to_owned(),
        text: format!("T1 waits for \u{1b}[5m{}.", "m".repeat(300)),
    }];
    snapshot
}
