//! `longpole record -- COMMAND`: the command must have its own streams, exit code and signal.

use std::path::Path;
use std::time::Duration;

use longpole_tests::{Background, Longpole, Recorded, run, shell, skip_unless_live};

#[test]
fn record_exits_with_the_command_s_exit_code() {
    let program = skip_unless_live!("brief.c");
    for code in ["0", "1", "37", "255"] {
        let recorded = Recorded::launch(&[], &program, &[code]);
        assert_eq!(recorded.ended.code.map(|code| code.to_string()).as_deref(), Some(code));
        assert!(recorded.ended.stdout.contains("brief\n"), "{}", recorded.ended.stdout);
        assert_eq!(recorded.report("1").trust("lost"), 0.0);
        let said = &recorded.ended.stderr;
        assert!(!said.contains("runs on"), "it has ended: {said}");
    }
}

#[test]
fn record_ends_by_the_command_s_signal() {
    let program = skip_unless_live!("brief.c");
    for signal in [15, 6, 9] {
        let recorded = Recorded::launch(&[], &program, &["0", &signal.to_string()]);
        assert_eq!(recorded.ended.signal, Some(signal), "{}", recorded.ended.stderr);
        let info = Longpole::with(["info"]).and(&recorded.file).ok().stdout;
        assert!(!info.contains("not finished"), "{info}");
        recorded.report("1");
    }
}

/// Children are recorded by default. But with `sh -c 'daemon &'`, the recording must not go on until the daemon ends.
#[test]
fn a_recording_ends_with_its_command_although_a_child_runs_on() {
    skip_unless_live!();
    let script = "sleep 60 >/dev/null 2>&1 & echo $! && exit 3";
    let recorded = Recorded::launch(&[], Path::new("sh"), &["-c", script]);
    let child = recorded.ended.stdout.trim();
    assert!(Path::new(&format!("/proc/{child}")).exists(), "it lives on");
    run(&mut shell(&format!("kill {child}")), Duration::from_secs(10)).expect("killed");
    assert_eq!(recorded.ended.code, Some(3), "{}", recorded.ended.stderr);
}

/// longpole must pass on the command's exit code even if `-d` ends the recording before its last child ends.
#[test]
fn with_children_and_a_duration_the_command_s_exit_code_is_passed_on() {
    skip_unless_live!();
    let script = "sleep 2 >/dev/null 2>&1 & exit 3";
    let recorded = Recorded::launch(&["--children", "-d", "500ms"], Path::new("sh"), &["-c", script]);
    assert_eq!(recorded.ended.code, Some(3), "{}", recorded.ended.stderr);
}

#[test]
fn standard_input_reaches_a_recorded_command() {
    skip_unless_live!();
    let (mut call, _folder, _) = Recorded::launch_in_background(&[], Path::new("cat"), &[]);
    call.say("through").unwrap();
    call.close_stdin();
    let ended = call.wait(Duration::from_secs(60)).unwrap();
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), "through\n"), "{}", ended.stderr);
}

/// Exit codes are the same as those of other launchers (`env`, `timeout`): 127 if the command is not found, 126 if it
/// is not executable. There must be two lines and no file.
#[test]
fn a_command_that_cannot_start_gives_127_or_126_and_no_file() {
    skip_unless_live!();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("none.lp");
    let text = folder.path().join("not-executable");
    std::fs::write(&text, "just text\n").unwrap();
    for (command, code) in [(Path::new("/no/such/program"), 127), (&text, 126)] {
        let call = Longpole::with(["record", "-o"]).and(&file).and("--").and(command);
        let said = call.fails(code, &command.to_string_lossy()).stderr;
        assert_eq!(said.lines().count(), 2, "{said}");
        assert!(!file.exists(), "{command:?}");
    }
}

