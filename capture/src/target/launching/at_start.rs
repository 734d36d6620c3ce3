//! The signal mask, SIGPIPE's action and the closed standard streams with which longpole was started, so that a command
//! finds them as if it had been started without longpole. Before `main`, Rust's runtime ignores SIGPIPE and opens
//! closed standard streams, and its way of starting a process sets SIGPIPE's default action and an empty signal mask.

use std::io;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

static FLAGS: AtomicU8 = AtomicU8::new(0);
static BLOCKED: AtomicU64 = AtomicU64::new(0);

const IGNORES_PIPE: u8 = 1;

/// The state at the start of the process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct AtStart {
    /// Bit 0: SIGPIPE is ignored. Bits 1 to 3: descriptors 0 to 2 are closed.
    flags: u8,
    /// Blocked signals: bit n - 1 for signal n.
    blocked: u64,
}

/// The loader calls this function before `main`, so before Rust's runtime has changed anything.
#[used]
#[unsafe(link_section = ".init_array")]
static LOOK: extern "C" fn() = look;

extern "C" fn look() {
    let mut flags = 0;
    let mut action = std::mem::MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: nothing is changed, and there is room for the present action.
    let asked = unsafe { libc::sigaction(libc::SIGPIPE, std::ptr::null(), action.as_mut_ptr()) };
    // SAFETY: all bytes were 0 before, which is a valid value.
    let action = unsafe { action.assume_init() };
    if asked == 0 && action.sa_sigaction == libc::SIG_IGN {
        flags |= IGNORES_PIPE;
    }
    for fd in 0..3 {
        // SAFETY: it only reads a flag; there may be no such descriptor.
        if unsafe { libc::fcntl(fd, libc::F_GETFD) } < 0 {
            flags |= 2 << fd;
        }
    }
    let mut set = std::mem::MaybeUninit::<libc::sigset_t>::zeroed();
    // SAFETY: nothing is changed, and there is room for the present mask.
    unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, std::ptr::null(), set.as_mut_ptr()) };
    // SAFETY: all bytes were 0 before, which is a valid value.
    let set = unsafe { set.assume_init() };
    let mut blocked = 0;
    for signal in 1..=64 {
        // SAFETY: the set is valid; an invalid signal number is only an error.
        if unsafe { libc::sigismember(&raw const set, signal) } == 1 {
            blocked |= 1 << (signal - 1);
        }
    }
    FLAGS.store(flags, Ordering::Relaxed);
    BLOCKED.store(blocked, Ordering::Relaxed);
}

impl AtStart {
    /// The state at the start of this process.
    pub fn of_this_process() -> AtStart {
        AtStart { flags: FLAGS.load(Ordering::Relaxed), blocked: BLOCKED.load(Ordering::Relaxed) }
    }

    /// The same state, but with this standard stream open.
    pub fn with_open(self, fd: u8) -> AtStart {
        AtStart { flags: self.flags & !(2 << fd), ..self }
    }

    /// Restores the state. Makes only async-signal-safe calls, since it runs just before exec.
    ///
    /// # Errors
    /// A signal's action or the mask cannot be set.
    pub fn restore(self) -> io::Result<()> {
        if self.flags & IGNORES_PIPE != 0 {
            // SAFETY: no pointer is involved.
            if unsafe { libc::signal(libc::SIGPIPE, libc::SIG_IGN) } == libc::SIG_ERR {
                return Err(io::Error::last_os_error());
            }
        }
        let mut set = std::mem::MaybeUninit::<libc::sigset_t>::zeroed();
        // SAFETY: `set` is a valid place for a signal set.
        unsafe { libc::sigemptyset(set.as_mut_ptr()) };
        for signal in (1..=64).filter(|signal| self.blocked & (1 << (signal - 1)) != 0) {
            // SAFETY: `set` has been emptied, which makes it valid; a bad number only fails.
            unsafe { libc::sigaddset(set.as_mut_ptr(), signal) };
        }
        // SAFETY: `set` is valid, and no old set is asked for.
        let error = unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, set.as_ptr(), std::ptr::null_mut()) };
        if error != 0 {
            return Err(io::Error::from_raw_os_error(error));
        }
        for fd in (0..3).filter(|fd| self.flags & (2 << fd) != 0) {
            // SAFETY: our code does not use the descriptor between here and exec.
            unsafe { libc::close(fd) };
        }
        Ok(())
    }

    /// The state as bytes, to be sent to the gate.
    pub fn to_bytes(self) -> [u8; 9] {
        let mut bytes = [self.flags; 9];
        bytes[1..].copy_from_slice(&self.blocked.to_le_bytes());
        bytes
    }

    /// See [`AtStart::to_bytes`].
    pub fn from_bytes([flags, blocked @ ..]: [u8; 9]) -> AtStart {
        AtStart { flags, blocked: u64::from_le_bytes(blocked) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_state_at_start_is_read_back_as_written() {
        let all = AtStart { flags: 15, blocked: 0x8000_0000_0000_0201 };
        assert_eq!(AtStart::from_bytes(all.to_bytes()), all);
        assert_eq!(all.with_open(0).with_open(2).flags, 0b0101);
        assert_eq!(AtStart::of_this_process().flags & 4, 0, "tests have an output");
    }
}
