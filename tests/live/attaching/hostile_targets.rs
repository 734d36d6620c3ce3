//! Targets that cannot be recorded, or only in part. longpole must print one line about it and a hint, and end with the
//! right exit code.

use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use std::time::Duration;

use longpole_tests::{Background, Longpole, Recorded, run, skip, skip_unless_live, workload};

const LIMIT: Duration = Duration::from_secs(120);

fn record(folder: &tempfile::TempDir, pid: &str) -> Longpole {
    Longpole::with(["record", "-d", "500ms", "-p", pid, "-o"]).and(folder.path().join("hostile.lp"))
}

#[test]
fn attaching_to_a_missing_process_is_an_error_without_a_file() {
    skip_unless_live!();
    let folder = tempfile::tempdir().unwrap();
    // The number is larger than the largest PID of any Linux (4194304).
    record(&folder, "4194399").fails(1, "4194399");
    assert!(!folder.path().join("hostile.lp").exists(), "a recording of nothing");
}

#[test]
fn attaching_to_a_zombie_is_an_error_that_says_so() {
    let program = skip_unless_live!("zombie.c");
    let mut parent = Background::start(&mut Command::new(program)).unwrap();
    let pid = parent.line(LIMIT).unwrap();
    let folder = tempfile::tempdir().unwrap();
    record(&folder, &pid).fails(1, "zombie");
}

/// A target may end, execute another program or fork at any step of attaching. The target must then continue as it
/// would alone, and longpole must end well or say why it cannot. All steps happen within 0.1 s.
#[test]
fn targets_that_end_exec_or_fork_during_attach_end_as_without_longpole() {
    skip_unless_live!();
    let folder = tempfile::tempdir().unwrap();
    for (number, milliseconds) in [0, 5, 10, 20, 30, 40, 60, 80, 120, 200].into_iter().enumerate() {
        let seconds = f64::from(milliseconds) / 1000.0;
        for then in ["exit 7", "exec sh -c \"sleep 0.1; exit 7\"", "sleep 0.1 & wait; exit 7"] {
            let target =
                Background::start(Command::new("sh").args(["-c", &format!("sleep {seconds}; {then}")]));
            let target = target.unwrap();
            let exact = (number % 2 == 1).then_some("--exact");
            let call = record(&folder, &target.pid().to_string()).and("--force");
            let ended = exact.into_iter().fold(call, Longpole::and).run();
            let said = &ended.stderr;
            let about = format!("{milliseconds} ms, {then}: {said}");
            assert!(!said.contains("panicked"), "{about}");
            match ended.code {
                Some(0) => {}
                Some(1) => assert!(said.contains("longpole: ") && said.contains("\nhint: "), "{about}"),
                other => panic!("ended with {other:?}, {about}"),
            }
            assert_eq!(target.wait(LIMIT).unwrap().code, Some(7), "{about}");
        }
    }
}

/// longpole does not guess names. So functions of a stripped binary are not probed, the rest is recorded, and a message
/// says so.
#[test]
fn a_stripped_program_is_recorded_without_functions() {
    let program = skip_unless_live!(workload::build_stripped("pipeline.c"));
    let recorded = Recorded::launch(&["--exact"], &program, &["101", "4", "20000"]);
    let ended = &recorded.ended;
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert!(ended.stdout.starts_with("101 items"), "{}", ended.stdout);
    assert!(ended.stderr.contains("symbols") && ended.stderr.contains("hint: "), "{}", ended.stderr);
    let report = recorded.report("1,inf");
    assert!(report.at("inf").speedup() > 1.1, "{}", report.at("inf").speedup());
    assert!(!report.0.to_string().contains("StageTransform"));
}

#[test]
fn attaching_to_a_go_program_with_functions_leaves_it_running_with_a_hint() {
    let program = skip_unless_live!("gopher.c");
    let mut target = Background::start(&mut Command::new(program)).unwrap();
    assert_eq!(target.line(LIMIT).unwrap(), "ready");
    let folder = tempfile::tempdir().unwrap();
    let ended = record(&folder, &target.pid().to_string()).and("--functions").and("*").run();
    assert!(ended.stderr.contains("Go"), "{}", ended.stderr);
    assert!(ended.stderr.contains("hint: "), "{}", ended.stderr);
    assert!(!ended.stderr.contains("panicked"));
    assert!(target.is_running().unwrap());
    target.close_stdin();
    assert_eq!(target.wait(LIMIT).unwrap().code, Some(0));
}

