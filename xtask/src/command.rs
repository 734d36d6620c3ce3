//! Runs other programs. Their output is shown only if they fail, their standard input is empty, and they have a time
//! limit.

use std::ffi::OsStr;
use std::io::Read;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use longpole_tests::{Ended, run};
use serde_json::Value;

use crate::workspace::Workspace;

/// The result of a program.
pub struct Outcome {
    /// The command's exit status; `None` if it exceeded its limit and was killed.
    pub status: Option<ExitStatus>,
    /// Standard output and standard error, in the order in which they were written.
    pub output: String,
}

impl Outcome {
    /// Whether the program ended by itself with code 0.
    pub fn success(&self) -> bool {
        self.status.is_some_and(|status| status.success())
    }

    /// A description of how the program ended.
    pub fn ending(&self) -> String {
        self.status.map_or_else(|| "ran past its time limit".into(), |status| status.to_string())
    }
}

/// A cargo command in the workspace, without the variables that an outer cargo or the user's shell would add.
pub fn cargo(workspace: &Workspace) -> Command {
    let mut command = Command::new("cargo");
    command.current_dir(&workspace.root);
    // RUSTUP_TOOLCHAIN stays: it names the pinned toolchain with which xtask itself was started.
    for variable in ["RUSTFLAGS", "CARGO_ENCODED_RUSTFLAGS", "CARGO_MANIFEST_DIR", "CARGO_MANIFEST_PATH"] {
        command.env_remove(variable);
    }
    command
}

/// A command with arguments that contain no blanks.
pub fn line(program: impl AsRef<OsStr>, words: &str) -> Command {
    let mut command = Command::new(program);
    command.args(words.split_whitespace());
    command
}

/// Runs a command to its end or to the limit. Both output streams are collected in one text.
///
/// # Errors
/// The program cannot be started.
pub fn capture(command: &mut Command, limit: Duration) -> Result<Outcome> {
    let name = command.get_program().to_string_lossy().into_owned();
    let (mut reader, writer) = std::io::pipe().context("pipe")?;
    let copy = writer.try_clone().context("pipe")?;
    command.stdin(Stdio::null()).stdout(writer).stderr(copy);
    let mut child = command.spawn().with_context(|| format!("cannot start {name}"))?;
    // The command contains the writing ends of the pipe. If they stayed open, the reader would never see the end.
    command.stdout(Stdio::null()).stderr(Stdio::null());

    let (sender, receiver) = mpsc::channel::<Vec<u8>>();
    std::thread::spawn(move || {
        let mut buffer = [0; 8192];
        while let Ok(length @ 1..) = reader.read(&mut buffer) {
            if sender.send(buffer[..length].to_vec()).is_err() {
                break;
            }
        }
    });
    let end = Instant::now() + limit;
    let mut bytes = Vec::new();
    let mut status = None;
    let mut last_call = None;
    loop {
        match receiver.recv_timeout(Duration::from_millis(50)) {
            Ok(chunk) => bytes.extend(chunk),
            Err(mpsc::RecvTimeoutError::Disconnected) => break,
            // A process that the program left running may keep the pipe open. By now, the program's own output has
            // arrived.
            Err(mpsc::RecvTimeoutError::Timeout) if last_call.is_some_and(|call| Instant::now() >= call) => {
                break;
            }
            Err(mpsc::RecvTimeoutError::Timeout) => {}
        }
        if status.is_none() {
            status = child.try_wait().context("wait")?;
            last_call = status.map(|_| Instant::now() + Duration::from_secs(2));
        }
        if status.is_none() && Instant::now() >= end {
            child.kill().context("kill")?;
            child.wait().context("wait")?;
            return Ok(Outcome { status: None, output: String::from_utf8_lossy(&bytes).into_owned() });
        }
    }
    let status = match status {
        Some(status) => status,
        None => child.wait().context("wait")?,
    };
    Ok(Outcome { status: Some(status), output: String::from_utf8_lossy(&bytes).into_owned() })
}

/// Runs a command that must succeed. Its output is shown only if it does not.
///
/// # Errors
/// The command cannot be started, or ends with another code than 0. `what` names it in the message.
pub fn must(command: &mut Command, what: &str) -> Result<()> {
    let outcome = capture(command, Duration::from_secs(3600))?;
    if !outcome.success() {
        eprint!("{}", outcome.output);
        bail!("{what} failed: {}", outcome.ending());
    }
    Ok(())
}

/// The standard output of a command that must succeed, without white space at both ends.
///
/// # Errors
/// The command cannot be started, or ends with another code than 0.
pub fn text(command: &mut Command) -> Result<String> {
    let name = format!("{command:?}");
    let output = command.stdin(Stdio::null()).output().with_context(|| format!("cannot start {name}"))?;
    if !output.status.success() {
        bail!("{name}: {}: {}", output.status, String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// Returns `ended` if its code is 0; `name` is the program's name in errors.
///
/// # Errors
///
/// The program has ended in another way.
pub fn well(ended: Ended, name: &str) -> Result<Ended> {
    if ended.code != Some(0) {
        bail!("{name} ended with {:?}: {}", ended.code.or(ended.signal), ended.stderr.trim());
    }
    Ok(ended)
}

/// Runs a program that must end with code 0.
///
/// # Errors
/// The program cannot be started, does not end in time, or ends in another way.
pub fn good(command: &mut Command, limit: Duration) -> Result<Ended> {
    let name = command.get_program().display().to_string();
    well(run(command, limit).with_context(|| name.clone())?, &name)
}

/// Runs a program as [`good`] does. Returns the elapsed seconds.
///
/// # Errors
/// Those of [`good`].
pub fn seconds(command: &mut Command, limit: Duration) -> Result<f64> {
    let began = Instant::now();
    good(command, limit)?;
    Ok(began.elapsed().as_secs_f64())
}

/// Runs a program as [`good`] does. Returns its output, which must be JSON.
///
/// # Errors
/// Those of [`good`], or output that is not JSON.
pub fn json(command: &mut Command, limit: Duration) -> Result<Value> {
    let said = good(command, limit)?.stdout;
    serde_json::from_str(&said).with_context(|| format!("{command:?} says no JSON"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use longpole_tests::shell;

    #[test]
    fn capture_returns_both_streams_and_the_exit_code() {
        let outcome = capture(&mut shell("echo a; echo b >&2; exit 3"), Duration::from_secs(60)).unwrap();
        assert_eq!(outcome.output, "a\nb\n");
        assert_eq!(outcome.status.and_then(|status| status.code()), Some(3));
        assert!(!outcome.success());
    }

    #[test]
    fn a_program_past_its_limit_is_killed() {
        let outcome = capture(&mut shell("echo here; exec sleep 600"), Duration::from_millis(300)).unwrap();
        assert_eq!(outcome.output, "here\n");
        assert!(outcome.status.is_none());
    }

    #[test]
    fn capture_does_not_wait_for_a_process_left_behind() {
        let start = Instant::now();
        let outcome = capture(&mut shell("sleep 30 & echo gone"), Duration::from_secs(60)).unwrap();
        assert!(outcome.success());
        assert!(start.elapsed() < Duration::from_secs(20));
    }
}
