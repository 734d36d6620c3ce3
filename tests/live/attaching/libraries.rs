//! Libraries that a program loads during the recording: their functions and locks get probes like those of the program,
//! and a note says what is missing from the time before.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use longpole_tests::{
    Background, Longpole, Program, Recorded, Report, skip, skip_unless_built, skip_unless_live, workload,
};

const LIMIT: Duration = Duration::from_secs(60);
const TIMES: usize = 211;

/// Records a program that loads the library some time after longpole has attached. The program makes the counted calls
/// still later. `None`: the program cannot load the library.
fn record(loader: &Path, library: &Path, options: &[&str]) -> Option<(Program, Report)> {
    let mut command = Command::new(loader);
    command.arg(library).arg(TIMES.to_string()).env("WORKLOAD_WAIT", "1");
    let mut target = Background::start(&mut command).expect("a program that runs");
    assert_eq!(target.line(LIMIT).expect("a line"), "ready");
    let all = [&["--exact", "--overhead", "none", "--max-rate", "1000000"], options].concat();
    let (mut recorder, _folder, file) = Recorded::attach_in_background(&all, target.pid());
    recorder.wait_for_stderr("recording ", LIMIT).expect("a recording");
    target.say("go").expect("it reads");
    match target.line(LIMIT) {
        Ok(line) if line == "loaded" => {}
        other => {
            drop(other);
            return None;
        }
    }
    // Waits until the recording has calls of the library's function, which the program calls all the time. On a loaded
    // machine this takes a while. If that function has no probe, nothing shows the moment, so the wait has a fixed
    // length.
    let end = Instant::now() + if options.is_empty() { Duration::from_millis(1_500) } else { LIMIT };
    while Instant::now() < end {
        std::thread::sleep(Duration::from_millis(100));
        let so_far = Longpole::with(["export", "--format", "program"]).and(&file).run();
        if so_far.code == Some(0) && Program::parse(&so_far.stdout).entries("plugin_early") > 10 {
            // The library's locks get their probes at about the same time.
            std::thread::sleep(Duration::from_millis(500));
            break;
        }
    }
    target.say("the rest").expect("it reads");
    let ended = target.wait(LIMIT).expect("it ends");
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let ended = recorder.wait(LIMIT).expect("a recording");
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let report = Longpole::report(&file, "1");
    assert_eq!(report.trust("lost"), 0.0, "{}", ended.stderr);
    Some((Longpole::export(&file), report))
}

fn locks(program: &Program, name: &str) -> usize {
    let is_lock = |op: &[serde_json::Value]| matches!(op, [kind, object] if kind == "lock" && object == name);
    program.operations().filter(|(_, op)| is_lock(op)).count()
}

#[test]
fn named_functions_of_a_library_loaded_later_are_probed() {
    let loader = skip_unless_live!("loader.c");
    let library = skip_unless_built!(workload::build("plugin.c"));
    let (program, report) = record(&loader, &library, &["--functions", "plugin_*"]).expect("it is loaded");
    assert!(program.entries("plugin_early") > 10, "{}", program.entries("plugin_early"));
    assert_eq!((program.entries("plugin_late"), program.entries("plugin_take")), (TIMES, TIMES));
    assert_eq!(locks(&program, "mutex plugin_lock"), TIMES);
    assert_eq!(report.findings("probes_late").len(), 1, "{}", report.0);

    let named = ["--functions", "*_late", "--functions", "plugin_early"];
    let (program, _) = record(&loader, &library, &named).expect("it is loaded");
    assert_eq!((program.entries("plugin_late"), program.entries("plugin_take")), (TIMES, 0));
    let (program, _) = record(&loader, &library, &[]).expect("it is loaded");
    assert_eq!(program.entries("plugin_late"), 0, "only the program's own unless asked for");
}

/// A static program gets its C library together with the plugin. Lock operations before that library has probes are not
/// recorded.
#[test]
fn lock_functions_of_a_c_library_loaded_later_are_probed() {
    let library = skip_unless_live!("plugin.c");
    let loader = match workload::build_with("loader.c", &["-static"]) {
        Ok(loader) => loader,
        Err(problem) => skip!("no static C library: {problem:?}"),
    };
    let Some((program, report)) = record(&loader, &library, &["--functions", "plugin_*"]) else {
        skip!("a static program cannot load libraries here");
    };
    assert_eq!(locks(&program, "mutex plugin_lock"), TIMES);
    assert_eq!(report.findings("locks_late").len(), 1, "{}", report.0);
}
