//! What a recording shows of locks outside the C library. A note must say once what the recording cannot show, and for
//! about how many objects. Issue 3, "Synchronization operations".

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use longpole_tests::{Longpole, Recorded, run, skip, skip_unless_live};

const LIMIT: Duration = Duration::from_secs(180);

/// The note about what is not visible. Each command must print it once, in every output format.
fn said(recorded: &Recorded) -> String {
    let report = recorded.report("1,4");
    let findings = report.findings("uncontended");
    let [text] = &findings[..] else { panic!("{findings:?} in {}", report.0) };
    for command in [&["report", "--wide"][..], &["notes"]] {
        let shown = Longpole::with(command).and(&recorded.file).ok().stdout;
        let words = shown.split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(words.matches(text.as_str()).count(), 1, "{command:?}: {text}: {shown}");
    }
    let json = Longpole::with(["predict", "--json", "--cpus", "4"]).and(&recorded.file).ok().stdout;
    assert_eq!(json.matches(text.as_str()).count(), 1, "{json}");
    text.clone()
}

/// Objects whose uncontended acquisitions are not visible: the number with waits of at least `ns`, and the number with
/// shorter ones.
fn waited_for(recorded: &Recorded, ns: u64) -> (usize, usize) {
    let shown = Longpole::with(["report", "--json", "--by", "lock", "--cpus", "1"]).and(&recorded.file).ok();
    let report: serde_json::Value = serde_json::from_str(&shown.stdout).expect("JSON");
    let rows = report["objects"].as_array().expect("objects");
    let unseen: Vec<u64> = rows
        .iter()
        .filter(|row| row["uncontended_visible"] == false)
        .map(|row| row["wait_ns"].as_u64().expect("a time"))
        .collect();
    let long = unseen.iter().filter(|&&wait| wait >= ns).count();
    (long, unseen.len() - long)
}

/// Rust's locks do not call libc, so neither the library nor probes on libc notice them.
#[test]
fn rust_s_own_locks_are_counted_where_a_thread_waited() {
    let program = skip_unless_live!("own_locks.rs");
    for interpose in ["always", "never"] {
        let options = ["--exact", "--interpose", interpose, "--overhead", "none"];
        for contended in [1, 3] {
            let recorded = Recorded::good(&options, &program, &[&contended.to_string()]);
            assert!(recorded.ended.stdout.contains("waited, 1009 did not"), "{}", recorded.ended.stdout);
            // Threads that end together may wait a moment for locks of the C library, but not for half a second, as for
            // the program's locks.
            let (long, short) = waited_for(&recorded, 250_000_000);
            assert_eq!(long, contended, "{interpose}: and {short} others");
            let objects = match long + short {
                1 => "1 object".to_owned(),
                more => format!("{more} objects"),
            };
            let text = said(&recorded);
            let start = format!("uncontended acquisitions of {objects} ");
            assert!(text.starts_with(&start), "{interpose}, {contended}: {text}");
        }
        // The recording has operations of the C library (threads are created), and no thread waited for a lock.
        let recorded = Recorded::good(&options, &program, &["0"]);
        let text = said(&recorded);
        assert!(text.starts_with("Rust's own locks leave no trace"), "{interpose}: {text}");
    }
}

#[test]
fn a_go_program_has_a_note_that_goroutines_waits_are_not_visible() {
    let program = skip_unless_live!("own_locks.go");
    let recorded = Recorded::good(&[], &program, &[]);
    assert_eq!(recorded.ended.stdout, "404 rounds true\n");
    let text = said(&recorded);
    assert!(text.starts_with("Go's runtime decides what goroutines wait for"), "{text}");
}

/// All of the C library's locks are visible to the library, so there must be no note.
#[test]
fn a_program_with_libc_locks_only_has_no_note_about_uncontended_ones() {
    let program = skip_unless_live!("convoy.c");
    let recorded = Recorded::good(&["--interpose", "always"], &program, &["23", "3", "20000"]);
    let report = recorded.report("1,4");
    assert!(report.findings("uncontended").is_empty(), "{}", report.0);
}

/// CPython's GIL consists of a mutex, a condition variable and a flag. The mutex is held 0.2 % of the time, and the GIL
/// nearly all the time.
#[test]
fn cpython_s_gil_is_one_lock_that_is_held_most_of_the_time() {
    skip_unless_live!();
    let is_there =
        run(Command::new("python3").args(["-c", "0"]), LIMIT).is_ok_and(|ended| ended.code == Some(0));
    if !is_there {
        skip!("no python3");
    }
    let script = "import threading
def work():
    s = 0
    for i in range(1500000):
        s = (s * 31 + i) % 1000003
threads = [threading.Thread(target=work) for _ in range(3)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]";
    let recorded = Recorded::good(&["--interpose", "always"], Path::new("python3"), &["-c", script]);
    let report = recorded.report("1").0;
    let rows = report["locks"].as_array().cloned().unwrap_or_default();
    let held = |start: &str| -> f64 {
        let named =
            rows.iter().filter(|row| row["lock"].as_str().is_some_and(|name| name.starts_with(start)));
        named.filter_map(|row| row["hold_ns"].as_f64()).fold(0.0, f64::max)
    };
    let (lock, mutex) = (held("lock "), held("mutex "));
    assert!(mutex > 0.0 && lock > 10.0 * mutex, "{lock} {mutex}: {rows:?}");
}
