//! Reads what a test binary prints (libtest's text form) and the `SKIP name: reason` lines of its tests.

use std::collections::BTreeMap;

/// What one test binary did.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Tests that ran and held.
    pub passed: u64,
    /// Tests that did not hold, by name; one entry more if the binary itself broke off.
    pub failed: Vec<String>,
    /// Tests that could not run here, with the reason.
    pub skipped: BTreeMap<String, String>,
}

/// Counts the tests in `output`. `ending` is how the process ended if that was not with code 0.
///
/// A test that printed `SKIP name: reason` (start of a line) is skipped, not passed. Tests announced but never
/// finished (the binary crashed or was killed) count as failed.
pub fn read(output: &str, ending: Option<&str>) -> Tally {
    let seen = Seen::read(output);
    let mut failed: Vec<String> = seen.failed.iter().map(|name| (*name).to_owned()).collect();
    let mut skipped: BTreeMap<String, String> =
        seen.ignored.iter().map(|(name, reason)| ((*name).to_owned(), (*reason).to_owned())).collect();
    let crashed = seen.finished < seen.announced;
    let mut passed = if crashed { count(&seen.passed) } else { seen.ok };

    for skip in &seen.skips {
        // Printed past libtest's capture, or by a helper under its own name: find the test it belongs to.
        let named = || {
            let mut passed = seen.passed.iter().copied();
            passed.find(|test| *test == skip.name || test.ends_with(&format!("::{}", skip.name)))
        };
        match skip.test.or_else(named) {
            Some(test) if seen.failed.contains(&test) => {}
            Some(test) => {
                if skipped.insert(test.to_owned(), skip.reason.to_owned()).is_none() {
                    passed = passed.saturating_sub(1);
                }
            }
            None => drop(skipped.insert(skip.name.to_owned(), skip.reason.to_owned())),
        }
    }
    let named = count(&seen.passed) + count(&seen.failed) + count(&seen.ignored);
    match ending {
        Some(ending) if crashed => {
            for _ in 0..seen.announced.saturating_sub(named).max(1) {
                failed.push(format!("a test that did not finish ({ending})"));
            }
        }
        Some(ending) if failed.is_empty() => failed.push(format!("the test binary itself ({ending})")),
        None if crashed => failed.push("the test binary ended before its tests did".into()),
        _ => {}
    }
    Tally { passed, failed, skipped }
}

fn count<T>(list: &[T]) -> u64 {
    u64::try_from(list.len()).unwrap_or(u64::MAX)
}

/// What the lines say, before skipped tests are taken from the passed ones.
#[derive(Default)]
struct Seen<'a> {
    announced: u64,
    finished: u64,
    ok: u64,
    passed: Vec<&'a str>,
    failed: Vec<&'a str>,
    ignored: Vec<(&'a str, &'a str)>,
    skips: Vec<Skip<'a>>,
}

struct Skip<'a> {
    /// The test whose output holds the line, where that is known.
    test: Option<&'a str>,
    name: &'a str,
    reason: &'a str,
}

impl<'a> Seen<'a> {
    fn read(output: &'a str) -> Self {
        let mut seen = Self::default();
        let mut section: Option<&str> = None;
        for line in output.lines() {
            if let Some(name) = line.strip_prefix("---- ").and_then(|rest| rest.strip_suffix(" stdout ----"))
            {
                section = Some(name);
            } else if line == "successes:" || line == "failures:" {
                section = None;
            } else if let Some(counts) = line.strip_prefix("test result: ") {
                let counts = Counts::read(counts);
                seen.ok += counts.passed;
                seen.finished += counts.all();
                section = None;
            } else if let Some(mut skip) = Skip::read(line) {
                skip.test = section.or(skip.test);
                seen.skips.push(skip);
            } else if section.is_none() {
                seen.line(line);
            }
        }
        seen
    }

    fn line(&mut self, line: &'a str) {
        if let Some(count) = announcement(line) {
            self.announced += count;
        }
        match result(line) {
            Some((name, Result::Ok)) => self.passed.push(name),
            Some((name, Result::Failed)) => self.failed.push(name),
            Some((name, Result::Ignored(reason))) => self.ignored.push((name, reason)),
            None => {}
        }
    }
}

impl<'a> Skip<'a> {
    fn read(line: &'a str) -> Option<Self> {
        // Without capture the line may stand behind the unfinished `test name ... `.
        let (test, line) = match line.strip_prefix("test ").and_then(|rest| rest.split_once(" ... ")) {
            Some((test, rest)) => (Some(test), rest),
            None => (None, line),
        };
        let (name, reason) = line.strip_prefix("SKIP ")?.split_once(": ")?;
        (!name.is_empty() && !name.contains(' ')).then_some(Self { test, name, reason: reason.trim() })
    }
}

