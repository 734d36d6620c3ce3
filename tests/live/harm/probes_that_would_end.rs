//! Programs that a probe would end: each must run as it does alone, and longpole's messages about it must be right.
//! Issue 19.

use std::path::{Path, PathBuf};
use std::time::Duration;

use longpole_tests::text_unchanged::assert_code_unchanged;
use longpole_tests::{Background, Recorded, skip_unless_built, skip_unless_live, workload};

const LIMIT: Duration = Duration::from_secs(120);

/// Since Linux 6.18, the kernel replaces a probed nop at a function's entry by a call to a page that forked children do
/// not have. A child would end by SIGSEGV at its first call.
#[test]
#[cfg(target_arch = "x86_64")]
fn forked_children_of_functions_that_begin_with_a_nop_survive_probes() {
    let program = skip_unless_live!("nop_entry.c");
    for options in
        [&["--functions", "Nop*", "--overhead", "none"][..], &["--children", "--functions", "Nop*"]]
    {
        let recorded = Recorded::good(options, &program, &["211"]);
        let said = &recorded.ended;
        assert!(said.stdout.contains("211 children, 0 bad"), "{}{}", said.stdout, said.stderr);
        // One function can be probed after its nop. In the other function, a loop would hit a probe after the nop again
        // and again.
        assert!(
            said.stderr.contains("1 of ") && said.stderr.contains("1 that begin with a nop"),
            "{}",
            said.stderr
        );
        if !options.contains(&"--children") {
            let report = recorded.report("1");
            assert_eq!(report.at(1).function("NopEntry", "calls"), Some(211.0), "{}", report.0);
            // The report may have the function from samples, but without calls.
            assert_eq!(report.at(1).function("NopLoop", "calls").unwrap_or(0.0), 0.0, "{}", report.0);
        }
    }
    // The same with -p.
    let mut target = Background::must_start(std::process::Command::new(&program).args(["211", "wait"]));
    let ready = target.line(LIMIT).expect("a program that runs");
    let pid = ready.strip_prefix("ready ").and_then(|pid| pid.parse().ok()).expect("its number");
    let (mut record, _folder, _file) = Recorded::attach_in_background(&["--functions", "*"], pid);
    record.wait_for_stderr("recording ", LIMIT).expect("a recording");
    std::thread::sleep(Duration::from_millis(500));
    target.say("go").expect("it waits");
    let ended = target.wait(LIMIT).expect("an end");
    assert_eq!(ended.code, Some(0), "{}{}", ended.stdout, ended.stderr);
    let ended = record.wait(LIMIT).expect("an end");
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
}

/// A command must get signals and standard streams as longpole got them, and not as longpole's runtime sets them:
/// SIGPIPE has its default action, no signal is blocked, and no stream is closed.
#[test]
fn a_command_gets_signals_and_streams_as_longpole_got_them() {
    skip_unless_live!();
    let folder = tempfile::tempdir().expect("a folder");
    let (file, out) = (folder.path().join("test.lp"), folder.path().join("out"));
    let longpole = longpole_tests::binary().display();
    let (file, out) = (file.display(), out.display());
    // Prints the sets of ignored and blocked signals, and which of the first three descriptors are open.
    let asked = "grep -E 'Sig(Blk|Ign)' /proc/self/status; for i in 0 1 2; do test -e /proc/$$/fd/$i && echo $i; done; true";
    for before in ["", "trap '' PIPE;", "trap '' PIPE USR2; exec <&-;", "exec 2>&-;", "exec 0<&- 2>&-;"] {
        let run = |command: &str| {
            let script = format!("{before} {command} sh -c \"{}\" >{out}", asked.replace('$', "\\$"));
            let ended = longpole_tests::run(std::process::Command::new("sh").args(["-c", &script]), LIMIT);
            let ended = ended.expect("a shell");
            assert_eq!(ended.code, Some(0), "{script}: {}", ended.stderr);
            let answer = std::fs::read_to_string(folder.path().join("out")).expect("an answer");
            // C libraries keep some signals for themselves, for which only the library has an action. These signals are
            // left out of the comparison.
            let plain = |line: &str| match line.split_once(":\t") {
                Some((name, set)) => {
                    format!("{name} {:x}\n", u64::from_str_radix(set, 16).expect("a set") & 0x7fff_ffff)
                }
                None => format!("{line}\n"),
            };
            answer.lines().map(plain).collect::<String>()
        };
        let alone = run("");
        assert!(alone.contains("SigIgn"), "{alone}");
        assert_eq!(run(&format!("{longpole} record --force -o {file} --")), alone, "{before}");
    }
}

