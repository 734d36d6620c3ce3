//! Counts the results of a test run, and prints each result when it is known.

use std::collections::BTreeMap;
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use anyhow::Result;

use super::junit::{Outcome, Test};
use crate::command;

const LIMIT: Duration = Duration::from_secs(2400);
/// Number of the slowest tests that are listed.
const SLOWEST: usize = 10;

/// The results of the tests so far.
#[derive(Debug, Default)]
pub struct Score {
    passed: usize,
    failed: Vec<String>,
    /// Tests that failed first and passed when they were run again.
    unsteady: Vec<String>,
    skipped: BTreeMap<String, String>,
}

impl Score {
    /// Counts a check that this machine cannot do.
    pub fn skip(&mut self, name: &str, reason: &str) {
        println!("SKIP  {name}: {reason}");
        self.skipped.insert(name.into(), reason.into());
    }

    /// Counts a check that failed.
    pub fn fail(&mut self, name: &str, why: &str) {
        println!("FAIL  {name}: {why}");
        self.failed.push(name.into());
    }

    /// Counts a check. The check has passed if there are no complaints.
    pub fn complaints(&mut self, name: &str, complaints: Vec<String>) {
        if complaints.is_empty() {
            println!("ok    {name}");
            self.passed += 1;
        } else {
            self.fail(name, &complaints.join("\n      "));
        }
    }

    /// Returns the value of a result. An error counts as a failed check.
    pub fn unless_broken<T>(&mut self, name: &str, result: Result<T>) -> Option<T> {
        result.map_err(|error| self.fail(name, &format!("{error:#}"))).ok()
    }

    /// Runs a command that must end with code 0. If it does not, shows its output. Returns whether it did.
    pub fn command(&mut self, name: &str, command: &mut Command) -> bool {
        let start = Instant::now();
        let complaint = match command::capture(command, LIMIT) {
            Ok(outcome) if outcome.success() => {
                println!("ok    {name} ({:.1} s)", start.elapsed().as_secs_f64());
                self.passed += 1;
                return true;
            }
            Ok(outcome) => {
                print!("{}", outcome.output);
                outcome.ending()
            }
            Err(error) => format!("{error:#}"),
        };
        self.fail(name, &complaint);
        false
    }

    /// Counts the report of a test runner. If the runner fails although no test failed, the runner itself counts as
    /// failed.
    pub fn tests(&mut self, tests: &[Test], ended_well: bool) {
        let failed_before = self.failed.len();
        for test in tests {
            match &test.outcome {
                Outcome::Passed { tries: 1 } => self.passed += 1,
                Outcome::Passed { tries } => {
                    self.passed += 1;
                    self.unsteady.push(format!("{} (passed in run {tries})", test.name));
                }
                Outcome::Failed => self.failed.push(test.name.clone()),
                Outcome::Skipped(reason) => self.skip(&test.name, reason),
            }
        }
        if !ended_well && self.failed.len() == failed_before {
            self.fail("the test runner itself", "it ended with an error and names no failed test");
        }
        if tests.is_empty() {
            self.fail("the test runner itself", "it ran no test");
        }
        let mut slowest: Vec<&Test> = tests.iter().collect();
        slowest.sort_by(|one, other| other.seconds.total_cmp(&one.seconds));
        for test in slowest.iter().take(SLOWEST).filter(|test| test.seconds >= 1.0) {
            println!("slow  {:5.1} s  {}", test.seconds, test.name);
        }
    }

    /// Prints the last lines. The very last one is `N passed, N failed, N skipped`.
    pub fn finish(self) -> ExitCode {
        for test in &self.unsteady {
            println!("unsteady: {test}");
        }
        for test in &self.failed {
            println!("failed: {test}");
        }
        if !self.unsteady.is_empty() {
            println!("{} unsteady", self.unsteady.len());
        }
        println!("{} passed, {} failed, {} skipped", self.passed, self.failed.len(), self.skipped.len());
        if self.failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn test(outcome: Outcome) -> Test {
        Test { name: "live one::test".into(), seconds: 0.1, outcome }
    }

    #[test]
    fn each_test_outcome_counts_once_in_the_score() {
        let mut score = Score::default();
        let skipped = Outcome::Skipped("no root".into());
        score.tests(
            &[test(Outcome::Passed { tries: 1 }), test(Outcome::Passed { tries: 2 }), test(skipped)],
            true,
        );
        assert_eq!((score.passed, score.failed.len(), score.skipped.len()), (2, 0, 1));
        assert_eq!(score.unsteady, ["live one::test (passed in run 2)"]);
        score.tests(&[test(Outcome::Failed)], false);
        assert_eq!(score.failed, ["live one::test"]);
    }

    #[test]
    fn a_test_runner_that_fails_without_a_failed_test_has_failed() {
        let mut score = Score::default();
        score.tests(&[test(Outcome::Passed { tries: 1 })], false);
        assert_eq!(score.failed, ["the test runner itself"]);
    }

    #[test]
    fn a_run_without_any_test_has_failed() {
        let mut score = Score::default();
        score.tests(&[], true);
        assert_eq!(score.failed, ["the test runner itself"]);
    }

    #[test]
    fn a_command_that_cannot_start_or_ends_badly_has_failed() {
        let mut score = Score::default();
        assert!(score.command("good", &mut Command::new("true")));
        assert!(!score.command("bad", &mut Command::new("false")));
        assert!(!score.command("none", &mut Command::new("/nowhere/program")));
        assert_eq!((score.passed, score.failed), (1, vec!["bad".into(), "none".into()]));
    }
}
