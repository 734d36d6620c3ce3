//! How much a server's clients notice of attaching. A client sends a request every millisecond: before longpole
//! attaches, while it records, and after the signal that ends it.

use std::cell::RefCell;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use longpole_tests::latency_client::{LatencyClient, lengths, quantile};
use longpole_tests::{Background, shell};
use serde_json::{Value, json};

use crate::command;
use crate::measure::{Measurement, Need, Outcome, Runs, Setting, Side, built, table};
use crate::sample::digits;

/// Length of each of the three stretches.
const STRETCH: Duration = Duration::from_secs(5);
const LIMIT: Duration = Duration::from_secs(60);
/// Names of the three stretches.
const STRETCHES: [&str; 3] = ["before", "while it is there", "from its end on"];
/// The quantiles of the answers' times that are reported for each stretch.
const SHARES: [f64; 4] = [0.5, 0.99, 0.999, 1.0];
/// Titles of the tables, and how the servers in them start.
const SERVERS: [(&str, Start); 2] = [
    ("redis-server under redis-benchmark", Server::redis),
    ("a server of 50 threads under 8 clients", Server::of_threads),
];
type Start = fn(&Path) -> Result<Server>;

/// Programs that attach. Each has a name, a line of shell in which `LONGPOLE`, `PID` and `FILE` are replaced, and the
/// signal that ends it.
const WAYS: [(&str, &str, &str); 5] = [
    ("nobody", "", ""),
    ("`longpole record -p`, ^C", "exec LONGPOLE record --force -p PID -o FILE", "INT"),
    ("`longpole record -p`, kill -9", "exec LONGPOLE record --force -p PID -o FILE", "KILL"),
    ("`longpole top --once -p`, ^C", "exec LONGPOLE top --once --window 60s -p PID", "INT"),
    ("`perf record -g -p`, ^C", "exec perf record -q -g -p PID -o FILE", "INT"),
];

pub const STALL: Measurement = Measurement {
    name: "stall",
    about: "Answers of servers while somebody attaches and goes",
    title: "What attaching does to a server's answers",
    needs: &[Need::Recorder],
    runs: Runs::Times(3),
    chooses: true,
    sides: |setting| {
        let mut sides = Vec::new();
        for (stage, (title, start)) in
            SERVERS.into_iter().enumerate().filter(|(_, (name, _))| setting.wants(name))
        {
            // The server starts with its first turn, and ends together with the last side of its stage.
            let server = Rc::new(RefCell::new(None));
            for way in WAYS {
                let server = server.clone();
                let run = move |_| {
                    let mut server = server.borrow_mut();
                    if server.is_none() {
                        *server = Some(start(&setting.folder)?);
                        std::thread::sleep(Duration::from_secs(1));
                    }
                    turn(way, server.as_ref().context("no server")?, setting)
                };
                sides.push(Side::new(format!("{title}: {}", way.0), run).stage(stage));
            }
        }
        Ok(sides)
    },
    says: "A client asks every millisecond: 5 s before, 5 s while a tool is attached (attaching included), and 5 s \
           from the order to detach, {runs} rounds of all in turn. Milliseconds. The goal: 99.9 % at most 1 ms and \
           the worst at most 10 ms above those without a tool.",
    ends: |results| {
        let tables = results.sides.chunks(WAYS.len()).map(server_table).collect::<Result<Vec<_>>>()?;
        Ok(tables.join("\n"))
    },
    ..Measurement::NEW
};

/// A server under load.
pub struct Server {
    server: Background,
    /// The load generator, which ends together with the server.
    _load: Background,
    pub socket: PathBuf,
    question: &'static [u8],
}

