//! Measures what a server's clients notice of an attach. A client sends a request every millisecond: before longpole
//! attaches, while it records, and from the signal that ends the recording on.

use std::fmt::Write as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use longpole_tests::latency_client::{Answered, LatencyClient, lengths, quantile};
use longpole_tests::{Background, workload};

use super::Scratch;
use crate::sample::{Sample, digits};
use crate::workspace::Workspace;

/// Length of each of the three stretches.
const STRETCH: Duration = Duration::from_secs(5);
const LIMIT: Duration = Duration::from_secs(60);
/// Rounds, by default; `LONGPOLE_BENCH_RUNS` changes it.
const ROUNDS: usize = 3;
/// Quantiles of the answers' times that are reported for a stretch.
const SHARES: [f64; 4] = [0.5, 0.99, 0.999, 1.0];

/// The program that attaches, and how the program is stopped.
struct Way {
    name: &'static str,
    /// A line of shell, with `LONGPOLE`, `PID` and `FILE` replaced. Empty: no program.
    command: &'static str,
    signal: &'static str,
}

const WAYS: [Way; 5] = [
    Way { name: "nobody", command: "", signal: "" },
    Way {
        name: "`longpole record -p`, ^C",
        command: "exec LONGPOLE record --force -p PID -o FILE",
        signal: "INT",
    },
    Way {
        name: "`longpole record -p`, kill -9",
        command: "exec LONGPOLE record --force -p PID -o FILE",
        signal: "KILL",
    },
    Way {
        name: "`longpole top --once -p`, ^C",
        command: "exec LONGPOLE top --once --window 60s -p PID",
        signal: "INT",
    },
    Way { name: "`perf record -g -p`, ^C", command: "exec perf record -q -g -p PID -o FILE", signal: "INT" },
];

/// Names of a turn's stretches.
const STRETCHES: [&str; 3] = ["before", "while it is there", "from its end on"];

/// A server under load.
pub(super) struct Server {
    server: Background,
    /// Load generator, which ends with the server.
    _load: Background,
    pub(super) socket: PathBuf,
    question: &'static [u8],
}

impl Server {
    /// A Redis that answers at a socket in this folder, and its load generator.
    ///
    /// # Errors
    ///
    /// One of the two cannot be started.
    pub(super) fn redis(folder: &Path) -> Result<Server> {
        let socket = folder.join("redis.sock");
        let mut server = Command::new("redis-server");
        server.args(["--port", "0", "--save", "", "--appendonly", "no", "--unixsocket"]).arg(&socket);
        let server = Background::start(&mut server).context("redis-server (Debian: redis-server)")?;
        wait_for(&socket)?;
        let mut load = Command::new("redis-benchmark");
        load.arg("-s").arg(&socket).args(["-q", "-c", "20", "-n", "1000000000", "-t", "set,get"]);
        let load = Background::start(&mut load).context("redis-benchmark (Debian: redis-tools)")?;
        Ok(Server { server, _load: load, socket, question: b"PING\r\n" })
    }

    /// Its process.
    pub(super) fn pid(&self) -> u32 {
        self.server.pid()
    }

    fn of_threads(program: &Path, folder: &Path) -> Result<Server> {
        let socket = folder.join("answers.sock");
        let mut server = Background::start(Command::new(program).arg(&socket).args(["50", "200"]))?;
        server.line(LIMIT)?;
        let mut load = Background::start(Command::new(program).arg("load").arg(&socket).arg("8"))?;
        load.line(LIMIT)?;
        Ok(Server { server, _load: load, socket, question: b"?" })
    }
}

