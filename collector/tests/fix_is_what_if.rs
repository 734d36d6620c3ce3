//! Two commands about one change: FIX of `report`, and `what-if` asked for the same by its options.

use longpole_tests::{Longpole, data_folder};
use serde_json::Value;

/// As shares of the time.
const APART: f64 = 0.005;

/// The options of `what-if` for a change of FIX; `None`: it is none that options name.
fn options(fix: &Value) -> Option<Vec<String>> {
    let text = |key: &str| fix[key].as_str().unwrap_or_default();
    let named =
        |option: &str, name: &str, value: String| Some(vec![option.to_owned(), format!("{name}={value}")]);
    match text("change") {
        "faster" => named("--scale", text("function"), fix["factor"].to_string()),
        "split_lock" => named("--split-lock", text("lock"), fix["parts"].to_string()),
        "move_out" => named("--move-out", text("function"), text("lock").to_owned()),
        "one_more_thread" => Some(vec!["--threads".to_owned(), fix["threads"].to_string()]),
        "balance" => Some(vec!["--divide-evenly".to_owned()]),
        "no_sleeps" => Some(vec!["--no-sleeps".to_owned()]),
        "no_quota" => Some(vec!["--no-quota".to_owned()]),
        _ => None,
    }
}

/// FIX had -14 % for a function whose scaling gained nothing.
#[test]
fn what_if_gains_what_fix_says() {
    let mut compared = Vec::new();
    for name in ["forkjoin", "phases", "pipeline", "store", "timers"] {
        let file = data_folder().join(format!("recordings/{name}.lp"));
        let answer =
            |call: Longpole| -> Value { serde_json::from_str(&call.and(&file).ok().stdout).expect("JSON") };
        let report = answer(Longpole::with(["report", "--json"]));
        let cpus = report["limit"]["at"][0]["cpus"].to_string();
        for fix in report["limit"]["fixes"].as_array().expect("changes") {
            let Some(options) = options(fix) else { continue };
            let asked = Longpole::with(["what-if", "--json", "--cpus", &cpus]);
            let row = answer(options.iter().fold(asked, Longpole::and))["results"][0].clone();
            let [before, after] = ["before_ns", "after_ns"].map(|key| row[key].as_f64().expect("a time"));
            let gain = 1.0 - after / before;
            let said = fix["gain"].as_f64().expect("a gain");
            assert!((gain - said).abs() <= APART, "{name}: {fix}, and {options:?} gains {gain}");
            compared.push(fix["change"].as_str().unwrap_or_default().to_owned());
        }
    }
    for change in ["faster", "split_lock", "move_out", "one_more_thread", "balance", "no_sleeps"] {
        assert!(compared.iter().any(|compared| compared == change), "no {change} in {compared:?}");
    }
}
