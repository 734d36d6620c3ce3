//! Debuggers and tracers that attach to a program before longpole does, or during the recording.

use super::process_events::{
    LIMIT, attach, attach_in_background, finish, has_calls, has_functions, start, wait_for_recording,
};
use longpole_tests::{
    Background, Longpole, Recorded, run, skip, skip_if, skip_unless_built, skip_unless_live, workload,
};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

#[test]
fn a_program_under_a_debugger_is_recorded_with_a_note_about_its_stops() {
    let program = skip_unless_live!("unharmed.c");
    let (tracer, pid) = start(&program, &["traced", "1"]);
    for options in [&["-d", "1s"][..], &["-d", "1s", "--overhead", "none"]] {
        let recorded = attach(options, pid);
        let said = &recorded.ended.stderr;
        assert!(said.contains(") traces unharmed: its stops"), "{said}");
        has_functions(&recorded.file);
        tells_stops(&recorded.file);
    }
    finish(tracer);
}

#[test]
fn a_program_under_gdb_with_a_breakpoint_can_be_recorded() {
    skip_unless_live!();
    if run(Command::new("gdb").arg("--version"), LIMIT).is_err() {
        skip!("no gdb here");
    }
    let program = skip_unless_built!(workload::build("unharmed.c"));
    let (target, pid) = start(&program, &["work"]);
    // gdb's breakpoint is hit a hundred times and then removed. The breakpoint is not on a function that longpole
    // probes: there the kernel would keep only one breakpoint, longpole's.
    let mut gdb = Command::new("gdb");
    gdb.args(["-nx", "-batch", "-p", &pid.to_string(), "-ex", "break Outer", "-ex", "ignore 1 100"]);
    gdb.args(["-ex", "shell echo it is set >&2", "-ex", "continue", "-ex", "delete", "-ex", "detach"]);
    let mut gdb = Background::must_start(&mut gdb);
    gdb.wait_for_stderr("it is set", LIMIT).expect("gdb comes");
    std::thread::sleep(Duration::from_millis(200));
    let recorded = attach(&["-d", "1s", "--exclude", "Outer"], pid);
    // gdb may already have counted its hundred hits and ended.
    if is_traced(pid) {
        assert!(recorded.ended.stderr.contains("gdb (pid "), "{}", recorded.ended.stderr);
    }
    assert!(has_calls(&recorded.file, "Inner"), "{}", recorded.ended.stderr);
    gdb.close_stdin();
    let ended = gdb.wait(LIMIT).unwrap();
    assert_eq!(ended.code, Some(0), "{}{}", ended.stdout, ended.stderr);
    let recorded = attach(&["-d", "1s"], pid);
    has_functions(&recorded.file);
    finish(target);
}

fn is_traced(pid: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    status.lines().any(|line| line.strip_prefix("TracerPid:").is_some_and(|tracer| tracer.trim() != "0"))
}

/// Why strace does not work on this machine; `None` if it works.
fn no_strace() -> Option<String> {
    let ended = run(Command::new("strace").args(["-o", "/dev/null", "true"]), LIMIT);
    let works = ended.as_ref().is_ok_and(|ended| ended.code == Some(0));
    (!works).then(|| format!("no strace that works here: {ended:?}"))
}

/// Starts strace in the background, on a running program and its threads.
fn strace(pid: u32) -> Background {
    let mut strace = Command::new("strace");
    strace.args(["-f", "-o", "/dev/null", "-p", &pid.to_string()]);
    let mut strace = Background::must_start(&mut strace);
    strace.wait_for_stderr("attached", LIMIT).expect("strace attaches");
    strace
}

/// Ends strace, which detaches from the program.
fn detach(strace: Background) {
    strace.signal("INT").expect("it runs");
    let ended = strace.wait(LIMIT).expect("strace ends");
    assert!(ended.stderr.contains("detached"), "{}", ended.stderr);
}

/// Checks that the report names stops of threads once, and does not count them as waits in system calls.
fn tells_stops(file: &Path) {
    let report = Longpole::report(file, "1,4");
    assert_eq!(report.findings("stopped").len(), 1, "{}", report.0);
    assert!(report.at(4).time_ns() > 0.0, "{}", report.0);
}

