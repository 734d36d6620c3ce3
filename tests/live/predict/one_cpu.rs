//! A recording made on one CPU must predict what two CPUs do.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use longpole_tests::{
    Background, Longpole, Recorded, must_run, skip, skip_unless_built, skip_unless_live, workload,
};

const LIMIT: Duration = Duration::from_secs(120);
const RUNS: usize = 3;
const TRIES: u64 = 6;

fn wall(cpus: &str, program: &Path, arguments: &[&str]) -> f64 {
    let start = Instant::now();
    let ended = must_run(Command::new("taskset").args(["-c", cpus]).arg(program).args(arguments), LIMIT);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    start.elapsed().as_secs_f64()
}

/// The bound is wide, because on a machine that others use, the real speed-up is anything from 1 to 2.
#[test]
fn two_cpus_are_predicted_from_a_recording_on_one() {
    skip_unless_live!();
    if std::thread::available_parallelism().map_or(1, usize::from) < 2 {
        skip!("one CPU only");
    }
    let program = skip_unless_built!(workload::build("forkjoin.c"));
    let arguments = ["4", "3", "8000000"];
    let recorded = Recorded::good(&["--cpu-list", "0"], &program, &arguments);
    let ended = Longpole::with(["predict", "--json", "--cpus", "1,2,8"]).and(&recorded.file).ok();
    let json: serde_json::Value = serde_json::from_str(&ended.stdout).expect("JSON");
    let results = json["results"].as_array().expect("a list");
    let number = |place: usize, name: &str| results[place][name].as_f64().expect("a number");
    assert_eq!(results.len(), 3, "{json}");
    for (place, result) in results.iter().enumerate() {
        assert!(number(place, "low_ns") <= number(place, "time_ns"), "{json}");
        assert!(number(place, "time_ns") <= number(place, "high_ns"), "{json}");
        assert_eq!(result["complete"], true, "{json}");
    }
    let speedup = number(1, "speedup");
    // There are three short branches and a long one. Two CPUs at most double the speed, and eight do not make it lower.
    assert!((1.2..=2.05).contains(&speedup), "{speedup}\n{json}");
    assert!(number(2, "speedup") >= speedup * 0.98, "{json}");
    let runs: Vec<(f64, f64)> =
        (0..RUNS).map(|_| (wall("0", &program, &arguments), wall("0,1", &program, &arguments))).collect();
    // Other programs only make runs longer, so the shortest runs are the program's own.
    let shortest = |of: fn(&(f64, f64)) -> f64| runs.iter().map(of).fold(f64::INFINITY, f64::min);
    let real = shortest(|run| run.0) / shortest(|run| run.1);
    assert!((0.45..=3.0).contains(&(speedup / real)), "predicted {speedup}, measured {real}: {runs:?}");
}

/// A thread's nice value and the CPU that it chose must be exported. The mask with which all threads were started must
/// not be exported, because it belongs to the recorded machine.
#[test]
fn threads_keep_their_nice_value_and_the_cpus_that_they_chose() {
    skip_unless_live!();
    if std::thread::available_parallelism().map_or(1, usize::from) < 2 {
        skip!("one CPU only");
    }
    let program = skip_unless_built!(workload::build("placed.c"));
    let recorded = Recorded::good(&["--cpu-list", "0,1"], &program, &[]);
    let ended = Longpole::with(["export", "--format", "program"]).and(&recorded.file).ok();
    let json: serde_json::Value = serde_json::from_str(&ended.stdout).expect("JSON");
    let threads = json["threads"].as_array().expect("threads");
    let of = |role: &str| -> Vec<(i64, Vec<u64>)> {
        let mine =
            threads.iter().filter(|thread| thread["name"].as_str().is_some_and(|name| name.contains(role)));
        let cpus = |thread: &serde_json::Value| {
            thread["cpus"].as_array().into_iter().flatten().filter_map(serde_json::Value::as_u64).collect()
        };
        mine.map(|thread| (thread["nice"].as_i64().unwrap_or(0), cpus(thread))).collect()
    };
    assert_eq!(of("gentle"), [(7, vec![])], "{json}");
    assert_eq!(of("pinned"), [(0, vec![1])], "{json}");
    assert_eq!(of("plain"), [(0, vec![]), (0, vec![])], "{json}");
    assert_eq!(of("placed"), [(0, vec![])], "{json}");
    // The launched command waited at the gate until the recording was ready. This time must not count as a wait of the
    // program.
    let first = &threads[0]["ops"][0];
    assert_ne!(first[0], "io", "{first}");
    assert!(json["machine"]["idle_wake"]["latency_ns"].as_u64().is_none_or(|ns| ns > 0), "{json}");
}

