//! Real programs under their own load, alone and under `longpole record` with default settings, in turns; and how many
//! bytes of recording an event of theirs takes.

use std::fmt::Write;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use longpole_tests::{Background, run, shell};

use super::Scratch;
use super::app_files::{NGINX, prepare};
use super::handover::lost_percent;
use crate::sample::{Sample, digits};
use crate::workspace::Workspace;

/// Of each way; `LONGPOLE_BENCH_RUNS` changes it.
const RUNS: usize = 7;
/// No run takes this long on a machine that has anything left for it.
const LIMIT: Duration = Duration::from_secs(120);

/// A program, what to install for it, and what it does.
struct App {
    name: &'static str,
    /// Programs it takes and the Debian packages they come in.
    needs: &'static [(&'static str, &'static str)],
    load: Load,
}

enum Load {
    /// What a shell does before, and a command that ends by itself, in its words; `DATA` is a file of some ten megabytes,
    /// `WORK` a folder.
    Command(&'static str, &'static str),
    /// A server that longpole is attached to, what drives it, and from when on that is measured.
    Server(&'static str, Drive, Since),
}

/// Probes that are too dear go within some tenths of a second: the time in which they do is told apart.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Since {
    Attach,
    /// The same work was done before, attached.
    Settled,
}

/// Drives a server with so much work, and waits until it is done.
type Drive = fn(&Path) -> Result<()>;

const REDIS: &str = "exec redis-server --port 0 --unixsocket WORK/redis.sock --save '' --appendonly no";
const REDIS_NEEDS: [(&str, &str); 2] = [("redis-server", "redis-server"), ("redis-benchmark", "redis-tools")];
const NGINX_SERVER: &str = "exec nginx -p WORK -c WORK/nginx.conf -e WORK/nginx.log";
const NGINX_NEEDS: [(&str, &str); 1] = [("nginx", "nginx-light")];

const APPS: [App; 13] = [
    App { name: "pigz", needs: &[("pigz", "pigz")], load: Load::Command("", "pigz -p2 -7 -c DATA") },
    App { name: "pbzip2", needs: &[("pbzip2", "pbzip2")], load: Load::Command("", "pbzip2 -p2 -c DATA") },
    App {
        name: "xz -T2",
        needs: &[("xz", "xz-utils")],
        load: Load::Command("", "xz -T2 -1 --block-size=4MiB -c DATA"),
    },
    App { name: "zstd -T2", needs: &[("zstd", "zstd")], load: Load::Command("", "zstd -T2 -12 -q -c DATA") },
    App {
        name: "x264",
        needs: &[("x264", "x264")],
        load: Load::Command(
            "",
            "x264 --quiet --no-progress --threads 2 --preset fast --demuxer raw --input-res 640x360 -o /dev/null DATA",
        ),
    },
    App {
        name: "sqlite3",
        needs: &[("sqlite3", "sqlite3")],
        load: Load::Command("rm -f WORK/bench.db", "sqlite3 WORK/bench.db < WORK/bench.sql"),
    },
    App {
        name: "ripgrep",
        needs: &[("rg", "ripgrep")],
        load: Load::Command("", "rg -j2 -c 'w[0-9]*3_[0-9]*[57] w[0-9]+_1' WORK/tree"),
    },
    App {
        name: "sort",
        needs: &[("sort", "coreutils")],
        load: Load::Command("", "sort --parallel=2 -S 64M -o /dev/null WORK/lines"),
    },
    App {
        name: "python3",
        needs: &[("python3", "python3")],
        load: Load::Command("", "PYTHON WORK/threads.py"),
    },
    App { name: "redis", needs: &REDIS_NEEDS, load: Load::Server(REDIS, drive_redis, Since::Settled) },
    App {
        name: "redis from attach on",
        needs: &REDIS_NEEDS,
        load: Load::Server(REDIS, drive_redis, Since::Attach),
    },
    App { name: "nginx", needs: &NGINX_NEEDS, load: Load::Server(NGINX_SERVER, drive_nginx, Since::Settled) },
    App {
        name: "nginx from attach on",
        needs: &NGINX_NEEDS,
        load: Load::Server(NGINX_SERVER, drive_nginx, Since::Attach),
    },
];

