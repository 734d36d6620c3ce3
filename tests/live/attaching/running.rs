//! `longpole record -p PID` records a running program, which must then continue as before.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use longpole_tests::{Background, Longpole, Recorded, skip_unless_built, skip_unless_live, until, workload};

const LIMIT: Duration = Duration::from_secs(120);

fn quicksort(program: &Path) -> Background {
    Background::must_start(Command::new(program).args(["1000000", "1000000"]))
}

#[test]
fn threads_born_after_attaching_are_recorded() {
    let program = skip_unless_live!("quicksort.c");
    let mut target = quicksort(&program);
    std::thread::sleep(Duration::from_millis(300));
    let recorded = Recorded::attach(&["-d", "1500ms"], target.pid());
    assert!(target.is_running().unwrap(), "{}", recorded.ended.stderr);
    let report = recorded.report("1,4,inf");
    for name in ["ParallelQuickSort", "RecursiveQuickSort"] {
        let time = report.at(1).function(name, "tetid_ns").unwrap_or(0.0);
        assert!(time > 0.0, "{name}: {:?}", report.at(1).functions());
    }
    assert!(report.at("inf").speedup() > 1.5, "{}", report.at("inf").speedup());
    // Every round makes about a dozen threads, so nearly all of them started after longpole attached.
    assert!(Longpole::export(&recorded.file).threads() > 20);
}

/// A thread that waits when longpole attaches is woken later. Its wait must begin at the start of the recording.
#[test]
fn threads_that_exist_when_longpole_attaches_are_recorded() {
    let program = skip_unless_live!("pipeline.c");
    let mut command = Command::new(program);
    let mut target =
        Background::start(command.args(["100000", "4", "100000"]).env("WORKLOAD_WAIT", "1")).unwrap();
    assert_eq!(target.line(LIMIT).unwrap(), "ready");
    target.say("go").unwrap();
    std::thread::sleep(Duration::from_millis(300));
    let recorded = Recorded::attach(&["-d", "1500ms"], target.pid());
    assert!(target.is_running().unwrap());
    assert_eq!(Longpole::export(&recorded.file).threads(), 3);
    let report = recorded.report("1,inf");
    let time = |name| report.at("inf").function(name, "tetid_ns").unwrap_or(0.0);
    assert!(time("StageTransform") > time("StageParse"), "{}", report.0);
}

/// The summary's duration must include the time in which longpole still reads the program's symbols.
#[test]
fn the_summary_s_duration_is_that_of_the_whole_recording() {
    let program = skip_unless_live!("turns.c");
    let target = Background::must_start(Command::new(program).arg("1000000000"));
    let recorded = Recorded::attach(&["-d", "1ms"], target.pid());
    let summary = &recorded.ended.stderr;
    let told =
        summary.lines().find(|line| line.starts_with("recorded ")).and_then(|line| line.rsplit_once(", "));
    let (number, unit) = told.and_then(|(_, told)| told.split_once(' ')).expect("a duration");
    let factor = match unit {
        "s" => 1e9,
        "ms" => 1e6,
        "µs" => 1e3,
        _ => panic!("{summary}"),
    };
    let told_ns = number.parse::<f64>().unwrap() * factor;
    let wall_ns = recorded.report("1").0["overhead"]["wall_ns"].as_f64().unwrap();
    // On a busy machine, both ends differ by milliseconds. Without the time for symbols, the ratio would be 0.1.
    assert!((0.15..2.0).contains(&(told_ns / wall_ns)), "{told_ns} of {wall_ns} ns: {summary}");
}

/// Before the recording has begun, SIGTERM must end longpole with a line that says that nothing is recorded.
#[test]
fn sigterm_at_any_moment_leaves_a_recording_or_a_line_that_there_is_none() {
    let program = skip_unless_live!("turns.c");
    let mut target = Background::must_start(Command::new(program).arg("1000000000"));
    // After less than 100 ms, longpole may not have executed its first instruction.
    for delay in [100, 150, 200, 300, 400, 600, 1_000] {
        let (record, _folder, file) = Recorded::attach_in_background(&[], target.pid());
        std::thread::sleep(Duration::from_millis(delay));
        record.signal("TERM").unwrap();
        let ended = record.wait(LIMIT).unwrap();
        match ended.code {
            Some(0) => assert!(Longpole::report(&file, "1").trust("events") >= 0.0),
            code => {
                assert_eq!((code, ended.signal), (None, Some(15)), "after {delay} ms: {}", ended.stderr);
                assert!(ended.stderr.contains("nothing is recorded"), "after {delay} ms: {}", ended.stderr);
            }
        }
        assert!(target.is_running().unwrap());
    }
}

