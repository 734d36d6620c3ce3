//! Runs programs with a time limit, or in the background until the test ends.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How a program ended and what it wrote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended {
    /// The exit code; `None` if a signal ended the program.
    pub code: Option<i32>,
    /// The signal that ended the program.
    pub signal: Option<i32>,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
}

/// Runs a command to its end. Its standard input is empty.
///
/// # Errors
/// The command cannot be started, or does not end within `limit` and is killed.
pub fn run(command: &mut Command, limit: Duration) -> io::Result<Ended> {
    let mut background = Background::start(command)?;
    background.close_stdin();
    background.wait(limit)
}

/// Like `run`, but panics after an error.
pub fn must_run(command: &mut Command, limit: Duration) -> Ended {
    run(command, limit).unwrap_or_else(|error| panic!("{command:?}: {error}"))
}

/// A command that runs a line of shell.
pub fn shell(script: &str) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", script]);
    command
}

/// Waits until `is_so` returns true, for a minute at most. After that, panics with `what`.
pub fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(60);
    while !is_so() {
        assert!(Instant::now() < end, "in vain: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Whether the process has ended, even if its parent has not waited for it yet.
pub fn has_ended(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next());
    state.is_none_or(|state| matches!(state, 'Z' | 'X'))
}

/// A program in the background, which is killed when this value is dropped.
pub struct Background {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<String>,
    seen: String,
    stderr_lines: Receiver<String>,
    stderr_seen: String,
    readers: Vec<JoinHandle<()>>,
    status: Option<ExitStatus>,
}

impl Background {
    /// Starts a command whose three standard streams are connected to the test.
    ///
    /// # Errors
    /// The command cannot be started.
    pub fn start(command: &mut Command) -> io::Result<Self> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn()?;
        let stdin = child.stdin.take();
        let mut readers = Vec::new();
        let lines = reader(child.stdout.take(), &mut readers);
        let stderr_lines = reader(child.stderr.take(), &mut readers);
        Ok(Self {
            child,
            stdin,
            lines,
            seen: String::new(),
            stderr_lines,
            stderr_seen: String::new(),
            readers,
            status: None,
        })
    }

    /// Like `start`, but panics after an error.
    pub fn must_start(command: &mut Command) -> Self {
        Self::start(command).unwrap_or_else(|error| panic!("{command:?}: {error}"))
    }

    /// The program's process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Closes the program's standard input.
    pub fn close_stdin(&mut self) {
        self.stdin = None;
    }

    /// Sends a line to the program's standard input.
    ///
    /// # Errors
    /// The program has closed its input.
    pub fn say(&mut self, line: &str) -> io::Result<()> {
        match &mut self.stdin {
            Some(stdin) => writeln!(stdin, "{line}").and_then(|()| stdin.flush()),
            None => Err(io::Error::other("standard input is closed")),
        }
    }

    /// The next line of the program's standard output.
    ///
    /// # Errors
    /// No line comes within `limit`.
    pub fn line(&mut self, limit: Duration) -> io::Result<String> {
        match self.lines.recv_timeout(limit) {
            Ok(line) => {
                self.seen.push_str(&line);
                Ok(line.trim_end().to_owned())
            }
            Err(error) => Err(io::Error::other(format!("no line on standard output: {error}"))),
        }
    }

    /// Waits for a line on the program's standard error that contains `text`.
    ///
    /// # Errors
    /// No such line comes within `limit`. The error contains what the program wrote instead.
    pub fn wait_for_stderr(&mut self, text: &str, limit: Duration) -> io::Result<String> {
        let end = Instant::now() + limit;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            match self.stderr_lines.recv_timeout(left) {
                Ok(line) => {
                    self.stderr_seen.push_str(&line);
                    if line.contains(text) {
                        return Ok(line.trim_end().to_owned());
                    }
                }
                Err(error) => {
                    let said = &self.stderr_seen;
                    return Err(io::Error::other(format!(
                        "no '{text}' on standard error: {error}; instead:\n{said}"
                    )));
                }
            }
        }
    }

    /// Whether the program still runs.
    ///
    /// # Errors
    /// The operating system does not answer.
    pub fn is_running(&mut self) -> io::Result<bool> {
        if self.status.is_none() {
            self.status = self.child.try_wait()?;
        }
        Ok(self.status.is_none())
    }

    /// Sends a signal by its name, such as `INT`.
    ///
    /// # Errors
    /// The process does not exist any more.
    pub fn signal(&self, name: &str) -> io::Result<()> {
        let status =
            Command::new("kill").arg(format!("-{name}")).arg("--").arg(self.pid().to_string()).status()?;
        if status.success() { Ok(()) } else { Err(io::Error::other(format!("kill -{name}: {status}"))) }
    }

    /// Waits for the end of the program.
    ///
    /// # Errors
    /// The program does not end within `limit`. Then the program is killed, and the error contains what it wrote.
    pub fn wait(mut self, limit: Duration) -> io::Result<Ended> {
        let end = Instant::now() + limit;
        while self.is_running()? {
            if Instant::now() >= end {
                self.child.kill()?;
                self.child.wait()?;
                self.drain();
                return Err(io::Error::other(format!(
                    "still running after {limit:?}; standard output:\n{}\nstandard error:\n{}",
                    self.seen, self.stderr_seen
                )));
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        self.drain();
        let status = self.status.unwrap_or_default();
        Ok(Ended {
            code: status.code(),
            signal: status.signal(),
            stdout: std::mem::take(&mut self.seen),
            stderr: std::mem::take(&mut self.stderr_seen),
        })
    }

    /// Collects the rest of the output. Waits at most 2 s, because a process that the program left behind may hold the
    /// streams open.
    fn drain(&mut self) {
        let end = Instant::now() + Duration::from_secs(2);
        while !self.readers.iter().all(JoinHandle::is_finished) && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(1));
        }
        self.seen.extend(self.lines.try_iter());
        self.stderr_seen.extend(self.stderr_lines.try_iter());
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        if self.status.is_none() {
            // Killing fails if the program has already ended, so errors are ignored.
            drop(self.child.kill());
            drop(self.child.wait());
        }
    }
}

