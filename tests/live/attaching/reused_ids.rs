//! The kernel reuses ids, so longpole identifies a thread or process by its beginning and end and not by its number.
//! Issue 3, "Life".

use std::process::Command;
use std::time::Duration;

use longpole_tests::{Background, Longpole, Recorded, skip, skip_unless_live};

const LIMIT: Duration = Duration::from_secs(120);

/// Names of the threads in a recording.
fn names(recorded: &Recorded) -> Vec<String> {
    let program = recorded.program();
    let threads = program.0["threads"].as_array().expect("threads");
    threads.iter().map(|thread| thread["name"].as_str().unwrap_or_default().to_owned()).collect()
}

#[test]
fn a_thread_and_a_process_with_reused_numbers_are_recorded_apart() {
    let program = skip_unless_live!("reborn.c");
    let options = ["--exact", "--children", "--max-rate", "1000000000", "--overhead", "none"];
    let recorded = Recorded::launch(&options, &program, &[]);
    let ended = &recorded.ended;
    if ended.code == Some(3) {
        skip!("{}", ended.stdout.trim());
    }
    assert_eq!(ended.code, Some(0), "{}{}", ended.stdout, ended.stderr);
    if !ended.stdout.starts_with("thread reborn") || !ended.stdout.ends_with("process reborn\n") {
        skip!("somebody else got the number: {}", ended.stdout.trim());
    }
    let program = recorded.program();
    let calls = ["FirstLife", "SecondLife", "ChildOne", "ChildTwo"].map(|name| program.entries(name));
    assert_eq!(calls, [7, 11, 3, 5]);
    // Each use of the number must be a separate thread with its own name.
    let names = names(&recorded);
    for life in ["first life", "second life", "child one", "child two"] {
        let of_this_life = names.iter().filter(|name| name.contains(life)).count();
        assert_eq!(of_this_life, 1, "{life}: {names:?}");
    }
    let report = recorded.report("1");
    assert_eq!(report.trust("unmatched"), 0.0, "{}", report.0);
    assert!(report.findings("stray_exit").is_empty(), "{}", report.0);
}

/// A child gets the number that one of longpole's own processes has just had. When longpole removes the last data about
/// that process, it must not remove the child.
#[test]
fn a_child_with_the_number_of_a_process_of_longpole_is_recorded() {
    let program = skip_unless_live!("reborn.c");
    let options = ["--exact", "--children", "--overhead", "none"];
    let (mut record, _folder, file) = Recorded::launch_in_background(&options, &program, &["successor"]);
    assert_eq!(record.line(LIMIT).unwrap(), "ready");
    let mut stranger = Command::new("true").spawn().unwrap();
    let number = stranger.id();
    assert!(stranger.wait().unwrap().success());
    record.say(&number.to_string()).unwrap();
    let took = record.line(LIMIT);
    let recorded = record.wait(LIMIT).unwrap();
    if recorded.code == Some(3) {
        skip!("ids cannot be chosen here");
    }
    assert_eq!((took.ok(), recorded.code), (Some(format!("took {number}")), Some(0)), "{}", recorded.stderr);
    assert_eq!(Longpole::export(&file).entries("ChildOne"), 3);
}

/// A process outside of the recording must not be recorded, even if it has the number of a recorded child that has
/// ended.
#[test]
fn a_stranger_with_the_number_of_an_ended_child_is_not_recorded() {
    let program = skip_unless_live!("reborn.c");
    let options = ["--exact", "--children", "--overhead", "none"];
    let (mut record, _folder, file) = Recorded::launch_in_background(&options, &program, &["heir"]);
    let line = record.line(LIMIT).unwrap();
    let gone = line.strip_prefix("gone ").unwrap_or_else(|| panic!("{line}"));
    let mut stranger = Background::must_start(Command::new(&program).args(["stranger", gone]));
    let took = stranger.line(LIMIT).unwrap();
    let ended = stranger.wait(LIMIT).unwrap();
    record.say("go on").unwrap();
    let recorded = record.wait(LIMIT).unwrap();
    assert_eq!(recorded.code, Some(0), "{}", recorded.stderr);
    if ended.code == Some(3) {
        skip!("{took}");
    }
    assert_eq!((took, ended.code), (format!("took {gone}"), Some(0)), "{}", ended.stderr);
    let program = Longpole::export(&file);
    assert_eq!(program.entries("ChildTwo"), 0);
    assert!(program.operations().all(|(thread, _)| !thread.contains("stranger")), "{}", program.0);
    assert_eq!(program.threads(), 2, "{}", program.0);
}
