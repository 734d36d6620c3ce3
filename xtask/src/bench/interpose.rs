//! Cost of recording a mutex's lock and unlock by the preloaded library: the program runs alone and under longpole, in
//! turns.

use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::summary::lost_percent;
use crate::command;
use crate::measure::{Measurement, Need, Outcome, Results, Runs, Side, built};
use crate::sample::digits;

/// Nanoseconds of work in each pair of lock and unlock, and the number of pairs.
const CASES: [(u64, u64); 3] = [(500, 400_000), (2_000, 400_000), (10_000, 100_000)];

pub const INTERPOSE: Measurement = Measurement {
    name: "interpose",
    about: "A mutex's lock and unlock, recorded from inside the program",
    title: "A mutex's lock and unlock, recorded from inside",
    needs: &[Need::Recorder],
    runs: Runs::Times(11),
    rotates: true,
    sides: |setting| {
        let pairs = built("pairs.c")?;
        let sides = CASES.into_iter().enumerate().flat_map(|(stage, (work_ns, count))| {
            let words = format!("{count} {work_ns}");
            let mut alone = command::line(&pairs, &words);
            let mut record = setting.call("record --interpose always --force -o");
            record.arg(setting.file("pairs.lp")).arg("--").arg(&pairs).args(words.split(' '));
            [
                Side::new("alone", move |_| once(&mut alone)).stage(stage).unlisted(),
                Side::new(format!("{} µs", work_ns as f64 / 1e3), move |_| once(&mut record)).stage(stage),
            ]
        });
        Ok(sides.collect())
    },
    says: "One thread takes and releases an uncontended mutex, with some work in between; {runs} runs of each in \
           alternation.\n`longpole record --interpose always` puts its library before libc; a record is 64 bytes \
           with two clock reads.",
    heads: "work per pair",
    columns: &[
        ("µs per pair alone", |side, results| alone(side, results)?.spread("cpu", 1e-3 / pairs(side))),
        ("CPU time", |side, results| slower(side, results, "cpu")),
        ("wall time", |side, results| slower(side, results, "wall")),
        ("ns per operation", |side, results| {
            let more = side.median("cpu")? - alone(side, results)?.median("cpu")?;
            Ok(digits(more / pairs(side) / 2.0))
        }),
        ("lost, %", |side, _| side.spread("lost", 1.0)),
    ],
    ends: |_| Ok("Wall time includes the time that longpole itself takes of the machine's CPUs.".into()),
    ..Measurement::NEW
};

/// The run of the same case without longpole.
fn alone<'a>(side: &Outcome, results: &'a Results) -> Result<&'a Outcome> {
    results.at(side.at - 1)
}

fn pairs(side: &Outcome) -> f64 {
    CASES[side.at / 2].1 as f64
}

fn slower(side: &Outcome, results: &Results, time: &str) -> Result<String> {
    Ok(format!("{}×", digits(side.median(time)? / alone(side, results)?.median(time)?)))
}

/// Elapsed time and CPU time that the program measured for its pairs, and the percentage that longpole lost.
fn once(command: &mut Command) -> Result<Value> {
    let ended = command::good(command, Duration::from_secs(300))?;
    let [wall, cpu] =
        times(&ended.stdout).with_context(|| format!("pairs printed no times: {}", ended.stdout))?;
    Ok(json!({ "wall": wall, "cpu": cpu, "lost": lost_percent(&ended.stderr).ok() }))
}

fn times(text: &str) -> Option<[f64; 2]> {
    let (wall, cpu) = text.trim().strip_suffix(" ns CPU")?.split_once(" ns wall, ")?;
    Some([wall.parse().ok()?, cpu.parse().ok()?])
}

#[cfg(test)]
mod tests {
    use super::times;

    #[test]
    fn wall_and_cpu_times_are_read_from_a_benchmark_s_output() {
        assert_eq!(times("12 ns wall, 7 ns CPU\n"), Some([12.0, 7.0]));
        assert_eq!(times("12 ns\n"), None);
    }
}
