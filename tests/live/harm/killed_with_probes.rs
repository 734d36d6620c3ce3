//! `kill -9` while longpole has breakpoints in a program must leave no breakpoint behind, at any moment.

use longpole_tests::text_unchanged::{assert_code_unchanged, changed_code};
use longpole_tests::{Background, Longpole, skip_unless_live, until};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(60);

/// Number of lines in the kernel's log about breakpoints that were left behind; 0 if the log may not be read.
fn leaks() -> usize {
    let log = Command::new("dmesg").output().map(|output| output.stdout).unwrap_or_default();
    let leaks = |line: &&str| line.contains("leaking uprobe");
    String::from_utf8_lossy(&log).lines().filter(leaks).count()
}

/// The processes that hold probes for this longpole. These processes have another name than longpole, so that `killall
/// longpole` does not end them.
fn holders(mark: &str) -> Vec<u32> {
    let processes = std::fs::read_dir("/proc").into_iter().flatten().filter_map(Result::ok);
    let is_one = |folder: &Path| {
        let name = std::fs::read_to_string(folder.join("comm")).unwrap_or_default();
        let environment = std::fs::read(folder.join("environ")).unwrap_or_default();
        name == "lp-links\n" && environment.split(|&byte| byte == 0).any(|one| one == mark.as_bytes())
    };
    let found = processes.filter(|process| is_one(&process.path()));
    found.filter_map(|process| process.file_name().to_str()?.parse().ok()).collect()
}

/// Starts a recording of every function of a process. longpole has `mark` in its environment.
fn recording(target: &Background, file: &Path, mark: &str) -> Background {
    let mut call = Longpole::with(["record", "--force", "--overhead", "none", "-o"]).and(file);
    call.command().args(["--functions", "*", "-p", &target.pid().to_string()]);
    if let Some((name, value)) = mark.split_once('=') {
        call.command().env(name, value);
    }
    call.start()
}

fn target(program: &Path) -> Background {
    let mut target = Background::must_start(&mut Command::new(program));
    assert_eq!(target.line(LIMIT).expect("the target"), "ready");
    target
}

/// Kills this many recordings of one program. A third of them is killed while attaching, a third while recording, and a
/// third while detaching.
fn kill_at_any_moment(program: &Path, tries: u64) {
    let folder = tempfile::tempdir().expect("a folder");
    let mut target = target(program);
    let (before, mut probed) = (leaks(), 0);
    for number in 0..tries {
        let mark = format!("LONGPOLE_TEST={}-{number}", std::process::id());
        let mut longpole = recording(&target, &folder.path().join("killed.lp"), &mark);
        // The moments differ between tries, and are the same in each run of the test.
        let moment = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        let (phase, most_us) = match number % 3 {
            0 => ("detaches", 60_000),
            1 => ("attaches", 500_000),
            _ => ("records", 100_000),
        };
        if phase != "attaches" {
            longpole.wait_for_stderr("recording ", LIMIT).expect("longpole");
        }
        if phase == "detaches" {
            until("there are probes", || !changed_code(target.pid()).expect("its code").is_empty());
            longpole.signal("INT").expect("longpole");
        }
        std::thread::sleep(Duration::from_micros(moment % most_us));
        probed += usize::from(!changed_code(target.pid()).expect("its code").is_empty());
        // longpole may already have ended.
        let _ = longpole.signal("KILL");
        longpole.wait(LIMIT).expect("longpole");
        until("nobody holds probes", || holders(&mark).is_empty());
        assert_code_unchanged(target.pid(), &format!("try {number}, while it {phase}"));
    }
    assert!(probed > 0, "no try met a probe");
    println!("{probed} of {tries} met probes");
    assert_eq!(leaks(), before, "the kernel's log names breakpoints that are left");
    target.close_stdin();
    let ended = target.wait(LIMIT).expect("the target");
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
}

/// Before there was a process that holds the probes, 5 of 31 kills during detaching left up to 105 breakpoints in the
/// program.
#[test]
fn a_longpole_killed_at_any_moment_leaves_no_breakpoint() {
    kill_at_any_moment(&skip_unless_live!("hundreds.c"), 30);
}

#[test]
#[ignore = "takes minutes: as a_longpole_killed_at_any_moment_leaves_no_breakpoint"]
fn a_hundred_longpoles_killed_at_any_moment_leave_no_breakpoint() {
    kill_at_any_moment(&skip_unless_live!("hundreds.c"), 100);
}

/// If the process that holds the probes is killed, the kernel removes the probes. longpole must report this and
/// continue to record.
#[test]
fn killing_the_process_that_holds_the_probes_is_reported_and_removes_them() {
    let program = skip_unless_live!("hundreds.c");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.lp");
    let mut target = target(&program);
    let mark = format!("LONGPOLE_TEST={}-holder", std::process::id());
    let mut longpole = recording(&target, &file, &mark);
    longpole.wait_for_stderr("recording ", LIMIT).unwrap();
    until("there are probes", || !changed_code(target.pid()).unwrap().is_empty());
    let holders = holders(&mark);
    let [holder] = holders[..] else { panic!("one process holds them: {holders:?}") };
    let killed = Command::new("kill").args(["-9", &holder.to_string()]).status().unwrap();
    assert!(killed.success());
    longpole.wait_for_stderr("has no function probes any more", LIMIT).unwrap();
    assert_code_unchanged(target.pid(), "after the end of the process that held the probes");
    longpole.signal("INT").unwrap();
    let ended = longpole.wait(LIMIT).unwrap();
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let info = Longpole::with(["info"]).and(&file).ok().stdout;
    assert!(!info.contains("damaged"), "{info}");
    target.close_stdin();
    assert_eq!(target.wait(LIMIT).unwrap().code, Some(0));
}
