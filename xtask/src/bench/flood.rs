//! Half a million scheduler events per second for a minute. No event may be lost, and longpole may use at most half a
//! CPU.

use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};
use longpole_tests::Background;
use serde_json::{Value, json};

use super::summary::{events, lost_percent};
use crate::command;
use crate::measure::{Measurement, Need, Setting, Side, built};
use crate::sample::digits;

/// Number of hand-overs per second. Each makes slightly less than two events. `LONGPOLE_FLOOD_RATE` changes the number.
const RATE: u64 = 330_000;
/// Length of the run in seconds. `LONGPOLE_FLOOD_SECONDS` changes it.
const SECONDS: u64 = 60;
const EVENTS: f64 = 500_000.0;

pub const FLOOD: Measurement = Measurement {
    name: "flood",
    about: "Half a million events a second for a minute",
    title: "A flood of events",
    needs: &[Need::Recorder],
    sides: |setting| Ok(vec![Side::new("flood", |_| flood(setting)).once(true)]),
    says: "Two pairs of threads, each on a CPU of its own, hand over by a futex at a set rate; `longpole record -p \
           PID` for {seconds} s. The targets: 500,000 events\na second, nothing lost, longpole below half a core \
           (CPU time of its whole process).",
    fills: |results| Ok(vec![("seconds", results.at(0)?.count("seconds")?)]),
    columns: &[
        ("events", |side, _| side.count("events")),
        ("a second", |side, _| Ok(format!("{:.0}", side.median("rate")?))),
        ("lost, %", |side, _| Ok(format!("{:.3}", side.median("lost")?))),
        ("CPU time of longpole, s", |side, _| side.middle("cpu", 1.0)),
        ("cores", |side, _| side.ratio("cpu", "seconds", 1.0)),
        ("bytes per event", |side, _| Ok(digits(side.median("bytes")? / side.median("events")?.max(1.0)))),
    ],
    ends: |results| {
        let side = results.at(0)?;
        let core = side.median("cpu")? / side.median("seconds")?;
        let verdict = match () {
            () if side.median("rate")? < 0.98 * EVENTS => "**The program did not make as many events here.**",
            () if side.median("lost")? > 0.0 => "**Events were lost.**",
            () if core > 0.5 => "**longpole took more than half a core.**",
            () => "Both targets are met.",
        };
        let said = side.last().and_then(|last| last["said"].as_str()).unwrap_or_default();
        Ok(format!("{verdict} {said}"))
    },
    ..Measurement::NEW
};

/// Makes one run.
fn flood(setting: &Setting) -> Result<Value> {
    let number =
        |name: &str, otherwise| std::env::var(name).ok().and_then(|n| n.parse().ok()).unwrap_or(otherwise);
    let (rate, seconds) = (number("LONGPOLE_FLOOD_RATE", RATE), number("LONGPOLE_FLOOD_SECONDS", SECONDS));
    let limit = Duration::from_secs(seconds + 120);
    let file = setting.file("flood.lp");
    let mut target = command::line(built("flood.c")?, &format!("{rate} {} 2", seconds * 1_000 + 3_000));
    let target = Background::start(&mut target).context("flood")?;
    // The shell prints the CPU time of longpole, from its start to its end and with all its threads.
    let mut call = Command::new("sh");
    call.args(["-c", "\"$@\"; code=$?; times; exit $code", "sh"]).arg(&setting.longpole);
    call.args(["record", "--force", "-d", &format!("{seconds}s"), "-p", &target.pid().to_string(), "-o"]);
    let ended = command::well(longpole_tests::run(call.arg(&file), limit)?, "longpole")?;
    let of_target = target.wait(limit)?;
    let cpu = children_seconds(&ended.stdout).with_context(|| format!("no times in: {}", ended.stdout))?;
    let events = events(&ended.stderr)?;
    Ok(json!({
        "seconds": seconds,
        "events": events,
        "rate": events / seconds as f64,
        "lost": lost_percent(&ended.stderr)?,
        "cpu": cpu,
        "bytes": std::fs::metadata(&file)?.len(),
        "said": of_target.stdout.trim(),
    }))
}

/// User and system time of the shell's children. The output of its `times` has two lines such as `0m1.234s 0m0.567s`.
fn children_seconds(said: &str) -> Option<f64> {
    let seconds = |text: &str| {
        let (minutes, seconds) = text.strip_suffix('s')?.split_once('m')?;
        Some(minutes.parse::<f64>().ok()? * 60.0 + seconds.parse::<f64>().ok()?)
    };
    let line = said.lines().rfind(|line| line.contains('m') && line.ends_with('s'))?;
    line.split_whitespace().map(seconds).sum()
}

#[cfg(test)]
mod tests {
    use super::children_seconds;

    #[test]
    fn times_of_children_are_read_from_the_shell_s_output() {
        assert_eq!(children_seconds("0m0.001s 0m0.002s\n1m2.500s 0m0.250s\n"), Some(62.75));
        assert_eq!(children_seconds("nothing"), None);
    }
}