/// The command waits at a gate until it has its probes. So even main's first call must be recorded.
#[test]
fn a_launched_command_is_probed_from_its_first_call() {
    let program = skip_unless_live!("longjmp.c");
    for _ in 0..5 {
        let program = Recorded::good(&["--exact"], &program, &["3"]).program();
        assert_eq!((program.entries("main"), program.entries("Surface")), (1, 3));
    }
}

/// Checks each line of the summary on standard error. The last line says which command to run next.
#[test]
fn the_summary_of_record_has_its_lines_and_the_next_command() {
    let program = skip_unless_live!("turns.c");
    let recorded = Recorded::good(&["--overhead", "none"], &program, &["97"]);
    let said = &recorded.ended.stderr;
    let lines: Vec<&str> = said.lines().collect();
    let next = format!("next      longpole report {}", recorded.file.display());
    let starts =
        ["recorded", "events", "lost      0", "probes", "samples", "cost", "locks", "file", "LIMIT", &next];
    let summary = lines.get(lines.len().saturating_sub(starts.len())..).unwrap_or_default();
    assert!(summary.len() == starts.len(), "{said}");
    assert!(summary.iter().zip(starts).all(|(line, start)| line.starts_with(start)), "{said}");
}

#[test]
fn an_output_folder_that_does_not_exist_is_an_error_with_a_hint() {
    skip_unless_live!();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("no-such-folder/x");
    let said = Longpole::with(["record", "-o"]).and(&file).and("--").and("true").code(1).stderr;
    assert!(said.contains(&format!("longpole: cannot write {}: ", file.display())), "{said}");
    assert!(said.contains("\nhint: make the directory first\n"), "{said}");
}

/// The target slept all the time, so there is nothing to report, and the summary must not propose `longpole report`.
#[test]
fn a_recording_of_a_sleeping_program_says_that_nothing_was_recorded() {
    skip_unless_live!();
    let mut sleeper = Background::start(std::process::Command::new("sleep").arg("600")).unwrap();
    // By then the target sleeps, and is no longer on its way to sleep.
    std::thread::sleep(Duration::from_millis(300));
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("nothing.lp");
    let pid = sleeper.pid().to_string();
    let ended = Longpole::with(["record", "-d", "200ms", "-p", &pid, "-o"]).and(&file).ok();
    let said = &ended.stderr;
    assert!(said.contains("\nevents    0\n"), "{said}");
    assert!(said.contains("\nnothing   was recorded"), "{said}");
    assert!(said.lines().last().is_some_and(|line| line.starts_with("hint: ")), "{said}");
    assert!(!said.contains("longpole report"), "{said}");
    assert!(sleeper.is_running().unwrap());
}

/// -d must end the recording and not the command, which continues without harm. This is no failure, and a message says
/// so.
#[test]
fn a_duration_ends_the_recording_and_the_command_runs_on() {
    let program = skip_unless_live!("quicksort.c");
    let folder = tempfile::tempdir().unwrap();
    let proof = folder.path().join("proof");
    let script = format!("'{}' 40 > '{}.part' && mv '{1}.part' '{1}'", program.display(), proof.display());
    let recorded = Recorded::launch(&["-d", "500ms"], Path::new("sh"), &["-c", &script]);
    assert_eq!(recorded.ended.code, Some(0), "{}", recorded.ended.stderr);
    assert!(!proof.exists(), "longpole waited for the command");
    let said = &recorded.ended.stderr;
    let line = said.lines().find(|line| line.starts_with("command ")).expect(said);
    let pid = line.split("(pid ").nth(1).and_then(|rest| rest.split(')').next()).expect(line);
    assert!(line.ends_with(") has not ended and runs on without longpole"), "{said}");
    assert!(Path::new(&format!("/proc/{pid}")).exists(), "{said}");
    let end = std::time::Instant::now() + Duration::from_secs(120);
    while !proof.exists() && std::time::Instant::now() < end {
        std::thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(std::fs::read_to_string(&proof).unwrap(), "2000000 integers sorted 40 times\n");
}
