//! Makes the table of outcomes, with a row for each test and a column for each kernel.

use std::fmt::Write as _;

use super::runs::{Outcome, Ran};

/// Whether a test has failed in this machine.
pub fn has_failed(ran: &Ran) -> bool {
    ran.outcomes.iter().any(|(_, outcome)| matches!(outcome, Outcome::Failed(_)))
}

/// The table, and a line with the sums for each kernel.
pub fn of(all: &[Ran], names: &[String]) -> String {
    let mut text = String::from("\n| test |");
    for ran in all {
        let _ = write!(text, " {} |", ran.release);
    }
    text += "\n|---|";
    text += &"---|".repeat(all.len());
    for name in names {
        let _ = write!(text, "\n| {name} |");
        for ran in all {
            let _ = write!(text, " {} |", word(outcome(ran, name)));
        }
    }
    text.push('\n');
    for ran in all {
        let count = |wanted: &str| names.iter().filter(|name| word(outcome(ran, name)) == wanted).count();
        let _ = write!(
            text,
            "\n{}: {} passed, {} failed, {} not possible, {} not run",
            ran.release,
            count("passed"),
            count("failed"),
            count("not possible"),
            count("not run")
        );
    }
    text
}

fn outcome<'a>(ran: &'a Ran, name: &str) -> Option<&'a Outcome> {
    ran.outcomes.iter().find(|(test, _)| test == name).map(|(_, outcome)| outcome)
}

fn word(outcome: Option<&Outcome>) -> &'static str {
    match outcome {
        Some(Outcome::Passed(_)) => "passed",
        Some(Outcome::Failed(_)) => "failed",
        Some(Outcome::NotPossible(_)) => "not possible",
        None => "not run",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_test_is_a_row_and_each_kernel_a_column() {
        let ran = |release: &str, outcomes: &[(&str, Outcome)]| Ran {
            release: release.into(),
            outcomes: outcomes.iter().map(|(name, outcome)| ((*name).into(), outcome.clone())).collect(),
        };
        let all = [
            ran("6.1", &[("a", Outcome::Passed(1)), ("b", Outcome::NotPossible("no gdb".into()))]),
            ran("7.2", &[("a", Outcome::Failed(Vec::new()))]),
        ];
        let text = of(&all, &["a".into(), "b".into()]);
        assert!(text.contains("| a | passed | failed |\n| b | not possible | not run |"), "{text}");
        assert!(text.ends_with("6.1: 1 passed, 0 failed, 1 not possible, 0 not run\n7.2: 0 passed, 1 failed, 0 not possible, 1 not run"));
        assert_eq!(all.map(|ran| has_failed(&ran)), [false, true]);
    }
}
