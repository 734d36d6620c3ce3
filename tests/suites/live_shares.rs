//! Numbers that one would stake one's name on: programs whose functions have known shares of the CPU time, recorded as a user
//! would. Issue 19, "Exact is exact": functions of 60, 30 and 10 % that lost their probes while they were open showed totals of
//! 99.5 %, without ±.
//!
//! What is asked for is that a number with ± holds the truth in 93 to 97 % of the cases. Some 200 numbers of forty recordings,
//! of which those of one recording hang together, cannot tell 94 from 96. Recordings of a second are also the hardest case: probes
//! that were hit all the time in the first tenths of it are known by their average cost, and 89 to 94 % were inside where
//! launched, 97 % where attached. The bound here is for what is certainly wrong: of intervals half as wide as they should be
//! 67 % hold the truth.

use std::path::Path;
use std::time::Duration;

use longpole_tests::{Background, Recorded, Report, skip_unless_built, skip_unless_live, workload};
use serde_json::Value;

const LIMIT: Duration = Duration::from_secs(60);
/// Of the CPU time. The program knows its shares to some tenths of a percent: a call takes as long as a few turns of a loop,
/// and a round is timed to that.
const EXACT: f64 = 0.005;

/// What was set against the truth.
#[derive(Default)]
struct Compared {
    exact: usize,
    wrong: Vec<String>,
    sampled: usize,
    inside: usize,
    outside: Vec<String>,
    /// Of deviations in parts of ±.
    squares: f64,
}

impl Compared {
    fn add(&mut self, what: &str, report: &Report, said: &str) {
        let truths: Vec<Vec<&str>> = said
            .lines()
            .map(|line| line.split(' ').collect())
            .filter(|words: &Vec<&str>| words.first() == Some(&"truth"))
            .collect();
        assert!(truths.len() > 1, "{what}: {said}");
        let result = &report.0["results"][0];
        let rows = result["functions"].as_array().expect("rows");
        let row = |name: &str| rows.iter().find(|row| row["function"] == name);
        let number = |value: &Value| value.as_f64().unwrap_or(0.0);
        let samples = &report.0["samples"];
        // Where it is exact it leaves out what comes before and behind it; attached there is nothing of that.
        let whole = match row("forever").filter(|row| row["tetid_error_ns"].is_null()) {
            Some(forever) => number(&forever["tetid_ns"]),
            None => number(&samples["divided_ns"]) + number(&samples["undivided_ns"]),
        };
        for truth in truths {
            let [_, name, of_itself, in_all] = truth[..] else { panic!("{what}: {truth:?}") };
            let none = Value::Null;
            let row = row(name).unwrap_or(&none);
            for (kind, truth, time, error) in [
                ("self", of_itself, &row["tet_ns"], &row["tet_error_ns"]),
                ("total", in_all, &row["tetid_ns"], &row["tetid_error_ns"]),
            ] {
                let truth: f64 = truth.parse().expect("a share");
                let told = number(time) / whole;
                let line =
                    format!("{what}: {name} {kind} {:.2} %, truly {:.2} %", told * 100.0, truth * 100.0);
                match error.as_f64().map(|error| error / whole) {
                    // A function that no sample fell into has no row.
                    _ if row.is_null() && truth < 0.02 => {}
                    None => {
                        self.exact += 1;
                        if (told - truth).abs() > EXACT {
                            self.wrong.push(line);
                        }
                    }
                    Some(error) => {
                        self.sampled += 1;
                        self.squares += ((told - truth) / error).powi(2);
                        if (told - truth).abs() <= error {
                            self.inside += 1;
                        } else {
                            self.outside.push(format!("{line} (± {:.2})", error * 100.0));
                        }
                    }
                }
            }
        }
    }

    #[track_caller]
    fn check(&self, least_exact: usize) {
        let Compared { exact, wrong, sampled, inside, outside, squares } = self;
        let spread = (squares / *sampled as f64).sqrt() * 1.96;
        println!(
            "{exact} numbers without ±, {sampled} with, {inside} of these inside; deviations {spread:.2} of the expected"
        );
        assert!(wrong.is_empty(), "of {exact} numbers without ±: {wrong:#?}");
        assert!(*exact >= least_exact, "{exact} numbers without ±");
        assert!(*sampled >= 100 && inside * 100 >= sampled * 78, "{inside} of {sampled}: {outside:#?}");
        // Intervals that say nothing would hold everything.
        assert!(spread > 0.5, "{spread}");
    }
}

fn launched(program: &Path, seed: u32, compared: &mut Compared) {
    let threads = 1 + seed / 8 % 2;
    let words = [seed.to_string(), "1.2".to_owned(), threads.to_string()];
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let recorded = Recorded::good(&[], program, &words);
    compared.add(&format!("launched {words:?}"), &recorded.report("1"), &recorded.ended.stdout);
}

#[test]
fn of_launched_programs_numbers_without_an_error_are_right_and_others_within_theirs() {
    skip_unless_live!();
    let program = skip_unless_built!(workload::build("shares.c"));
    let mut compared = Compared::default();
    (0..24).for_each(|seed| launched(&program, seed, &mut compared));
    compared.check(24);
}

#[test]
fn of_attached_programs_too() {
    skip_unless_live!();
    let program = skip_unless_built!(workload::build("shares.c"));
    let mut compared = Compared::default();
    // Not those with phases: of them only a part is recorded.
    for seed in (0..19).filter(|seed| seed % 8 != 6) {
        let words = [seed.to_string(), "60".to_owned(), (1 + seed / 8 % 2).to_string()];
        let mut command = std::process::Command::new(&program);
        let running = Background::must_start(command.args(&words));
        let recorded = Recorded::attach(&["--duration", "1.2"], running.pid());
        running.signal("TERM").expect("it runs");
        let ended = running.wait(LIMIT).expect("ends");
        compared.add(&format!("attached {words:?}"), &recorded.report("1"), &ended.stdout);
    }
    compared.check(0);
}
