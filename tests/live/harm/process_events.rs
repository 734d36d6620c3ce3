//! Events in the life of a recorded program. longpole must end with a clear message and a readable file. The program
//! checks its own results, which must stay right. Issue 3, "Bad input".

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use longpole_tests::{
    Background, Longpole, Recorded, run, skip, skip_unless_built, skip_unless_live, workload,
};

pub(super) const LIMIT: Duration = Duration::from_secs(180);

/// Starts the workload, and returns the PID of the process that works.
pub(super) fn start(program: &Path, words: &[&str]) -> (Background, u32) {
    let mut target = Background::must_start(Command::new(program).args(words));
    let ready = target.line(LIMIT).expect("a program that runs");
    let pid = ready.strip_prefix("ready ").and_then(|pid| pid.parse().ok());
    (target, pid.unwrap_or_else(|| panic!("{ready}")))
}

/// Lets the target end. The target must end with code 0 and without wrong results.
pub(super) fn finish(mut target: Background) {
    target.close_stdin();
    let ended = target.wait(LIMIT).expect("an end");
    let said = ended.stdout.lines().last().unwrap_or_default();
    assert_eq!((ended.code, ended.signal), (Some(0), None), "{}{}", ended.stdout, ended.stderr);
    assert!(said.ends_with(" rounds, 0 wrong"), "{said}");
}

pub(super) fn wait_for_recording(record: &mut Background) {
    record.wait_for_stderr("recording ", LIMIT).expect("a recording");
    std::thread::sleep(Duration::from_millis(300));
}

/// Adds the options for probes on everything at once, because these tests are about the effects of probes.
fn with_all<'a>(options: &[&'a str]) -> Vec<&'a str> {
    [&["--exact", "--functions", "*"], options].concat()
}

pub(super) fn attach(options: &[&str], pid: u32) -> Recorded {
    Recorded::attach(&with_all(options), pid)
}

/// Like `attach`, but in the background.
pub(super) fn attach_in_background(options: &[&str], pid: u32) -> (Background, tempfile::TempDir, PathBuf) {
    Recorded::attach_in_background(&with_all(options), pid)
}

/// Checks that the file can be read and has calls of the workload's functions. A report shows only calls on the path.
pub(super) fn has_functions(file: &Path) {
    let report = Longpole::report(file, "1");
    for name in ["Outer", "Inner"] {
        assert!(has_calls(file, name), "{name}: {}", report.0);
    }
}

/// Whether the recording has calls of this function. If two programs have a function of that name, its place follows
/// the name.
pub(super) fn has_calls(file: &Path, function: &str) -> bool {
    let program = Longpole::export(file);
    program.operations().any(|(_, operation)| match operation {
        [kind, name, ..] if kind == "call" || kind == "exec" => {
            name.as_str().and_then(|name| name.split(' ').next()) == Some(function)
        }
        _ => false,
    })
}

#[test]
fn a_recorded_program_that_crashes_ends_by_its_own_signal() {
    let program = skip_unless_live!("unharmed.c");
    let (mut target, pid) = start(&program, &["crash"]);
    let (mut record, _folder, file) = attach_in_background(&[], pid);
    wait_for_recording(&mut record);
    target.say("now").unwrap();
    let ended = record.wait(LIMIT).unwrap();
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert!(!ended.stderr.contains("panicked"), "{}", ended.stderr);
    assert_eq!(target.wait(LIMIT).unwrap().signal, Some(11), "its own end, not another one");
    has_functions(&file);
    // longpole launches the program, and must end with the same signal as the program.
    let (mut call, _folder, file) = Recorded::launch_in_background(&["--exact"], &program, &["crash"]);
    assert!(call.line(LIMIT).unwrap().starts_with("ready "));
    std::thread::sleep(Duration::from_millis(300));
    call.say("now").unwrap();
    let ended = call.wait(LIMIT).unwrap();
    assert_eq!(ended.signal.or(ended.code.map(|code| code - 128)), Some(11), "{}", ended.stderr);
    has_functions(&file);
}