#[test]
fn sigint_and_sigterm_finish_a_recording_and_the_target_runs_on() {
    let program = skip_unless_live!("turns.c");
    let mut target = Background::must_start(Command::new(program).arg("1000000000"));
    for signal in ["INT", "TERM"] {
        let (record, _folder, file) = Recorded::attach_in_background(&["--functions", "*"], target.pid());
        until("something is written about the target", || {
            std::fs::metadata(&file).is_ok_and(|data| data.len() >= 4096)
        });
        record.signal(signal).unwrap();
        assert_eq!(record.wait(LIMIT).unwrap().code, Some(0), "{signal}");
        let info = Longpole::with(["info"]).and(&file).ok().stdout;
        assert!(!info.contains("not finished"), "{signal}: {info}");
        assert!(Longpole::export(&file).entries("compute") > 10, "{signal}");
        assert!(Longpole::report(&file, "1").at(1).time_ns() > 0.0, "{signal}");
        assert!(target.is_running().unwrap());
    }
}

/// The recording must end by itself when its target ends.
#[test]
fn the_end_of_an_attached_target_ends_the_recording() {
    let program = skip_unless_live!("churn.c");
    let mut command = Command::new(program);
    let mut target = Background::start(command.args(["101", "4", "300"]).env("WORKLOAD_WAIT", "1")).unwrap();
    assert_eq!(target.line(LIMIT).unwrap(), "ready");
    // Named functions get their probes at once.
    let options = ["--overhead", "none", "--functions", "ShortLife"];
    let (mut record, _folder, file) = Recorded::attach_in_background(&options, target.pid());
    record.wait_for_stderr("recording ", LIMIT).unwrap();
    target.say("go").unwrap();
    assert_eq!(record.wait(LIMIT).unwrap().code, Some(0));
    assert_eq!(target.wait(LIMIT).unwrap().code, Some(0));
    // longpole attached before the first thread started, so calls of all threads must be recorded.
    assert_eq!(Longpole::export(&file).entries("ShortLife"), 101);
}

/// Reading facts about thousands of threads takes a while. If the program ends in that time, the records so far must be
/// kept.
#[test]
fn a_program_that_ends_while_longpole_attaches_leaves_a_readable_file() {
    skip_unless_live!();
    const THREADS: usize = 5_000;
    let program = skip_unless_built!(workload::build("crowd.c"));
    let mut kept = 0;
    let delays = [0, 20, 40, 60, 80, 120, 160, 200, 300, 400];
    for (number, delay) in delays.into_iter().enumerate() {
        let mut target = Background::must_start(Command::new(&program).arg(THREADS.to_string()));
        assert_eq!(target.line(LIMIT).unwrap(), "ready");
        // Named functions get their probes at once.
        let named: &[&str] = if number % 2 == 0 { &[] } else { &["--functions", "Tick"] };
        let (record, _folder, file) = Recorded::attach_in_background(named, target.pid());
        std::thread::sleep(Duration::from_millis(delay));
        target.say("end").unwrap();
        let ended = record.wait(LIMIT).unwrap();
        let target = target.wait(LIMIT).unwrap();
        assert_eq!((target.code, target.signal), (Some(0), None), "{}", target.stderr);
        if ended.code == Some(1) {
            // Messages for a program that longpole had not looked at yet.
            let before = ["is a zombie", "ended while longpole was attaching", "no process with PID"];
            assert!(before.iter().any(|why| ended.stderr.contains(why)), "{}", ended.stderr);
            assert!(!file.exists(), "{}", ended.stderr);
            continue;
        }
        assert_eq!(ended.code, Some(0), "after {delay} ms: {}", ended.stderr);
        let info = Longpole::with(["info"]).and(&file).ok().stdout;
        let is_said = ended.stderr.contains("ended while longpole was attaching");
        // If the program ended before longpole read anything about it, it has no name.
        assert!(is_said || info.contains("crowd"), "{info}");
        assert!(is_said || !ended.stderr.contains("events    0"), "after {delay} ms: {}", ended.stderr);
        kept += 1;
    }
    assert!(kept >= delays.len() / 2, "{kept} of {} were kept", delays.len());
}
