//! Starts a command so that it is recorded from its first instruction on.

use super::at_start::AtStart;
use super::command;
use super::gate::{self, Failure, READY, Release};
use super::limits;
use crate::target::machine::cpus::{self, CpuList};
use recording::SudoUser;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;
use symbols::safe;

/// How long the gate may take to report that it waits for its release.
const GATE_PATIENCE: Duration = Duration::from_secs(30);

/// Starts commands held at a gate.
#[derive(Debug)]
pub struct Launch;

/// Options for starting a command.
#[derive(Debug)]
pub struct LaunchOptions {
    /// Under sudo: run the command as root, not as the user who called sudo.
    pub keep_root: bool,
    /// The user who called sudo, if longpole runs under sudo.
    pub sudo_user: Option<SudoUser>,
    /// The command's standard input.
    pub stdin: ChildStream,
    /// The command's standard output.
    pub stdout: ChildStream,
    /// The command's standard error.
    pub stderr: ChildStream,
    /// The only CPUs that the command may use; `None`: the same as longpole.
    pub cpus: Option<CpuList>,
    /// The program that has the subcommand `__gate`: longpole itself.
    pub gate_program: PathBuf,
    /// longpole's descriptors that the command inherits under the same numbers. They must stay open until it has
    /// started.
    pub inherited: Vec<RawFd>,
}

impl Default for LaunchOptions {
    fn default() -> LaunchOptions {
        LaunchOptions {
            keep_root: false,
            sudo_user: SudoUser::from_environment(),
            stdin: ChildStream::Inherit,
            stdout: ChildStream::Inherit,
            stderr: ChildStream::Inherit,
            cpus: None,
            gate_program: PathBuf::from("/proc/self/exe"),
            inherited: Vec::new(),
        }
    }
}

/// Where a standard stream of the command leads.
#[derive(Debug)]
pub enum ChildStream {
    /// To the same file as longpole's own stream.
    Inherit,
    /// The command's stream is `/dev/null`.
    Null,
    /// To an open file (`top` keeps the command's output off its screen).
    File(File),
}

impl From<ChildStream> for Stdio {
    fn from(stream: ChildStream) -> Stdio {
        match stream {
            ChildStream::Inherit => Stdio::inherit(),
            ChildStream::Null => Stdio::null(),
            ChildStream::File(file) => Stdio::from(file),
        }
    }
}

/// Why a command could not be started.
#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    /// No such file exists, neither by path nor in PATH.
    #[error("cannot find the command {}", safe(&command.to_string_lossy()))]
    NotFound {
        /// The command's name.
        command: OsString,
    },
    /// The file exists, but it cannot be executed.
    #[error("cannot execute {}: {why}", safe(&command.to_string_lossy()))]
    NotExecutable {
        /// The command's name.
        command: OsString,
        /// Why the file cannot be executed.
        why: String,
    },
    /// Becoming the user who called sudo failed.
    #[error("cannot run the command as user {uid}: {why}")]
    User {
        /// The user's id.
        uid: u32,
        /// Why the command cannot run as this user.
        why: String,
    },
    /// longpole's own part failed.
    #[error("cannot start a process for the command: {why}")]
    Gate {
        /// Why the gate failed.
        why: String,
    },
}

impl LaunchError {
    /// What the user can do about the error.
    pub fn hint(&self) -> &'static str {
        match self {
            LaunchError::NotFound { .. } => "check the spelling; start a program in this folder as ./NAME",
            LaunchError::NotExecutable { .. } => "give a program or a script that you can run yourself",
            LaunchError::User { .. } => "add --keep-root to run the command as root",
            LaunchError::Gate { .. } => {
                "start the command yourself and attach to it: `longpole record -p PID`"
            }
        }
    }
}

/// A child process that waits at the gate, or has passed it. If the value is dropped before [`GatedChild::release`],
/// the command never runs; if it is dropped later, the command runs on.
#[derive(Debug)]
pub struct GatedChild {
    child: Child,
    socket: Option<UnixStream>,
    release: Release,
    name: OsString,
    binary: Option<PathBuf>,
}

impl Launch {
    /// Starts a process for the command and holds it at the gate. The PID is final: the command will run in this
    /// process.
    pub fn gated(command: &[OsString], options: LaunchOptions) -> Result<GatedChild, LaunchError> {
        let gate_error = |error: io::Error| LaunchError::Gate { why: error.to_string() };
        let name = command.first().cloned().unwrap_or_default();
        let search = std::env::var_os("PATH");
        let program = command::resolve(&name, search.as_deref())?;
        let binary = command::binary_of(&program, search.as_deref());
        let user = options.sudo_user.filter(|_| !options.keep_root);

        let streams = [&options.stdin, &options.stdout, &options.stderr];
        let led = (0..).zip(streams).filter(|(_, stream)| !matches!(stream, ChildStream::Inherit));
        let at_start = led.fold(AtStart::of_this_process(), |at_start, (fd, _)| at_start.with_open(fd));
        let (ours, theirs) = UnixStream::pair().map_err(gate_error)?;
        let fd = theirs.as_raw_fd();
        let mut gate = Command::new(&options.gate_program);
        gate.arg0("longpole").arg(gate::SUBCOMMAND).arg(fd.to_string()).arg("--").args(command);
        gate.stdin(options.stdin).stdout(options.stdout).stderr(options.stderr);
        let inherited = options.inherited;
        // SAFETY: between fork and exec the closure makes only fcntl calls, which are async-signal-safe.
        unsafe {
            gate.pre_exec(move || std::iter::once(&fd).chain(&inherited).try_for_each(|fd| keep_open(*fd)));
        }
        let child = match &options.cpus {
            Some(cpus) => cpus::on(cpus, || gate.spawn()),
            None => gate.spawn(),
        }
        .map_err(gate_error)?;
        drop(theirs);
        let release = Release { program, user, environment: Vec::new(), at_start };
        let mut gated = GatedChild { child, socket: Some(ours), release, name, binary };
        gated.wait_until_ready()?;
        limits::restore_descriptors(gated.pid()).map_err(gate_error)?;
        Ok(gated)
    }
}

