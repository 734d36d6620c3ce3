//! `top` on an unknown program first takes samples of its functions. Functions with long calls then get probes.

use longpole_tests::{Background, Longpole, Report, skip_unless_built, skip_unless_live, workload};
use std::process::Command;
use std::time::Duration;

/// The row of a function for the first number of CPUs.
fn row<'a>(report: &'a serde_json::Value, name: &str) -> Option<&'a serde_json::Value> {
    let rows = report["results"][0]["functions"].as_array().expect("functions");
    rows.iter().find(|row| row["function"] == name)
}

/// Samples cannot distinguish a long call from many short ones. The choice of probes must distinguish them.
#[test]
fn a_long_function_gets_probes_and_one_called_often_never() {
    skip_unless_live!();
    let flags = ["-O2", "-g", "-pthread"];
    let program = skip_unless_built!(workload::compile_text("mix", "cc", &flags, include_str!("mix.c")));
    let mut target = Background::must_start(&mut Command::new(program));
    assert_eq!(target.line(Duration::from_secs(60)).expect("a line"), "started");
    let pid = target.pid().to_string();
    // On a busy machine, the threads may run too little in the first windows for a trial of the function.
    for attempt in 1.. {
        let call = ["top", "--exact", "--once", "--json", "--window", "6s", "--cpus", "2", "-p", &pid];
        let report = Report::parse(&Longpole::with(call).ok().stdout).0;
        let often = row(&report, "often").expect("samples see it");
        assert_eq!((&often["uncounted"], &often["exact"]), (&true.into(), &false.into()), "{often}");
        let seldom = row(&report, "seldom").expect("samples see it");
        if seldom["calls"].as_u64() > Some(3) {
            return;
        }
        assert!(attempt < 10, "{seldom}");
    }
}
