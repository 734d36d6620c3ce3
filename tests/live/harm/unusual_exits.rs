//! Programs that leave functions in unusual ways must run with the default probes as they do alone.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use longpole_tests::{Recorded, must_run, skip_unless_live};

fn unchanged(program: &Path, arguments: &[&str]) {
    let alone = must_run(Command::new(program).args(arguments), Duration::from_secs(120));
    assert_eq!(alone.code, Some(0), "{}", alone.stderr);
    let recorded = Recorded::launch(&["--exact"], program, arguments);
    let ended = &recorded.ended;
    assert_eq!((ended.code, ended.signal), (Some(0), None), "{}", ended.stderr);
    assert_eq!(ended.stdout, alone.stdout);
    let report = recorded.report("1,inf");
    assert!(report.at(1).time_ns() > 0.0);
    assert!(!report.at(1).functions().is_empty(), "no function was recorded: {}", ended.stderr);
}

#[test]
fn a_cpp_program_that_throws_and_catches_ends_as_alone_with_probes() {
    unchanged(&skip_unless_live!("exceptions.cpp"), &["211"]);
}

#[test]
fn a_rust_program_that_catches_panics_ends_as_alone_with_probes() {
    unchanged(&skip_unless_live!("unwind.rs"), &["211"]);
}

#[test]
fn a_thread_cancelled_in_a_condition_wait_ends_as_alone_with_probes() {
    unchanged(&skip_unless_live!("cancel.c"), &["101"]);
}

#[test]
fn a_longjmp_out_of_a_recursion_ends_as_alone_with_probes() {
    unchanged(&skip_unless_live!("longjmp.c"), &["401"]);
}

/// The kernel's return probes allow 64 frames. longpole's probes must have no such limit.
#[test]
fn a_recursion_twenty_thousand_deep_ends_as_alone_with_probes() {
    unchanged(&skip_unless_live!("recursion.c"), &["1", "20000"]);
}