#[test]
fn a_program_that_is_stopped_and_continued_can_be_recorded() {
    let program = skip_unless_live!("unharmed.c");
    let (target, pid) = start(&program, &["work"]);
    // The program is stopped before longpole attaches, and until longpole has detached.
    target.signal("STOP").unwrap();
    let recorded = attach(&["-d", "500ms"], pid);
    assert!(recorded.ended.stderr.contains("nothing   was recorded"), "{}", recorded.ended.stderr);
    assert!(recorded.ended.stderr.contains("hint: "), "{}", recorded.ended.stderr);
    Longpole::with(["info"]).and(&recorded.file).ok();
    target.signal("CONT").unwrap();
    // The program is stopped and continued during the recording.
    let (mut record, _folder, file) = attach_in_background(&[], pid);
    wait_for_recording(&mut record);
    target.signal("STOP").unwrap();
    std::thread::sleep(Duration::from_millis(300));
    target.signal("CONT").unwrap();
    std::thread::sleep(Duration::from_millis(300));
    record.signal("INT").unwrap();
    let ended = record.wait(LIMIT).unwrap();
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    has_functions(&file);
    finish(target);
}

#[test]
fn a_program_that_drops_its_privileges_can_be_recorded() {
    let program = skip_unless_live!("unharmed.c");
    let (mut target, pid) = start(&program, &["drop"]);
    let (mut record, _folder, file) = attach_in_background(&[], pid);
    wait_for_recording(&mut record);
    target.say("now").unwrap();
    assert_eq!(target.line(LIMIT).unwrap(), "nobody");
    std::thread::sleep(Duration::from_millis(300));
    record.signal("INT").unwrap();
    let ended = record.wait(LIMIT).unwrap();
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    has_functions(&file);
    // The program has given up its rights before longpole attaches.
    let recorded = attach(&["-d", "500ms"], pid);
    has_functions(&recorded.file);
    finish(target);
}

/// When the program is recorded by probes, none of longpole's code runs in it. The preloaded library must not read the
/// clock, or the program would end by SIGSEGV.
#[test]
fn a_program_under_strict_seccomp_ends_as_alone_when_recorded() {
    let program = skip_unless_live!("strict.c");
    let ends_well = |mut target: Background| {
        for _ in 0..20 {
            target.say("").unwrap();
        }
        target.close_stdin();
        let ended = target.wait(LIMIT).expect("an end");
        assert_eq!((ended.code, ended.signal), (Some(12), None), "{}{}", ended.stdout, ended.stderr);
        assert!(ended.stdout.ends_with("ok\n"), "{}", ended.stdout);
    };
    let (mut target, pid) = start(&program, &[]);
    let (mut record, _folder, file) = Recorded::attach_in_background(&["-d", "1s"], pid);
    wait_for_recording(&mut record);
    for _ in 0..20 {
        target.say("").unwrap();
        std::thread::sleep(Duration::from_millis(20));
    }
    let ended = record.wait(LIMIT).unwrap();
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert!(Longpole::report(&file, "1").at(1).time_ns() > 0.0, "{}", ended.stderr);
    ends_well(target);
    // longpole launches the program, with the library in it.
    let (mut call, _folder, file) = Recorded::launch_in_background(&[], &program, &["17"]);
    assert!(call.line(LIMIT).unwrap().starts_with("ready "));
    ends_well(call);
    assert_eq!(Longpole::report(&file, "1").findings("operations_forbidden").len(), 1);
}

#[test]
fn a_program_whose_file_is_replaced_is_recorded_by_the_file_that_runs() {
    let program = skip_unless_live!("unharmed.c");
    let other = skip_unless_built!(workload::build("known.c"));
    let folder = tempfile::tempdir().unwrap();
    let place: PathBuf = folder.path().join("program");
    std::fs::copy(&program, &place).unwrap();
    let (target, pid) = start(&place, &["work"]);
    // Another file is at the path now. longpole must read the file that the process runs.
    let new = folder.path().join("new");
    std::fs::copy(&other, &new).unwrap();
    std::fs::rename(&new, &place).unwrap();
    let recorded = attach(&["-d", "700ms"], pid);
    has_functions(&recorded.file);
    let report = recorded.report("1");
    assert!(report.at(1).function("InManyCalls", "calls").is_none(), "{}", report.0);
    finish(target);
    // The file is replaced during the recording, and the program executes itself again. The functions of the new file
    // must be found.
    std::fs::remove_file(&place).unwrap();
    std::fs::copy(&other, &place).unwrap();
    std::fs::copy(&program, &new).unwrap();
    std::fs::rename(&new, &place).unwrap();
    let (mut target, pid) = start(&place, &["replace"]);
    let (mut record, _folder, file) = attach_in_background(&["-d", "2s"], pid);
    wait_for_recording(&mut record);
    std::fs::copy(&program, &new).unwrap();
    std::fs::rename(&new, &place).unwrap();
    target.say("now").unwrap();
    assert!(target.line(LIMIT).unwrap().starts_with("ready "));
    let ended = record.wait(LIMIT).unwrap();
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    has_functions(&file);
    assert_eq!(Longpole::report(&file, "1").findings("probes_late").len(), 1);
    finish(target);
}

