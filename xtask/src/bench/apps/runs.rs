//! Runs a pair of copies of a real program, alone and recorded, in turns.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use longpole_tests::{Background, Group, has_ended, run, shell};

use super::files::prepare_side;
use super::in_turns::{Took, Work, in_turns};
use super::list::Load;
use crate::bench::summary::launched_pid;
use crate::command;
use crate::measure::{Setting, built};

/// Longest time of a run, even on a loaded machine.
const LIMIT: Duration = Duration::from_secs(120);

/// When a server's work begins to count. Probes that cost too much are removed within some tenths of a second, which
/// `Settled` excludes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Since {
    Attach,
    /// After the same work has been done once with longpole attached.
    Settled,
}

/// Gives a server a fixed amount of work, and waits until the work is done.
pub type Drive = fn(&Side) -> Result<()>;

/// One of the two copies of a program that run in turns.
pub struct Side {
    group: Group,
    /// The folder for this copy's output.
    folder: PathBuf,
    /// The address on which this copy's nginx listens.
    address: String,
}

impl Side {
    fn new(work: &Path, name: &str, port: u16) -> Result<Side> {
        let address = format!("127.0.0.1:{port}");
        let folder = prepare_side(work, name, &address)?;
        Ok(Side { group: Group::new(&format!("bench-{name}"))?, folder, address })
    }

    fn words(&self, line: &str, work: &Path) -> String {
        in_folder(line, work).replace("SIDE", &self.folder.display().to_string())
    }
}

fn in_folder(line: &str, work: &Path) -> String {
    let mut line = line.to_owned();
    if let Some(rest) = line.strip_prefix("PYTHON ") {
        // The interpreter itself, and not a script that chooses one of several interpreters.
        let python = run(&mut shell("python3 -c 'import sys; print(sys.executable)'"), LIMIT);
        line = format!("{} {rest}", python.map(|ended| ended.stdout).unwrap_or_default().trim());
    }
    if let Some(rest) = line.strip_prefix("WORKLOAD/") {
        let (source, rest) = rest.split_once(' ').unwrap_or((rest, ""));
        line = format!("{} {rest}", built(source).unwrap_or_default());
    }
    line.replace("DATA", &work.join("data").display().to_string())
        .replace("WORK", &work.display().to_string())
}

/// Runs a program alone and recorded, in turns. Returns both times, and longpole's output.
pub fn pair(load: &Load<'_>, setting: &Setting, file: &Path) -> Result<([Took; 2], String)> {
    let work = &setting.folder;
    let sides = [Side::new(work, "alone", 18_745)?, Side::new(work, "recorded", 18_746)?];
    match load {
        Load::Command(before, line) => commands((before, "", line), setting, &sides, file),
        Load::Commands(before, line) => commands((before, "--children", line), setting, &sides, file),
        Load::Server(line, drive, since) => servers((line, *drive, *since), setting, &sides, file),
    }
}

/// Time of the command alone and recorded. The time is from the command's release to the end of its process, so
/// longpole's work before and after does not count.
fn commands(
    (before, options, line): (&str, &str, &str),
    setting: &Setting,
    [alone, recorded]: &[Side; 2],
    file: &Path,
) -> Result<([Took; 2], String)> {
    let (work, longpole) = (&setting.folder, &setting.longpole);
    for side in [alone, recorded] {
        run(&mut shell(&side.words(before, work)), LIMIT).context("sh")?;
    }
    // The shell is frozen when it joins the group, before it executes the program.
    alone.group.hold()?;
    let line_alone = alone.words(line, work);
    let mut by_itself =
        Background::start(&mut alone.group.shell(&format!("{line_alone} >/dev/null"))).context("sh")?;
    by_itself.close_stdin();
    let line = format!(
        "\"$LONGPOLE\" record --force -o \"$FILE\" {options} -- {} >/dev/null",
        recorded.words(line, work)
    );
    let mut record = recorded.group.shell(&line);
    let mut record =
        Background::start(record.env("LONGPOLE", longpole).env("FILE", file)).context("longpole")?;
    record.close_stdin();
    let said = record.wait_for_stderr("recording ", LIMIT)?;
    recorded.group.hold()?;
    let pids = [by_itself.pid(), launched_pid(&said)?];
    let [mut first, mut second] = pids.map(|pid| move || has_ended(pid));
    let seconds = in_turns([
        Work { group: &alone.group, done: &mut first },
        Work { group: &recorded.group, done: &mut second },
    ])?;
    let mut said = String::new();
    for program in [by_itself, record] {
        said = command::well(program.wait(LIMIT)?, &line)?.stderr;
    }
    Ok((seconds, said))
}

