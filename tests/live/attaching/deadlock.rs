//! Attaching to a program that hangs already.

use longpole_tests::{Background, Longpole, skip_unless_live};
use serde_json::Value;
use std::process::Command;
use std::time::Duration;

/// A thread in a deadlock causes no event at all, so longpole reads its lock and the lock's holder from memory.
#[test]
fn the_holders_in_an_attached_deadlock_are_read_from_memory() {
    let program = skip_unless_live!("deadlock.c");
    for (word, parts) in [
        ("abba", ["lock \"journal\", held by", "lock \"accounts\", held by", "in the same order everywhere"]),
        ("again", ["lock \"accounts\", held by itself", "the end of", "The thread holds that lock already"]),
    ] {
        let hung = Background::must_start(Command::new(&program).arg(word));
        std::thread::sleep(Duration::from_millis(300));
        let folder = tempfile::tempdir().expect("folder");
        let file = folder.path().join("hung.lp");
        let pid = hung.pid().to_string();
        let mut call = Longpole::with(["record", "-d", "500ms", "-p", &pid, "-o"]);
        call.command().arg(&file);
        let ended = call.run();
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        assert!(ended.stderr.contains("LIMIT     a deadlock: "), "{}", ended.stderr);
        let file = file.to_string_lossy().into_owned();
        let text = Longpole::with(["report", &file]).run().stdout;
        let one_line = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(parts.iter().all(|part| one_line.contains(part)), "{text}");
        let answer = Longpole::with(["report", "--json", &file]).run().stdout;
        let answer: Value = serde_json::from_str(&answer).expect("JSON");
        assert_eq!(answer["limit"]["at"][0]["kind"], "deadlock", "{text}");
    }
}
