//! `report --by lock` of a program whose hot lock is known by construction.

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
fn a_hot_lock_is_the_long_pole_and_its_numbers_are_exact() {
    skip_unless_live!();
    let program = skip_unless_built!(workload::build("convoy.c"));
    let arguments = [ROUNDS.to_string(), THREADS.to_string(), "200000".to_owned()];
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let recorded = Recorded::good(&["--interpose", "always"], &program, &arguments);
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

    // What is computed under the lock is what its function computes, at every CPU count; on many CPUs it is most of all.
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

    // People see the same, and so does whoever reads the exported program.
    let text = Longpole::with(["report", "--by", "lock"]).and(&recorded.file).ok().stdout;
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains(&format!("{hot} taken in UnderTheLock")), "{text}");
    assert!(words.contains(&format!("taken {} times", ROUNDS * THREADS)), "{text}");
    let exported = recorded.beside("program.json");
    Longpole::with(["export", "--format", "program"]).and(&recorded.file).and("-o").and(&exported).ok();
    let again = Longpole::report(&exported, "1,4,inf");
    assert_eq!(again.0["locks"], report.0["locks"]);
    assert_eq!(again.0["results"], report.0["results"]);
}

/// Without records of its locks a report says why it has none.
#[test]
fn a_recording_without_lock_operations_says_so() {
    skip_unless_live!();
    let program = skip_unless_built!(workload::build("convoy.c"));
    let recorded = Recorded::good(&["--interpose", "never"], &program, &["11", "2", "1000"]);
    let text = Longpole::with(["report", "--by", "lock"]).and(&recorded.file).ok().stdout;
    assert!(text.contains("No lock operations are in this recording"), "{text}");
    assert_eq!(recorded.report("1").findings("uncontended").len(), 1);
}