/// A copy of a function with a probe contains a breakpoint that the kernel does not know, so running the copy ends the
/// program by SIGTRAP. The test has one program for each way to get memory for the copy. A program that writes over a
/// probe loses its change when the probe is removed. The last program finds breakpoints in its code, and would end with
/// code 3.
#[test]
#[cfg(target_arch = "x86_64")]
fn programs_that_copy_or_move_their_code_get_no_probes_and_survive() {
    skip_unless_live!();
    let mut programs = vec![skip_unless_built!(workload::build("moves_text.c"))];
    for way in 0..=8 {
        programs.push(skip_unless_built!(copies_code(&[&format!("-DWAY={way}")])));
    }
    for program in programs {
        lives_by_samples(&program, "may copy or move its own code");
    }
    // There must be no such message about a program that copies nothing.
    let program = skip_unless_built!(workload::build("brief.c"));
    let recorded = Recorded::good(&["--exact"], &program, &["0"]);
    assert!(!recorded.ended.stderr.contains("may copy"), "{}", recorded.ended.stderr);
}

/// The program itself looks harmless, but it links a library that makes memory executable and copies a function there.
#[test]
#[cfg(target_arch = "x86_64")]
fn programs_with_a_library_that_hooks_functions_get_no_probes_and_survive() {
    skip_unless_live!();
    let text = std::fs::read_to_string(workload::source("hooks.c")).expect("a workload");
    let library = workload::compile_text("libhooks.so", "cc", &["-O2", "-shared", "-fPIC"], &text);
    let library = skip_unless_built!(library).display().to_string();
    let program = skip_unless_built!(copies_code(&["-DHOOK", &library]));
    lives_by_samples(&program, "has libhooks.so, which may copy code");
    // With -p, neither functions nor locks of the program may get probes.
    let mut target = Background::must_start(std::process::Command::new(&program).env("WAIT", "1"));
    let (mut record, _folder, _file) = Recorded::attach_in_background(&["--exact"], target.pid());
    record.wait_for_stderr("recording ", LIMIT).expect("a recording");
    std::thread::sleep(Duration::from_millis(500));
    assert_code_unchanged(target.pid(), "a program with a library that hooks functions");
    target.close_stdin();
    let ended = target.wait(LIMIT).expect("an end");
    assert_eq!(ended.code, Some(0), "{}{}", ended.stdout, ended.stderr);
    record.wait(LIMIT).expect("an end");
}

/// The workload of this name, compiled with these additional flags.
fn copies_code(flags: &[&str]) -> Result<PathBuf, workload::Problem> {
    let text = std::fs::read_to_string(workload::source("copies_code.c")).expect("a workload");
    workload::compile_text("copies_code", "cc", &[&["-O2", "-g", "-w"], flags].concat(), &text)
}

/// Checks that the program ends as it does alone and has no probes, and that the summary says why.
fn lives_by_samples(program: &Path, why: &str) {
    let shown = program.display();
    let alone = longpole_tests::run(&mut std::process::Command::new(program), LIMIT).expect("a program");
    assert_eq!(alone.code, Some(0), "{shown}: {}", alone.stderr);
    let recorded = Recorded::good(&["--exact"], program, &[]);
    assert_eq!(recorded.ended.stdout, alone.stdout, "{shown}");
    let said = &recorded.ended.stderr;
    assert!(said.contains(why) && said.contains("(SIGTRAP)"), "{shown}: {said}");
    assert!(said.contains("probes    0 functions on, 0 off"), "{shown}: {said}");
}

/// The program has symbols of functions on a table and inside an instruction. With probes there, it would read other
/// numbers.
#[test]
#[cfg(target_arch = "x86_64")]
fn symbols_that_may_be_no_code_get_no_probes() {
    let program = skip_unless_live!("table_as_function.c");
    let alone = longpole_tests::run(&mut std::process::Command::new(&program), LIMIT).expect("a program");
    for options in [&["--exact"][..], &["--functions", "*", "--overhead", "none"]] {
        let recorded = Recorded::good(options, &program, &[]);
        let said = &recorded.ended.stderr;
        assert_eq!(recorded.ended.stdout, alone.stdout, "{said}");
        assert!(said.contains("2 that may be no code"), "{said}");
        assert!(recorded.report("1").at(1).function("Steady", "calls") > Some(0.0), "{said}");
    }
}
