//! Reactions to ^C and other signals, for attached and launched targets, and ending as the target has ended.

use rustix::process::{Resource, Rlimit, setrlimit};
use std::sync::atomic::{AtomicBool, Ordering};

/// How longpole came to its target: by launching or by attaching.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Relation {
    /// The target is a running process (`-p PID`).
    Attached,
    /// The target is a command (`-- CMD`).
    Launched {
        /// Whether longpole has a terminal, whose ^C then also reaches the command.
        terminal: bool,
    },
}

/// A reaction to a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reaction {
    /// End the recording now, and save it.
    Finish,
    /// The command has got the signal, too: go on until it ends.
    WaitForCommand,
    /// Send the signal to the command, then go on until that ends.
    Forward,
    /// Give up at once.
    Abort,
}

/// The reaction to SIGINT, SIGTERM, SIGHUP or SIGQUIT; `earlier` is the number of such signals before.
///
/// Attached: the first signal ends the recording and saves it, the second aborts (SIGTERM never does: it always saves).
/// Launched: a signal that ends longpole (SIGTERM, SIGHUP) ends the recording, and the command runs on. ^C
/// and SIGQUIT are for the command, which decides, as with `time`. The second one ends the recording even if the
/// command runs on, the third aborts.
pub fn react(signal: i32, relation: Relation, earlier: u32) -> Reaction {
    let patience = match relation {
        Relation::Attached => 0,
        Relation::Launched { .. } => 1,
    };
    match relation {
        Relation::Launched { terminal } if earlier == 0 && matches!(signal, libc::SIGINT | libc::SIGQUIT) => {
            if terminal {
                Reaction::WaitForCommand
            } else {
                Reaction::Forward
            }
        }
        _ if earlier > patience && signal != libc::SIGTERM => Reaction::Abort,
        _ => Reaction::Finish,
    }
}

/// Whether this process has a controlling terminal, whose ^C goes to all foreground processes.
pub fn has_terminal() -> bool {
    std::fs::File::open("/dev/tty").is_ok()
}

/// Whether there is a handler for signals. tokio's handler calls the one that was installed before it.
static LISTENS: AtomicBool = AtomicBool::new(false);

/// Notes that there is a handler for signals from now on: they end nothing by themselves.
pub fn now_listening() {
    LISTENS.store(true, Ordering::Relaxed);
}

/// From now on, a signal that ends this process before there is a handler prints a line about it. The handler stays
/// installed, so a further call, for a second recording in this process, changes nothing.
pub fn say_if_ended_early() {
    static FIRST: std::sync::Once = std::sync::Once::new();
    FIRST.call_once(say_until_somebody_listens);
}

fn say_until_somebody_listens() {
    extern "C" fn ended(signal: libc::c_int) {
        if LISTENS.load(Ordering::Relaxed) {
            return;
        }
        const TEXT: &[u8] = b"longpole: ended by a signal before the recording began: nothing is recorded\n";
        // SAFETY: it writes as many bytes as there are, and is async-signal-safe. A failure cannot be reported
        // anywhere.
        unsafe { libc::write(libc::STDERR_FILENO, TEXT.as_ptr().cast(), TEXT.len()) };
        // SAFETY: no pointer is involved, and the call is async-signal-safe.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
        // SAFETY: no pointer is involved, and the call is async-signal-safe. The signal is delivered when this handler
        // returns, and ends the process.
        unsafe { libc::raise(signal) };
    }
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT] {
        // SAFETY: the handler makes only async-signal-safe calls.
        let before = unsafe { libc::signal(signal, ended as *const () as libc::sighandler_t) };
        if before == libc::SIG_IGN {
            // SAFETY: no pointer is involved.
            unsafe { libc::signal(signal, libc::SIG_IGN) };
        }
    }
}

/// Makes writes past the file size limit (`ulimit -f`) fail from now on, instead of ending this process. A program that
/// is executed later gets the signal's original action.
pub fn survive_file_size_limit() {
    survive(libc::SIGXFSZ);
}

/// Prevents SIGUSR2, the signal to save a ring, from ending this process before there is a ring.
pub fn survive_early_saves() {
    survive(libc::SIGUSR2);
}

fn survive(signal: libc::c_int) {
    extern "C" fn nothing(_: libc::c_int) {}
    // SAFETY: the handler does nothing, which is async-signal-safe; exec restores the default action.
    let before = unsafe { libc::signal(signal, nothing as *const () as libc::sighandler_t) };
    if before == libc::SIG_IGN {
        // SAFETY: no pointer is involved.
        unsafe { libc::signal(signal, libc::SIG_IGN) };
    }
}

/// Makes this process ignore ^C from now on, since it is for the other programs of the terminal.
pub fn leave_interrupts_to_others() {
    // SAFETY: SIG_IGN runs no code that could do harm.
    unsafe { libc::signal(libc::SIGINT, libc::SIG_IGN) };
}

/// Ends this process by the signal that ended the command, so that a shell sees the same status as without longpole,
/// but without a core file of longpole's own. Returns if the signal does not kill the process; then the exit code is
/// 128 + signal.
pub fn end_by(signal: i32) {
    // If this fails, the only consequence is one more core file.
    let _ = setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) });
    // The call fails for SIGKILL, whose action is the default already, so its result is ignored.
    // SAFETY: the default action replaces a handler; no pointer is involved.
    unsafe { libc::signal(signal, libc::SIG_DFL) };
    let mut set = std::mem::MaybeUninit::<libc::sigset_t>::zeroed();
    // SAFETY: `set` is a valid place for a signal set.
    unsafe { libc::sigemptyset(set.as_mut_ptr()) };
    // SAFETY: `set` has been emptied, which makes it valid; a bad number only fails.
    unsafe { libc::sigaddset(set.as_mut_ptr(), signal) };
    // SAFETY: `set` is valid, and no old set is asked for.
    unsafe { libc::pthread_sigmask(libc::SIG_UNBLOCK, set.as_ptr(), std::ptr::null_mut()) };
    // SAFETY: raise takes a number only.
    unsafe { libc::raise(signal) };
}

#[cfg(test)]
mod tests {
    use super::*;
    use libc::{SIGHUP, SIGINT, SIGTERM};

    #[test]
    fn an_attached_recording_finishes_at_sigint_and_aborts_at_the_second() {
        assert_eq!(react(SIGINT, Relation::Attached, 0), Reaction::Finish);
        assert_eq!(react(SIGINT, Relation::Attached, 1), Reaction::Abort);
        assert_eq!(react(SIGTERM, Relation::Attached, 5), Reaction::Finish);
    }

    #[test]
    fn a_launched_recording_leaves_the_first_sigint_to_the_command() {
        let here = Relation::Launched { terminal: true };
        let nowhere = Relation::Launched { terminal: false };
        assert_eq!(react(SIGINT, here, 0), Reaction::WaitForCommand);
        assert_eq!(react(SIGINT, nowhere, 0), Reaction::Forward);
        assert_eq!(react(SIGTERM, here, 0), Reaction::Finish);
        assert_eq!(react(SIGHUP, nowhere, 0), Reaction::Finish);
        assert_eq!(react(SIGINT, here, 1), Reaction::Finish);
        assert_eq!(react(SIGINT, here, 2), Reaction::Abort);
        assert_eq!(react(SIGTERM, here, 9), Reaction::Finish);
    }
}
