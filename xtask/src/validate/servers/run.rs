//! Runs a server and its load.

use std::fs::File;
use std::net::TcpStream;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use longpole_tests::{Background, shell};

use super::kinds::{Server, Variables};
use crate::command;
use crate::measure::Setting;

/// A server fails if it does not answer within this time.
const START: Duration = Duration::from_secs(30);
/// A server that has not ended within this time is killed.
const END: Duration = Duration::from_secs(5);
/// Longest time of a script.
const LIMIT: Duration = Duration::from_secs(120);

/// Where a server's scripts run.
pub struct Place<'a> {
    pub server: &'static Server,
    pub setting: &'a Setting,
    pub variables: Variables,
    /// The server's first port. The next port is the server's own, too.
    pub port: u16,
}

impl Place<'_> {
    fn base(&self) -> PathBuf {
        self.setting.file(self.server.name)
    }

    fn own(&self) -> PathBuf {
        self.base().join(self.port.to_string())
    }

    fn script(&self, lines: &str) -> Command {
        self.with_variables(shell(&format!("set -e\n{lines}")))
    }

    fn with_variables(&self, mut script: Command) -> Command {
        script.env("BASE", self.base()).env("DIR", self.own());
        script.env("SOURCES", self.setting.workspace.root.join("tests/workloads/servers"));
        script.env("PORT", self.port.to_string()).env("OTHER", (self.port + 1).to_string());
        script.envs(self.variables.iter().copied());
        script
    }

    /// Prepares, once, the folder that all starts share.
    pub fn prepare(&self) -> Result<()> {
        if self.base().exists() {
            return Ok(());
        }
        std::fs::create_dir_all(self.base())?;
        command::good(&mut self.script(self.server.prepare), LIMIT).context("prepare")?;
        Ok(())
    }

    /// Starts the server, and waits until it answers.
    pub fn start(&self) -> Result<Running> {
        // Removes what an earlier fault of this server has left.
        drop(std::fs::remove_dir_all(self.own()));
        std::fs::create_dir_all(self.own())?;
        let log = self.own().join("log");
        // With --pdeathsig, the server ends even if this program is killed.
        let mut start = command::line("setpriv", "--pdeathsig TERM sh -ec");
        start.arg(self.server.start);
        let mut start = self.with_variables(start);
        start
            .stdin(Stdio::null())
            .stdout(File::create(&log)?)
            .stderr(File::options().append(true).open(&log)?);
        let mut running = Running(start.process_group(0).spawn().context("cannot start a shell")?);
        let begin = Instant::now();
        while !self.is_ready() {
            let has_ended = running.0.try_wait()?.is_some();
            if has_ended || begin.elapsed() > START {
                let said = std::fs::read_to_string(&log).unwrap_or_default();
                bail!("{} does not start: {}", self.server.name, said.trim());
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        Ok(running)
    }

    fn is_ready(&self) -> bool {
        match self.server.ready {
            "" => TcpStream::connect(("127.0.0.1", self.port)).is_ok(),
            ready => command::good(&mut self.script(ready), LIMIT).is_ok(),
        }
    }

    fn load_for(&self, time: Duration) -> Command {
        let mut load = self.script(self.server.load);
        load.env("TIME", time.as_secs().to_string());
        load
    }

    /// The number of requests per second under load for this time.
    pub fn load(&self, time: Duration) -> Result<f64> {
        rate(&command::good(&mut self.load_for(time), LIMIT)?.stdout)
    }

    /// Calls `act` while the load runs for this time.
    pub fn under_load<T>(&self, time: Duration, act: impl FnOnce() -> Result<T>) -> Result<T> {
        let load = Background::start(&mut self.load_for(time))?;
        let done = act()?;
        rate(&command::well(load.wait(LIMIT)?, "load")?.stdout)?;
        Ok(done)
    }
}

fn rate(said: &str) -> Result<f64> {
    let rate: f64 = said.trim().parse().with_context(|| format!("no requests per second: {said}"))?;
    if rate <= 0.0 {
        bail!("no request was answered");
    }
    Ok(rate)
}

/// A running server. The server ends with all its processes when this value is dropped.
pub struct Running(Child);

impl Running {
    pub fn pid(&self) -> u32 {
        self.0.id()
    }

    fn signal(&self, name: &str) {
        let group = format!("-{}", self.pid());
        // If kill fails, there is no process left to end.
        drop(command::text(Command::new("kill").args(["-s", name, "--", &group])));
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.signal("TERM");
        let begin = Instant::now();
        while begin.elapsed() < END && matches!(self.0.try_wait(), Ok(None)) {
            std::thread::sleep(Duration::from_millis(20));
        }
        self.signal("KILL");
        drop(self.0.wait());
    }
}
