//! Recordings that keep only their last part.

use std::path::Path;
use std::time::Duration;

use longpole_tests::{Longpole, skip_unless_live};

const LIMIT: Duration = Duration::from_secs(60);

/// The output of `info --json`.
fn info(file: &Path) -> serde_json::Value {
    let said = Longpole::with(["info", "--json"]).and(file).ok().stdout;
    serde_json::from_str(&said).expect("JSON")
}

/// SIGUSR2 and a condition must save the ring, and the recording must then continue to its end.
#[test]
fn a_ring_is_saved_by_signal_by_condition_and_at_the_end() {
    let program = skip_unless_live!("handoff.c");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("ring.lp");
    let mut call = Longpole::with(["record", "--ring", "500ms", "--trigger", "parallelism<1.5 for 700ms"]);
    // The command runs longer than longpole. `timeout` ends it, so that it does not disturb later tests.
    call.command().args(["-d", "2s", "-o"]).arg(&file).args(["--", "timeout", "3"]);
    call.command().arg(&program).args(["1000000", "3", "2000"]);
    let mut longpole = call.start();
    longpole.wait_for_stderr("(parallelism<1.5 for 700ms)", LIMIT).unwrap();
    longpole.signal("USR2").unwrap();
    longpole.wait_for_stderr("(SIGUSR2)", LIMIT).unwrap();
    let ended = longpole.wait(LIMIT).unwrap();
    assert!(ended.stderr.contains("kept      the last 500"), "{}", ended.stderr);
    for name in ["ring.lp", "ring-2.lp", "ring-3.lp"] {
        let info = info(&folder.path().join(name));
        let length = info["session"]["duration_ns"].as_u64().unwrap();
        assert!((480_000_000..=500_000_000).contains(&length), "{name}: {info}");
        let report = Longpole::with(["report", "--json", "--cpus", "1"]).and(folder.path().join(name)).ok();
        assert!(report.stdout.contains("handoff"), "{name}: {}", report.stdout);
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 3);
}

#[test]
fn a_recording_with_max_size_stays_below_it() {
    let program = skip_unless_live!("handoff.c");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("newest.lp");
    let mut call = Longpole::with(["record", "--max-size", "1M", "-d", "3s", "-o"]).and(&file);
    call.command().args(["--", "timeout", "4"]).arg(&program).args(["10000000", "2", "10"]);
    let ended = call.start().wait(LIMIT).unwrap();
    assert!(ended.stderr.contains("there was no room for more in"), "{}", ended.stderr);
    let bytes = std::fs::metadata(&file).unwrap().len();
    assert!((100_000..=1 << 20).contains(&bytes), "{bytes} bytes");
    assert!(info(&file)["session"]["events"].as_u64().unwrap() > 10_000);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
}