impl Server {
    /// Starts a Redis that listens on a socket in this folder, and its load generator.
    pub fn redis(folder: &Path) -> Result<Server> {
        let socket = folder.join("redis.sock");
        let mut server = command::line("redis-server", "--port 0 --appendonly no --unixsocket");
        let server = Background::start(server.arg(&socket).args(["--save", ""]));
        let server = server.context("redis-server (Debian: redis-server)")?;
        let end = Instant::now() + LIMIT;
        while UnixStream::connect(&socket).is_err() {
            ensure!(Instant::now() <= end, "nobody answers at {}", socket.display());
            std::thread::sleep(Duration::from_millis(10));
        }
        let mut load = command::line("redis-benchmark", "-q -c 20 -n 1000000000 -t set,get -s");
        let load = Background::start(load.arg(&socket)).context("redis-benchmark (Debian: redis-tools)")?;
        Ok(Server { server, _load: load, socket, question: b"PING\r\n" })
    }

    /// The PID of the server's process.
    pub fn pid(&self) -> u32 {
        self.server.pid()
    }

    fn of_threads(folder: &Path) -> Result<Server> {
        let (program, socket) = (built("answers.c")?, folder.join("answers.sock"));
        let mut server = Background::start(command::line(&program, "").arg(&socket).args(["50", "200"]))?;
        server.line(LIMIT)?;
        let mut load = Background::start(command::line(&program, "load").arg(&socket).arg("8"))?;
        load.line(LIMIT)?;
        Ok(Server { server, _load: load, socket, question: b"?" })
    }
}

/// One program attaches and detaches. Returns quantiles of the times of the answers in each stretch, in milliseconds.
fn turn((name, line, signal): (&str, &str, &str), server: &Server, setting: &Setting) -> Result<Value> {
    let client = UnixStream::connect(&server.socket)?;
    client.set_read_timeout(Some(LIMIT))?;
    let asking = LatencyClient::start(client, server.question);
    let began = Instant::now();
    std::thread::sleep(STRETCH);
    let came = Instant::now();
    let mut comer = None;
    if !line.is_empty() {
        let line = line
            .replace("LONGPOLE", &setting.longpole.display().to_string())
            .replace("PID", &server.pid().to_string())
            .replace("FILE", &setting.file("stall.out").display().to_string());
        comer = Some(Background::start(&mut shell(&line)).context(name.to_owned())?);
    }
    std::thread::sleep(STRETCH);
    let went = Instant::now();
    if let Some(comer) = &mut comer {
        if !comer.is_running()? {
            bail!("{name} ended before it was told to");
        }
        comer.signal(signal)?;
    }
    std::thread::sleep(STRETCH);
    let over = Instant::now();
    if let Some(comer) = comer {
        comer.wait(LIMIT)?;
    }
    let answers = asking.finish().context("the server is gone")?;
    let mut figures = json!({});
    for (stretch, (from, to)) in STRETCHES.iter().zip([(began, came), (came, went), (went, over)]) {
        let lengths = lengths(&answers, from, to);
        for share in SHARES {
            figures[format!("{stretch} {share}")] = json!(quantile(&lengths, share));
        }
    }
    Ok(figures)
}

/// A title and a table with a row for each program and stretch.
fn server_table(ways: &[Outcome]) -> Result<String> {
    let nobody = ways.first().context("no ways")?;
    let title = nobody.label.split(':').next().unwrap_or_default();
    let mut rows = Vec::new();
    for (side, (who, ..)) in ways.iter().zip(WAYS) {
        for when in STRETCHES {
            let figure = |share: f64| format!("{when} {share}");
            let mut cells = vec![who.to_owned(), when.to_owned()];
            for share in SHARES {
                cells.push(side.spread(&figure(share), 1.0)?);
            }
            for share in &SHARES[2..] {
                cells.push(digits(side.median(&figure(*share))? - nobody.median(&figure(*share))?));
            }
            rows.push(cells.join(" | "));
        }
    }
    let heads = "who | when | 50 % | 99 % | 99.9 % | worst | 99.9 % above | worst above";
    Ok(format!("{title}:\n\n{}", table(heads, rows)))
}
