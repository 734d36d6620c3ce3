//! The workloads do what the other suites take for granted, without longpole.

use std::process::Command;
use std::time::Duration;

use longpole_tests::{Background, run, skip_unless_built, workload};

const LIMIT: Duration = Duration::from_secs(120);

macro_rules! says {
    ($($test:ident: $source:literal $arguments:expr => $expected:literal;)*) => {$(
        #[test]
        fn $test() {
            let program = skip_unless_built!(workload::build($source));
            let arguments: &[&str] = &$arguments;
            let ended = run(Command::new(program).args(arguments), LIMIT).unwrap();
            assert_eq!(ended.code, Some(0), "{}", ended.stderr);
            assert!(ended.stdout.starts_with($expected), "{}", ended.stdout);
        }
    )*};
}

says! {
    quicksort_sorts: "quicksort.c" ["2", "300001", "20000"] => "300001 integers sorted 2 times\n";
    handoff_hands_over: "handoff.c" ["101", "3", "2000"] => "101 hand-offs, ";
    forkjoin_joins: "forkjoin.c" ["3", "2", "1000"] => "3 rounds of 3 branches\n";
    pipeline_delivers: "pipeline.c" ["53", "4", "1000"] => "53 items, ";
    exceptions_are_caught: "exceptions.cpp" [] => "1006 caught, 8048 frames unwound\n";
    longjmp_jumps: "longjmp.c" [] => "401 jumps, sum 9223\n";
    cancelled_threads_clean_up: "cancel.c" [] => "101 cancelled, 101 cleaned up\n";
    recursion_is_the_same_in_both_threads: "recursion.c" [] => "113f5503acc6606c twice\n";
    panics_are_caught: "unwind.rs" [] => "614 panics caught\n";
    churn_ends: "churn.c" ["53", "4"] => "53 threads\n";
    a_thread_replaces_the_program: "exec_thread.c" [] => "60 calls after exec\n";
    a_convoy_arrives: "convoy.c" ["11", "2", "1000"] => "0x";
    the_largest_are_found: "nlargest.c" ["3", "7"] => "100 largest of 70000: ";
    bills_are_written: "billing.c" ["10000"] => "6 packets through 8 threads\n";
    bills_go_through_sockets_and_files: "billing_io.c" ["2", "100", "1"] => "4 chunks through 8 threads, 5 requests\n";
    a_watchdog_watches: "watchdog.c" ["1"] => "12 units of work, watched 5 times\n";
    weights_of_both_figures: "weights.c" ["8", "1000"] => "figure 8\n";
    tables_are_read: "readers.c" ["3", "40", "100"] => "3 threads, 40 rounds\n";
    phases_follow_each_other: "phases.c" ["3", "7", "100"] => "3 threads, 7 phases\n";
    a_pool_answers: "pool.c" ["3", "30", "100"] => "30 tasks, ";
    work_is_stolen: "stealing.c" ["3", "100000", "1000"] => "100000 units\n";
    rayon_steals: "work_stealing" ["3", "100000", "1000"] => "100000 units, ";
    loops_are_shared: "openmp.c" ["2", "10", "100"] => "2 rounds\n";
    timers_end: "timers.c" ["3", "2", "1000"] => "3 rounds\n";
    who_is_impatient_waits: "impatient.c" ["2", "100000"] => "2 threads\n";
    locks_spin: "spinblock.c" ["3", "50", "100"] => "3 threads, 50 rounds\n";
    rivals_end: "rivals.c" ["2", "1000"] => "shape 2\n";
    parts_are_verified: "startup.c" ["3", "100000"] => "3 workers\n";
    children_end: "family.c" ["2"] => "2 children\n";
}

#[test]
fn brief_ends_as_asked() {
    let program = skip_unless_built!(workload::build("brief.c"));
    assert_eq!(run(Command::new(&program).arg("37"), LIMIT).unwrap().code, Some(37));
    assert_eq!(run(Command::new(&program).args(["0", "15"]), LIMIT).unwrap().signal, Some(15));
}

#[test]
fn pingpong_says_how_long_it_took() {
    let program = skip_unless_built!(workload::build("pingpong.c"));
    let ended = run(Command::new(program).arg("1000"), LIMIT).unwrap();
    let ns: u64 = ended.stdout.trim().strip_suffix(" ns").and_then(|ns| ns.parse().ok()).unwrap_or(0);
    assert!(ns > 0, "{}", ended.stdout);
}

#[test]
fn pairs_say_how_long_they_took() {
    let program = skip_unless_built!(workload::build("pairs.c"));
    let ended = run(Command::new(program).args(["1000", "1000"]), LIMIT).unwrap();
    let words: Vec<&str> = ended.stdout.split_whitespace().collect();
    assert!(matches!(words[..], [_, "ns", "wall,", _, "ns", "CPU"]), "{}", ended.stdout);
    // A thousand times a microsecond, less what calibrating may be wrong by.
    assert!(words[3].parse::<u64>().unwrap() > 500_000, "{}", ended.stdout);
}

#[test]
fn the_zombie_is_one() {
    let program = skip_unless_built!(workload::build("zombie.c"));
    let mut parent = Background::start(&mut Command::new(program)).unwrap();
    let child = parent.line(LIMIT).unwrap();
    let status = std::fs::read_to_string(format!("/proc/{child}/status")).unwrap();
    assert!(status.contains("State:\tZ"), "{status}");
}

#[test]
fn a_workload_waits_for_its_start() {
    let program = skip_unless_built!(workload::build("longjmp.c"));
    let mut command = Command::new(program);
    let mut running = Background::start(command.env("WORKLOAD_WAIT", "1")).unwrap();
    assert_eq!(running.line(LIMIT).unwrap(), "ready");
    assert!(running.is_running().unwrap());
    running.say("go").unwrap();
    assert!(running.wait(LIMIT).unwrap().stdout.ends_with("401 jumps, sum 9223\n"));
}

#[test]
fn a_stripped_workload_has_no_symbols_and_the_go_like_one_has_its_section() {
    let stripped = skip_unless_built!(workload::build_stripped("longjmp.c"));
    let bytes = std::fs::read(stripped).unwrap();
    assert!(!bytes.windows(7).any(|window| window == b"Surface"));
    let gopher = std::fs::read(skip_unless_built!(workload::build("gopher.c"))).unwrap();
    assert!(gopher.windows(13).any(|window| window == b".go.buildinfo"));
}

#[test]
fn a_program_of_many_functions_is_one() {
    let program = skip_unless_built!(workload::build_many_functions(101));
    let mut running = Background::start(&mut Command::new(program)).unwrap();
    assert_eq!(running.line(LIMIT).unwrap(), "ready");
    let addresses = running.line(LIMIT).unwrap();
    let distinct: std::collections::BTreeSet<&str> = addresses.split_whitespace().collect();
    assert_eq!(distinct.len(), 101);
    running.close_stdin();
    assert_eq!(running.wait(LIMIT).unwrap().code, Some(0));
}
