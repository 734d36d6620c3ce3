//! Without longpole, the workloads must do what the other test suites assume.

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
    quicksort_sorts_all_integers: "quicksort.c" ["2", "300001", "20000"] => "300001 integers sorted 2 times\n";
    handoff_makes_all_hand_offs: "handoff.c" ["101", "3", "2000"] => "101 hand-offs, ";
    forkjoin_runs_all_rounds: "forkjoin.c" ["3", "2", "1000"] => "3 rounds of 3 branches\n";
    pipeline_delivers_all_items: "pipeline.c" ["53", "4", "1000"] => "53 items, ";
    exceptions_catches_all_of_its_exceptions: "exceptions.cpp" [] => "1006 caught, 8048 frames unwound\n";
    longjmp_makes_all_jumps: "longjmp.c" [] => "401 jumps, sum 9223\n";
    cancel_cleans_up_every_thread: "cancel.c" [] => "101 cancelled, 101 cleaned up\n";
    recursion_has_the_same_result_in_both_threads: "recursion.c" [] => "113f5503acc6606c twice\n";
    unwind_catches_all_panics: "unwind.rs" [] => "614 panics caught\n";
    churn_runs_all_threads: "churn.c" ["53", "4"] => "53 threads\n";
    exec_thread_replaces_the_program: "exec_thread.c" [] => "60 calls after exec\n";
    convoy_prints_its_lock_s_address: "convoy.c" ["11", "2", "1000"] => "0x";
    nlargest_finds_the_largest: "nlargest.c" ["3", "7"] => "100 largest of 70000: ";
    billing_writes_all_packets: "billing.c" ["10000"] => "6 packets through 8 threads\n";
    billing_io_passes_all_chunks: "billing_io.c" ["2", "100", "1"] => "4 chunks through 8 threads, 5 requests\n";
    watchdog_watches_all_work: "watchdog.c" ["1"] => "12 units of work, watched 5 times\n";
    weights_runs_the_given_figure: "weights.c" ["8", "1000"] => "figure 8\n";
    readers_run_all_rounds: "readers.c" ["3", "40", "100"] => "3 threads, 40 rounds\n";
    phases_runs_all_phases: "phases.c" ["3", "7", "100"] => "3 threads, 7 phases\n";
    pool_answers_all_tasks: "pool.c" ["3", "30", "100"] => "30 tasks, ";
    stealing_does_all_units: "stealing.c" ["3", "100000", "1000"] => "100000 units\n";
    work_stealing_does_all_units: "work_stealing" ["3", "100000", "1000"] => "100000 units, ";
    openmp_runs_all_rounds: "openmp.c" ["2", "10", "100"] => "2 rounds\n";
    timers_runs_all_rounds: "timers.c" ["3", "2", "1000"] => "3 rounds\n";
    impatient_runs_both_threads: "impatient.c" ["2", "100000"] => "2 threads\n";
    spinblock_runs_all_rounds: "spinblock.c" ["3", "50", "100"] => "3 threads, 50 rounds\n";
    rivals_runs_the_given_shape: "rivals.c" ["2", "1000"] => "shape 2\n";
    startup_runs_all_workers: "startup.c" ["3", "100000"] => "3 workers\n";
    family_waits_for_all_children: "family.c" ["2"] => "2 children\n";
}

#[test]
fn brief_ends_with_the_given_code_or_signal() {
    let program = skip_unless_built!(workload::build("brief.c"));
    assert_eq!(run(Command::new(&program).arg("37"), LIMIT).unwrap().code, Some(37));
    assert_eq!(run(Command::new(&program).args(["0", "15"]), LIMIT).unwrap().signal, Some(15));
}

#[test]
fn pingpong_prints_how_long_it_took() {
    let program = skip_unless_built!(workload::build("pingpong.c"));
    let ended = run(Command::new(program).arg("1000"), LIMIT).unwrap();
    let ns: u64 = ended.stdout.trim().strip_suffix(" ns").and_then(|ns| ns.parse().ok()).unwrap_or(0);
    assert!(ns > 0, "{}", ended.stdout);
}

#[test]
fn pairs_print_how_long_they_took() {
    let program = skip_unless_built!(workload::build("pairs.c"));
    let ended = run(Command::new(program).args(["1000", "1000"]), LIMIT).unwrap();
    let words: Vec<&str> = ended.stdout.split_whitespace().collect();
    assert!(matches!(words[..], [_, "ns", "wall,", _, "ns", "CPU"]), "{}", ended.stdout);
    // A thousand times a microsecond, minus the possible error of the calibration.
    assert!(words[3].parse::<u64>().unwrap() > 500_000, "{}", ended.stdout);
}

#[test]
fn the_zombie_workload_has_a_zombie_child() {
    let program = skip_unless_built!(workload::build("zombie.c"));
    let mut parent = Background::start(&mut Command::new(program)).unwrap();
    let child = parent.line(LIMIT).unwrap();
    let status = std::fs::read_to_string(format!("/proc/{child}/status")).unwrap();
    assert!(status.contains("State:\tZ"), "{status}");
}

#[test]
fn a_workload_waits_for_its_start_if_asked_to() {
    let program = skip_unless_built!(workload::build("longjmp.c"));
    let mut command = Command::new(program);
    let mut running = Background::start(command.env("WORKLOAD_WAIT", "1")).unwrap();
    assert_eq!(running.line(LIMIT).unwrap(), "ready");
    assert!(running.is_running().unwrap());
    running.say("go").unwrap();
    assert!(running.wait(LIMIT).unwrap().stdout.ends_with("401 jumps, sum 9223\n"));
}

#[test]
fn a_stripped_workload_has_no_symbols_and_gopher_has_go_s_section() {
    let stripped = skip_unless_built!(workload::build_stripped("longjmp.c"));
    let bytes = std::fs::read(stripped).unwrap();
    assert!(!bytes.windows(7).any(|window| window == b"Surface"));
    let gopher = std::fs::read(skip_unless_built!(workload::build("gopher.c"))).unwrap();
    assert!(gopher.windows(13).any(|window| window == b".go.buildinfo"));
}

#[test]
fn a_workload_of_many_functions_has_all_of_them() {
    let program = skip_unless_built!(workload::build_many_functions(101));
    let mut running = Background::start(&mut Command::new(program)).unwrap();
    assert_eq!(running.line(LIMIT).unwrap(), "ready");
    let addresses = running.line(LIMIT).unwrap();
    let distinct: std::collections::BTreeSet<&str> = addresses.split_whitespace().collect();
    assert_eq!(distinct.len(), 101);
    running.close_stdin();
    assert_eq!(running.wait(LIMIT).unwrap().code, Some(0));
}
