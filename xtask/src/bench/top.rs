//! Measures the requests that a server at full load loses while `longpole top` watches it, and longpole's own cost, by
//! half-minutes.

use std::fmt::Write as _;
use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use longpole_tests::Background;

use super::stall::Server;
use super::{Scratch, memory_kib};
use crate::sample::Sample;
use crate::workspace::Workspace;

const ALONE: Duration = Duration::from_secs(15);
const HALF_MINUTE: Duration = Duration::from_secs(30);
/// Number of half-minutes of a round, unless `LONGPOLE_BENCH_HALF_MINUTES` says otherwise.
const HALF_MINUTES: usize = 4;
/// Number of rounds, unless `LONGPOLE_BENCH_RUNS` says otherwise.
const ROUNDS: usize = 3;
const LIMIT: Duration = Duration::from_secs(60);

/// Results of one half-minute.
#[derive(Default)]
struct Row {
    requests: Sample,
    less: Sample,
    analysis: Sample,
    all: Sample,
    memory: Sample,
}

/// Measures a Redis under its own load generator, alone and watched in turns.
///
/// # Errors
/// Redis or longpole cannot be run.
pub fn measure(workspace: &Workspace, longpole: &Path) -> Result<String> {
    let number = |name: &str| std::env::var(name).ok().and_then(|number| number.parse::<usize>().ok());
    let rounds = number("LONGPOLE_BENCH_RUNS").unwrap_or(ROUNDS);
    let half_minutes = number("LONGPOLE_BENCH_HALF_MINUTES").unwrap_or(HALF_MINUTES);
    let scratch = Scratch::new(workspace, "top")?;
    let server = Server::redis(&scratch.0)?;
    std::thread::sleep(Duration::from_secs(1));
    let mut rows: Vec<Row> = (0..half_minutes).map(|_| Row::default()).collect();
    let mut alone = Sample::default();
    for _ in 0..rounds {
        let before = requests_per_second(&server, ALONE)?;
        let line = format!(
            "exec script -qec 'stty rows 45 cols 130; exec {} top -p {}' /dev/null",
            longpole.display(),
            server.pid()
        );
        let mut watching = Background::start(&mut longpole_tests::shell(&line)).context("script")?;
        let pid = longpole_in(watching.pid())?;
        let mut of_round = Vec::new();
        for _ in 0..half_minutes {
            let (used, began) = (cpu_seconds(pid)?, Instant::now());
            let requests = requests_per_second(&server, HALF_MINUTE)?;
            let seconds = began.elapsed().as_secs_f64();
            let took = cpu_seconds(pid)?;
            let share = |i: usize| 100.0 * (took[i] - used[i]) / seconds;
            let memory = memory_kib(pid, "VmRSS:").context("no VmRSS")? as f64 / 1024.0;
            of_round.push((requests, share(0), share(1), memory));
        }
        // The line's end reaches longpole as Enter, which does nothing.
        watching.say("q")?;
        watching.wait(LIMIT)?;
        let after = requests_per_second(&server, ALONE)?;
        let beside = f64::midpoint(before, after);
        alone.push(beside);
        for (row, (requests, analysis, all, memory)) in rows.iter_mut().zip(of_round) {
            row.requests.push(requests);
            row.less.push(100.0 * (1.0 - requests / beside));
            row.analysis.push(analysis);
            row.all.push(all);
            row.memory.push(memory);
        }
    }
    let mut text = format!(
        "## What watching a server at full load costs\n\nRedis under redis-benchmark (20 clients, a Unix socket), {} s alone, under \
         `longpole top -p` by half-minutes, and {} s alone, {rounds} rounds. Alone it answers {alone} requests per second. CPU time \
         is that of one CPU. The goals: at most 3 % fewer requests, at most 2 % of a CPU for the analysis, and neither time nor \
         memory grows.\n\n| half-minute | requests/s | fewer, % | analysis, % | all of longpole, % | memory, MB |\n\
         |---|---|---|---|---|---|\n",
        ALONE.as_secs(),
        ALONE.as_secs(),
    );
    for (number, row) in rows.iter().enumerate() {
        let Row { requests, less, analysis, all, memory } = row;
        writeln!(text, "| {} | {requests} | {less} | {analysis} | {all} | {memory} |", number + 1)?;
    }
    Ok(text)
}

/// Requests per second during this time, as the server counts them.
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

/// The longpole process that this process or one of its children has started.
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
        // A thread may have ended in the meantime.
        let Ok(stat) = std::fs::read_to_string(folder.join("schedstat")) else { continue };
        let ns: f64 = stat.split(' ').next().unwrap_or_default().parse()?;
        let is_analysis = std::fs::read_to_string(folder.join("comm"))?.starts_with("lp-analysis");
        seconds[1] += ns / 1e9;
        seconds[0] += if is_analysis { ns / 1e9 } else { 0.0 };
    }
    Ok(seconds)
}