fn reader(stream: Option<impl Read + Send + 'static>, readers: &mut Vec<JoinHandle<()>>) -> Receiver<String> {
    let (sender, receiver) = mpsc::channel();
    if let Some(stream) = stream {
        readers.push(std::thread::spawn(move || {
            let mut stream = BufReader::new(stream);
            let mut line = Vec::new();
            while stream.read_until(b'\n', &mut line).is_ok_and(|length| length > 0) {
                if sender.send(String::from_utf8_lossy(&line).into_owned()).is_err() {
                    break;
                }
                line.clear();
            }
        }));
    }
    receiver
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn run_returns_the_code_the_signal_and_both_streams() {
        let ended = run(&mut shell("echo out; echo err >&2; exit 7"), Duration::from_secs(60)).unwrap();
        assert_eq!((ended.code, ended.signal), (Some(7), None));
        assert_eq!((ended.stdout.as_str(), ended.stderr.as_str()), ("out\n", "err\n"));
        let ended = run(&mut shell("kill -USR1 $$"), Duration::from_secs(60)).unwrap();
        assert_eq!((ended.code, ended.signal), (None, Some(10)));
    }

    #[test]
    fn run_of_a_program_that_does_not_end_is_an_error_with_its_output() {
        let error = run(&mut shell("echo here; exec sleep 600"), Duration::from_millis(300)).unwrap_err();
        assert!(error.to_string().contains("here"));
    }

    #[test]
    fn a_background_program_gets_lines_and_its_output_can_be_awaited() {
        let mut cat = Background::start(&mut shell("cat; echo end >&2")).unwrap();
        cat.say("a").unwrap();
        assert_eq!(cat.line(Duration::from_secs(60)).unwrap(), "a");
        cat.close_stdin();
        cat.wait_for_stderr("end", Duration::from_secs(60)).unwrap();
        assert_eq!(cat.wait(Duration::from_secs(60)).unwrap().stdout, "a\n");
    }

    #[test]
    fn a_dropped_background_program_is_killed() {
        let sleeper = Background::start(&mut shell("exec sleep 600")).unwrap();
        let folder = format!("/proc/{}", sleeper.pid());
        drop(sleeper);
        assert!(!std::path::Path::new(&folder).exists());
    }
}