/// What the runs of one program gave.
struct Measured {
    name: &'static str,
    alone: Sample,
    recorded: Sample,
    events: f64,
    bytes: f64,
    lost: Sample,
    overhead: String,
}

/// Runs all programs that are here.
///
/// # Errors
/// None is, or none that is runs to its end.
pub fn measure(workspace: &Workspace, longpole: &Path, only: &[String]) -> Result<String> {
    let scratch = Scratch::new(workspace, "apps")?;
    prepare(&scratch.0)?;
    let runs = std::env::var("LONGPOLE_BENCH_RUNS").ok().and_then(|runs| runs.parse().ok()).unwrap_or(RUNS);
    let (mut measured, mut missing) = (Vec::new(), Vec::new());
    for app in &APPS {
        if !only.is_empty() && !only.iter().any(|name| app.name.starts_with(name.as_str())) {
            continue;
        }
        match app.needs.iter().find(|(program, _)| !is_here(program)) {
            Some((program, package)) => {
                missing.push(format!("{} ({program} is missing: `apt-get install {package}`)", app.name));
                eprintln!("xtask: not measured: {}", missing.last().map_or("", String::as_str));
            }
            None => {
                eprintln!("xtask: {} ...", app.name);
                match app.measure(longpole, &scratch.0, runs) {
                    Ok(one) => {
                        eprintln!("xtask: {} {}", one.name, digits(one.slower()));
                        measured.push(one);
                    }
                    // The others are worth having.
                    Err(error) => {
                        missing.push(format!("{} ({error:#})", app.name));
                        eprintln!("xtask: failed: {}", missing.last().map_or("", String::as_str));
                    }
                }
            }
        }
    }
    if measured.is_empty() {
        bail!("none of the programs was measured: {}", missing.join(", "));
    }
    text(&measured, &missing, runs)
}

impl Measured {
    fn slower(&self) -> f64 {
        self.recorded.median() / self.alone.median()
    }
}

fn text(measured: &[Measured], missing: &[String], runs: usize) -> Result<String> {
    let mut text = format!(
        "## Real programs under their own load\n\nTime of the work alone and under `longpole record` with default \
         settings, {runs} runs of each in alternation. The\ntargets: median slow-down at most 1 %, worst at most 5 %, at \
         most 8 bytes of recording for each event.\n\n\
         | program | s alone | s recorded | slow-down | events | bytes per event | lost, % | overhead as longpole tells it |\n\
         |---|---|---|---|---|---|---|---|\n"
    );
    let (mut slower, mut events, mut bytes) = (Sample::default(), 0.0, 0.0);
    for one in measured {
        slower.push(one.slower());
        events += one.events;
        bytes += one.bytes;
        writeln!(
            text,
            "| {} | {} | {} | {} | {:.0} | {} | {} | {} |",
            one.name,
            one.alone,
            one.recorded,
            digits(one.slower()),
            one.events,
            digits(one.bytes / one.events.max(1.0)),
            one.lost,
            one.overhead
        )?;
    }
    let percent = |ratio: f64| format!("{:+.1} %", 100.0 * (ratio - 1.0));
    let worst = measured.iter().map(Measured::slower).fold(0.0, f64::max);
    write!(
        text,
        "\nMedian of the slow-downs {}, worst {}; {} bytes per event over all of them.",
        percent(slower.median()),
        percent(worst),
        digits(bytes / events.max(1.0))
    )?;
    if !missing.is_empty() {
        write!(text, "\nNot measured: {}.", missing.join(", "))?;
    }
    Ok(text)
}

fn is_here(program: &str) -> bool {
    run(&mut shell(&format!("command -v {program} || test -x /usr/sbin/{program}")), LIMIT)
        .is_ok_and(|ended| ended.code == Some(0))
}