/// A thread that is not its process's leader replaces the program, by its own file or by another one. The new program
/// must be recorded like the old one as soon as it has probes.
#[test]
fn a_program_replaced_by_a_thread_that_is_not_the_leader_is_recorded() {
    let program = skip_unless_live!("exec_thread.c");
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("another");
    std::fs::copy(&program, &copy).unwrap();
    for next in [None, copy.to_str()] {
        let file = folder.path().join("exec.lp");
        let mut call =
            Longpole::with(["record", "--exact", "-o"]).and(&file).and("--force").and("--").and(&program);
        call.command().args(next).env("WORKLOAD_WAIT", "1");
        let mut call = call.start();
        assert_eq!(call.line(LIMIT).unwrap(), "ready");
        call.say("go").unwrap();
        let ended = call.wait(LIMIT).unwrap();
        assert_eq!(ended.code, Some(0), "{next:?}: {}", ended.stderr);
        assert!(ended.stdout.ends_with("60 calls after exec, probed\n"), "{next:?}: {}", ended.stdout);
        let report = Longpole::report(&file, "1");
        // The leader may be killed while it writes the record of a thread's creation. That record is then never completed.
        assert!(report.trust("lost") <= 1.0, "{next:?}: {}", report.0);
        assert_eq!(report.findings("probes_late").len(), 1, "{next:?}: {}", report.0);
        let program = Longpole::export(&file);
        assert_eq!((program.entries("BeforeExec"), program.entries("AfterExec")), (14 + 17, 60), "{next:?}");
        // The previous leader, the thread that replaced the program, and a worker of the new program.
        assert_eq!(program.threads(), 3, "{next:?}");
    }
}

/// Without privileges longpole must end with code 77, name the missing capability and say how to grant it.
#[test]
fn record_without_rights_exits_with_77_and_names_the_capability() {
    skip_unless_live!();
    let folder = tempfile::tempdir().unwrap();
    // A copy, because an ordinary user may have no access to the binary's own folder.
    let copy = folder.path().join("longpole");
    std::fs::copy(longpole_tests::binary(), &copy).unwrap();
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let mut command = Command::new("setpriv");
    command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups", "--"]).arg(&copy);
    let file = std::env::temp_dir().join(format!("longpole-no-rights-{}.lp", std::process::id()));
    command.args(["record", "-o"]).arg(&file).args(["--", "true"]).current_dir("/");
    let Ok(ended) = run(&mut command, LIMIT) else {
        skip!("no setpriv here");
    };
    assert_eq!(ended.code, Some(77), "{}", ended.stderr);
    assert!(!file.exists(), "nothing was begun");
    let first = ended.stderr.lines().next().unwrap_or_default();
    assert!(first.starts_with("longpole: ") && first.contains("CAP_BPF"), "{}", ended.stderr);
    assert!(ended.stderr.contains("setcap") || ended.stderr.contains("sudo"), "{}", ended.stderr);
}

/// Root of a user namespace already is root, so it must get another hint, before the command starts or the target is
/// read.
#[test]
fn root_of_a_user_namespace_is_not_told_to_become_root() {
    skip_unless_live!();
    let inside = |words: &[&str]| {
        let mut command = Command::new("unshare");
        command.arg("-Ur").arg(longpole_tests::binary()).args(words);
        run(&mut command, LIMIT)
    };
    if !run(Command::new("unshare").args(["-Ur", "true"]), LIMIT).is_ok_and(|ended| ended.code == Some(0)) {
        skip!("no user namespaces here");
    }
    let own = std::process::id().to_string();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("out.lp").display().to_string();
    for words in [
        ["record", "-o", &file, "--", "true"].as_slice(),
        &["record", "-o", &file, "-p", &own],
        &["top", "--once", "-p", &own],
    ] {
        let ended = inside(words).unwrap();
        assert_eq!(ended.code, Some(77), "{}", ended.stderr);
        let lines: Vec<&str> = ended.stderr.lines().collect();
        assert_eq!(lines.len(), 2, "{}", ended.stderr);
        assert!(lines[0].starts_with("longpole: no permission"), "{}", ended.stderr);
        assert!(lines[1].starts_with("hint: ") && lines[1].contains("user namespace"), "{}", ended.stderr);
        assert!(!lines[1].contains("as root"), "{}", ended.stderr);
    }
}

/// A session that is cut anywhere must be read up to its last complete chunk, or refused in one line, and never cause a
/// panic.
#[test]
fn a_cut_or_damaged_session_is_reported_or_refused_without_a_panic() {
    let program = skip_unless_live!("pipeline.c");
    let recorded = Recorded::good(&[], &program, &["401", "4", "2000"]);
    let bytes = std::fs::read(&recorded.file).unwrap();
    let cut = recorded.beside("cut.lp");
    let mut read = 0;
    for part in 1..20 {
        std::fs::write(&cut, &bytes[..bytes.len() * part / 20]).unwrap();
        let ended = Longpole::with(["report", "--cpus", "1"]).and(&cut).run();
        assert!(!ended.stderr.contains("panicked"), "{}", ended.stderr);
        match ended.code {
            Some(0) => {
                read += 1;
                let said = ended.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
                assert!(
                    said.contains("the session is cut") && said.contains("bytes"),
                    "cut at {part}/20: {said}"
                );
            }
            Some(1) => assert!(ended.stderr.contains("\nhint: "), "{}", ended.stderr),
            other => panic!("cut at {part}/20: {other:?} {}", ended.stderr),
        }
    }
    assert!(read >= 5, "only {read} of 19 cut files could be read");
    let mut damaged = bytes.clone();
    let middle = damaged.len() / 2;
    damaged[middle] ^= 0xff;
    std::fs::write(&cut, &damaged).unwrap();
    let ended = Longpole::with(["report", "--cpus", "1"]).and(&cut).run();
    assert!(matches!(ended.code, Some(0 | 1)) && !ended.stderr.contains("panicked"), "{}", ended.stderr);
}
