//! Reads figures from the output of programs: from longpole's summary of a recording, and from a benchmark's own time.

use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use crate::command;

/// Runs a program that prints the nanoseconds of its work. Returns them as `ns`; if longpole records the program, also
/// returns `lost`.
pub fn timed(command: &mut Command) -> Result<Value> {
    let ended = command::good(command, Duration::from_secs(300))?;
    let line = ended.stdout.lines().find_map(|line| line.strip_suffix(" ns"));
    let ns: Option<f64> = line.and_then(|ns| ns.parse().ok());
    let no_time = || format!("{} printed no time: {}", command.get_program().display(), ended.stdout);
    Ok(json!({ "ns": ns.with_context(no_time)?, "lost": lost_percent(&ended.stderr).ok() }))
}

/// Percent of the events that were lost, from longpole's summary. A recorder that loses events is cheap but useless.
pub fn lost_percent(summary: &str) -> Result<f64> {
    let line = summary.lines().find_map(|line| line.strip_prefix("lost ")).context("no summary of losses")?;
    let Some((_, percent)) = line.split_once('(') else { return Ok(0.0) };
    let number = percent.split(' ').next().unwrap_or_default();
    number.parse().with_context(|| format!("no percentage in: {line}"))
}

/// The number of events in longpole's summary.
pub fn events(summary: &str) -> Result<f64> {
    let line = summary.lines().find_map(|line| line.strip_prefix("events "));
    Ok(leading_number(line.with_context(|| format!("no number of events in: {summary}"))?.trim()))
}

/// The number before the first `, `: 1234567 in `1,234,567, 89 a second`.
fn leading_number(text: &str) -> f64 {
    let number = text.split(", ").next().unwrap_or_default();
    number.chars().filter(char::is_ascii_digit).collect::<String>().parse().unwrap_or(0.0)
}

/// The last cost in longpole's output, in percent.
pub fn told_cost(text: &str) -> Result<f64> {
    let cost = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let at = words.iter().position(|word| *word == "cost")?;
        words
            .get(at + 1)?
            .parse()
            .ok()
            .filter(|_| words.get(at + 2).is_some_and(|word| word.starts_with('%')))
    };
    text.lines().filter_map(cost).next_back().context("longpole does not say what it cost")
}

/// The PID of the process that longpole launched, from its output.
pub fn launched_pid(said: &str) -> Result<u32> {
    let pid = said.split("(pid ").nth(1).and_then(|rest| rest.split(')').next()?.parse().ok());
    pid.with_context(|| format!("no pid in: {said}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lost_percentage_is_read_from_the_summary() {
        assert_eq!(lost_percent("events    5\nlost      0\n").unwrap(), 0.0);
        assert_eq!(lost_percent("lost      1,135,025 (32.10 %): did not fit\n").unwrap(), 32.1);
        assert!(lost_percent("nothing of the kind").is_err());
    }

    #[test]
    fn the_number_of_events_is_read_from_the_summary() {
        assert_eq!(events("x\nevents   1,234,567, 89 a second\n").unwrap(), 1_234_567.0);
        assert_eq!(events("events 0").unwrap(), 0.0);
    }

    #[test]
    fn the_last_cost_in_the_output_counts() {
        let said = "a  cost 1.5 % (0.2 in it)\n\ncost   2.25 %: of\nprobes would cost 9 times";
        assert_eq!(told_cost(said).unwrap(), 2.25);
        assert!(told_cost("costs nothing").is_err());
    }

    #[test]
    fn the_launched_process_is_read_from_the_first_line() {
        assert_eq!(launched_pid("recording x (pid 42), ^C ends it").unwrap(), 42);
    }
}
