//! Breakpoints must be in the chosen program and in no other. Processes may execute another program, thousands of them
//! may start and end, and their file may be replaced. Issue 18, "The right program, always": a breakpoint at an offset
//! that was chosen for another program kills the process.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use longpole_tests::{Background, Longpole, Recorded, skip_unless_live, workload};

const LIMIT: Duration = Duration::from_secs(180);

/// Factor for the number of runs of each kind, and of children in each run. `LONGPOLE_MORE=10` makes ten times as many.
fn more() -> usize {
    std::env::var("LONGPOLE_MORE").ok().and_then(|text| text.parse().ok()).unwrap_or(1)
}

/// The program that starts children, and a program without symbols that compares its own code with its file.
fn programs() -> Result<(PathBuf, PathBuf), workload::Problem> {
    Ok((workload::build("breeder.c")?, workload::build_stripped("own_text.c")?))
}

fn all_ended_well(recorded: &Recorded, children: usize) {
    let ended = &recorded.ended;
    let good = format!("{children} children, 0 bad");
    assert_eq!(ended.stdout.lines().last(), Some(&*good), "{}{}", ended.stdout, ended.stderr);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    // The program own_text checks its code, so longpole warns about it if a pattern names functions. That warning is
    // expected.
    let is_odd = |line: &&str| line.contains("WARN") && !line.contains("probes may kill own_text");
    let lines: Vec<&str> = ended.stderr.lines().filter(is_odd).collect();
    assert!(lines.is_empty(), "{lines:?}");
}

/// Children execute another program shortly before longpole looks at them, and while it does. Once ten of 500 children
/// found a breakpoint of another program.
#[test]
fn a_child_that_execs_while_it_gets_probes_finds_no_foreign_byte() {
    let (parent, child) = skip_unless_live!(programs());
    let child = child.to_str().expect("a plain path");
    for _ in 0..more() {
        for (how, least, most, at_once, lives) in [
            ("fork", "0", "60", "16", "9"),
            ("fork", "170", "260", "60", "20"),
            ("vfork", "0", "8", "16", "250"),
        ] {
            let count = if how == "vfork" { 200 } else { 500 };
            let words = [&*count.to_string(), how, least, most, at_once, child, lives];
            all_ended_well(&Recorded::launch(&["--exact", "--children"], &parent, &words), count);
        }
        // The same with all functions probed from the beginning.
        let words = ["500", "fork", "0", "260", "40", child, "20"];
        let options = ["--children", "--functions", "*", "--overhead", "none"];
        all_ended_well(&Recorded::launch(&options, &parent, &words), 500);
    }
}

#[test]
fn children_by_fork_vfork_and_spawn_survive_recording() {
    let (parent, _) = skip_unless_live!(programs());
    let count = 1_500 * more();
    let words = [&*count.to_string(), "turns", "0", "0", "4", "/bin/true"];
    all_ended_well(&Recorded::launch(&["--exact", "--children"], &parent, &words), count);
}

/// The children's program file is replaced by another one while children start.
#[test]
fn a_program_replaced_on_disk_during_the_recording_is_a_warning() {
    let (parent, other) = skip_unless_live!(programs());
    let folder = tempfile::tempdir().unwrap();
    let (path, next) = (folder.path().join("program"), folder.path().join("next"));
    fs::copy(&parent, &path).unwrap();
    fs::copy(&other, &next).unwrap();
    let file = folder.path().join("test.lp");
    let mut call =
        Longpole::with(["record", "--exact", "--children", "-o"]).and(&file).and("--").and(&parent);
    call.command().args(["90", "turns", "150", "260", "30"]).arg(&path).arg("300");
    let mut record = call.start();
    record.wait_for_stderr("recording ", LIMIT).unwrap();
    std::thread::sleep(Duration::from_millis(1_200));
    fs::rename(&next, &path).unwrap();
    let ended = record.wait(LIMIT).unwrap();
    assert_eq!(ended.stdout.lines().last(), Some("90 children, 0 bad"), "{}{}", ended.stdout, ended.stderr);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let said: Vec<&str> = ended.stderr.lines().filter(|line| line.contains("WARN")).collect();
    assert_eq!(said.len(), 1, "{said:?}");
    assert!(said[0].contains("program was replaced or deleted on disk"), "{said:?}");
    // Both files must be in the recording: one with its names, and one noted as having none.
    let known = Longpole::with(["info"]).and(&file).ok().stdout;
    assert!(known.contains("program: all symbols and lines there"), "{known}");
    assert!(known.contains("program: no debug info"), "{known}");
}

/// If a program's file was replaced before longpole read it, the program must still have its symbols: its samples are
/// not `[name]`.
#[test]
fn a_program_replaced_on_disk_before_attaching_keeps_its_symbols() {
    let (program, other) = skip_unless_live!(programs());
    let folder = tempfile::tempdir().unwrap();
    let (path, next) = (folder.path().join("program"), folder.path().join("next"));
    fs::copy(&program, &path).unwrap();
    fs::copy(&other, &next).unwrap();
    let target = Background::must_start(Command::new(&path).arg("100000"));
    std::thread::sleep(Duration::from_millis(100));
    fs::rename(&next, &path).unwrap();
    let recorded = Recorded::attach(&["-d", "1s", "--functions", "Place11"], target.pid());
    let said = &recorded.ended.stderr;
    assert!(said.contains("program: replaced or deleted on disk since the start"), "{said}");
    let report = recorded.report("1");
    let names = report.at(1).functions();
    assert!(!names.iter().any(|name| name == "[program]"), "{names:?}");
    assert!(report.at(1).function("Place11", "calls").is_some_and(|calls| calls > 0.0), "{}", report.0);
}