impl App {
    fn measure(&self, longpole: &Path, work: &Path, runs: usize) -> Result<Measured> {
        let mut measured = Measured {
            name: self.name,
            alone: Sample::default(),
            recorded: Sample::default(),
            events: 0.0,
            bytes: 0.0,
            lost: Sample::default(),
            overhead: String::new(),
        };
        let file = work.join("app.lp");
        // One more of each in front: files get into memory, processors wake up.
        for turn in 0..=runs {
            for place in 0..2 {
                let recorded = (turn + place) % 2 == 1;
                let (seconds, said) = match &self.load {
                    Load::Command(before, line) => {
                        let record = recorded.then_some((longpole, file.as_path()));
                        command((&in_folder(before, work), &in_folder(line, work)), record)?
                    }
                    Load::Server(line, drive, since) => {
                        let record = recorded.then_some((longpole, file.as_path()));
                        server(&in_folder(line, work), (*drive, *since), work, record)?
                    }
                };
                if turn == 0 {
                    continue;
                }
                if recorded {
                    measured.recorded.push(seconds);
                    measured.take_summary(&said, &file)?;
                } else {
                    measured.alone.push(seconds);
                }
            }
        }
        Ok(measured)
    }
}

impl Measured {
    fn take_summary(&mut self, said: &str, file: &Path) -> Result<()> {
        let line = |label: &str| said.lines().find_map(|line| line.strip_prefix(label)).map(str::trim);
        let events = line("events ").map(leading_number);
        self.events = events.with_context(|| format!("no number of events in: {said}"))?;
        self.bytes = std::fs::metadata(file).context("no recording")?.len() as f64;
        self.lost.push(lost_percent(said)?);
        let overhead = line("overhead ").context("no overhead")?;
        self.overhead = overhead.split(" (").next().unwrap_or_default().to_owned();
        Ok(())
    }
}

/// `1,234,567, 89 a second` begins with 1234567.
fn leading_number(text: &str) -> f64 {
    let number = text.split(", ").next().unwrap_or_default();
    number.chars().filter(char::is_ascii_digit).collect::<String>().parse().unwrap_or(0.0)
}

fn in_folder(line: &str, work: &Path) -> String {
    // Itself, not the script that chooses among several.
    let python = || run(&mut shell("python3 -c 'import sys; print(sys.executable)'"), LIMIT);
    let line = match line.split_once("PYTHON ") {
        Some((_, rest)) => {
            format!("{} {rest}", python().map(|ended| ended.stdout).unwrap_or_default().trim())
        }
        None => line.to_owned(),
    };
    line.replace("DATA", &work.join("data").display().to_string())
        .replace("WORK", &work.display().to_string())
}

/// How long the command takes: from when it is let go to the end of its process, without what longpole does before
/// and after.
fn command((before, line): (&str, &str), record: Option<(&Path, &Path)>) -> Result<(f64, String)> {
    run(&mut shell(before), LIMIT).context("sh")?;
    let Some((longpole, file)) = record else {
        // Stopped right before it becomes the program, as longpole holds it back.
        let mut alone = shell(&format!("kill -STOP $$; exec {line} >/dev/null"));
        let mut alone = Background::start(alone.env("LC_ALL", "C")).context("sh")?;
        let pid = alone.pid();
        wait_until(pid, &['T'])?;
        let start = Instant::now();
        alone.signal("CONT")?;
        wait_until(pid, &['Z', 'X'])?;
        let seconds = start.elapsed().as_secs_f64();
        alone.close_stdin();
        let ended = alone.wait(LIMIT)?;
        if ended.code != Some(0) {
            bail!("{line} ended with {:?}: {}", ended.code, ended.stderr);
        }
        return Ok((seconds, String::new()));
    };
    let mut call = shell(&format!("exec \"$LONGPOLE\" record --force -o \"$FILE\" -- {line} >/dev/null"));
    call.env("LC_ALL", "C").env("LONGPOLE", longpole).env("FILE", file);
    let mut record = Background::start(&mut call).context("longpole")?;
    let said = record.wait_for_stderr("recording ", LIMIT)?;
    let start = Instant::now();
    let pid = said.split("(pid ").nth(1).and_then(|rest| rest.split(')').next()?.parse().ok());
    wait_until(pid.with_context(|| said.clone())?, &['Z', 'X'])?;
    let seconds = start.elapsed().as_secs_f64();
    let ended = record.wait(LIMIT)?;
    if ended.code != Some(0) {
        bail!("{line} ended with {:?}: {}", ended.code, ended.stderr);
    }
    Ok((seconds, ended.stderr))
}