#[test]
fn a_program_under_strace_is_recorded_with_a_note_about_its_stops() {
    skip_unless_live!();
    skip_if!(no_strace());
    let program = skip_unless_built!(workload::build("unharmed.c"));
    // The program has threads that sleep now and then, so strace stops them at system calls.
    let (target, pid) = start(&program, &["work", "4", "2000"]);
    let tracer = strace(pid);
    for options in [&["-d", "1s"][..], &["-d", "1s", "--overhead", "none"], &["-d", "1s", "-F", "99"]] {
        let is_default = options.contains(&"-F");
        let recorded = if is_default { Recorded::attach(options, pid) } else { attach(options, pid) };
        let said = &recorded.ended.stderr;
        assert!(said.contains("strace (pid "), "{said}");
        tells_stops(&recorded.file);
        if !is_default {
            has_functions(&recorded.file);
        }
    }
    detach(tracer);
    let recorded = attach(&["-d", "500ms"], pid);
    assert!(!recorded.ended.stderr.contains("traced by"), "{}", recorded.ended.stderr);
    finish(target);
}

#[test]
fn strace_comes_and_goes_while_a_program_is_recorded_without_harm() {
    skip_unless_live!();
    skip_if!(no_strace());
    let program = skip_unless_built!(workload::build("unharmed.c"));
    let (target, pid) = start(&program, &["work", "4", "2000"]);
    let (mut record, _folder, file) = attach_in_background(&[], pid);
    wait_for_recording(&mut record);
    for _ in 0..3 {
        let tracer = strace(pid);
        std::thread::sleep(Duration::from_millis(300));
        detach(tracer);
    }
    record.signal("INT").unwrap();
    let ended = record.wait(LIMIT).unwrap();
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert!(!ended.stderr.contains("panicked"), "{}", ended.stderr);
    has_functions(&file);
    tells_stops(&file);
    finish(target);
    // longpole launches the program, with the library in it.
    let words = ["work", "4", "2000"];
    let (mut call, _folder, file) = Recorded::launch_in_background(&["--exact"], &program, &words);
    let ready = call.line(LIMIT).unwrap();
    let pid = ready.strip_prefix("ready ").and_then(|pid| pid.parse().ok()).expect("its number");
    let tracer = strace(pid);
    std::thread::sleep(Duration::from_millis(500));
    detach(tracer);
    finish(call);
    has_functions(&file);
    tells_stops(&file);
}

/// strace itself is the command. The workload is its child, which strace stops before the first instruction.
#[test]
fn strace_as_the_command_is_recorded_with_its_child() {
    skip_unless_live!();
    skip_if!(no_strace());
    let program = skip_unless_built!(workload::build("convoy.c"));
    let path = program.to_string_lossy();
    let words = ["-f", "-o", "/dev/null", &path, "23", "3", "2000000"];
    // The library records all acquisitions. With probes, the child gets its probes only after it has begun.
    for (interpose, least) in [("auto", 69), ("never", 1)] {
        let options = ["--exact", "--children", "--interpose", interpose, "--overhead", "none"];
        let recorded = Recorded::launch(&options, Path::new("strace"), &words);
        let ended = &recorded.ended;
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        assert!(!ended.stderr.contains("panicked"), "{}", ended.stderr);
        tells_stops(&recorded.file);
        let report = recorded.report("1");
        let locks = report.0["locks"].as_array().into_iter().flatten();
        let most = locks.filter_map(|row| row["acquisitions"].as_u64()).max().unwrap_or(0);
        assert!((least..=69).contains(&most), "{interpose}: {}", report.0);
    }
    // longpole must pass on strace's exit code.
    let recorded = Recorded::launch(
        &["--children"],
        Path::new("strace"),
        &["-f", "-o", "/dev/null", "sh", "-c", "exit 7"],
    );
    assert_eq!(recorded.ended.code, Some(7), "{}", recorded.ended.stderr);
}

#[test]
fn gdb_can_attach_to_and_leave_a_recorded_program() {
    skip_unless_live!();
    if run(Command::new("gdb").arg("--version"), LIMIT).is_err() {
        skip!("no gdb here");
    }
    let program = skip_unless_built!(workload::build("unharmed.c"));
    let (target, pid) = start(&program, &["work"]);
    let (mut record, _folder, file) = attach_in_background(&[], pid);
    wait_for_recording(&mut record);
    let mut gdb = Command::new("gdb");
    gdb.args([
        "-nx",
        "-batch",
        "-p",
        &pid.to_string(),
        "-ex",
        "thread apply all backtrace 3",
        "-ex",
        "detach",
    ]);
    let ended = run(&mut gdb, LIMIT).unwrap();
    assert_eq!(ended.code, Some(0), "{}{}", ended.stdout, ended.stderr);
    std::thread::sleep(Duration::from_millis(300));
    record.signal("INT").unwrap();
    let ended = record.wait(LIMIT).unwrap();
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    has_functions(&file);
    finish(target);
}
