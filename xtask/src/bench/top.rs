//! How many requests a fully loaded server loses while `longpole top` watches it, and longpole's own cost, for each
//! half-minute.

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use longpole_tests::{Background, shell};
use serde_json::{Value, json};

use super::stall::Server;
use crate::measure::{Measurement, Need, Runs, Setting, Side, memory_kib};

const ALONE: Duration = Duration::from_secs(15);
const HALF_MINUTE: Duration = Duration::from_secs(30);
/// Number of half-minutes of a round. `LONGPOLE_BENCH_HALF_MINUTES` changes it.
const HALF_MINUTES: usize = 4;
const LIMIT: Duration = Duration::from_secs(60);
/// The figures of a half-minute, in the order of the columns.
const FIGURES: [&str; 5] = ["requests", "fewer", "analysis", "all", "memory"];

pub const TOP: Measurement = Measurement {
    name: "top",
    about: "Requests of a server at full load while `top` watches it, and what longpole takes",
    title: "What watching a server at full load costs",
    needs: &[Need::Recorder],
    runs: Runs::Times(3),
    sides: |setting| {
        let server = Server::redis(&setting.folder)?;
        std::thread::sleep(Duration::from_secs(1));
        Ok(vec![Side::new("redis", move |_| round(&server, setting))])
    },
    says: "Redis under redis-benchmark (20 clients, a Unix socket), 15 s alone, under `longpole top -p` by \
           half-minutes, and 15 s alone, {runs} rounds. Alone it answers {alone} requests per second. CPU time is \
           that of one CPU. The goals: at most 3 % fewer requests, at most 2 % of a CPU for the analysis, and \
           neither time nor memory grows.",
    fills: |results| Ok(vec![("alone", results.at(0)?.spread("alone", 1.0)?)]),
    heads: "half-minute | requests/s | fewer, % | analysis, % | all of longpole, % | memory, MB",
    rows: Some(|results| {
        let row = |number: usize| {
            let cell = |figure| results.at(0)?.spread(&format!("{figure} {number}"), 1.0);
            let cells: Result<Vec<String>> = FIGURES.into_iter().map(cell).collect();
            Ok(format!("{} | {}", number + 1, cells?.join(" | ")))
        };
        (0..half_minutes()).map(row).collect()
    }),
    ..Measurement::NEW
};

fn half_minutes() -> usize {
    let number = std::env::var("LONGPOLE_BENCH_HALF_MINUTES").ok();
    number.and_then(|number| number.parse().ok()).unwrap_or(HALF_MINUTES)
}

/// Runs a Redis under its own load generator: alone, then watched, then alone again.
fn round(server: &Server, setting: &Setting) -> Result<Value> {
    let before = requests_per_second(server, ALONE)?;
    let line = format!(
        "exec script -qec 'stty rows 45 cols 130; exec {} top -p {}' /dev/null",
        setting.longpole.display(),
        server.pid()
    );
    let mut watching = Background::start(&mut shell(&line)).context("script")?;
    let pid = longpole_in(watching.pid())?;
    let mut rows = Vec::new();
    for _ in 0..half_minutes() {
        let (used, began) = (cpu_seconds(pid)?, Instant::now());
        let requests = requests_per_second(server, HALF_MINUTE)?;
        let seconds = began.elapsed().as_secs_f64();
        let took = cpu_seconds(pid)?;
        let share = |i: usize| 100.0 * (took[i] - used[i]) / seconds;
        let memory = memory_kib(pid, "VmRSS:").context("no VmRSS")? as f64 / 1024.0;
        rows.push([requests, 0.0, share(0), share(1), memory]);
    }
    // The end of the line reaches longpole as Enter, which does nothing.
    watching.say("q")?;
    watching.wait(LIMIT)?;
    let alone = f64::midpoint(before, requests_per_second(server, ALONE)?);
    let mut figures = json!({ "alone": alone });
    for (number, mut row) in rows.into_iter().enumerate() {
        row[1] = 100.0 * (1.0 - row[0] / alone);
        for (name, value) in FIGURES.iter().zip(row) {
            figures[format!("{name} {number}")] = value.into();
        }
    }
    Ok(figures)
}

/// Requests per second in this time, according to the server's own count.
fn requests_per_second(server: &Server, long: Duration) -> Result<f64> {
    let (began, before) = (Instant::now(), commands(server)?);
    std::thread::sleep(long);
    Ok((commands(server)? - before) as f64 / began.elapsed().as_secs_f64())
}

fn commands(server: &Server) -> Result<u64> {
    let mut client = UnixStream::connect(&server.socket)?;
    client.set_read_timeout(Some(LIMIT))?;
    client.write_all(b"INFO stats\r\nQUIT\r\n")?;
    let mut answer = String::new();
    client.read_to_string(&mut answer)?;
    let count = answer.lines().find_map(|line| line.strip_prefix("total_commands_processed:"));
    Ok(count.context("the server does not count")?.trim().parse()?)
}

/// The longpole process that this process or its children have started.
fn longpole_in(pid: u32) -> Result<u32> {
    let end = Instant::now() + LIMIT;
    while Instant::now() < end {
        let mut waiting = vec![pid];
        while let Some(pid) = waiting.pop() {
            let of = |what: &str| std::fs::read_to_string(format!("/proc/{pid}/{what}")).unwrap_or_default();
            if of("comm").trim() == "longpole" {
                return Ok(pid);
            }
            let children = of(&format!("task/{pid}/children"));
            waiting.extend(children.split_whitespace().filter_map(|pid| pid.parse::<u32>().ok()));
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    bail!("longpole does not start")
}

/// CPU seconds of the thread that analyses, and of all threads.
fn cpu_seconds(pid: u32) -> Result<[f64; 2]> {
    let mut seconds = [0.0; 2];
    for thread in std::fs::read_dir(format!("/proc/{pid}/task"))? {
        let folder = thread?.path();
        // A thread may end between listing and reading.
        let Ok(stat) = std::fs::read_to_string(folder.join("schedstat")) else { continue };
        let ns: f64 = stat.split(' ').next().unwrap_or_default().parse()?;
        let is_analysis = std::fs::read_to_string(folder.join("comm"))?.starts_with("lp-analysis");
        seconds[1] += ns / 1e9;
        seconds[0] += if is_analysis { ns / 1e9 } else { 0.0 };
    }
    Ok(seconds)
}
