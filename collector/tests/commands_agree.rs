//! All commands give the same answers to the same questions: what limits, how long the run is, what a function takes and
//! what a change gains. On twenty recordings of many kinds of programs.

use longpole_tests::{Longpole, data_folder};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// Largest difference allowed, as a share of the time.
const APART: f64 = 0.005;
/// Number of functions whose gains are compared.
const FUNCTIONS: usize = 3;

/// Part number `part` of all recordings, which are divided into `count` parts.
fn recordings(part: usize, count: usize) -> Vec<PathBuf> {
    let folders = ["recordings", "commands"].map(|name| data_folder().join(name));
    let files = folders.iter().flat_map(|folder| std::fs::read_dir(folder).expect("a folder"));
    let mut files: Vec<PathBuf> = files.map(|file| file.expect("a file").path()).collect();
    files.retain(|file| file.extension().is_some_and(|extension| extension == "lp"));
    files.sort();
    assert_eq!(files.len(), 20, "{files:?}");
    files.into_iter().skip(part).step_by(count).collect()
}

fn json(arguments: &[&str], files: &[&Path]) -> Value {
    let call = files.iter().fold(Longpole::with(arguments), |call, file| call.and(file));
    serde_json::from_str(&call.ok().stdout).expect("JSON")
}

/// The first sentence of LIMIT.
fn limit(arguments: &[&str], file: &Path) -> String {
    let text = Longpole::with(arguments).and(file).ok().stdout;
    let lines = text.lines().skip_while(|line| !line.starts_with("LIMIT")).take(1);
    let rest = text.lines().skip_while(|line| !line.starts_with("LIMIT")).skip(1);
    let lines: Vec<&str> = lines.chain(rest.take_while(|line| line.starts_with("       "))).collect();
    let sentence = lines.iter().map(|line| line.trim()).collect::<Vec<_>>().join(" ");
    sentence.split_inclusive(". ").next().unwrap_or_default().trim().to_owned()
}

fn number(value: &Value) -> f64 {
    value.as_f64().expect("a number")
}

/// Own time of functions, nanoseconds, from the rows of a command's JSON.
fn own<'v>(rows: &'v Value, name: &str, of: impl Fn(&'v Value) -> &'v Value) -> Vec<(&'v str, f64)> {
    let rows = rows.as_array().expect("rows").iter();
    rows.map(|row| (row[name].as_str().expect("a name"), number(of(row)))).collect()
}

fn agree(file: &Path) {
    let report = json(&["report", "--json"], &[file]);
    let cpus = report["limit"]["at"][0]["cpus"].to_string();
    let on = ["--json", "--cpus", &cpus];
    let asked = |command: &str| json(&[&[command][..], &on].concat(), &[file]);
    let (predict, metrics) = (asked("predict"), asked("compare-metrics"));
    let rank = json(&[&["what-if", "--rank"][..], &on].concat(), &[file]);
    let diff = json(&[&["diff"][..], &on].concat(), &[file, file]);
    let time = number(&report["limit"]["at"][0]["time_ns"]);
    let times = [
        &predict["results"][0]["time_ns"],
        &metrics["time_ns"],
        &rank["rank"][0]["time_ns"],
        &diff["results"][0]["before_ns"],
        &diff["results"][0]["after_ns"],
    ];
    for (place, other) in times.into_iter().enumerate() {
        assert!((number(other) / time - 1.0).abs() < 1e-9, "{}: time {place}", file.display());
    }
    let said = limit(&["report"], file);
    assert!(said.starts_with("LIMIT"), "{}: {said}", file.display());
    for command in ["predict", "slack", "paths", "what-if --rank", "report --by wait", "report --by lock"] {
        let words: Vec<&str> = command.split(' ').collect();
        assert_eq!(limit(&words, file), said, "{}: {command}", file.display());
    }
    let compared = own(&metrics["functions"], "function", |row| &row["critical_path_ns"]);
    let in_diff = own(&diff["functions"], "name", |row| &row["changes"][0]["before_ns"]);
    for (function, ns) in compared.iter().filter(|(_, ns)| ns / time > APART) {
        let other = in_diff.iter().find(|(name, _)| name == function).map_or(0.0, |(_, ns)| *ns);
        assert!((other - ns).abs() / time < APART, "{}: {function} {ns} {other}", file.display());
    }
    for row in rank["rank"][0]["functions"].as_array().expect("rows").iter().take(FUNCTIONS) {
        let (function, gain) = (row["function"].as_str().expect("a name"), number(&row["gain_100_ns"]));
        let scaled = format!("{function}=0");
        let what_if = json(&[&["what-if", "--scale", &scaled][..], &on].concat(), &[file]);
        let row = &what_if["results"][0];
        let other = number(&row["before_ns"]) - number(&row["after_ns"]);
        assert!((other - gain).abs() / time < 1e-6, "{}: {function} {gain} {other}", file.display());
        let rows = metrics["functions"].as_array().expect("rows");
        let change = rows.iter().find(|row| row["function"] == function).map(|row| &row["simulated_ns"]);
        if let Some(change) = change.and_then(Value::as_f64) {
            assert!((change - gain).abs() / time < 1e-6, "{}: {function} {gain} {change}", file.display());
        }
    }
}