fn wait_for(socket: &Path) -> Result<()> {
    let end = Instant::now() + LIMIT;
    while UnixStream::connect(socket).is_err() {
        if Instant::now() > end {
            bail!("nobody answers at {}", socket.display());
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    Ok(())
}

/// Times of answers in milliseconds, by way, stretch and quantile.
type Table = Vec<[[Sample; SHARES.len()]; STRETCHES.len()]>;

/// Measures two servers, or those whose names begin with `only`, while each program attaches and detaches in turns.
///
/// # Errors
/// A server, longpole or perf cannot be run.
pub fn measure(workspace: &Workspace, longpole: &Path, only: &[String]) -> Result<String> {
    let program = workload::build("answers.c")?;
    let rounds = std::env::var("LONGPOLE_BENCH_RUNS").ok().and_then(|runs| runs.parse().ok());
    let rounds: usize = rounds.unwrap_or(ROUNDS);
    let scratch = Scratch::new(workspace, "stall")?;
    let mut text = format!(
        "## What attaching does to a server's answers\n\nA client asks every millisecond: {} s before, {} s while a \
         tool is attached (attaching included), and {} s from the order to detach, {rounds} rounds of all in \
         turn. Milliseconds. The goal: 99.9 % at most 1 ms and the worst at most 10 ms above those without a tool.\n",
        STRETCH.as_secs(),
        STRETCH.as_secs(),
        STRETCH.as_secs()
    );
    for name in ["redis-server under redis-benchmark", "a server of 50 threads under 8 clients"] {
        if !only.is_empty() && !only.iter().any(|only| name.starts_with(only.as_str())) {
            continue;
        }
        let server = if name.starts_with("redis") {
            Server::redis(&scratch.0)?
        } else {
            Server::of_threads(&program, &scratch.0)?
        };
        std::thread::sleep(Duration::from_secs(1));
        let mut table: Table = WAYS.iter().map(|_| Default::default()).collect();
        for _ in 0..rounds {
            for (way, samples) in WAYS.iter().zip(&mut table) {
                let answers = turn(way, &server, longpole, &scratch.0)?;
                for (of_stretch, lengths) in samples.iter_mut().zip(&answers) {
                    for (sample, share) in of_stretch.iter_mut().zip(SHARES) {
                        sample.push(quantile(lengths, share));
                    }
                }
            }
        }
        write_table(&mut text, name, &table)?;
    }
    Ok(text)
}

/// One program attaches and detaches. Returns the times of the answers in each stretch.
fn turn(way: &Way, server: &Server, longpole: &Path, folder: &Path) -> Result<[Vec<f64>; 3]> {
    let client = UnixStream::connect(&server.socket)?;
    client.set_read_timeout(Some(LIMIT))?;
    let asking = LatencyClient::start(client, server.question);
    let began = Instant::now();
    std::thread::sleep(STRETCH);
    let came = Instant::now();
    let mut comer = None;
    if !way.command.is_empty() {
        let line = way
            .command
            .replace("LONGPOLE", &longpole.display().to_string())
            .replace("PID", &server.server.pid().to_string())
            .replace("FILE", &folder.join("stall.out").display().to_string());
        comer = Some(Background::start(&mut longpole_tests::shell(&line)).context(way.name)?);
    }
    std::thread::sleep(STRETCH);
    let went = Instant::now();
    if let Some(comer) = &mut comer {
        if !comer.is_running()? {
            bail!("{} ended before it was told to", way.name);
        }
        comer.signal(way.signal)?;
    }
    std::thread::sleep(STRETCH);
    let over = Instant::now();
    if let Some(comer) = comer {
        comer.wait(LIMIT)?;
    }
    let answers: Vec<Answered> = asking.finish().context("the server is gone")?;
    Ok([(began, came), (came, went), (went, over)].map(|(from, to)| lengths(&answers, from, to)))
}

fn write_table(text: &mut String, name: &str, table: &Table) -> Result<()> {
    write!(
        text,
        "\n{name}:\n\n| who | when | 50 % | 99 % | 99.9 % | worst | 99.9 % above | worst above |\n\
         |---|---|---|---|---|---|---|---|\n"
    )?;
    let Some(nobody) = table.first() else { return Ok(()) };
    for (way, samples) in WAYS.iter().zip(table) {
        for ((when, [half, most, nearly_all, worst]), alone) in STRETCHES.iter().zip(samples).zip(nobody) {
            let [_, _, alone_nearly_all, alone_worst] = alone;
            let above = |with: &Sample, alone: &Sample| digits(with.median() - alone.median());
            writeln!(
                text,
                "| {} | {when} | {half} | {most} | {nearly_all} | {worst} | {} | {} |",
                way.name,
                above(nearly_all, alone_nearly_all),
                above(worst, alone_worst)
            )?;
        }
    }
    Ok(())
}
