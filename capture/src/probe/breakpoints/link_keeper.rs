//! Longpole's side of the process that holds links of breakpoints (`link_process`). The process is started for the first
//! link.

use std::{
    ffi::OsStr,
    fs::File,
    io,
    num::NonZeroU32,
    os::{
        fd::{BorrowedFd, OwnedFd},
        unix::{net::UnixStream, process::CommandExt as _},
    },
    path::PathBuf,
    process::{Child, Command, Stdio},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use symbols::sandbox::{Helper, wire};

use super::link_process::{Answer, NAME, Point, SUBCOMMAND, Told};

/// Largest size of an answer, bytes; an answer is a number.
const MOST_ANSWERED: usize = 64;
/// The message if the process has ended.
const GONE: &str = "the process that holds the probes (lp-links) has ended, so there are no probes any more";

/// Starts the process that holds the links, and communicates with it.
pub(crate) struct LinkKeeper {
    /// The program that knows the hidden subcommand.
    program: PathBuf,
    state: Mutex<State>,
}

enum State {
    NotYet,
    Running(Process),
    Ended,
}

struct Process {
    child: Child,
    socket: UnixStream,
    /// Counts the child's CPU time until the child is waited for.
    helper: Helper,
}

/// A link of breakpoints in a process, which is closed when this is dropped. Only [`LinkKeeper::finish`] waits for that.
pub(crate) struct HeldLink {
    keeper: Arc<LinkKeeper>,
    number: u32,
}

impl LinkKeeper {
    /// A keeper whose process will run `program`; `None`: longpole's own program.
    pub(crate) fn new(program: Option<PathBuf>) -> Arc<LinkKeeper> {
        let program = program.unwrap_or_else(|| PathBuf::from("/proc/self/exe"));
        Arc::new(LinkKeeper { program, state: Mutex::new(State::NotYet) })
    }

    /// Attaches the kernel program `program` to points of `file` in process `pid`.
    ///
    /// # Errors
    ///
    /// If the kernel refuses (the error has its code), or if there is no process to hold the link.
    pub(crate) fn attach(
        self: &Arc<Self>,
        program: BorrowedFd<'_>,
        file: &File,
        pid: NonZeroU32,
        points: impl Iterator<Item = Point>,
    ) -> io::Result<HeldLink> {
        let points = points.collect();
        let program = File::from(program.try_clone_to_owned()?);
        let mut state = self.state();
        if matches!(*state, State::NotYet) {
            *state = State::Running(Process::start(self.program.as_os_str())?);
        }
        let State::Running(process) = &*state else { return Err(io::Error::other(GONE)) };
        let told = Told::Attach { pid: pid.get(), points };
        let answer = process.ask(&program, file, &told).inspect_err(|error| log::debug!("{NAME}: {error}"));
        let number = answer.map_err(|_| io::Error::other(GONE))?.map_err(io::Error::from_raw_os_error)?;
        Ok(HeldLink { keeper: Arc::clone(self), number })
    }

    /// Whether the process that holds the links still runs.
    ///
    /// # Errors
    ///
    /// A message if it has ended.
    pub(crate) fn vouch(&self) -> Result<(), String> {
        let mut state = self.state();
        if let State::Running(process) = &mut *state
            && matches!(process.child.try_wait(), Ok(None))
        {
            return Ok(());
        }
        if matches!(*state, State::NotYet) {
            return Ok(());
        }
        *state = State::Ended;
        Err(GONE.to_owned())
    }

    /// Removes all breakpoints, and waits until the last one is removed.
    pub(crate) fn finish(&self) {
        let State::Running(process) = std::mem::replace(&mut *self.state(), State::Ended) else { return };
        let Process { mut child, socket, helper } = process;
        drop((socket, helper));
        if let Err(error) = child.wait() {
            log::debug!("{NAME}: {error}");
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for LinkKeeper {
    fn drop(&mut self) {
        self.finish();
    }
}

impl Process {
    fn start(program: &OsStr) -> io::Result<Process> {
        let (socket, theirs) = UnixStream::pair()?;
        let child = Command::new(program)
            .arg0(NAME)
            .arg(SUBCOMMAND)
            .current_dir("/")
            // The process must not get the terminal's ^C.
            .process_group(0)
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        let helper = Helper::of(child.id());
        Ok(Process { child, socket, helper })
    }

    fn ask(&self, program: &File, file: &File, told: &Told) -> io::Result<Answer> {
        wire::send(&self.socket, &Told::Program, Some(program), None)?;
        wire::send(&self.socket, told, Some(file), None)?;
        let answer = wire::receive(&self.socket, MOST_ANSWERED, None)?;
        answer.map(|(answer, _)| answer).ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
    }
}

impl Drop for HeldLink {
    fn drop(&mut self) {
        if let State::Running(process) = &*self.keeper.state()
            && let Err(error) = wire::send(&process.socket, &Told::Close(self.number), None, None)
        {
            log::debug!("{NAME}: {error}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Attaching must neither wait for ever nor end longpole by SIGPIPE.
    #[test]
    fn a_link_process_that_ends_at_once_is_an_error() {
        let keeper = LinkKeeper::new(Some(PathBuf::from("/bin/true")));
        assert_eq!(keeper.vouch(), Ok(()), "nothing was attached yet");
        let file = File::open("/proc/self/exe").expect("program");
        let attach = || {
            let points = [Point { offset: 0x40, cookie: 1, semaphore: 0 }].into_iter();
            keeper.attach(std::os::fd::AsFd::as_fd(&file), &file, NonZeroU32::MIN, points)
        };
        assert_eq!(attach().map(drop).expect_err("nobody answers").to_string(), GONE);
        while keeper.vouch().is_ok() {
            std::thread::yield_now();
        }
        assert_eq!(attach().map(drop).expect_err("nobody is there").to_string(), GONE);
        let keeper = LinkKeeper::new(Some(PathBuf::from("/not/there")));
        let points = std::iter::empty();
        let error = keeper.attach(std::os::fd::AsFd::as_fd(&file), &file, NonZeroU32::MIN, points);
        assert_eq!(error.map(drop).map_err(|error| error.kind()), Err(io::ErrorKind::NotFound));
    }
}
