//! `report --by lock` for a program whose hot lock is known by construction.

use longpole_tests::{Longpole, Recorded, Report, skip_unless_built, skip_unless_live, workload};
use serde_json::Value;

const ROUNDS: u64 = 101;
const THREADS: u64 = 3;

fn field<'a>(report: &'a Report, lock: &str, name: &str) -> &'a Value {
    let rows = report.0["locks"].as_array().map_or(&[][..], Vec::as_slice);
    let row = rows.iter().find(|row| row["lock"] == lock).unwrap_or_else(|| panic!("no {lock} in {rows:?}"));
    &row[name]
}

fn held_ns(report: &Report, place: usize, lock: &str) -> f64 {
    let shares = report.0["results"][place]["locks"].as_array().map_or(&[][..], Vec::as_slice);
    let row = shares.iter().find(|row| row["lock"] == lock).unwrap_or_else(|| panic!("no {lock}"));
    row["held_ns"].as_f64().unwrap_or(f64::NAN)
}

#[test]
fn a_contended_mutex_has_exact_counts_and_the_largest_share() {
    let program = skip_unless_live!("convoy.c");
    let arguments = [ROUNDS.to_string(), THREADS.to_string(), "200000".to_owned()];
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let recorded =
        Recorded::good(&["--exact", "--interpose", "always", "--overhead", "none"], &program, &arguments);
    let (hot, cold) = ("mutex hot".to_owned(), "mutex cold".to_owned());

    let report = recorded.report("1,4,inf");
    for lock in [&hot, &cold] {
        assert_eq!(field(&report, lock, "acquisitions").as_u64(), Some(ROUNDS * THREADS), "{lock}");
    }
    assert_eq!(report.0["locks"][0]["lock"], hot.as_str(), "the largest share first");
    assert_eq!(field(&report, &hot, "holder"), "UnderTheLock");
    let contended = field(&report, &hot, "contended").as_u64().expect("a count");
    assert!((1..ROUNDS * THREADS).contains(&contended), "{contended} of {}", ROUNDS * THREADS);
    assert!(report.findings("uncontended").is_empty());

    // The time under the lock is the time of the function that runs under it, for every CPU count. On many CPUs it is
    // most of the run.
    for (place, answer) in [(0, report.at(1)), (1, report.at(4)), (2, report.at("inf"))] {
        let function = answer.function("UnderTheLock", "tetid_ns").expect("on the path");
        let held = held_ns(&report, place, &hot);
        assert!(
            held > 0.9 * function && held <= 1.01 * function,
            "{held} under the lock, {function} in its function"
        );
        if place > 0 {
            assert!(held > 0.5 * answer.time_ns(), "{held} of {}", answer.time_ns());
        }
        assert!(held_ns(&report, place, &cold) < 0.2 * held);
    }

    // The screen must show the same row, and the report of the exported program must have the same numbers.
    let text = Longpole::with(["report", "--by", "lock"]).and(&recorded.file).ok().stdout;
    let row = text.lines().find(|line| line.starts_with("hot ")).unwrap_or_default();
    assert!(row.ends_with("UnderTheLock") && row.contains(&format!(" {} ", ROUNDS * THREADS)), "{text}");
    let exported = recorded.beside("program.json");
    Longpole::with(["export", "--format", "program"]).and(&recorded.file).and("-o").and(&exported).ok();
    let again = Longpole::report(&exported, "1,4,inf");
    assert_eq!(again.0["locks"], report.0["locks"]);
    assert_eq!(again.0["results"], report.0["results"]);
}

