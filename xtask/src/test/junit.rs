//! Reads the report of a test run, and the lines `SKIP name: reason` that tests print.

use anyhow::{Context, Result};
use roxmltree::{Document, Node};

/// A test that was run.
#[derive(Clone, Debug, PartialEq)]
pub struct Test {
    /// The name of the test program, and the path of the test in it.
    pub name: String,
    /// Length of the test's last run, in seconds.
    pub seconds: f64,
    /// How the test ended.
    pub outcome: Outcome,
}

/// How a test ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The test passed in this run. Runs are counted from 1.
    Passed {
        /// If this is more than 1, the test failed before.
        tries: usize,
    },
    /// The test failed in every run.
    Failed,
    /// The test could not run on this machine, for this reason.
    Skipped(String),
}

/// Reads all tests from a report in the JUnit format, which cargo-nextest writes.
///
/// # Errors
///
/// The text is not such a report.
pub fn read(text: &str) -> Result<Vec<Test>> {
    let document = Document::parse(text).context("the test runner's report is no XML")?;
    Ok(document.descendants().filter(|node| node.has_tag_name("testcase")).map(test).collect())
}

fn test(case: Node) -> Test {
    let attribute = |name| case.attribute(name).unwrap_or_default();
    let children = |name: &'static str| case.children().filter(move |node| node.has_tag_name(name));
    let has = |name| children(name).next().is_some();
    let skip = || children("system-out").find_map(|output| skip_reason(output.text().unwrap_or_default()));
    let tries = 1 + children("flakyFailure").count() + children("flakyError").count();
    let outcome = if has("failure") || has("error") {
        Outcome::Failed
    } else if let Some(reason) = skip().filter(|_| tries == 1) {
        Outcome::Skipped(reason)
    } else {
        Outcome::Passed { tries }
    };
    Test {
        name: format!("{} {}", attribute("classname"), attribute("name")),
        seconds: attribute("time").parse().unwrap_or(0.0),
        outcome,
    }
}

/// The reason in a line `SKIP name: reason`.
fn skip_reason(output: &str) -> Option<String> {
    output.lines().find_map(|line| {
        // libtest's own unfinished `test name ... ` may precede the text in the line.
        let line = line
            .split_once(" ... ")
            .filter(|(test, _)| test.starts_with("test "))
            .map_or(line, |(_, rest)| rest);
        let (name, reason) = line.strip_prefix("SKIP ")?.split_once(": ")?;
        (!name.starts_with(' ')).then(|| reason.trim().to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const REPORT: &str = r#"<?xml version="1.0" encoding="UTF-8"?>
<testsuites name="nextest-run" tests="5" failures="1" errors="0" uuid="7" timestamp="2026-11-24" time="1.5">
    <testsuite name="engine" tests="3" disabled="0" errors="0" failures="1">
        <testcase name="a::good" classname="engine" timestamp="2026-11-24" time="0.25"/>
        <testcase name="a::bad" classname="engine" timestamp="2026-11-24" time="1.5">
            <failure type="test failure">thread panicked</failure>
            <system-out>SKIP a::bad: said before it failed</system-out>
        </testcase>
        <testcase name="a::left_out" classname="engine" timestamp="2026-11-24" time="0.1">
            <system-out>
running 1 test
SKIP a::left_out of one/file: no compiler
test a::left_out ... ok
</system-out>
        </testcase>
        <testcase name="a::chatty" classname="engine" timestamp="2026-11-24" time="0.1">
            <system-out>SKIPPING is not SKIP
 SKIP c: not at the start</system-out>
        </testcase>
    </testsuite>
    <testsuite name="longpole-tests::live" tests="1" disabled="0" errors="0" failures="0">
        <testcase name="b::once_more" classname="longpole-tests::live" timestamp="2026-11-24" time="2.0">
            <flakyFailure type="test failure">too slow</flakyFailure>
        </testcase>
    </testsuite>
</testsuites>"#;

    #[test]
    fn each_outcome_in_a_junit_report_is_read() {
        let tests = read(REPORT).unwrap();
        let outcomes: Vec<&Outcome> = tests.iter().map(|test| &test.outcome).collect();
        assert_eq!(
            outcomes,
            [
                &Outcome::Passed { tries: 1 },
                &Outcome::Failed,
                &Outcome::Skipped("no compiler".into()),
                &Outcome::Passed { tries: 1 },
                &Outcome::Passed { tries: 2 },
            ]
        );
        assert_eq!(tests[1].name, "engine a::bad");
        assert_eq!(tests[1].seconds, 1.5);
    }

    #[test]
    fn a_malformed_junit_report_is_an_error() {
        assert!(read("").is_err());
        assert!(read("<testsuites>").is_err());
    }
}
