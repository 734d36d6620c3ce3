//! The process that holds links of breakpoints: `longpole __links`, started by [`super::link_keeper`] with a socket as
//! its standard input.
//!
//! If the process that removes breakpoints is killed, the kernel stops halfway and leaves the other breakpoints in the
//! target. So this process must not be killed together with longpole: it has its own name and process group, blocks
//! signals, and is the last to be chosen when memory runs out. It makes the links itself, so that longpole never owns
//! one, and removes them when longpole asks for it or has ended.

use std::{
    collections::BTreeMap,
    ffi::CStr,
    fs::File,
    io,
    os::{
        fd::{AsFd as _, AsRawFd as _, OwnedFd},
        unix::net::UnixStream,
    },
    thread::JoinHandle,
};

use serde::{Deserialize, Serialize};
use symbols::sandbox::{close_all_but_standard, wire};

use super::{batched_attach, single_links};
use crate::probe::kernel::{Link, close_together};

/// The hidden subcommand.
pub(super) const SUBCOMMAND: &str = "__links";
/// The process's name in process lists: `killall longpole` does not match it.
pub(super) const NAME: &str = "lp-links";
/// Largest size of a message, bytes: a link of a hundred thousand breakpoints.
const MOST_ASKED: usize = 8 << 20;
/// Threads that close links at the same time. Each mostly waits.
const CLOSED_AT_ONCE: usize = 128;

/// Messages from longpole.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Told {
    /// Use the kernel program that comes with the message for the next link.
    Program,
    /// Attach a link for one process to the file that comes with the message. Only this message is answered.
    Attach {
        /// The process.
        pid: u32,
        /// The places of the breakpoints.
        points: Vec<Point>,
    },
    /// Close the link with this number.
    Close(u32),
}

/// The place of a breakpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Point {
    /// Offset in the file.
    pub(crate) offset: u64,
    /// The number that the kernel program gets.
    pub(crate) cookie: u64,
    /// Offset in the file of a counter that the kernel increments while the breakpoint is there; 0: none.
    pub(crate) semaphore: u64,
}

/// The number of a new link, or the kernel's error code.
pub(super) type Answer = Result<u32, i32>;

/// Runs the hidden subcommand that holds links, and returns its exit code. 125: a user typed the subcommand by hand.
pub fn hold_links() -> u8 {
    let Ok(stdin) = io::stdin().as_fd().try_clone_to_owned() else { return 125 };
    let socket = UnixStream::from(stdin);
    if socket.peer_addr().is_err() {
        return 125;
    }
    // The next call would close this copy of standard input, so it is copied again afterwards.
    drop(socket);
    close_all_but_standard();
    stay_alive();
    let Ok(stdin) = io::stdin().as_fd().try_clone_to_owned() else { return 125 };
    let mut held = Held::default();
    // Whatever ends the conversation, all links are closed before the process ends.
    let ended = held.serve(&UnixStream::from(stdin));
    held.close_all();
    u8::from(ended.is_err())
}

/// Protects the process from being killed, as far as possible. A failure makes it less safe, but is no error.
fn stay_alive() {
    if let Err(error) = rustix::thread::set_name(c"lp-links") {
        log::debug!("no name of its own: {error}");
    }
    let mut all = std::mem::MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: it fills a set that is there.
    unsafe { libc::sigfillset(all.as_mut_ptr()) };
    // SAFETY: it reads the set that was filled; later threads inherit the mask.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), std::ptr::null_mut()) };
    if let Err(error) = std::fs::write("/proc/self/oom_score_adj", "-1000") {
        log::debug!("not spared when memory runs out: {error}");
    }
}

/// The links that the process holds.
#[derive(Default)]
struct Held {
    /// Links by number; each has one breakpoint or many.
    links: BTreeMap<u32, Vec<OwnedFd>>,
    closing: Vec<JoinHandle<()>>,
    last: u32,
}