/// Until the process is in one of these states, or gone, whoever waits for it.
fn wait_until(pid: u32, states: &[char]) -> Result<()> {
    let end = Instant::now() + LIMIT;
    let path = format!("/proc/{pid}/stat");
    loop {
        let stat = std::fs::read_to_string(&path).unwrap_or_default();
        let state = stat.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next());
        if state.is_none_or(|state| states.contains(&state)) {
            return Ok(());
        }
        if Instant::now() > end {
            bail!("process {pid} does not come to an end");
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// How long a server's work takes, attached to from before it until after it.
fn server(
    line: &str,
    (drive, since): (Drive, Since),
    work: &Path,
    record: Option<(&Path, &Path)>,
) -> Result<(f64, String)> {
    let mut server = Background::start(&mut shell(line)).context("sh")?;
    let mut warm = Err(anyhow::anyhow!("never tried"));
    for _ in 0..200 {
        std::thread::sleep(Duration::from_millis(25));
        warm = ready(work);
        if warm.is_ok() {
            break;
        }
    }
    warm.with_context(|| format!("{line} does not answer"))?;
    let recorder = match record {
        None => None,
        Some((longpole, file)) => {
            let mut call = Command::new(longpole);
            call.args(["record", "--force", "--children", "-p", &server.pid().to_string(), "-o"]).arg(file);
            let mut recorder = Background::start(&mut call).context("longpole")?;
            recorder.wait_for_stderr("recording ", LIMIT)?;
            Some(recorder)
        }
    };
    if since == Since::Settled {
        drive(work)?;
    }
    let start = Instant::now();
    drive(work)?;
    let seconds = start.elapsed().as_secs_f64();
    let said = match recorder {
        None => String::new(),
        Some(recorder) => {
            recorder.signal("INT")?;
            let ended = recorder.wait(LIMIT)?;
            if ended.code != Some(0) {
                bail!("longpole ended with {:?}: {}", ended.code, ended.stderr);
            }
            ended.stderr
        }
    };
    if !server.is_running()? {
        bail!("{line} did not survive");
    }
    server.signal("TERM")?;
    server.wait(LIMIT)?;
    Ok((seconds, said))
}

/// Whether one of the servers answers.
fn ready(work: &Path) -> Result<()> {
    if work.join("redis.sock").exists() {
        let mut ping = Command::new("redis-cli");
        ping.arg("-s").arg(work.join("redis.sock")).arg("ping");
        return match run(&mut ping, LIMIT)?.stdout.trim() {
            "PONG" => Ok(()),
            other => bail!("{other}"),
        };
    }
    TcpStream::connect(NGINX).map(drop).context("no connection")
}

fn drive_redis(work: &Path) -> Result<()> {
    let mut load = Command::new("redis-benchmark");
    load.arg("-s").arg(work.join("redis.sock"));
    load.args(["-q", "-c", "20", "-n", "300000", "-P", "4", "-t", "set,get,lpush"]);
    let ended = run(&mut load, LIMIT)?;
    if ended.code != Some(0) {
        bail!("redis-benchmark ended with {:?}: {}", ended.code, ended.stderr);
    }
    Ok(())
}

/// Connections that ask again and again, as browsers do: so many that no CPU waits for another.
fn drive_nginx(_: &Path) -> Result<()> {
    let client = || -> Result<()> {
        let stream = TcpStream::connect(NGINX)?;
        stream.set_nodelay(true)?;
        let mut to = stream.try_clone()?;
        let mut from = BufReader::new(stream);
        let (mut line, mut body) = (String::new(), Vec::new());
        for _ in 0..20_000 {
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
    let clients: Vec<_> = (0..8).map(|_| std::thread::spawn(client)).collect();
    for client in clients {
        match client.join() {
            Ok(result) => result?,
            Err(_) => bail!("a client broke"),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::leading_number;

    #[test]
    fn events_are_read_from_the_summary() {
        assert_eq!(leading_number("1,234,567, 89 a second, 7.9 bytes each"), 1_234_567.0);
        assert_eq!(leading_number("0"), 0.0);
    }
}
