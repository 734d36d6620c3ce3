//! longpole is killed, its disk is full, or its limits are small. Each time a readable file must remain, the program
//! must continue, and nothing else may be left.

use longpole_tests::{Background, Longpole, binary, run, shell, skip, skip_unless_live, until};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(60);

/// The time of `CLOCK_MONOTONIC`, in nanoseconds.
fn now_ns() -> u64 {
    let uptime = std::fs::read_to_string("/proc/timer_list").unwrap_or_default();
    let now = uptime.lines().find_map(|line| line.strip_prefix("now at "));
    now.and_then(|text| text.split(' ').next()?.parse().ok()).unwrap_or(0)
}

/// Command lines of processes other than `pid` that have this variable in their environment.
fn marked(mark: &str, pid: u32) -> Vec<String> {
    let processes = std::fs::read_dir("/proc").into_iter().flatten().filter_map(Result::ok);
    let marked = processes.filter(|process| {
        let environment = std::fs::read(process.path().join("environ")).unwrap_or_default();
        environment.split(|&byte| byte == 0).any(|variable| variable == mark.as_bytes())
            && process.file_name() != pid.to_string().as_str()
    });
    marked
        .map(|process| std::fs::read_to_string(process.path().join("cmdline")).unwrap_or_default())
        .collect()
}

/// If longpole is killed, less than 0.7 s of records may be lost, and no process may be left.
#[test]
fn a_killed_longpole_loses_the_last_moment_only_and_leaves_nothing_behind() {
    let program = skip_unless_live!("ticks.c");
    if now_ns() == 0 {
        skip!("no /proc/timer_list");
    }
    for (number, milliseconds) in [250, 600, 1_300].into_iter().enumerate() {
        let folder = tempfile::tempdir().unwrap();
        let (file, ticks) = (folder.path().join("killed.lp"), folder.path().join("ticks"));
        let mark = format!("LONGPOLE_TEST={}-{milliseconds}", std::process::id());
        let (name, value) = mark.split_once('=').unwrap();
        let attached = number == 1;
        let mut workload = Command::new(&program);
        workload.arg(&ticks).arg("3000");
        let mut target = attached.then(|| Background::must_start(&mut workload));
        let mut call = Longpole::with(["record", "-o"]).and(&file);
        match &target {
            // Named functions get their probes at once.
            Some(target) => call.command().args(["--functions", "Tick", "-p", &target.pid().to_string()]),
            None => call.command().args(["--exact", "--"]).arg(&program).arg(&ticks).arg("3000"),
        };
        call.command().env(name, value);
        let mut longpole = call.start();
        longpole.wait_for_stderr("recording ", LIMIT).unwrap();
        std::thread::sleep(Duration::from_millis(milliseconds));
        let (pid, killed_ns) = (longpole.pid(), now_ns());
        longpole.signal("KILL").unwrap();
        longpole.wait(LIMIT).unwrap();
        match target.take() {
            Some(target) => assert_eq!(target.wait(LIMIT).unwrap().code, Some(0)),
            // The command writes its last line at its end.
            None => until("the command runs on to its end", || {
                let lines = std::fs::read_to_string(&ticks).unwrap_or_default();
                lines.ends_with('\n') && lines.lines().count() == 3000
            }),
        }
        until("nothing of longpole's is left", || marked(&mark, pid).is_empty());
        let made: Vec<u64> =
            std::fs::read_to_string(&ticks).unwrap().lines().map(|line| line.parse().unwrap()).collect();
        assert_eq!(made.len(), 3000);
        let info = Longpole::with(["info"]).and(&file).ok().stdout;
        assert!(info.contains("the recording was not finished"), "{info}");
        assert!(!info.contains("damaged"), "{info}");
        let ended = Longpole::with(["report", "--json", "--cpus", "1"]).and(&file).ok();
        assert!(ended.stdout.contains("missing") || ended.stderr.contains("missing"), "{}", ended.stdout);
        let recorded = Longpole::export(&file).entries("Tick");
        // An attached program makes its first calls before it has probes, so the numbers of its recorded calls are
        // unknown.
        let last_ns = if attached { None } else { recorded.checked_sub(1).map(|last| made[last]) };
        if let Some(last_ns) = last_ns {
            let lost = Duration::from_nanos(killed_ns.saturating_sub(last_ns));
            // The loss is 110 to 190 ms on a machine that is not too busy.
            assert!(lost < Duration::from_millis(700), "{lost:?} lost after {milliseconds} ms");
        }
        assert!(recorded > 0, "nothing recorded in {milliseconds} ms");
    }
}

/// A limit on file sizes must not end longpole by SIGXFSZ. longpole must end as on a full disk, with a readable file.
#[test]
fn a_file_size_limit_ends_a_recording_like_a_full_disk() {
    let program = skip_unless_live!("flood.c");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("limited.lp");
    let mut target = Background::must_start(Command::new(&program).args(["20000", "3000"]));
    let script = format!(
        "ulimit -f 128; exec {} record -d 60s -o {} -p {}",
        binary().display(),
        file.display(),
        target.pid()
    );
    let ended = run(&mut shell(&script), LIMIT).unwrap();
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    assert!(
        ended.stderr.contains("File too large") && ended.stderr.contains("hint: `ulimit -f`"),
        "{}",
        ended.stderr
    );
    assert!(ended.stderr.contains(&format!("(pid {}) runs on", target.pid())), "{}", ended.stderr);
    assert!(events(&file) > 1_000, "what fitted can be read");
    target.close_stdin();
    assert_eq!(target.wait(LIMIT).unwrap().code, Some(0));
}