/// Makes a descriptor survive the next exec of this process.
fn keep_open(fd: i32) -> io::Result<()> {
    // SAFETY: fcntl with F_SETFD only changes a flag of the descriptor.
    if unsafe { libc::fcntl(fd, libc::F_SETFD, 0) } == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

impl GatedChild {
    /// The process, before and after the exec.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The ELF file whose instructions will run after the exec, if that is known: it can be
    /// probed before [`GatedChild::release`].
    pub fn command_binary(&self) -> Option<&Path> {
        self.binary.as_deref()
    }

    /// Whether the command is a script: its interpreter may run another program next.
    pub fn is_script(&self) -> bool {
        let program = std::fs::canonicalize(&self.release.program).ok();
        self.binary.is_some() && program != self.binary
    }

    /// Adds variables to the command's environment, which is otherwise the same as longpole's. To be called before
    /// [`GatedChild::release`].
    pub fn add_to_environment(&mut self, variables: Vec<(OsString, OsString)>) {
        self.release.environment.extend(variables);
    }

    /// The name of the command, as the user wrote it.
    pub fn command_name(&self) -> &OsStr {
        &self.name
    }

    /// Lets the command run, and returns when exec has succeeded or failed. A second call does nothing.
    pub fn release(&mut self) -> Result<(), LaunchError> {
        let Some(mut socket) = self.socket.take() else { return Ok(()) };
        let mut answer = Vec::new();
        // A gate that a signal has ended cannot read or answer, and `wait` shows that. Otherwise an empty answer means
        // that exec has closed the socket.
        let heard = self.release.write(&socket).and_then(|()| socket.set_read_timeout(None));
        if heard.and_then(|()| socket.read_to_end(&mut answer)).is_err() {
            return Ok(());
        }
        let Some(failure) = Failure::from_bytes(&answer) else { return Ok(()) };
        // The gate ends now, and its failure is already known.
        let _ = self.child.wait();
        Err(self.failed(failure))
    }

    fn failed(&self, failure: Failure) -> LaunchError {
        let command = self.name.clone();
        let why = io::Error::from_raw_os_error(failure.errno).to_string();
        if failure.about_user {
            return LaunchError::User { uid: self.release.user.as_ref().map_or(0, |user| user.uid), why };
        }
        match failure.errno {
            libc::ENOENT if self.release.program.exists() => {
                LaunchError::NotExecutable { command, why: "its interpreter is missing".into() }
            }
            libc::ENOENT | libc::ENOTDIR => LaunchError::NotFound { command },
            _ => LaunchError::NotExecutable { command, why },
        }
    }

    /// Waits until the command ends, and returns its exit code or signal.
    pub fn wait(&mut self) -> io::Result<ExitStatus> {
        self.child.wait()
    }

    /// The command's exit code or signal, if the command has ended.
    pub fn try_wait(&mut self) -> io::Result<Option<ExitStatus>> {
        self.child.try_wait()
    }

    /// Sends the command a signal; does nothing once it has ended.
    pub fn signal(&mut self, signal: i32) -> io::Result<()> {
        if self.child.try_wait()?.is_some() {
            return Ok(());
        }
        let pid = libc::pid_t::try_from(self.child.id()).map_err(io::Error::other)?;
        // SAFETY: the child has not been waited for, so that its PID cannot belong to another process.
        if unsafe { libc::kill(pid, signal) } == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    fn wait_until_ready(&mut self) -> Result<(), LaunchError> {
        let Some(socket) = &mut self.socket else { return Ok(()) };
        let mut byte = [0u8];
        let heard = socket.set_read_timeout(Some(GATE_PATIENCE)).and_then(|()| socket.read_exact(&mut byte));
        match heard {
            Ok(()) if byte == [READY] => Ok(()),
            Ok(()) => Err(LaunchError::Gate { why: "the gate answers nonsense".into() }),
            Err(error) => Err(LaunchError::Gate { why: format!("the gate does not answer ({error})") }),
        }
    }
}

impl Drop for GatedChild {
    fn drop(&mut self) {
        if self.socket.take().is_some() {
            // Without its socket the gate ends by itself; a gate that never worked must be killed.
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}