impl Held {
    /// Follows longpole's messages until longpole has ended.
    fn serve(&mut self, socket: &UnixStream) -> io::Result<()> {
        let mut program = None;
        while let Some((told, file)) = wire::receive::<Told>(socket, MOST_ASKED, None)? {
            match (told, file) {
                (Told::Program, file) => program = file,
                (Told::Attach { pid, points }, Some(file)) => {
                    let linked = match &program {
                        Some(program) => {
                            self.attach(&Attaching { program, file: &file, pid, points: &points })
                        }
                        None => Err(io::ErrorKind::InvalidInput.into()),
                    };
                    let answer: Answer = linked.map_err(|error| error.raw_os_error().unwrap_or(libc::EINVAL));
                    wire::send(socket, &answer, None, None)?;
                }
                (Told::Close(number), _) => {
                    let links = self.links.remove(&number).unwrap_or_default();
                    self.close(links);
                }
                (Told::Attach { .. }, None) => return Err(io::ErrorKind::InvalidData.into()),
            }
        }
        Ok(())
    }

    /// Attaches all of these breakpoints or none, and holds their links under one number.
    fn attach(&mut self, attaching: &Attaching<'_>) -> io::Result<u32> {
        let mut links = Vec::new();
        match attaching.attach(&mut links) {
            Ok(()) => Ok(self.hold(links)),
            Err(error) => {
                self.close(links);
                Err(error)
            }
        }
    }

    fn hold(&mut self, links: Vec<OwnedFd>) -> u32 {
        self.last = self.last.wrapping_add(1);
        self.links.insert(self.last, links);
        self.last
    }

    fn close(&mut self, links: Vec<OwnedFd>) {
        self.closing.retain(|thread| !thread.is_finished());
        self.closing.extend(close_together(in_parts(links)));
    }

    /// Closes all links and waits until the last one is closed: the end of the process would interrupt the threads that
    /// close them.
    fn close_all(&mut self) {
        let links = std::mem::take(&mut self.links);
        self.close(links.into_values().flatten().collect());
        for thread in self.closing.drain(..) {
            let _ = thread.join();
        }
    }
}

/// `union bpf_attr` for `BPF_LINK_CREATE` in the form for `BPF_TRACE_UPROBE_MULTI` (include/uapi/linux/bpf.h).
#[repr(C)]
struct CreateLink {
    program: i32,
    target: u32,
    attach_type: u32,
    flags: u32,
    path: u64,
    offsets: u64,
    reference_counters: u64,
    cookies: u64,
    count: u32,
    multi_flags: u32,
    pid: u32,
    unused: u32,
}

/// Divides links among the threads that may close them at the same time.
fn in_parts(links: Vec<OwnedFd>) -> Vec<Link> {
    let mut parts: Vec<Vec<OwnedFd>> = (0..links.len().min(CLOSED_AT_ONCE)).map(|_| Vec::new()).collect();
    for (number, link) in links.into_iter().enumerate() {
        parts[number % CLOSED_AT_ONCE].push(link);
    }
    parts.into_iter().map(|part| Box::new(part) as Link).collect()
}

/// Breakpoints to be attached to one process.
pub(super) struct Attaching<'a> {
    pub(super) program: &'a File,
    pub(super) file: &'a File,
    pub(super) pid: u32,
    pub(super) points: &'a [Point],
}

