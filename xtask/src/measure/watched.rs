//! Runs a program and measures its time and its memory.

use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

/// The result of such a run.
pub struct Watched {
    /// The exit status; `None` if the program was killed at the limit.
    pub status: Option<ExitStatus>,
    /// Seconds from the program's start to its end.
    pub seconds: f64,
    /// The program's largest memory, in KiB.
    pub peak_kib: u64,
}

impl Watched {
    /// The program's largest memory, in megabytes.
    pub fn peak_mb(&self) -> f64 {
        self.peak_kib as f64 * 1024.0 / 1e6
    }

    /// The result, if the program ended with code 0.
    pub fn well(self, what: &Command) -> Result<Self> {
        ensure!(self.status.is_some_and(|status| status.success()), "{what:?}: {:?}", self.status);
        Ok(self)
    }
}

/// Runs a program to its end or to the limit.
pub fn watched(command: &mut Command, limit: Duration) -> Result<Watched> {
    let began = Instant::now();
    let start = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    let mut child = start.with_context(|| format!("cannot start {}", command.get_program().display()))?;
    let mut peak_kib = 0;
    let status = loop {
        peak_kib = peak_kib.max(memory_kib(child.id(), "VmHWM:").unwrap_or(0));
        if let Some(status) = child.try_wait()? {
            break Some(status);
        }
        if began.elapsed() > limit {
            child.kill()?;
            child.wait()?;
            break None;
        }
        std::thread::sleep(Duration::from_millis(1));
    };
    Ok(Watched { status, seconds: began.elapsed().as_secs_f64(), peak_kib })
}

/// A figure about a process's memory from /proc/PID/status, in KiB.
pub fn memory_kib(pid: u32, name: &str) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse().ok()
}