/// The program has no libc that could be probed, and no names of functions. Only system calls show what it does.
#[test]
fn a_static_program_without_symbols_is_recorded_with_a_hint() {
    let program = skip_unless_live!(workload::build_with("unharmed.c", &["-static", "-s"]));
    let (target, pid) = start(&program, &["work"]);
    let recorded = attach(&["-d", "500ms"], pid);
    let said = &recorded.ended.stderr;
    assert!(said.contains("symbol") && said.contains("hint: "), "{said}");
    assert!(said.contains("has no names of a C library's synchronization functions"), "{said}");
    assert!(recorded.report("1").at(1).time_ns() > 0.0);
    assert_eq!(recorded.report("1").findings("uncontended").len(), 1, "{}", recorded.report("1").0);
    finish(target);
}

#[test]
fn ten_thousand_threads_can_be_recorded() {
    let program = skip_unless_live!("unharmed.c");
    let mut target = Background::must_start(Command::new(&program).args(["threads", "10000"]));
    let ready = match target.line(LIMIT) {
        Ok(ready) => ready,
        Err(error) => {
            let why = target.wait(LIMIT).map_or_else(|error| error.to_string(), |ended| ended.stderr);
            assert!(why.contains("pthread_create"), "{error}: {why}");
            skip!("not allowed here: {}", why.trim());
        }
    };
    let pid: u32 = ready.strip_prefix("ready ").unwrap().parse().unwrap();
    let recorded = attach(&["-d", "1s"], pid);
    let said = &recorded.ended.stderr;
    // Records may be lost if thousands of threads wanted a CPU while longpole was still reading their names.
    assert!(said.contains("\nlost      0\n") || said.contains("did not fit into the rings"), "{said}");
    let report = recorded.report("1,inf");
    assert!(report.at("inf").time_ns() > 0.0, "{}", report.0);
    assert!(Longpole::export(&recorded.file).threads() >= 10_000);
    finish(target);
}

/// A small file system for the test, unmounted when this value is dropped.
struct SmallDisk(tempfile::TempDir);

impl SmallDisk {
    fn mounted(kilobytes: u32) -> Result<Self, String> {
        let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", &format!("size={kilobytes}k"), "nodev"]).arg(folder.path());
        match run(&mut mount, LIMIT) {
            Ok(ended) if ended.code == Some(0) => Ok(Self(folder)),
            Ok(ended) => Err(ended.stderr.trim().to_owned()),
            Err(error) => Err(error.to_string()),
        }
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // A lazy unmount: the file system goes away when its last open file is closed.
        drop(run(Command::new("umount").arg("-l").arg(self.0.path()), LIMIT));
    }
}

#[test]
fn a_full_disk_ends_a_recording_and_keeps_what_was_written() {
    let program = skip_unless_live!("flood.c");
    let disk = match SmallDisk::mounted(128) {
        Ok(disk) => disk,
        Err(why) => skip!("cannot mount a small one: {why}"),
    };
    let file = disk.0.path().join("full.lp");
    let mut target = Background::must_start(Command::new(&program).args(["50000", "6000"]));
    let mut call = Longpole::with(["record", "-d", "60s", "-p", &target.pid().to_string(), "-o"]).and(&file);
    call.command().arg("--force");
    let started = Instant::now();
    let ended = call.fails(1, "full.lp");
    assert!(
        started.elapsed() < Duration::from_secs(50),
        "it ends when the disk is full, not when time is over"
    );
    assert!(ended.stderr.contains("No space left"), "{}", ended.stderr);
    // The file must have the records that were written before the disk was full.
    let info = Longpole::with(["info"]).and(&file).ok().stdout;
    assert!(info.contains("events"), "{info}");
    assert!(Longpole::report(&file, "1").at(1).time_ns() > 0.0);
    let ended = {
        target.close_stdin();
        target.wait(LIMIT).unwrap()
    };
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert!(ended.stdout.ends_with(" hand-overs\n"), "{}", ended.stdout);
}