/// A recording made on one CPU must show the lock that limits eight CPUs, although hardly any thread ever waited for
/// it.
#[test]
fn a_recording_on_one_cpu_predicts_the_lock_that_limits_eight() {
    let program = skip_unless_live!("convoy.c");
    let arguments = [ROUNDS.to_string(), THREADS.to_string(), "200000".to_owned()];
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let recorded = Recorded::good(&["--interpose", "always", "--cpu-list", "0"], &program, &arguments);
    let hot = "mutex hot";
    let report = recorded.report("1,2,8");
    // On one CPU every weight is 1, so this is all computing under the lock.
    let under = held_ns(&report, 0, hot);
    let (one, eight) = (report.at(1), report.at(8));
    assert!(under > 0.4 * one.time_ns(), "{under} of {}", one.time_ns());
    let (time, other) = (eight.time_ns(), waits_ns(&recorded));
    assert!(time >= 0.999 * under, "{time} is less than what the lock lets through, {under}");
    assert!(time < 1.25 * under + other, "{time} is much more than the lock makes it, {under}");
    assert!(held_ns(&report, 2, hot) > 0.7 * (time - other), "the lock is what limits it");
    for kind in ["replayed", "conditions_replayed", "simulated_deadlock", "locks_lost"] {
        assert!(report.findings(kind).is_empty(), "{:?}", report.findings(kind));
    }
    // A recording with real contention must predict the same.
    let free = Recorded::good(&["--interpose", "always", "--overhead", "none"], &program, &arguments);
    let free = (free.report("1,2,8"), waits_ns(&free));
    let speedup = |(report, waits): (&Report, f64), cpus: u64| {
        (report.at(1).time_ns() - waits) / (report.at(cpus).time_ns() - waits)
    };
    for cpus in [2, 8] {
        let (one, free) = (speedup((&report, other), cpus), speedup((&free.0, free.1), cpus));
        assert!((one / free - 1.0).abs() < 0.25, "on {cpus} CPUs {one} from one CPU, {free} from all");
        assert!(one > 1.2 && one < 2.0, "three threads, two thirds of whose work is under one lock: {one}");
    }
}

/// Length of all waits that are not for a lock: the start of the recording, and unknown time.
fn waits_ns(recorded: &Recorded) -> f64 {
    let program = recorded.program();
    let waits = program.operations().filter_map(|(_, operation)| match operation {
        [kind, length, ..] if kind == "io" || kind == "sleep" => length.as_f64(),
        _ => None,
    });
    waits.sum()
}

/// Bounded buffers made of condition variables are simulated. A pipeline recorded on one CPU must run its stages at the
/// same time on several CPUs, and be as fast as its slowest stage.
#[test]
fn a_pipeline_recorded_on_one_cpu_is_predicted_to_run_in_parallel() {
    let program = skip_unless_live!("pipeline.c");
    let recorded = Recorded::good(
        &["--exact", "--interpose", "always", "--cpu-list", "0", "--overhead", "none", "-F", "0"],
        &program,
        &["211", "4", "100000"],
    );
    let report = recorded.report("1,8");
    for kind in ["replayed", "conditions_replayed", "simulated_deadlock", "never_awaited"] {
        assert!(report.findings(kind).is_empty(), "{:?}", report.findings(kind));
    }
    let total = |name: &str| report.at(1).function(name, "tetid_ns").unwrap_or(0.0);
    let slowest = total("StageTransform");
    let eight = report.at(8);
    let (time, other) = (eight.time_ns(), waits_ns(&recorded));
    assert!(time > 0.99 * slowest && time < 1.25 * slowest + other, "{time}, the slowest stage {slowest}");
    let share = eight.function("StageTransform", "tet_ns").unwrap_or(0.0) / (time - other);
    assert!(share > 0.7, "{share}");
    let program = recorded.program();
    // The buffers' condition variables are semaphores now. Each of the two buffers has at least one wait for each item.
    assert_eq!(program.count("cond_wait"), 0);
    assert!(program.count("sem_wait") >= 2 * 211, "{}", program.count("sem_wait"));
    let mutexes = (program.count("lock"), program.count("unlock"));
    assert_eq!(mutexes, (4 * 211, 4 * 211));
}

/// Barriers, spin locks, adaptive mutexes, read-write locks and a pool with futures must all be simulated. Where more
/// CPUs help, the prediction must show that.
#[test]
fn every_kind_of_lock_recorded_on_one_cpu_is_simulated_on_eight() {
    skip_unless_live!();
    let cases: [(&str, &[&str], f64); 4] = [
        // The run takes half a second. In a run of a tenth of that, a single thread that a busy machine delays would
        // decide how long all others wait.
        ("phases.c", &["4", "240", "200000"], 1.4),
        ("readers.c", &[], 1.3),
        ("spinblock.c", &["4", "1000", "3000"], 1.0),
        ("pool.c", &["4", "200", "100000"], 1.3),
    ];
    for (source, arguments, least) in cases {
        let program = skip_unless_built!(workload::build(source));
        let recorded = Recorded::good(&["--interpose", "always", "--cpu-list", "0"], &program, arguments);
        let report = recorded.report("1,8");
        for kind in ["replayed", "conditions_replayed", "simulated_deadlock", "deadlock", "unlock_not_held"] {
            assert!(report.findings(kind).is_empty(), "{source}: {:?}", report.findings(kind));
        }
        let other = waits_ns(&recorded);
        let speedup = (report.at(1).time_ns() - other) / (report.at(8).time_ns() - other);
        assert!(speedup >= least && speedup < 8.0, "{source}: {speedup}");
    }
}

