//! The gate: `longpole __gate FD -- CMD…` is a child that waits on a socket until its parent has attached every probe,
//! and then becomes the command in the same process.
//!
//! A hook between fork and exec cannot wait: `spawn` of the standard library itself waits for the exec. So the
//! child first becomes longpole again, which can wait.
//!
//! On the socket, the gate sends `R`, and the parent answers with one release message. Then the socket closes because
//! exec has succeeded, or the gate sends the error. If the parent dies, the socket closes, and the command never runs.

use super::account::{account, take_over_process};
use super::at_start::AtStart;
use recording::SudoUser;
use std::ffi::{OsStr, OsString};
use std::io::{self, Read, Write};
use std::os::fd::FromRawFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

/// The hidden subcommand.
pub const SUBCOMMAND: &str = "__gate";

/// The gate's message that it waits for its release.
pub(super) const READY: u8 = b'R';

/// Longest path accepted, as in the kernel.
const MAX_PATH: u32 = 4096;
/// Largest number of environment variables, and longest value, which is the kernel's limit.
const MAX_VARIABLES: u32 = 16;
const MAX_VALUE: u32 = 128 << 10;

/// Runs the hidden subcommand. Returns only if the command could not be run, with longpole's exit code: 127
/// not found, 126 not executable, 125 anything else.
pub fn run(fd: i32, command: &[OsString]) -> u8 {
    // An error here means that the parent has died, or that a user typed this by hand.
    wait_and_exec(fd, command).unwrap_or(125)
}

/// The parent's message that the command may run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Release {
    /// The file to execute; the command's own name stays its first argument.
    pub program: PathBuf,
    /// The user to become before that.
    pub user: Option<SudoUser>,
    /// Variables to add to the command's environment. The gate itself, which is longpole, does not get them.
    pub environment: Vec<(OsString, OsString)>,
    /// The signal mask and streams that the command must find, as longpole found them.
    pub at_start: AtStart,
}

impl Release {
    pub fn write(&self, mut to: impl Write) -> io::Result<()> {
        let path = self.program.as_os_str().as_bytes();
        let mut message = self.at_start.to_bytes().to_vec();
        message.push(u8::from(self.user.is_some()));
        let (uid, gid) = self.user.as_ref().map_or((0, 0), |user| (user.uid, user.gid));
        let length = u32::try_from(path.len()).map_err(io::Error::other)?;
        for number in [uid, gid, length] {
            message.extend(number.to_le_bytes());
        }
        message.extend(path);
        message.extend(u32::try_from(self.environment.len()).map_err(io::Error::other)?.to_le_bytes());
        for text in self.environment.iter().flat_map(|(name, value)| [name, value]) {
            message.extend(u32::try_from(text.len()).map_err(io::Error::other)?.to_le_bytes());
            message.extend(text.as_bytes());
        }
        to.write_all(&message)
    }

    fn read(mut from: impl Read) -> io::Result<Release> {
        let mut at_start = [0u8; 9];
        from.read_exact(&mut at_start)?;
        let mut header = [0u8; 13];
        from.read_exact(&mut header)?;
        let number =
            |at: usize| u32::from_le_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
        let program = PathBuf::from(read_text(&mut from, number(9), MAX_PATH)?);
        let mut environment = Vec::new();
        let variables = read_number(&mut from)?;
        if variables > MAX_VARIABLES {
            return Err(io::Error::from_raw_os_error(libc::E2BIG));
        }
        for _ in 0..variables {
            let mut text = || {
                let length = read_number(&mut from)?;
                read_text(&mut from, length, MAX_VALUE)
            };
            environment.push((text()?, text()?));
        }
        Ok(Release {
            program,
            environment,
            at_start: AtStart::from_bytes(at_start),
            user: (header[0] == 1).then(|| SudoUser { uid: number(1), gid: number(5) }),
        })
    }
}

fn read_number(mut from: impl Read) -> io::Result<u32> {
    let mut bytes = [0u8; 4];
    from.read_exact(&mut bytes)?;
    Ok(u32::from_le_bytes(bytes))
}

fn read_text(mut from: impl Read, length: u32, most: u32) -> io::Result<OsString> {
    if length > most {
        return Err(io::Error::from_raw_os_error(libc::ENAMETOOLONG));
    }
    let mut text = vec![0u8; length as usize];
    from.read_exact(&mut text)?;
    Ok(OsString::from_vec(text))
}

