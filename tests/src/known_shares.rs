//! Records programs that know the shares of their own functions (tests/workloads/shares.c), as a user would record
//! them. Compares the report's shares with the known ones.

use std::io;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use crate::process::Background;
use crate::recorded::Recorded;
use crate::report::Report;

const LIMIT: Duration = Duration::from_secs(60);
/// Largest allowed error of a share without ±, as a part of the CPU time. The program itself knows its shares only to
/// some tenths of a percent, because it measures how long a call takes by a loop.
const EXACT: f64 = 0.005;
/// A function with a smaller share than this may have no row, because no sample came while it ran.
const UNSEEN: f64 = 0.02;

/// The shares of reports, compared with the known ones.
#[derive(Clone, Debug, Default)]
pub struct Compared {
    /// Number of shares given without ±.
    pub exact: usize,
    /// Descriptions of the shares without ± that are more than 0.5 percentage points wrong.
    pub wrong: Vec<String>,
    /// Number of shares given with ±.
    pub sampled: usize,
    /// Descriptions of the shares with ± whose interval does not contain the true share.
    pub outside: Vec<String>,
    /// Number of recordings compared.
    pub recordings: usize,
    /// Sum of the squares of all deviations, each divided by its ±.
    squares: f64,
}

impl Compared {
    /// Number of shares with ± whose interval contains the true share.
    pub fn inside(&self) -> usize {
        self.sampled - self.outside.len()
    }

    /// How the deviations compare with those that ± promises: 1 if ± is right, more than 1 if ± is too narrow.
    pub fn spread(&self) -> f64 {
        (self.squares / self.sampled as f64).sqrt() * 1.96
    }

    /// Adds a recording. `report` is its report, and `said` is the program's output with the `truth` lines.
    pub fn add(&mut self, what: &str, report: &Report, said: &str) {
        let truths: Vec<Vec<&str>> = said
            .lines()
            .map(|line| line.split(' ').collect())
            .filter(|words: &Vec<&str>| words.first() == Some(&"truth"))
            .collect();
        assert!(truths.len() > 1, "{what}: {said}");
        self.recordings += 1;
        let result = &report.0["results"][0];
        let rows = result["functions"].as_array().map_or(&[][..], Vec::as_slice);
        let row = |name: &str| rows.iter().find(|row| row["function"] == name);
        let whole = whole(report, row("forever"));
        for truth in truths {
            let [_, name, of_itself, in_all] = truth[..] else { panic!("{what}: {truth:?}") };
            let none = Value::Null;
            let row = row(name).unwrap_or(&none);
            for (kind, truth, time, error) in [
                ("self", of_itself, &row["tet_ns"], &row["tet_error_ns"]),
                ("total", in_all, &row["tetid_ns"], &row["tetid_error_ns"]),
            ] {
                let truth: f64 = truth.parse().unwrap_or_else(|error| panic!("{what}: {truth}: {error}"));
                if row.is_null() && truth < UNSEEN {
                    continue;
                }
                let told = number(time) / whole;
                let error = error.as_f64().map(|error| error / whole);
                self.number(&format!("{what}: {name} {kind}"), told, truth, error);
            }
        }
    }

    fn number(&mut self, what: &str, told: f64, truth: f64, error: Option<f64>) {
        let line = || format!("{what} {:.2} %, truly {:.2} %", told * 100.0, truth * 100.0);
        let off = (told - truth).abs();
        let Some(error) = error else {
            self.exact += 1;
            if off > EXACT {
                self.wrong.push(line());
            }
            return;
        };
        self.sampled += 1;
        self.squares += (off / error).powi(2);
        if off > error {
            self.outside.push(format!("{} (± {:.2})", line(), error * 100.0));
        }
    }
}

/// The CPU time of which shares are parts. Every thread runs the function `forever` from beginning to end. If `forever`
/// had probes all the time, the CPU time is its total. Otherwise, as after attaching, it is the time that samples
/// divide.
fn whole(report: &Report, forever: Option<&Value>) -> f64 {
    let samples = &report.0["samples"];
    let is_probed = |row: &&Value| row["uncounted"].is_null() && row["calls_partial"].is_null();
    match forever.filter(is_probed) {
        Some(forever) => number(&forever["tetid_ns"]),
        None => number(&samples["divided_ns"]) + number(&samples["undivided_ns"]),
    }
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or(0.0)
}

/// The thread count for a seed: of 16 seeds in a row, the first eight give one thread, the others two.
fn threads(seed: u32) -> String {
    (1 + seed / 8 % 2).to_string()
}

/// Launches the program of this seed and compares its shares.
pub fn launched(program: &Path, seed: u32, compared: &mut Compared) {
    let words = [seed.to_string(), "1.2".to_owned(), threads(seed)];
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let recorded = Recorded::good(&[], program, &words);
    compared.add(&format!("launched {words:?}"), &recorded.report("1"), &recorded.ended.stdout);
}

/// Attaches to the program of this seed for a part of its life and compares its shares. Programs with phases (one seed
/// of eight) are skipped, because the shares within a part of their life are unknown.
///
/// # Errors
/// The program cannot be started or ended.
pub fn attached(program: &Path, seed: u32, compared: &mut Compared) -> io::Result<()> {
    if seed % 8 == 6 {
        return Ok(());
    }
    let words = [seed.to_string(), "60".to_owned(), threads(seed)];
    let running = Background::start(Command::new(program).args(&words))?;
    let recorded = Recorded::attach(&["--duration", "1.2"], running.pid());
    running.signal("TERM")?;
    let ended = running.wait(LIMIT)?;
    compared.add(&format!("attached {words:?}"), &recorded.report("1"), &ended.stdout);
    Ok(())
}
