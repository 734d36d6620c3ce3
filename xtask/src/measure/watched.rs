//! Time and memory of a program that runs under watch.

use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

/// Result of a program that ran under watch.
pub struct Watched {
    /// `None`: the program was killed at the limit.
    pub status: Option<ExitStatus>,
    /// Seconds from its start to its end.
    pub seconds: f64,
    /// Its largest memory, KiB.
    pub peak_kib: u64,
}

impl Watched {
    /// Its largest memory, in megabytes.
    pub fn peak_mb(&self) -> f64 {
        self.peak_kib as f64 * 1024.0 / 1e6
    }

    /// Itself, if it ended well.
    pub fn well(self, what: &Command) -> Result<Self> {
        ensure!(self.status.is_some_and(|status| status.success()), "{what:?}: {:?}", self.status);
        Ok(self)
    }
}

/// Runs a program to its end, or to the limit.
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

/// A figure of a process's memory in /proc/PID/status, KiB.
pub fn memory_kib(pid: u32, name: &str) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse().ok()
}