enum Result<'a> {
    Ok,
    Failed,
    Ignored(&'a str),
}

fn announcement(line: &str) -> Option<u64> {
    let count = line.strip_prefix("running ")?;
    count.strip_suffix(" tests").or_else(|| count.strip_suffix(" test"))?.parse().ok()
}

fn result(line: &str) -> Option<(&str, Result<'_>)> {
    let (name, result) = line.strip_prefix("test ")?.rsplit_once(" ... ")?;
    let name = name.strip_suffix(" - should panic").unwrap_or(name);
    let result = result.trim_end();
    if let Some(reason) = result.strip_prefix("ignored") {
        let reason = reason.strip_prefix(", ").unwrap_or("marked #[ignore]");
        return Some((name, Result::Ignored(reason)));
    }
    match result {
        "ok" => Some((name, Result::Ok)),
        "FAILED" => Some((name, Result::Failed)),
        _ => None,
    }
}

struct Counts {
    passed: u64,
    failed: u64,
    ignored: u64,
    measured: u64,
}

impl Counts {
    /// `ok. 3 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s`
    fn read(text: &str) -> Self {
        let number = |name: &str| {
            text.split(['.', ';'])
                .find_map(|part| part.trim().strip_suffix(name)?.trim().parse().ok())
                .unwrap_or(0)
        };
        Self {
            passed: number("passed"),
            failed: number("failed"),
            ignored: number("ignored"),
            measured: number("measured"),
        }
    }

    fn all(&self) -> u64 {
        self.passed + self.failed + self.ignored + self.measured
    }
}

#[cfg(test)]
mod tests {
    use super::read;

    #[test]
    fn passed_failed_and_ignored() {
        let tally = read(
            "\nrunning 4 tests\ntest a ... ok\ntest b::c ... FAILED\ntest d ... ignored, needs a printer\n\
             test e - should panic ... ok\n\nfailures:\n\n---- b::c stdout ----\nrunning 9 tests\n\nfailures:\n    b::c\n\n\
             test result: FAILED. 2 passed; 1 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s\n",
            Some("exit status: 101"),
        );
        assert_eq!(tally.passed, 2);
        assert!(tally.failed.contains(&"b::c".to_owned()));
        assert_eq!(tally.skipped["d"], "needs a printer");
    }

    #[test]
    fn a_skip_line_in_a_test_s_output_takes_it_from_the_passed_ones() {
        let tally = read(
            "running 3 tests\ntest live::a ... ok\ntest live::b ... ok\ntest c ... ok\n\nsuccesses:\n\n\
             ---- live::a stdout ----\nSKIP live::a: no BPF: Operation not permitted\nSKIP live::a: again\n\n\
             ---- c stdout ----\nSKIPPING is not SKIP\n SKIP c: not at the start\n\n\
             successes:\n    live::a\n    live::b\n    c\n\n\
             test result: ok. 3 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s\n",
            None,
        );
        assert_eq!(tally.passed, 2);
        assert_eq!(tally.failed.len(), 0);
        assert_eq!(tally.skipped.len(), 1);
        assert!(tally.skipped.contains_key("live::a"));
    }

    #[test]
    fn a_skip_line_past_the_capture_is_found() {
        let tally = read(
            "running 2 tests\ntest m::a ... SKIP a: no root\nok\ntest m::b ... ok\n\n\
             test result: ok. 2 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s\n",
            None,
        );
        assert_eq!(tally.skipped["m::a"], "no root");
        assert_eq!((tally.passed, tally.skipped.len()), (1, 1));
    }

    #[test]
    fn tests_that_never_finished_failed() {
        let tally = read("running 5 tests\ntest a ... ok\ntest b ... ok\n", Some("signal: 11 (SIGSEGV)"));
        assert_eq!(tally.passed, 2);
        assert_eq!(tally.failed.len(), 3);
        assert!(tally.failed[0].contains("SIGSEGV"));
    }

    #[test]
    fn a_binary_that_fails_after_its_tests_failed() {
        let text = "running 1 test\ntest a ... ok\n\ntest result: ok. 1 passed; 0 failed; 0 ignored; \
                    0 measured; 0 filtered out; finished in 0.00s\n";
        assert_eq!(read(text, Some("signal: 6 (SIGABRT)")).failed.len(), 1);
        assert_eq!(read("", Some("exit status: 1")).failed.len(), 1);
        assert_eq!(read(text, None).failed.len(), 0);
    }

    #[test]
    fn several_results_in_one_output_add_up() {
        let one = "running 1 test\ntest x (line 3) ... ok\n\ntest result: ok. 1 passed; 0 failed; 0 ignored; \
                   0 measured; 0 filtered out; finished in 0.01s\n";
        assert_eq!(read(&one.repeat(3), None).passed, 3);
    }
}
