//! Records that have no room must be counted exactly, and reported.

use std::process::Command;
use std::time::Duration;

use engine::event::{GapReason, NoteKind};
use longpole_tests::{Background, Longpole, Recorded, skip_unless_built, skip_unless_live, workload};
use serde_json::Value;

const LIMIT: Duration = Duration::from_secs(120);

fn info(file: &std::path::Path) -> Value {
    let said = Longpole::with(["info", "--json"]).and(file).ok().stdout;
    serde_json::from_str::<Value>(&said).expect("JSON")["session"].clone()
}

/// Rings of one page, and a program that makes a known number of calls. The numbers of recorded and lost calls must add
/// up to the program's own number.
#[test]
fn a_flood_of_calls_into_small_rings_is_counted_exactly() {
    let program = skip_unless_live!("exact.c");
    const CALLS: u64 = 60_013;
    let options =
        ["--ring-size", "4K", "--overhead", "none", "--max-rate", "1000000000", "--functions", "Counted"];
    let recorded = Recorded::good(&options, &program, &[&CALLS.to_string()]);
    assert_eq!(recorded.ended.stdout, format!("{CALLS} calls\n"));
    let session = info(&recorded.file);
    let lost = session["loss"]["dropped"].as_u64().unwrap();
    assert!(lost > 1_000, "nothing was lost, so nothing is tested: {session}");
    for (reason, count) in session["loss"].as_object().unwrap() {
        // A switch that the kernel never reported has no record, so it is not a lost record.
        if reason != "dropped" && reason != "unseen_switches" {
            assert_eq!(count.as_u64(), Some(0), "{reason}: {session}");
        }
    }
    // The missing sequence numbers must add up to the kernel's counter.
    let report = recorded.report("1");
    assert_eq!(report.trust("lost"), lost as f64, "{}", report.0);
    assert!(session["gaps"].as_u64().unwrap() > 0, "{session}");
    // There is an entry and an exit for each call, and scheduler events of one thread.
    let events = session["events"].as_u64().unwrap();
    let others = (events + lost).checked_sub(2 * CALLS);
    assert!(others.is_some_and(|others| others < 20_000), "{events} and {lost} for {CALLS} calls");
    let summary = &recorded.ended.stderr;
    assert!(summary.contains("did not fit into the rings"), "{summary}");
}

/// Records that are lost before a CPU's first record or after its last one must be in gaps, too.
#[test]
fn every_lost_record_lies_in_a_gap() {
    let program = skip_unless_live!("turns.c");
    let target = Background::must_start(Command::new(program).arg("1000000000"));
    // The program fills small rings faster than longpole empties them.
    let options = ["-d", "700ms", "--ring-size", "4K", "--max-rate", "1000000", "--functions", "*"];
    let recorded = Recorded::attach(&options, target.pid());
    let said = &recorded.ended.stderr;
    let (recording, _) = recording::read(&recorded.file).expect("session");
    let loss = recording.facts.end.as_ref().expect("an end").loss;
    let in_gaps = recording.notes.iter().filter_map(|note| match note.kind {
        NoteKind::Gap { lost, reason: GapReason::RingFull, .. } => Some(lost),
        _ => None,
    });
    assert!(loss.dropped > 10, "{said}");
    assert_eq!(in_gaps.sum::<u64>(), loss.dropped + loss.late, "{:?}", recording.notes);
}

/// While longpole is stopped, it does not empty the rings. Records that have no room in that time must be counted.
#[test]
fn records_lost_while_longpole_is_stopped_are_counted_exactly() {
    let program = skip_unless_live!("exact.c");
    let mut target = Background::must_start(Command::new(&program).args(["50021", "wait"]));
    assert_eq!(target.line(LIMIT).unwrap(), "ready");
    let options =
        ["--ring-size", "64K", "--overhead", "none", "--max-rate", "1000000000", "--functions", "Counted"];
    let (mut record, _folder, file) = Recorded::attach_in_background(&options, target.pid());
    record.wait_for_stderr("recording ", LIMIT).unwrap();
    std::thread::sleep(Duration::from_millis(300));
    record.signal("STOP").unwrap();
    target.say("go").unwrap();
    assert_eq!(target.line(LIMIT).unwrap(), "50021 calls");
    record.signal("CONT").unwrap();
    std::thread::sleep(Duration::from_millis(300));
    target.close_stdin();
    assert_eq!(target.wait(LIMIT).unwrap().code, Some(0));
    let ended = record.wait(LIMIT).unwrap();
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let session = info(&file);
    let lost = session["loss"]["dropped"].as_u64().unwrap();
    let events = session["events"].as_u64().unwrap();
    assert!(lost > 50_000, "{session}");
    assert_eq!(Longpole::report(&file, "1").trust("lost"), lost as f64, "{session}");
    let others = (events + lost).checked_sub(2 * 50_021).unwrap();
    assert!(others < 5_000, "{others} events beside the calls: {session}");
}

/// Records a thread that only takes and releases a lock, without bursts. Returns the number of events, the number of
/// lost operations, and standard error.
fn locks_of_pairs(options: &[&str], pairs: u64, work_ns: &str) -> Option<(u64, u64, String)> {
    let program = workload::build("pairs.c").ok()?;
    let options = [&["--interpose", "always", "-F", "0", "--overhead", "none"], options].concat();
    let recorded = Recorded::good(&options, &program, &[&pairs.to_string(), work_ns, "1"]);
    let session = info(&recorded.file);
    let lost = session["loss"]["operations"].as_u64().expect("a count");
    for (reason, count) in session["loss"].as_object().expect("losses") {
        if reason != "operations" && reason != "unseen_switches" {
            assert_eq!(count.as_u64(), Some(0), "{reason}: {session}");
        }
    }
    assert_eq!(recorded.report("1").trust("lost"), lost as f64, "{session}");
    Some((session["events"].as_u64().expect("a count"), lost, recorded.ended.stderr.clone()))
}

/// A program does little and then suddenly makes 80,000 lock operations in about 45 ms. longpole looks at the rings
/// every 50 ms at that time, so at most once in the 45 ms, and a ring has room for 32,704 operations. If the program
/// did not wake longpole, at least 14,592 operations would be lost.
#[test]
fn a_thread_that_suddenly_locks_all_the_time_wakes_the_ring_reader() {
    skip_unless_live!();
    skip_unless_built!(workload::build("pairs.c"));
    const PAIRS: u64 = 40_000;
    let (events, lost, said) = locks_of_pairs(&[], PAIRS, "1000").expect("built");
    assert!(lost < 10_000, "{lost} of {} lost: {said}", 2 * PAIRS);
    let others = (events + lost).checked_sub(2 * PAIRS);
    assert!(others.is_some_and(|others| others < 20_000), "{events} and {lost} for {PAIRS} pairs");
}

/// A ring that fills within a quarter of a millisecond cannot be emptied in time. Lost operations must be counted
/// exactly.
#[test]
fn a_flood_of_lock_operations_is_counted_exactly() {
    skip_unless_live!();
    skip_unless_built!(workload::build("pairs.c"));
    const PAIRS: u64 = 200_003;
    let (events, lost, said) = locks_of_pairs(&["--ring-size", "64K"], PAIRS, "0").expect("built");
    assert!(lost > 1_000, "nothing was lost, so nothing is tested: {said}");
    let others = (events + lost).checked_sub(2 * PAIRS);
    assert!(others.is_some_and(|others| others < 20_000), "{events} and {lost} for {PAIRS} pairs");
}