/// A function's share must be the same in `compare-metrics`, `report` and `slack`, and its gain in `--rank` and `--scale`.
mod all_commands_say_the_same {
    use super::{agree, recordings};

    fn part(number: usize) {
        recordings(number, 4).iter().for_each(|file| agree(file));
    }

    #[test]
    fn commands_agree_about_the_first_part_of_the_recordings() {
        part(0);
    }

    #[test]
    fn commands_agree_about_the_second_part_of_the_recordings() {
        part(1);
    }

    #[test]
    fn commands_agree_about_the_third_part_of_the_recordings() {
        part(2);
    }

    #[test]
    fn commands_agree_about_the_fourth_part_of_the_recordings() {
        part(3);
    }
}

/// The options of `what-if` for a change of FIX; `None`: there are no such options.
fn options(fix: &Value) -> Option<Vec<String>> {
    let text = |key: &str| fix[key].as_str().unwrap_or_default();
    let named =
        |option: &str, name: &str, value: String| Some(vec![option.to_owned(), format!("{name}={value}")]);
    match text("change") {
        "faster" => named("--scale", text("function"), fix["factor"].to_string()),
        "split_lock" => named("--split-lock", text("lock"), fix["parts"].to_string()),
        "move_out" => named("--move-out", text("function"), text("lock").to_owned()),
        "one_more_thread" | "fewer_threads" => Some(vec!["--threads".to_owned(), fix["threads"].to_string()]),
        "balance" => Some(vec!["--divide-evenly".to_owned()]),
        "no_sleeps" => Some(vec!["--no-sleeps".to_owned()]),
        "no_quota" => Some(vec!["--no-quota".to_owned()]),
        _ => None,
    }
}

/// `what-if` gains with a change of FIX what FIX says.
#[test]
fn what_if_gains_what_fix_says() {
    let mut compared = Vec::new();
    for file in recordings(0, 1) {
        let name = file.display();
        let answer =
            |call: Longpole| -> Value { serde_json::from_str(&call.and(&file).ok().stdout).expect("JSON") };
        let report = answer(Longpole::with(["report", "--json"]));
        let cpus = report["limit"]["at"][0]["cpus"].to_string();
        for fix in report["limit"]["fixes"].as_array().into_iter().flatten() {
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

/// What a thread does inside `std::call_once` is computing, not spinning.
#[test]
fn work_inside_call_once_is_computing_and_not_waiting() {
    let file = data_folder().join("commands/once.lp");
    let run = json(&["parallelism", "--json"], &[&file]);
    let rows = run["rows"].as_array().expect("rows");
    let row = rows.iter().find(|row| row["name"] == "make_table()").expect("a row");
    assert!(number(&row["busy_ns"]) > 0.5 * number(&run["elapsed_ns"]), "{row}");
    assert!(number(&run["nobody_busy_ns"]) < 0.2 * number(&run["elapsed_ns"]), "{run}");
}