/// Time of a server's work alone and recorded. longpole attaches before the work and detaches after it.
fn servers(
    (line, drive, since): (&str, Drive, Since),
    setting: &Setting,
    sides: &[Side; 2],
    file: &Path,
) -> Result<([Took; 2], String)> {
    let start = |side: &Side| server(line, &setting.folder, side);
    let [alone, recorded] = sides;
    let mut servers = [start(alone)?, start(recorded)?];
    let pid = servers.last().map_or(0, Background::pid);
    let mut call = recorded.group.shell("\"$LONGPOLE\" record --force --children -p \"$PID\" -o \"$FILE\"");
    call.env("LONGPOLE", &setting.longpole).env("PID", pid.to_string()).env("FILE", file);
    let mut recorder = Background::start(&mut call).context("longpole")?;
    recorder.wait_for_stderr("recording ", LIMIT)?;
    if since == Since::Settled {
        drive(alone)?;
        drive(recorded)?;
    }
    for side in sides {
        side.group.hold()?;
    }
    let seconds = std::thread::scope(|scope| {
        // While a server is frozen, its client waits.
        let clients = sides.each_ref().map(|side| scope.spawn(move || drive(side)));
        let [mut first, mut second] = clients.each_ref().map(|client| || client.is_finished());
        let seconds = in_turns([
            Work { group: &alone.group, done: &mut first },
            Work { group: &recorded.group, done: &mut second },
        ]);
        for side in sides {
            side.group.let_go()?;
        }
        for client in clients {
            match client.join() {
                Ok(driven) => driven?,
                Err(_) => bail!("a client broke"),
            }
        }
        seconds
    })?;
    recorder.signal("INT")?;
    let ended = command::well(recorder.wait(LIMIT)?, "longpole")?;
    for server in &mut servers {
        if !server.is_running()? {
            bail!("{line} did not survive");
        }
    }
    for server in servers {
        server.signal("TERM")?;
        server.wait(LIMIT)?;
    }
    Ok((seconds, ended.stderr))
}

/// Starts a server and waits until it answers.
fn server(line: &str, work: &Path, side: &Side) -> Result<Background> {
    let server = Background::start(&mut side.group.shell(&side.words(line, work))).context("sh")?;
    let mut warm = Err(anyhow::anyhow!("never tried"));
    for _ in 0..200 {
        std::thread::sleep(Duration::from_millis(25));
        warm = ready(side);
        if warm.is_ok() {
            break;
        }
    }
    warm.with_context(|| format!("{line} does not answer"))?;
    Ok(server)
}

/// Starts a recorder and returns its standard error. The recorder starts the program, or attaches to a server and then
/// prints `ready`.
pub fn recorded(
    load: &Load<'_>,
    work: &Path,
    ready: &str,
    recorder: impl Fn(Recorded<'_>) -> Command,
) -> Result<String> {
    let side = Side::new(work, "recorded", 18_746)?;
    let (line, drive) = match load {
        Load::Command(before, line) | Load::Commands(before, line) => {
            run(&mut shell(&side.words(before, work)), LIMIT).context("sh")?;
            let line = format!("exec {} >/dev/null", side.words(line, work));
            return Ok(command::good(&mut recorder(Recorded::Command(&line)), LIMIT)?.stderr);
        }
        Load::Server(line, drive, _) => (line, drive),
    };
    let server = server(line, work, &side)?;
    let mut recorder =
        Background::start(&mut recorder(Recorded::Server(server.pid()))).context("a recorder")?;
    if ready.is_empty() {
        std::thread::sleep(Duration::from_secs(1));
    } else {
        recorder.wait_for_stderr(ready, LIMIT)?;
    }
    drive(&side)?;
    recorder.signal("INT")?;
    let said = recorder.wait(LIMIT)?.stderr;
    server.signal("TERM")?;
    server.wait(LIMIT)?;
    Ok(said)
}

/// What a recorder records.
pub enum Recorded<'a> {
    /// A line of shell that the recorder starts.
    Command(&'a str),
    /// A process that already runs.
    Server(u32),
}

/// Fails if the server does not answer.
fn ready(side: &Side) -> Result<()> {
    let socket = side.folder.join("redis.sock");
    if socket.exists() {
        let mut ping = Command::new("redis-cli");
        ping.arg("-s").arg(socket).arg("ping");
        return match run(&mut ping, LIMIT)?.stdout.trim() {
            "PONG" => Ok(()),
            other => bail!("{other}"),
        };
    }
    TcpStream::connect(&side.address).map(drop).context("no connection")
}

pub fn drive_redis(side: &Side) -> Result<()> {
    let mut load = Command::new("redis-benchmark");
    load.arg("-s").arg(side.folder.join("redis.sock"));
    load.args(["-q", "-c", "20", "-n", "800000", "-P", "4", "-t", "set,get,lpush"]);
    command::good(&mut load, LIMIT).map(drop)
}

/// Sends requests on eight connections without a pause, as browsers do: enough that no CPU is idle.
pub fn drive_nginx(side: &Side) -> Result<()> {
    let client = |address: &str| -> Result<()> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        let mut to = stream.try_clone()?;
        let mut from = BufReader::new(stream);
        let (mut line, mut body) = (String::new(), Vec::new());
        for _ in 0..50_000 {
            to.write_all(b"GET /page HTTP/1.1\r\nHost: bench\r\n\r\n")?;
            let mut length = 0;
            loop {
                line.clear();
                from.read_line(&mut line)?;
                if let Some(value) = line.strip_prefix("Content-Length: ") {
                    length = value.trim().parse()?;
                }
                if line.trim().is_empty() {
                    break;
                }
            }
            body.resize(length, 0);
            from.read_exact(&mut body)?;
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let clients: Vec<_> = (0..8).map(|_| scope.spawn(|| client(&side.address))).collect();
        for client in clients {
            match client.join() {
                Ok(result) => result?,
                Err(_) => bail!("a client broke"),
            }
        }
        Ok(())
    })
}