/// The recording has no lock operations, and the report must say why it has no locks.
#[test]
fn report_by_lock_without_lock_operations_says_so() {
    let program = skip_unless_live!("convoy.c");
    let recorded = Recorded::good(&["--interpose", "never"], &program, &["11", "2", "1000"]);
    let text = Longpole::with(["report", "--by", "lock"]).and(&recorded.file).ok().stdout;
    // If a thread had to wait, the futex has a row that shows only waits.
    let waited = text.contains("\nFUTEXES ");
    assert!(waited || text.contains("This recording has no lock operations"), "{text}");
    assert!(!text.contains("taken "), "{text}");
    assert_eq!(recorded.report("1").findings("uncontended").len(), 1);
}

/// A program with one thread (sqlite3) takes ten million mutexes per second. Recording all of them would make the
/// program a tenth slower and lose most of them. No thread can have waited for these mutexes, so they are only counted.
/// A child process continues from its parent's state and must be counted separately.
#[test]
fn lock_operations_of_a_lone_thread_are_counted_exactly_if_left_out() {
    skip_unless_live!();
    const PAIRS: u64 = 2_000_000;
    const LATER: u64 = 1_009;
    let program = skip_unless_built!(workload::build("alone.c"));
    let (pairs, later) = (PAIRS.to_string(), LATER.to_string());
    let acquisitions =
        |report: &Report, lock: &str| field(report, lock, "acquisitions").as_u64().expect("a count");
    let number = |text: &str, before: &str| {
        let (_, rest) = text.split_once(before)?;
        let digits = rest.trim_start().chars().take_while(|digit| digit.is_ascii_digit() || *digit == ',');
        digits.filter(char::is_ascii_digit).collect::<String>().parse::<u64>().ok()
    };

    let options = ["--interpose", "always", "--no-children", "-F", "0"];
    let recorded = Recorded::good(&options, &program, &[&pairs, &later]);
    let said = &recorded.ended.stderr;
    let total = number(&recorded.ended.stdout, "operations ").expect("a count");
    let left_out = number(said, "libc);").unwrap_or_else(|| panic!("{said}"));
    let lost = number(said, "\nlost").expect("a count");
    let report = recorded.report("1,2");
    // After the second thread has started, no operation may be missing.
    assert_eq!(acquisitions(&report, "mutex late"), 2 * LATER, "{said}");
    let recorded_early = acquisitions(&report, "mutex early");
    assert!(left_out > PAIRS, "{left_out} of {total}: {said}");
    // At each end of the stretch, half of a pair may be missing.
    let all = left_out + lost + 2 * recorded_early + 4 * LATER;
    assert!(all.abs_diff(total) <= 2 + lost, "{left_out} + {lost} + 2 * {recorded_early} of {total}");
    let text = &report.findings("operations_left_out")[..];
    assert!(text.len() == 1 && text[0].starts_with(&format!("{left_out} mutex operations ")), "{text:?}");
    if lost == 0 {
        assert!(report.findings("loss").is_empty(), "{}", report.0);
    }
    // The cost of each operation must be reported. A slow machine may need a hundred nanoseconds, and no machine needs
    // zero.
    let cost = Longpole::told_cost(&recorded.file);
    let (_, each) = cost.split_once(" left out/s × ").unwrap_or_else(|| panic!("{cost}"));
    let each_ns = each.split_once(" ns").and_then(|(each, _)| each.parse::<u64>().ok());
    assert!(each_ns.is_some_and(|each_ns| (1..=100).contains(&each_ns)), "{cost}");

    // All operations must be recorded if cost does not matter, or if another process may have waited.
    for (options, arguments) in [
        (&["--interpose", "always", "--no-children", "--overhead", "none"], &["10007", &later][..]),
        (&["--interpose", "always", "--no-children", "--overhead", "0.1%"], &["10007", &later, "shared"][..]),
    ] {
        let recorded = Recorded::good(options, &program, arguments);
        let report = recorded.report("1,2");
        assert_eq!(acquisitions(&report, "mutex early"), 10_007, "{}", recorded.ended.stderr);
        // The last operation of the private mutex `held` may be missing.
        let left_out = number(&recorded.ended.stderr, "libc);").unwrap_or(0);
        assert!(left_out <= u64::from(arguments.len() == 3), "{}", recorded.ended.stderr);
    }
}
