//! Requests that are traces. Each trace that threads publish must count once, wherever the program keeps its variable,
//! and must have its own waits.

use longpole_tests::workload::{Problem, build_with};
use longpole_tests::{Background, Longpole, Recorded, skip_unless_built, skip_unless_live};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(60);
const ORDERS: u64 = 200;
const OPTIONS: [&str; 4] = ["--per", "otel", "--overhead", "none"];
/// One order in ten sleeps for this long in a poll.
const SETTLE_NS: f64 = 30e6;

fn requests(file: &Path) -> Value {
    let said = Longpole::with(["report", "--json", "--per", "otel"]).and(file).ok();
    serde_json::from_str(&said.stdout).expect("JSON")
}

/// Checks that each of `count` orders is one request, although two threads worked for it. The slow orders slept in
/// `settle`, which polls.
fn check(file: &Path, count: u64) {
    let report = requests(file);
    assert_eq!(report["requests"], count, "{report}");
    assert_eq!(report["unfinished"]["requests"], 0, "{report}");
    let causes = report["causes"].as_array().expect("causes");
    let sum = |group: &str, belongs: &dyn Fn(&Value) -> bool| -> f64 {
        let rows = causes.iter().filter(|row| belongs(row));
        rows.map(|row| row[group].as_f64().expect("a number")).sum()
    };
    // A timer may be late, but is never early. All orders sleep in both other functions, the second time in another
    // thread.
    for name in ["sleep", "timerfd read"] {
        let slept = sum("fast_ns", &|row| is_named(row, name));
        assert!(slept >= 0.9e6, "{name}: {report}");
    }
    let settles = |row: &Value| is_named(row, "poll");
    assert_eq!(sum("fast_ns", &settles), 0.0, "{report}");
    assert!(report["latency_ns"]["p99"].as_f64() >= Some(SETTLE_NS), "one in ten settles: {report}");
    // If other programs had the CPUs, orders that waited for these programs or for the courier may be slower than the
    // slow orders.
    let is_delay = |row: &Value| ["no_cpu", "no_cpu_others", "queue"].iter().any(|kind| row["kind"] == *kind);
    let delay_ns = sum("slow_ns", &is_delay);
    if delay_ns > SETTLE_NS / 5.0 {
        println!("slow orders were held up for {delay_ns:.0} ns: what else they did is not compared");
        return;
    }
    // Virtual machines do not report every switch. Then the end of the wait is unknown.
    let slept = sum("slow_ns", &|row| settles(row) || row["kind"] == "unknown") / SETTLE_NS;
    assert!((1.0..1.3).contains(&slept), "slow orders slept {slept:.2} times as long as they did: {report}");
}

/// Whether a row is about such waits. The row may also name the function in which threads waited.
fn is_named(row: &Value, wait: &str) -> bool {
    let name = row["name"].as_str().expect("a name");
    name.split(" in ").next() == Some(wait)
}

/// The workload whose variable is in a library that is compiled with these flags.
fn with_library(program: &str, library: &[&str]) -> Result<(PathBuf, PathBuf), Problem> {
    let flags = [&["-DLIBRARY", "-shared", "-fPIC"], library].concat();
    let library = build_with("otel.c", &flags)?;
    let path = library.to_string_lossy().into_owned();
    let program = match program {
        "-DLINKED" => build_with("otel.c", &[program, &path])?,
        _ => build_with("otel.c", &[program])?,
    };
    Ok((program, library))
}

#[test]
fn traces_whose_variable_is_in_the_program_are_requests() {
    skip_unless_live!();
    let program = skip_unless_built!(build_with("otel.c", &["-rdynamic"]));
    let recorded = Recorded::good(&OPTIONS, &program, &[&ORDERS.to_string()]);
    assert!(recorded.ended.stderr.contains("report --per otel"), "{}", recorded.ended.stderr);
    check(&recorded.file, ORDERS);
}

#[test]
fn traces_whose_variable_is_in_a_library_are_requests() {
    skip_unless_live!();
    for model in ["-mtls-dialect=gnu2", "-mtls-dialect=gnu", "-ftls-model=initial-exec"] {
        let (program, _) = skip_unless_built!(with_library("-DLINKED", &[model]));
        check(&Recorded::good(&OPTIONS, &program, &[&ORDERS.to_string()]).file, ORDERS);
    }
}

#[test]
fn traces_whose_variable_is_in_a_library_that_is_loaded_later_are_requests() {
    skip_unless_live!();
    for model in [&["-mtls-dialect=gnu2"][..], &["-mtls-dialect=gnu2", "-DBIG"], &["-mtls-dialect=gnu"]] {
        let (program, library) = skip_unless_built!(with_library("-DLOADED", model));
        let library = library.to_string_lossy();
        check(&Recorded::good(&OPTIONS, &program, &[&ORDERS.to_string(), &library]).file, ORDERS);
    }
}

#[test]
fn traces_of_a_running_program_are_requests_except_those_that_may_be_older() {
    skip_unless_live!();
    let program = skip_unless_built!(build_with("otel.c", &["-rdynamic"]));
    let mut target =
        Background::must_start(Command::new(&program).arg(ORDERS.to_string()).env("WORKLOAD_WAIT", "1"));
    assert_eq!(target.line(LIMIT).expect("the target"), "ready");
    let (mut longpole, _folder, file) = Recorded::attach_in_background(&OPTIONS, target.pid());
    longpole.wait_for_stderr("recording ", LIMIT).expect("longpole");
    // longpole finds the variable a moment later.
    std::thread::sleep(Duration::from_millis(500));
    target.say("go").expect("the target");
    assert_eq!(target.wait(LIMIT).expect("the target").code, Some(0));
    assert_eq!(longpole.wait(LIMIT).expect("longpole").code, Some(0));
    let report = requests(&file);
    // At the first look at a worker, it is unknown since when the worker has worked for its order.
    let seen = report["requests"].as_u64().expect("a number");
    let open = report["unfinished"]["requests"].as_u64().expect("a number");
    assert!(seen + open == ORDERS && open <= 3, "{report}");
    let mut causes = report["causes"].as_array().expect("causes").iter();
    assert!(causes.any(|row| is_named(row, "poll")), "{report}");
}

#[test]
fn a_program_without_the_variable_is_a_warning_and_has_no_requests() {
    let program = skip_unless_live!("toy.c");
    let recorded = Recorded::good(&["--per", "otel"], &program, &[]);
    let said = &recorded.ended.stderr;
    assert!(said.contains("no process publishes for which trace its threads work"), "{said}");
    let mut call = Longpole::with(["report", "--per", "otel"]);
    call.command().arg(&recorded.file);
    call.fails(2, "no thread of this recording was seen to work for a trace");
}