fn events(file: &Path) -> u64 {
    let info = Longpole::with(["info", "--json"]).and(file).ok().stdout;
    let at = info.find("\"events\":").unwrap_or_else(|| panic!("no events in {info}")) + 9;
    let digits: String = info[at..].chars().take_while(char::is_ascii_digit).collect();
    digits.parse().unwrap_or(0)
}

/// longpole ignores SIGXFSZ for itself, but must not make the command ignore it.
#[test]
fn a_command_under_record_ends_by_sigxfsz_as_it_would_alone() {
    skip_unless_live!();
    let folder = tempfile::tempdir().unwrap();
    let longpole = binary().display().to_string();
    let record = |name: &str| format!("{longpole} record -o {}", folder.path().join(name).display());
    // The script ends in the same way as the command.
    let script = format!("{} -- sh -c 'kill -XFSZ $$; echo survived'", record("b.lp"));
    let ended = run(&mut shell(&script), LIMIT).unwrap();
    assert!(!ended.stdout.contains("survived"), "{}", ended.stdout);
    // If the caller of longpole ignores the signal, the command must ignore it, too.
    let script = format!("trap '' XFSZ; {} -- sh -c 'kill -XFSZ $$; echo survived'", record("c.lp"));
    let ended = run(&mut shell(&script), LIMIT).unwrap();
    assert_eq!(ended.stdout, "survived\n", "{}", ended.stderr);
}

/// If there are too few file descriptors, the message must name this reason and not a file that could not be opened.
#[test]
fn too_few_descriptors_for_record_are_an_error_with_the_number_needed() {
    skip_unless_live!();
    let folder = tempfile::tempdir().unwrap();
    let script = format!(
        "ulimit -n 16; exec {} record -o {} -- true",
        binary().display(),
        folder.path().join("few.lp").display()
    );
    let ended = run(&mut shell(&script), LIMIT).unwrap();
    assert!(matches!(ended.code, Some(1 | 77 | 125)), "{:?}: {}", ended.code, ended.stderr);
    assert!(
        ended.stderr.contains("may open 16 files, but needs about ") && ended.stderr.contains("ulimit -Hn"),
        "{}",
        ended.stderr
    );
}

/// longpole must not replace an existing recording, and must not start the command then.
#[test]
fn a_recording_is_not_replaced_unasked() {
    skip_unless_live!();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.lp");
    Longpole::with(["record", "-o"]).and(&file).and("--").and("true").ok();
    let before = std::fs::read(&file).unwrap();
    // The command is missing, too, but the existing file must be noticed first.
    let ended = Longpole::with(["record", "-o"]).and(&file).and("--").and("/not/there").code(1);
    assert!(ended.stderr.contains("the file exists") && ended.stderr.contains("--force"), "{}", ended.stderr);
    assert!(std::fs::read(&file).unwrap() == before);
    std::fs::write(&file, "precious").unwrap();
    Longpole::with(["record", "-o"]).and(&file).and("--").and("true").code(1);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "precious");
    Longpole::with(["record", "--force", "-o"]).and(&file).and("--").and("true").ok();
    assert!(std::fs::read(&file).unwrap() != before);
}

/// If the recording did not end, it would go on for hours and write into a file that nobody can find.
#[test]
fn a_recording_whose_file_is_removed_ends_with_an_error() {
    skip_unless_live!();
    let folder = tempfile::tempdir().unwrap();
    let inner = folder.path().join("inner");
    std::fs::create_dir(&inner).unwrap();
    let mut call = Longpole::with(["record", "-d", "50s", "-o"]).and(inner.join("a.lp"));
    call.command().args(["--", "sh", "-c", "exec sleep 3 >/dev/null 2>&1"]);
    let mut call = call.start();
    call.wait_for_stderr("recording ", LIMIT).unwrap();
    std::fs::remove_dir_all(&inner).unwrap();
    let ended = call.wait(LIMIT).unwrap();
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    assert!(
        ended.stderr.contains("another program removed the file") && ended.stderr.contains("runs on"),
        "{}",
        ended.stderr
    );
}

/// SIGTERM and SIGHUP end longpole. longpole must not pass them on to the command, because they would end it.
#[test]
fn sigterm_and_sighup_end_a_recording_and_the_command_runs_on() {
    let program = skip_unless_live!("ticks.c");
    for signal in ["TERM", "HUP"] {
        let folder = tempfile::tempdir().unwrap();
        let (file, ticks) = (folder.path().join("ended.lp"), folder.path().join("ticks"));
        let mut call = Longpole::with(["record", "-o"]).and(&file);
        call.command().arg("--").arg(&program).arg(&ticks).arg("6000");
        let mut longpole = call.start();
        longpole.wait_for_stderr("recording ", LIMIT).unwrap();
        std::thread::sleep(Duration::from_millis(300));
        longpole.signal(signal).unwrap();
        let ended = longpole.wait(LIMIT).unwrap();
        assert_eq!(ended.code, Some(0), "{signal}: {}", ended.stderr);
        assert!(ended.stderr.contains("runs on"), "{signal}: {}", ended.stderr);
        until("the command runs on to its end", || {
            let lines = std::fs::read_to_string(&ticks).unwrap_or_default();
            lines.ends_with('\n') && lines.lines().count() == 6000
        });
        let info = Longpole::with(["info", "--json"]).and(&file).ok();
        assert!(info.stdout.contains("\"events\""), "{}", info.stdout);
    }
}