impl Attaching<'_> {
    /// Adds the links to `made`. If one fails, the links that were made before are in `made`, too.
    fn attach(&self, made: &mut Vec<OwnedFd>) -> io::Result<()> {
        let path = std::ffi::CString::new(format!("/proc/self/fd/{}", self.file.as_raw_fd()))?;
        let _quickly = batched_attach::with_high_priority();
        if single_links::are_needed() {
            return single_links::attach(self, &path, made);
        }
        made.push(self.common_link(&path)?);
        Ok(())
    }

    /// Attaches all breakpoints in a single link.
    fn common_link(&self, path: &CStr) -> io::Result<OwnedFd> {
        const BPF_LINK_CREATE: libc::c_int = 28;
        const BPF_TRACE_UPROBE_MULTI: u32 = 48;
        let all = |of: fn(&Point) -> u64| self.points.iter().map(of).collect::<Vec<u64>>();
        let (offsets, cookies) = (all(|point| point.offset), all(|point| point.cookie));
        let semaphores = all(|point| point.semaphore);
        // Without a list no breakpoint has a counter.
        let reference_counters = match semaphores.iter().any(|semaphore| *semaphore != 0) {
            true => semaphores.as_ptr().expose_provenance() as u64,
            false => 0,
        };
        let attributes = CreateLink {
            program: self.program.as_raw_fd(),
            target: 0,
            attach_type: BPF_TRACE_UPROBE_MULTI,
            flags: 0,
            path: path.as_ptr().expose_provenance() as u64,
            offsets: offsets.as_ptr().expose_provenance() as u64,
            reference_counters,
            cookies: cookies.as_ptr().expose_provenance() as u64,
            count: u32::try_from(offsets.len()).map_err(|_| io::ErrorKind::InvalidInput)?,
            multi_flags: 0,
            pid: self.pid,
            unused: 0,
        };
        // SAFETY: the attributes, and the path and the lists of `count` numbers that they point to, live until the call
        // returns; the kernel writes to none of them.
        let number = unsafe {
            libc::syscall(libc::SYS_bpf, BPF_LINK_CREATE, &raw const attributes, size_of::<CreateLink>())
        };
        single_links::owned(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Longpole's end of a conversation, and the thread that serves the other end. The conversation ends when the end
    /// is dropped.
    fn serving(mut held: Held) -> (UnixStream, JoinHandle<(io::Result<()>, usize)>) {
        let (here, there) = UnixStream::pair().expect("pair");
        let thread = std::thread::spawn(move || {
            let ended = held.serve(&there);
            let count = held.links.len();
            held.close_all();
            (ended, count)
        });
        (here, thread)
    }

    #[test]
    fn a_link_is_held_until_it_is_closed_or_longpole_is_gone() {
        let mut held = Held::default();
        let (one, its_end) = UnixStream::pair().expect("pair");
        let (another, other_end) = UnixStream::pair().expect("pair");
        let number = held.hold(vec![one.into()]);
        held.hold(vec![another.into()]);
        let (longpole, thread) = serving(held);
        let closed = |mut end: &UnixStream| io::Read::read(&mut end, &mut [0]).is_ok_and(|bytes| bytes == 0);
        wire::send(&longpole, &Told::Close(number), None, None).expect("sent");
        wire::send(&longpole, &Told::Close(77), None, None).expect("there is none of that number");
        assert!(closed(&its_end));
        drop(longpole);
        assert!(closed(&other_end));
        let (ended, left) = thread.join().expect("ended");
        assert_eq!((ended.is_ok(), left), (true, 1));
    }

    #[test]
    fn a_refused_attach_returns_the_kernel_s_error_number() {
        let (longpole, thread) = serving(Held::default());
        let file = File::open("/proc/self/exe").expect("program");
        let attach =
            || Told::Attach { pid: 1, points: vec![Point { offset: 0x40, cookie: 7, semaphore: 0 }] };
        for with_program in [false, true] {
            if with_program {
                wire::send(&longpole, &Told::Program, Some(&file), None).expect("sent");
            }
            wire::send(&longpole, &attach(), Some(&file), None).expect("sent");
            let (answer, _) = wire::receive::<Answer>(&longpole, 99, None).expect("told").expect("open");
            assert!(answer.is_err_and(|code| code > 0), "a file is no kernel program");
        }
        // An impossible message ends the conversation.
        wire::send(&longpole, &attach(), None, None).expect("sent");
        let (ended, _) = thread.join().expect("ended");
        assert!(ended.is_err());
    }
}
