//! The count of a test run, printed as it grows.

use std::collections::BTreeMap;
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use crate::command;
use crate::libtest;
use crate::stolen::CpuTicks;
use crate::test::COMPILE_LIMIT;

/// How often a test of running programs that has failed is run anew.
///
/// Such a test says how long parts of a program take beside each other. On a virtual machine its host may take the CPUs
/// away at any moment, from one thread and not from the next, and then it is not the program that is seen. A defect fails
/// each time; what failed once is named at the end, so that one which comes and goes is not lost from sight.
const MORE_TRIES: u32 = 3;

/// The count so far.
#[derive(Default)]
pub struct Score {
    passed: u64,
    failed: Vec<String>,
    /// Passed when they were run anew.
    unsteady: Vec<String>,
    skipped: BTreeMap<String, String>,
}

impl Score {
    /// Something that is no test held.
    pub fn pass(&mut self, name: &str, start: Instant) {
        self.passed += 1;
        println!("ok    {name} ({:.1} s)", start.elapsed().as_secs_f64());
    }

    /// Something cannot be looked at here.
    pub fn skip(&mut self, name: &str, reason: &str) {
        println!("SKIP  {name}: {reason}");
        self.skipped.insert(name.into(), reason.into());
    }

    /// Something does not hold.
    pub fn fail(&mut self, name: &str, why: &str) {
        println!("FAIL  {name}: {why}");
        self.failed.push(name.into());
    }

    /// What has no complaints holds.
    pub fn check(&mut self, name: &str, check: impl FnOnce() -> Result<Vec<String>>) {
        let start = Instant::now();
        match check() {
            Ok(complaints) if complaints.is_empty() => self.pass(name, start),
            Ok(complaints) => self.fail(name, &complaints.join("\n      ")),
            Err(error) => self.fail(name, &format!("{error:#}")),
        }
    }

    /// A command that holds if it ends with code 0.
    pub fn command(&mut self, name: &str, command: &mut Command) {
        self.check(name, || {
            let outcome = command::capture(command, COMPILE_LIMIT)?;
            if outcome.success() {
                return Ok(Vec::new());
            }
            print!("{}", outcome.output);
            Ok(vec![outcome.ending()])
        });
    }

    /// A test binary, or cargo running the documentation examples: the tests that failed, not yet counted.
    pub fn tests(&mut self, name: &str, command: &mut Command, limit: Duration) -> Vec<String> {
        let start = Instant::now();
        let before = CpuTicks::now();
        let outcome = match command::capture(command, limit).with_context(|| format!("{command:?}")) {
            Ok(outcome) => outcome,
            Err(error) => {
                println!("FAIL  {name}: {error:#}");
                return vec!["the test binary itself".into()];
            }
        };
        let stolen = CpuTicks::now().stolen_since(&before);
        let ending = (!outcome.success()).then(|| outcome.ending());
        let tally = libtest::read(&outcome.output, ending.as_deref());
        let verdict = if tally.failed.is_empty() { "ok  " } else { "FAIL" };
        println!(
            "{verdict}  {name}: {} passed, {} failed, {} skipped ({:.1} s{})",
            tally.passed,
            tally.failed.len(),
            tally.skipped.len(),
            start.elapsed().as_secs_f64(),
            if stolen >= 0.01 {
                format!("; the host took {:.0} % of the CPUs", stolen * 100.0)
            } else {
                String::new()
            }
        );
        if !tally.failed.is_empty() {
            println!("{}", outcome.output);
        }
        self.passed += tally.passed;
        for (test, reason) in tally.skipped {
            println!("SKIP  {test}: {reason}");
            self.skipped.insert(format!("{name} {test}"), reason);
        }
        tally.failed
    }

    /// These tests of a binary have failed.
    pub fn tests_failed(&mut self, name: &str, tests: Vec<String>) {
        self.failed.extend(tests.into_iter().map(|test| format!("{name}: {test}")));
    }

    /// Tests of running programs have failed: each is run by itself up to [`MORE_TRIES`] times.
    pub fn tests_again(
        &mut self,
        name: &str,
        tests: Vec<String>,
        limit: Duration,
        command: impl Fn() -> Command,
    ) {
        for test in tests {
            let passes = |_: &u32| {
                let outcome = command::capture(command().args(["--exact", &test]), limit);
                // A name that is none runs no test, which is no success.
                outcome.is_ok_and(|outcome| {
                    let tally = libtest::read(&outcome.output, None);
                    outcome.success() && tally.passed == 1 && tally.failed.is_empty()
                })
            };
            match (2..2 + MORE_TRIES).find(passes) {
                Some(run) => {
                    println!("again {name}: {test} passed in run {run}");
                    self.passed += 1;
                    self.unsteady.push(format!("{name}: {test} (passed in run {run})"));
                }
                None => {
                    println!("FAIL  {name}: {test} failed {} times", 1 + MORE_TRIES);
                    self.failed.push(format!("{name}: {test}"));
                }
            }
        }
    }

    /// The last lines; the very last is `N passed, N failed, N skipped`.
    pub fn finish(&self) -> ExitCode {
        println!();
        for name in &self.unsteady {
            println!("unsteady: {name}");
        }
        for name in &self.failed {
            println!("failed: {name}");
        }
        println!("{} passed, {} failed, {} skipped", self.passed, self.failed.len(), self.skipped.len());
        if self.failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn again(script: &str) -> Score {
        let mut score = Score::default();
        let command = || {
            let mut shell = Command::new("sh");
            shell.args(["-c", script, "sh"]);
            shell
        };
        score.tests_again("live", vec!["one::test".into()], Duration::from_secs(60), command);
        score
    }

    #[test]
    fn a_test_that_passes_when_run_by_itself_is_unsteady_and_one_that_never_does_has_failed() {
        let good = "echo running 1 test; echo \"test $2 ... ok\"; \
                    echo 'test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 9 filtered out; finished in 0.00s'";
        let score = again(good);
        assert_eq!((score.passed, score.failed.len()), (1, 0));
        assert_eq!(score.unsteady, ["live: one::test (passed in run 2)"]);

        // A folder can be made once.
        let mark = std::env::temp_dir().join(format!("longpole-again-{}", std::process::id()));
        let score = again(&format!("if mkdir '{}'; then exit 101; else {good}; fi", mark.display()));
        std::fs::remove_dir(&mark).unwrap();
        assert_eq!(score.unsteady, ["live: one::test (passed in run 3)"]);

        let score = again("exit 101");
        assert_eq!((score.passed, score.unsteady.len()), (0, 0));
        assert_eq!(score.failed, ["live: one::test"]);
        // Nothing of that name: nothing passed.
        let none = "echo running 0 tests; \
                    echo 'test result: ok. 0 passed; 0 failed; 0 ignored; 0 measured; 9 filtered out; finished in 0.00s'";
        assert_eq!(again(none).failed, ["live: one::test"]);
    }
}
