//! Ideally shared processors, waits, and runs with few facts.

use super::{function, on, row};
use engine::parallelism::Kind;

#[test]
fn more_threads_than_cpus_get_equal_parts() {
    let worker = |name: &str| format!(r#"{{"name":"{name}","ops":[["exec","{name}",100]]}}"#);
    let threads = ["a", "b", "c"].map(worker).join(",");
    let run = on(&threads, 2);
    assert_eq!((run.elapsed_ns, run.nobody_busy_ns), (150, 0));
    for name in ["a", "b", "c"] {
        let row = function(&run, name);
        assert_eq!((row.normalized_self_ns, row.own.busy.ns, row.own.ready.ns), (50, 100, 50), "{name}");
        assert_eq!(row.by_busy, [(2, 50)], "both processors are busy");
        assert_eq!(row.own.busy.by_runnable, [(3, 100)]);
    }
    assert_eq!(on(&threads, 0).elapsed_ns, 100);
}

#[test]
fn normalized_times_lose_no_fraction_of_a_nanosecond() {
    // Three threads on the unlimited machine: 100/3 ns each.
    let worker = |name: &str| format!(r#"{{"name":"{name}","ops":[["exec","{name}",100]]}}"#);
    let run = on(&["a", "b", "c"].map(worker).join(","), 0);
    let parts = ["a", "b", "c"].map(|name| function(&run, name).normalized_self_ns);
    assert_eq!(parts, [34, 33, 33], "of equals the first gets what is missing");
}

#[test]
fn time_in_which_no_thread_computes_is_nobody_s() {
    let run = on(
        r#"{"name":"A","ops":[["call","read"],["exec",10],["io",30,"disk"],["exec",10],["ret"],["sleep",50],["exec",5]]}"#,
        0,
    );
    assert_eq!((run.elapsed_ns, run.nobody_busy_ns), (105, 80));
    assert_eq!(run.levels, [(0, 80), (1, 25)]);
    let read = function(&run, "read");
    assert_eq!((read.own.busy.ns, read.own.blocked.ns, read.total.blocked.ns), (20, 30, 30));
    let disk = row(&run, Kind::Condition, "disk");
    assert_eq!((disk.of.name(), disk.calls, disk.own.blocked.ns), ("device", Some(1), 30));
    let outside =
        run.rows.iter().find(|row| row.kind == Kind::Function && row.name.is_none()).expect("a row");
    assert_eq!((outside.normalized_self_ns, outside.own.blocked.ns, outside.calls), (5, 50, None));
}

#[test]
fn a_condition_wait_frees_its_mutex_and_then_waits_for_it() {
    let run = on(
        r#"{"name":"A","ops":[["lock","m"],["cond_wait","c","m"],["exec","f",10],["unlock","m"]]},
           {"name":"B","ops":[["exec","g",100],["lock","m"],["cond_signal","c"],["exec","g",20],["unlock","m"],["exec","h",40]]}"#,
        0,
    );
    let (lock, condition) = (row(&run, Kind::Lock, "m"), row(&run, Kind::Condition, "c"));
    assert_eq!(condition.own.blocked.ns, 100, "until the signal");
    assert_eq!(lock.own.blocked.ns, 20, "then for the mutex");
    assert_eq!(lock.own.busy.ns, 30, "held by B for 20, then by A for 10");
    assert_eq!(
        (lock.queue.clone(), condition.queue.clone()),
        (vec![(0, 140), (1, 20)], vec![(0, 60), (1, 100)])
    );
}

#[test]
fn parallelism_up_to_a_deadlock_adds_up_with_a_finding() {
    let run = on(r#"{"name":"A","ops":[["exec","f",10],["wait","never"],["exec","f",10]]}"#, 1);
    assert_eq!((run.elapsed_ns, function(&run, "f").normalized_self_ns), (10, 10));
    assert!(run.findings.iter().any(|finding| finding.kind() == "deadlock"), "{:?}", run.findings);
}

#[test]
fn parallelism_of_programs_without_work_names_nothing() {
    let run = on("", 1);
    assert_eq!((run.elapsed_ns, run.rows.len()), (0, 0));
    assert_eq!(run.first(), None);
    let run = on(r#"{"name":"A","ops":[]}"#, 0);
    assert_eq!((run.elapsed_ns, run.first()), (0, None));
    let run = on(r#"{"name":"A","ops":[["sleep",10]]}"#, 0);
    assert_eq!((run.elapsed_ns, run.nobody_busy_ns, run.first()), (10, 10, None));
}