/// A sleep until a point in time must end there, whatever the thread did before. A sleep for a length of time must
/// start when the thread reaches it.
#[test]
fn sleeps_until_a_deadline_and_for_a_length_are_distinguished() {
    let program = skip_unless_live!("timers.c");
    let recorded = Recorded::good(&["--overhead", "none"], &program, &[]);
    let ended = Longpole::with(["export", "--format", "program"]).and(&recorded.file).ok();
    let json: serde_json::Value = serde_json::from_str(&ended.stdout).expect("JSON");
    // How often a thread waited in this way. If a deadline has already passed, as on a busy machine, the thread does
    // not wait.
    let waits = |thread: &str, what: &[&str]| {
        let threads = json["threads"].as_array().expect("threads").iter();
        let mine = threads.filter(|it| it["name"].as_str().is_some_and(|name| name.starts_with(thread)));
        let all = mine.flat_map(|it| it["ops"].as_array().expect("operations"));
        let name = |operation: &serde_json::Value, place: usize| operation[place].as_str().map(str::to_owned);
        all.filter(|it| what.contains(&name(it, 0).unwrap_or_default().as_str()))
            .filter(|it| {
                name(it, 0).as_deref() != Some("io") || name(it, 2).as_deref() == Some("timerfd read")
            })
            .count()
    };
    for thread in ["until", "again"] {
        assert!(waits(thread, &["sleep_next"]) > 1, "{thread}: {json}");
        assert_eq!(waits(thread, &["sleep", "io"]), 0, "{thread}: {json}");
    }
    assert_eq!((waits("length", &["sleep"]), waits("length", &["sleep_next", "io"])), (10, 0), "{json}");
    assert_eq!(waits("once", &["sleep_next", "sleep"]), 0, "{json}");
    assert!(waits("once", &["io"]) > 1, "{json}");
}

#[test]
fn threads_that_yield_in_a_loop_are_a_note_with_the_time_it_takes() {
    skip_unless_live!();
    if std::thread::available_parallelism().map_or(1, usize::from) < 2 {
        skip!("one CPU only, on which who yields is hardly ever asked again");
    }
    let program = skip_unless_built!(workload::build("impatient.c"));
    // Three threads share the CPU time that the computing thread leaves on two CPUs. If other programs get the time
    // that the threads yield, no thread spins for long, and the test tries again.
    let options = ["--cpu-list", "0,1", "--overhead", "none"];
    let mut told = None;
    for again in 0..TRIES {
        std::thread::sleep(Duration::from_millis(500 * again));
        let recorded = Recorded::good(&options, &program, &[]);
        let report = recorded.report("1,2");
        // Spinning that samples show must count as waiting. Without samples it counts as computing.
        let said = [report.findings("spinning"), report.findings("busy_wait")].concat();
        let is_said = !said.is_empty();
        told = Some((said, recorded.ended.stderr.clone(), report.0["findings"].clone()));
        if is_said {
            break;
        }
    }
    let about = told.expect("a try");
    let said = &about.0;
    assert!(said.len() == 1 && said[0].contains(" ms ("), "{about:?}");
    if said[0].contains("they called sched_yield") {
        assert!(said[0].contains(" times, after "), "{about:?}");
        assert!(said[0].contains("most often impatient/"), "{about:?}");
    }
    // A program whose threads do not spin must have no such note.
    let patient = skip_unless_built!(workload::build("forkjoin.c"));
    let patient = Recorded::good(&["--cpu-list", "0"], &patient, &["3", "3"]);
    assert_eq!(patient.report("1").findings("busy_wait"), [""; 0]);
}

/// `taskset` starts the program on one of two CPUs, as a container does, and it is recorded on one CPU. If two CPUs
/// were counted, half of the real time would be predicted.
#[test]
fn cpus_outside_the_program_s_affinity_mask_are_not_counted() {
    skip_unless_live!();
    if std::thread::available_parallelism().map_or(1, usize::from) < 2 {
        skip!("one CPU only");
    }
    let program = skip_unless_built!(workload::build("phases.c"));
    let recorded_cpus = |recorded: &Recorded| {
        let report = Longpole::with(["predict", "--json"]).and(&recorded.file).ok().stdout;
        let report: serde_json::Value = serde_json::from_str(&report).expect("JSON");
        report["recorded_cpus"].clone()
    };
    let mut target = Command::new("taskset");
    let target = Background::must_start(target.args(["-c", "0"]).arg(&program).args(["4", "100000"]));
    let attached = Recorded::attach(&["-d", "1s"], target.pid());
    assert_eq!(recorded_cpus(&attached), 1);
    let taskset = ["-c", "0", &program.display().to_string(), "4", "60"];
    let launched = Recorded::good(&[], Path::new("taskset"), &taskset);
    assert_eq!(recorded_cpus(&launched), 1);
}
