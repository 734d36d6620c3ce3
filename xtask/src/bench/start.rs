//! CPU time of starting `longpole record`: recordings of programs that do nothing, from longpole's first instruction to
//! its last one, including its helper processes.

use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use longpole_tests::Background;
use serde_json::json;

use crate::command;
use crate::measure::{Measurement, Need, Runs, Side};

/// The kernel counts the time of ended children in steps of 10 ms. So each sample is the mean of this number of runs.
const RUNS: u32 = 10;
const LIMIT: Duration = Duration::from_secs(60);
const CASES: [(&str, &str); 3] = [
    ("`record -- true`", "-- true"),
    ("`record -- python3 -c pass`", "-- python3 -c pass"),
    ("`record -p PID --duration 0.1`, of a `sleep`", "--duration 0.1 -p"),
];

pub const START: Measurement = Measurement {
    name: "start",
    about: "CPU time of a start, launched and attached",
    title: "What a start takes",
    needs: &[Need::Recorder],
    runs: Runs::Times(7),
    sides: |setting| {
        let target =
            Background::start(Command::new("sleep").arg("600")).context("cannot start the program")?;
        let target = std::rc::Rc::new(target);
        let sides = CASES.into_iter().enumerate().map(|(stage, (label, options))| {
            let target = target.clone();
            let record = move || {
                let mut record = setting.call("record --force -o");
                record.arg(setting.file("start.lp")).args(options.split(' '));
                if options.ends_with("-p") {
                    record.arg(target.pid().to_string());
                }
                command::well(longpole_tests::run(&mut record, LIMIT)?, "longpole record")
            };
            let run = move |_| {
                let (before, began) = (children_ms()?, Instant::now());
                for _ in 0..RUNS {
                    record()?;
                }
                let each = |ms: f64| ms / f64::from(RUNS);
                let wall = each(began.elapsed().as_secs_f64() * 1e3);
                Ok(json!({ "cpu": each(children_ms()? - before), "wall": wall }))
            };
            // The first start after a boot would measure how the machine reads files, so it does not count.
            Side::new(label, run).stage(stage).warming()
        });
        Ok(sides.collect())
    },
    says: "Recordings of programs that do nothing, without probes on functions: CPU time of longpole and its \
           helpers, the program's own included, and time until the end. The target is 80 ms of CPU time. {runs} \
           times the mean of 10.",
    heads: "recording",
    columns: &[("CPU ms", |side, _| side.spread("cpu", 1.0)), ("ms", |side, _| side.spread("wall", 1.0))],
    ..Measurement::NEW
};

/// CPU time of all ended children and of their children, in milliseconds.
fn children_ms() -> Result<f64> {
    /// The unit of /proc/self/stat, which is the same on all machines, in milliseconds.
    const TICK_MS: f64 = 10.0;
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    let (_, after_name) = stat.rsplit_once(')').context("no name in /proc/self/stat")?;
    // Fields 16 and 17 of the line, in which the state is the third field (proc(5)).
    let times = after_name.split_whitespace().skip(13).take(2);
    let ticks: f64 =
        times.map(str::parse::<f64>).sum::<Result<f64, _>>().context("no times in /proc/self/stat")?;
    Ok(ticks * TICK_MS)
}
