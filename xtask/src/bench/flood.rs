//! Half a million scheduler events a second for a minute: nothing may be lost, and longpole may take half a core at most.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};
use longpole_tests::{Background, workload};

use super::Scratch;
use super::handover::lost_percent;
use crate::command;
use crate::sample::digits;
use crate::workspace::Workspace;

/// Hand-overs a second; each makes somewhat less than two events. `LONGPOLE_FLOOD_RATE` changes it.
const RATE: u64 = 330_000;
/// Length of the run; `LONGPOLE_FLOOD_SECONDS` changes it.
const SECONDS: u64 = 60;
const EVENTS: f64 = 500_000.0;

/// Measures one run.
///
/// # Errors
/// The program or longpole cannot be run.
pub fn measure(workspace: &Workspace, longpole: &Path) -> Result<String> {
    let flood = workload::build("flood.c")?;
    let number =
        |name: &str, otherwise| std::env::var(name).ok().and_then(|n| n.parse().ok()).unwrap_or(otherwise);
    let (rate, seconds) = (number("LONGPOLE_FLOOD_RATE", RATE), number("LONGPOLE_FLOOD_SECONDS", SECONDS));
    let limit = Duration::from_secs(seconds + 120);
    let scratch = Scratch::new(workspace, "flood")?;
    let file = scratch.0.join("flood.lp");
    let mut target = Command::new(flood);
    target.args([rate.to_string(), (seconds * 1_000 + 3_000).to_string(), "2".to_owned()]);
    let target = Background::start(&mut target).context("flood")?;
    // The shell prints the CPU time of longpole, with all its threads, its start and its end.
    let script = "\"$@\"; code=$?; times; exit $code";
    let mut call = Command::new("sh");
    call.args(["-c", script, "sh"]).arg(longpole);
    call.args(["record", "--force", "-d", &format!("{seconds}s"), "-p", &target.pid().to_string(), "-o"])
        .arg(&file);
    let ended = command::well(longpole_tests::run(&mut call, limit)?, "longpole")?;
    let of_target = target.wait(limit)?;
    let cpu = children_seconds(&ended.stdout).with_context(|| format!("no times in: {}", ended.stdout))?;
    let events = ended.stderr.lines().find_map(|line| line.strip_prefix("events "));
    let events = events.and_then(|line| line.split(", ").next()).context("no events in the summary")?;
    let events: f64 = events.chars().filter(char::is_ascii_digit).collect::<String>().parse()?;
    let (lost, per_second) = (lost_percent(&ended.stderr)?, events / seconds as f64);
    let core = cpu / seconds as f64;
    let bytes = std::fs::metadata(&file)?.len() as f64 / events.max(1.0);
    let verdict = match () {
        () if per_second < 0.98 * EVENTS => "**The program did not make as many events here.**",
        () if lost > 0.0 => "**Events were lost.**",
        () if core > 0.5 => "**longpole took more than half a core.**",
        () => "Both targets are met.",
    };
    Ok(format!(
        "## A flood of events\n\nTwo pairs of threads, each on a CPU of its own, hand over by a futex at a set rate; `longpole record -p PID` for \
         {seconds} s. The targets: 500,000 events\na second, nothing lost, longpole below half a core (CPU time of its whole \
         process).\n\n\
         | events | a second | lost, % | CPU time of longpole, s | cores | bytes per event |\n|---|---|---|---|---|---|\n\
         | {events:.0} | {per_second:.0} | {lost:.3} | {} | {} | {} |\n\n{verdict} {}",
        digits(cpu),
        digits(core),
        digits(bytes),
        of_target.stdout.trim()
    ))
}

/// User and system time of the children in the output of the shell's `times`: two lines of `0m1.234s 0m0.567s`.
fn children_seconds(said: &str) -> Option<f64> {
    let line = said.lines().rfind(|line| line.contains('m') && line.ends_with('s'))?;
    line.split_whitespace().map(seconds).sum()
}

fn seconds(text: &str) -> Option<f64> {
    let (minutes, seconds) = text.strip_suffix('s')?.split_once('m')?;
    Some(minutes.parse::<f64>().ok()? * 60.0 + seconds.parse::<f64>().ok()?)
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
