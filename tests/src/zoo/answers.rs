//! The answers of longpole's commands for one recording.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use crate::process;

/// A command that takes longer than this counts as failed.
const LIMIT: Duration = Duration::from_secs(120);
/// The CPU counts of every report.
const CPUS: &str = "1,2,4,8,16,inf";

/// The answers of longpole's commands about one recording.
#[derive(Clone, Debug)]
pub struct Answers {
    /// Predicted time on the recorded machine, in seconds.
    pub time_s: f64,
    /// Measured time, in seconds.
    pub real_s: f64,
    /// Predicted speed-up from one CPU to two.
    pub speedup: f64,
    /// The share that is farthest from one half, and the name of its row.
    pub widest: Option<(f64, String)>,
    /// Names of the other commands, and the relative difference between their time and the report's.
    pub others: Vec<(&'static str, f64)>,
    /// The leading function or lock on the recorded machine; if there is none, the kind of the limit.
    pub leader: String,
    /// Kinds of the limits on the recorded machine, and the part of the time that would be saved without each. The
    /// first one is the limit.
    pub limits: Vec<(String, f64)>,
    /// The text of a finding about a deadlock; `None` if there is no deadlock.
    pub deadlock: Option<String>,
    /// Names of the functions in limits and suggested changes.
    pub advice: String,
    /// The cost that longpole reports, as a part of the target's CPU time.
    pub told_cost: f64,
}

/// Runs all commands. `cpus` is the recorded machine's number of CPUs. `thorough` includes the slower commands.
///
/// # Errors
/// A command fails, or its output cannot be read.
pub fn ask(longpole: &Path, file: &Path, cpus: u32, real_s: f64, thorough: bool) -> Result<Answers, String> {
    let json = |command: &str, options: &[&str]| {
        let words = [&[command, "--json"], options].concat();
        let text = say(longpole, &words, &[file])?;
        serde_json::from_str::<Value>(&text).map_err(|error| format!("{command} --json: {error}"))
    };
    let report = json("report", &["--cpus", CPUS])?;
    let predict = json("predict", &["--cpus", CPUS.trim_end_matches(",inf")])?;
    let time_ns = time(&report["results"], cpus.into());
    let apart = |ns: f64| ns / time_ns - 1.0;
    let mut others = vec![("predict", apart(time(&predict["results"], cpus.into())))];
    let mut deadlock = deadlock(&report).or_else(|| deadlock_in(&predict));
    let advice = functions_in(&report["limit"]);
    if thorough {
        let count = cpus.to_string();
        let ranked = json("what-if", &["--rank", "--top", "3", "--cpus", &count])?;
        others.push(("what-if", apart(time(&ranked["rank"], cpus.into()))));
        let slack = json("slack", &[])?;
        let unlimited = time(&report["results"], "inf".into());
        others.push(("slack", number(&slack["length_ns"]) / unlimited - 1.0));
        deadlock = deadlock.or_else(|| deadlock_in(&slack));
    }
    let at = at(&predict["results"], cpus.into());
    let limit = &predict["limit"]["at"][0];
    let leader = at["leader"].as_str().or_else(|| limit["lock"].as_str());
    let leader = leader.or_else(|| limit["kind"].as_str()).unwrap_or("nothing");
    Ok(Answers {
        time_s: time_ns / 1e9,
        real_s,
        speedup: time(&report["results"], 1.into()) / time(&report["results"], 2.into()),
        widest: widest(&report),
        others,
        leader: leader.to_owned(),
        limits: limits(&report["limit"]["at"][0]),
        deadlock,
        advice: advice.join(", "),
        told_cost: number(&report["overhead"]["share"]),
    })
}

/// Runs `diff` for two recordings on this number of CPUs. Returns the growth of the predicted time, and the growth that
/// may be chance, both as parts of the first recording's time. Also returns whether diff calls the change clear, and
/// the first recording's time in seconds.
///
/// # Errors
/// Those of [`ask`].
pub fn compare(longpole: &Path, files: [&Path; 2], cpus: u32) -> Result<(f64, f64, bool, f64), String> {
    let text = say(longpole, &["diff", "--json", "--cpus", &cpus.to_string()], &files)?;
    let diff: Value = serde_json::from_str(&text).map_err(|error| format!("diff --json: {error}"))?;
    let at = at(&diff["results"], cpus.into());
    let (before, after) = (number(&at["before_ns"]), number(&at["after_ns"]));
    let clear = at["clear"].as_bool().ok_or("diff does not say whether the change is clear")?;
    Ok((after / before - 1.0, number(&at["noise_ns"]) / before, clear, before / 1e9))
}

/// The length of the recording, in seconds.
///
/// # Errors
/// Those of [`ask`].
pub fn length_s(longpole: &Path, file: &Path) -> Result<f64, String> {
    let text = say(longpole, &["info", "--json"], &[file])?;
    let info: Value = serde_json::from_str(&text).map_err(|error| format!("info --json: {error}"))?;
    Ok(number(&info["session"]["duration_ns"]) / 1e9)
}

fn say(longpole: &Path, words: &[&str], files: &[&Path]) -> Result<String, String> {
    let mut command = Command::new(longpole);
    command.args(words).args(files).env("NO_COLOR", "1").env_remove("LONGPOLE_LOG");
    let ended = process::run(&mut command, LIMIT).map_err(|error| format!("longpole {words:?}: {error}"))?;
    match ended.code {
        Some(0) => Ok(ended.stdout),
        code => Err(format!(
            "longpole {words:?} ends with {:?}: {}",
            code.or(ended.signal),
            ended.stderr.lines().next().unwrap_or_default()
        )),
    }
}

fn at(results: &Value, cpus: Value) -> &Value {
    let results = results.as_array().map_or(&[][..], Vec::as_slice);
    results.iter().find(|result| result["cpus"] == cpus).unwrap_or(&Value::Null)
}

fn time(results: &Value, cpus: Value) -> f64 {
    number(&at(results, cpus)["time_ns"])
}

/// The value as a number. NaN if it is no number, so that no bound accepts it.
fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or(f64::NAN)
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// The limits on one number of CPUs. A lock has its name, and work of the kernel or a runtime has its object.
fn limits(limit: &Value) -> Vec<(String, f64)> {
    let kind = |row: &Value| match (row["kind"].as_str().unwrap_or("nothing"), &row["object"], &row["lock"]) {
        ("support_work", Value::String(object), _) => format!("support_work {object}"),
        ("lock", _, Value::String(lock)) => format!("lock {lock}"),
        (kind, ..) => kind.to_owned(),
    };
    let first = 1.0 - number(&limit["without_ns"]) / number(&limit["time_ns"]);
    let others = list(&limit["others"]).iter().map(|row| (kind(row), number(&row["most"])));
    std::iter::once((kind(limit), first)).chain(others).collect()
}

/// The share farthest from one half, among functions, locks and waits, on all numbers of CPUs.
fn widest(report: &Value) -> Option<(f64, String)> {
    let mut shares = Vec::new();
    for result in list(&report["results"]) {
        let time = number(&result["time_ns"]);
        let rows = [
            ("functions", "function", "tet_ns", "self of"),
            ("functions", "function", "tetid_ns", "total of"),
            ("locks", "lock", "held_ns", "held"),
            ("waits", "object", "weighted_ns", "waiting for"),
        ];
        for (rows, name, field, what) in rows {
            for row in list(&result[rows]) {
                let name = row[name].as_str().or_else(|| row["kind"].as_str()).unwrap_or("?");
                let share = number(&row[field]) / time;
                shares.push((share, format!("{what} {name} on {} CPUs", result["cpus"])));
            }
        }
    }
    // NaN counts as farther than every number.
    let odd = |share: f64| if share.is_finite() { (share - 0.5).abs() } else { f64::INFINITY };
    shares.into_iter().max_by(|a, b| odd(a.0).total_cmp(&odd(b.0)))
}

fn deadlock(answer: &Value) -> Option<String> {
    let finding = list(&answer["findings"])
        .iter()
        .find(|finding| finding["kind"].as_str().is_some_and(|kind| kind.contains("deadlock")))?;
    Some(finding["text"].as_str().unwrap_or("deadlock").to_owned())
}

/// The text of a deadlock that is a finding, or that is the limit on some number of CPUs.
fn deadlock_in(answer: &Value) -> Option<String> {
    let limits = || list(&answer["limit"]["at"]).iter().find(|limit| limit["kind"] == "deadlock");
    deadlock(answer).or_else(|| limits().map(|result| format!("limits on {} CPUs", result["cpus"])))
}

/// Names of all functions in the limits and the changes.
fn functions_in(limit: &Value) -> Vec<String> {
    match limit {
        Value::Object(fields) => fields
            .iter()
            .flat_map(|(name, value)| match (name.as_str(), value) {
                ("function", Value::String(function)) => vec![function.clone()],
                _ => functions_in(value),
            })
            .collect(),
        Value::Array(values) => values.iter().flat_map(functions_in).collect(),
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_widest_share_of_a_report_is_found() {
        let report = serde_json::json!({"results": [
            {"cpus": 1, "time_ns": 100, "functions": [{"function": "a", "tet_ns": 99, "tetid_ns": 100}]},
            {"cpus": "inf", "time_ns": 10, "locks": [{"lock": "m", "held_ns": -1}],
             "waits": [{"kind": "join", "weighted_ns": 12}]},
        ]});
        assert_eq!(widest(&report), Some((1.2, "waiting for join on \"inf\" CPUs".to_owned())));
        let broken =
            serde_json::json!({"results": [{"cpus": 1, "time_ns": 1, "functions": [{"function": "a"}]}]});
        assert!(widest(&broken).is_some_and(|(share, _)| share.is_nan()));
        assert_eq!(widest(&Value::Null), None);
    }

    #[test]
    fn a_deadlock_is_found_among_notes_and_limits() {
        let finding = serde_json::json!({"findings": [{"kind": "simulated_deadlock", "text": "a and b"}]});
        assert_eq!(deadlock_in(&finding).as_deref(), Some("a and b"));
        let limit = serde_json::json!({"limit": {"at": [{"cpus": 4, "kind": "deadlock"}]}});
        assert_eq!(deadlock_in(&limit).as_deref(), Some("limits on 4 CPUs"));
        assert_eq!(deadlock_in(&serde_json::json!({"findings": [{"kind": "loss"}], "results": []})), None);
    }

    #[test]
    fn limits_are_the_first_row_and_the_others_with_their_gains() {
        let limit = serde_json::json!({
            "kind": "lock", "lock": "mutex hot", "time_ns": 4, "without_ns": 1, "others": [{"kind": "hand_over", "least": 0.1, "most": 0.2}],
        });
        assert_eq!(limits(&limit), [("lock mutex hot".to_owned(), 0.75), ("hand_over".to_owned(), 0.2)]);
        assert_eq!(limits(&Value::Null)[0].0, "nothing");
        let limit = serde_json::json!({"kind": "support_work", "object": "page faults", "time_ns": 1, "without_ns": 1});
        assert_eq!(limits(&limit), [("support_work page faults".to_owned(), 0.0)]);
    }

    #[test]
    fn functions_of_limits_and_fixes_are_listed() {
        let limit = serde_json::json!({
            "at": [{"cpus": 2, "kind": "stage", "thread": "futex", "function": "crunch"}],
            "fixes": [{"change": {"function": "epoll_wait", "factor": 0.5}}, {"lock": "futex 0x55"}],
        });
        assert_eq!(functions_in(&limit), ["crunch", "epoll_wait"]);
        assert!(functions_in(&Value::Null).is_empty());
    }
}
