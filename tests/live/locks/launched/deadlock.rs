//! Programs in a deadlock: two threads that want each other's locks, and a thread that wants its own lock.

use crate::locks::support::record_in;
use longpole_tests::{Longpole, skip_unless_live};
use serde_json::Value;
use std::path::Path;

/// LIMIT as text and in JSON.
fn limit(program: &Path, options: &[&str], words: &[&str]) -> (String, Value) {
    let folder = tempfile::tempdir().expect("folder");
    let path = program.to_string_lossy().into_owned();
    let command: Vec<&str> = std::iter::once(path.as_str()).chain(words.iter().copied()).collect();
    let recorded = record_in(folder.path(), options, &command, &[]);
    let file = recorded.file.to_string_lossy().into_owned();
    let text = Longpole::with(["report", &file]).run().stdout;
    let answer = Longpole::with(["report", "--json", &file]).run().stdout;
    let answer: Value = serde_json::from_str(&answer).expect("JSON");
    (text, answer)
}

/// LIMIT must name both locks and their holders, instead of "waiting for signal" and locks that are held for 0 ns.
#[test]
fn a_deadlock_of_two_threads_is_the_limit_however_the_recording_ends() {
    let program = skip_unless_live!("deadlock.c");
    for options in [&["-d", "500ms"][..], &[]] {
        let (text, answer) = limit(&program, options, &["abba", "ends"]);
        assert_eq!(answer["limit"]["at"][0]["kind"], "deadlock", "{text}");
        let one_line = text.split_whitespace().collect::<Vec<_>>().join(" ");
        for part in ["for lock \"journal\", held by", "for lock \"accounts\", held by", "in the same order"] {
            assert!(one_line.contains(part), "{part}: {text}");
        }
        let findings = answer["findings"].as_array().expect("findings");
        let deadlock = findings.iter().find(|finding| finding["kind"] == "deadlock").expect("a deadlock");
        assert_eq!(deadlock["others_ran"], false, "{deadlock}");
    }
}

#[test]
fn a_thread_that_locks_its_own_mutex_again_is_a_deadlock() {
    let program = skip_unless_live!("deadlock.c");
    let (text, answer) = limit(&program, &[], &["again", "ends"]);
    assert_eq!(answer["limit"]["at"][0]["kind"], "deadlock", "{text}");
    assert!(text.contains("The thread holds that lock already"), "{text}");
}