/// Why the gate could not execute the command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Failure {
    /// Whether becoming the user failed, rather than running the command.
    pub about_user: bool,
    /// The kernel's error number.
    pub errno: i32,
}

impl Failure {
    fn new(about_user: bool, error: &io::Error) -> Failure {
        Failure { about_user, errno: error.raw_os_error().unwrap_or(libc::EINVAL) }
    }

    fn to_bytes(self) -> [u8; 5] {
        let [a, b, c, d] = self.errno.to_le_bytes();
        [u8::from(self.about_user), a, b, c, d]
    }

    pub fn from_bytes(bytes: &[u8]) -> Option<Failure> {
        let &[about_user, a, b, c, d] = bytes else { return None };
        Some(Failure { about_user: about_user == 1, errno: i32::from_le_bytes([a, b, c, d]) })
    }
}

fn wait_and_exec(fd: i32, command: &[OsString]) -> io::Result<u8> {
    let mut socket = adopt(fd)?;
    socket.write_all(&[READY])?;
    let release = Release::read(&mut socket)?;
    let became_user = release.user.as_ref().map_or(Ok(()), take_over_process);
    let failure = match became_user {
        Ok(()) => Failure::new(false, &exec(&release, command)),
        Err(error) => Failure::new(true, &error),
    };
    socket.write_all(&failure.to_bytes())?;
    Ok(match failure {
        Failure { about_user: true, .. } => 125,
        Failure { errno: libc::ENOENT | libc::ENOTDIR, .. } => 127,
        _ => 126,
    })
}

/// Takes over the socket that the parent left open for the gate, and makes the socket close on exec.
fn adopt(fd: i32) -> io::Result<UnixStream> {
    if fd <= 2 {
        return Err(io::Error::from_raw_os_error(libc::EBADF));
    }
    // SAFETY: fcntl with F_SETFD only changes a flag of a descriptor, or fails if there is none.
    if unsafe { libc::fcntl(fd, libc::F_SETFD, libc::FD_CLOEXEC) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor is open, and nothing else in this process knows it.
    let socket = unsafe { UnixStream::from_raw_fd(fd) };
    socket.peer_addr()?;
    Ok(socket)
}

/// Becomes the command. Returns only if that fails, with the error.
fn exec(release: &Release, command: &[OsString]) -> io::Error {
    let Some((name, arguments)) = command.split_first() else {
        return io::Error::from_raw_os_error(libc::ENOENT);
    };
    let mut program = Command::new(&release.program);
    program.arg0(name).args(arguments);
    // With the variables that sudo has set for root, the user's program would write into root's home folder.
    if let Some(account) = release.user.as_ref().and_then(account) {
        let name = OsStr::from_bytes(account.name.as_bytes());
        program.env("HOME", &account.home).env("USER", name).env("LOGNAME", name);
    }
    let at_start = release.at_start;
    // SAFETY: the closure makes only calls that are async-signal-safe.
    unsafe { program.pre_exec(move || at_start.restore()) };
    program.envs(release.environment.iter().map(|(name, value)| (name, value)));
    program.exec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_of_the_launch_gate_are_read_back_as_written() {
        for user in [None, Some(SudoUser { uid: 1000, gid: 0x0102_0304 })] {
            let environment = vec![("A".into(), "x y".into()), ("LD_PRELOAD".into(), OsString::new())];
            let release = Release {
                program: PathBuf::from("/bin/a b"),
                user,
                environment,
                at_start: AtStart::from_bytes([1, 2, 3, 4, 5, 6, 7, 8, 9]),
            };
            let mut bytes = Vec::new();
            release.write(&mut bytes).unwrap();
            assert_eq!(Release::read(&bytes[..]).unwrap(), release);
            for cut in 0..bytes.len() {
                assert!(Release::read(&bytes[..cut]).is_err(), "{cut}");
            }
        }
        assert!(Release::read(&[0xff; 64][..]).is_err());
        let failure = Failure { about_user: true, errno: -7 };
        assert_eq!(Failure::from_bytes(&failure.to_bytes()), Some(failure));
        assert_eq!(Failure::from_bytes(&[1, 2]), None);
    }

    #[test]
    fn the_launch_gate_without_a_socket_runs_nothing() {
        assert_eq!(run(-1, &["true".into()]), 125);
        assert_eq!(run(0, &["true".into()]), 125);
        assert_eq!(run(1_000_000, &["true".into()]), 125);
    }
}
