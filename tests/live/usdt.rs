//! Requests from one USDT probe to another. Each must be recorded once, and the program's counters must be as before
//! afterwards.

use longpole_tests::text_unchanged::{assert_code_unchanged, changed_code};
use longpole_tests::{Background, Longpole, Recorded, skip_unless_live, until};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(60);
const ORDERS: &str = "usdt:shop:order__start,order__done|order__failed";
const PAGES: &str = "usdt:shop:page__start,page__done";
/// Options that record both pairs, with no loss of probes.
const OPTIONS: [&str; 6] = ["--per", ORDERS, "--per", PAGES, "--overhead", "none"];

/// The JSON output of `report --per`.
fn requests(file: &Path, per: &str) -> serde_json::Value {
    let said = Longpole::with(["report", "--json", "--per", per]).and(file).ok();
    serde_json::from_str(&said.stdout).expect("JSON")
}

/// Checks that each order and each page is one request. The slow orders compute `encrypt`, which no page does.
fn check(file: &Path, count: u64) {
    for per in [ORDERS, PAGES] {
        let report = requests(file, per);
        assert_eq!((&report["requests"], &report["functions"][0]), (&count.into(), &per.into()), "{report}");
        assert_eq!(report["unfinished"]["requests"], 0, "{report}");
        let causes = report["causes"].as_array().expect("causes");
        let named = |name: &str| causes.iter().any(|cause| cause["name"] == name);
        assert_eq!(named("encrypt"), per == ORDERS, "{per}: {report}");
    }
    // If other programs have the CPUs, waiting for a CPU may cost more.
    let report = requests(file, ORDERS);
    let mut causes = report["causes"].as_array().expect("causes").iter();
    let computing = causes.find(|cause| cause["kind"] == "computing").expect("work");
    assert_eq!(computing["name"], "encrypt", "{report}");
}

#[test]
fn each_stretch_between_usdt_probes_of_a_command_is_a_request() {
    let program = skip_unless_live!("usdt.c");
    let recorded = Recorded::good(&OPTIONS, &program, &["2", "500"]);
    let said = &recorded.ended.stderr;
    assert!(said.contains(&format!("report --per '{ORDERS}'")), "{said}");
    check(&recorded.file, 1_000);
}

/// Starts the program, which does its orders on request.
fn target(program: &Path) -> Background {
    let mut target =
        Background::must_start(Command::new(program).args(["2", "500"]).env("WORKLOAD_WAIT", "1"));
    assert_eq!(target.line(LIMIT).expect("the target"), "ready");
    target
}

/// The program's answer: the counters that say whether a tracer is attached.
fn ask(target: &mut Background, what: &str) -> String {
    target.say(what).expect("the target");
    target.line(LIMIT).expect("the target")
}

#[test]
fn usdt_counters_of_a_running_program_are_as_before_after_its_recording() {
    let program = skip_unless_live!("usdt.c");
    let mut target = target(&program);
    assert_eq!(ask(&mut target, "go"), "counters 0 0 0");
    let (mut longpole, _folder, file) = Recorded::attach_in_background(&OPTIONS, target.pid());
    longpole.wait_for_stderr("recording ", LIMIT).expect("longpole");
    // The beginning probe has two places with one counter.
    assert_eq!(ask(&mut target, "go"), "counters 2 1 1");
    longpole.signal("INT").expect("longpole");
    let ended = longpole.wait(LIMIT).expect("longpole");
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert_eq!(ask(&mut target, "look"), "counters 0 0 0");
    assert_code_unchanged(target.pid(), "after the recording");
    check(&file, 1_000);
}

#[test]
fn a_killed_longpole_leaves_no_usdt_probe_and_no_counter() {
    let program = skip_unless_live!("usdt.c");
    let mut target = target(&program);
    let (mut longpole, _folder, _file) = Recorded::attach_in_background(&OPTIONS, target.pid());
    longpole.wait_for_stderr("recording ", LIMIT).expect("longpole");
    assert_eq!(ask(&mut target, "look"), "counters 2 1 1");
    longpole.signal("KILL").expect("longpole");
    longpole.wait(LIMIT).expect("longpole");
    until("no probe is left", || changed_code(target.pid()).expect("its code").is_empty());
    until("no counter is left", || ask(&mut target, "look") == "counters 0 0 0");
    target.close_stdin();
    assert_eq!(target.wait(LIMIT).expect("the target").code, Some(0));
}

#[test]
fn a_usdt_pair_that_is_not_there_is_an_error_with_the_nearest_names() {
    let program = skip_unless_live!("usdt.c");
    let file = tempfile::tempdir().expect("a folder");
    let record = |per: &str| {
        let mut call = Longpole::with(["record", "--per", per, "-o"]).and(file.path().join("none.lp"));
        call.command().arg("--").arg(&program);
        call
    };
    record("usdt:shop:order__strt,order__done")
        .fails(2, "usdt has no USDT probe shop:order__strt; the nearest are order__start");
    let other = record("usdt:bank:a,b").ok().stderr;
    assert!(other.contains("usdt has no USDT probes of provider bank, but of shop"), "{other}");
    let target = target(&program);
    let mut call = Longpole::with(["record", "--per", "usdt:bank:a,b", "-d", "1s", "-p"]);
    call.command().arg(target.pid().to_string());
    call.fails(2, "usdt has no USDT probes of provider bank, but of shop");
}
