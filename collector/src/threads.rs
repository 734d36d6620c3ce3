//! Threads that report a failure to the main loop.

use capture::target::take_short_turns;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread::{Builder, JoinHandle};
use tokio::sync::mpsc::UnboundedSender;

/// A thread of longpole that has failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The thread's name, for people.
    pub part: &'static str,
    /// The message.
    pub text: String,
}

/// Starts a named thread. If it panics, the main loop gets a message and ends in an orderly way: it restores the terminal
/// and closes the file. `hold` is dropped only after the message: a thread that waits for the other end of `hold` must not
/// take the failure for an ordinary end.
pub fn spawn<T: Send + 'static, M: From<Failure> + Send + 'static>(
    part: &'static str,
    news: UnboundedSender<M>,
    hold: impl Send + 'static,
    work: impl FnOnce() -> T + Send + 'static,
) -> io::Result<JoinHandle<T>> {
    // The kernel keeps 15 bytes of a thread's name.
    Builder::new().name(format!("lp-{part}")).spawn(move || {
        let _hold = hold;
        match catch_unwind(AssertUnwindSafe(work)) {
            Ok(value) => value,
            Err(panic) => {
                let text = panic_text(&*panic);
                // The main loop may have ended already.
                let _ = news.send(Failure { part, text }.into());
                std::panic::resume_unwind(panic)
            }
        }
    })
}

/// Gives the calling thread priority over ordinary ones (nice −10, if allowed). On a busy machine, rings fill up in the
/// time for which an ordinary thread waits for a CPU. The ring reader needs little CPU time.
pub fn before_others() {
    capture::probe::count_this_thread();
    take_short_turns();
    if let Err(error) = rustix::process::setpriority_process(None, NICE) {
        log::debug!("no higher priority: {error}");
    }
}

/// Gives the calling thread lower priority: for much work that is not urgent. The recorded program's threads go first, and
/// soon get their CPU back.
pub fn behind_others() {
    take_short_turns();
    if let Err(error) = rustix::process::setpriority_process(None, PATIENT) {
        log::debug!("no lower priority: {error}");
    }
}

/// The priority of a thread that has much to do and must not fall behind: normal, and high while it is behind.
pub struct Urgency {
    hurries: bool,
}

impl Urgency {
    /// The urgency of the calling thread, with normal priority at first.
    pub fn of_this_thread() -> Urgency {
        capture::probe::count_this_thread();
        take_short_turns();
        Urgency { hurries: false }
    }

    /// Sets high or normal priority.
    pub fn hurry(&mut self, hurries: bool) {
        if std::mem::replace(&mut self.hurries, hurries) == hurries {
            return;
        }
        if let Err(error) = rustix::process::setpriority_process(None, if hurries { NICE } else { 0 }) {
            log::debug!("priority stays: {error}");
        }
    }
}

/// High priority for the calling thread until dropped: for reading the threads of a program that has thousands of them, and
/// probes already.
pub struct Hurry(i32);

impl Hurry {
    /// High priority from now on; `None`: it is not allowed.
    pub fn now() -> Option<Hurry> {
        Hurry::at(NICE)
    }

    /// Low priority for the calling thread until dropped; `None`: the thread could not raise its priority afterwards.
    pub fn later() -> Option<Hurry> {
        take_short_turns();
        // Only a thread that may raise its priority can return from a lower priority.
        drop(Hurry::now()?);
        Hurry::at(PATIENT)
    }

    fn at(nice: i32) -> Option<Hurry> {
        let before = rustix::process::getpriority_process(None).ok()?;
        rustix::process::setpriority_process(None, nice).ok()?;
        Some(Hurry(before))
    }
}

impl Drop for Hurry {
    fn drop(&mut self) {
        if let Err(error) = rustix::process::setpriority_process(None, self.0) {
            log::debug!("priority stays: {error}");
        }
    }
}

const NICE: i32 = -10;
/// Nice value of a thread whose work can wait, such as reading symbols: it gets a tenth of an ordinary thread's share.
const PATIENT: i32 = 10;

fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "internal error".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_in_a_thread_becomes_a_failure_message() {
        let (sender, mut receiver) = tokio::sync::mpsc::unbounded_channel::<Failure>();
        let thread = spawn("test", sender, (), || {
            std::panic::resume_unwind(Box::new("broken on purpose".to_owned()));
        });
        assert!(thread.expect("thread").join().is_err());
        let failure = Failure { part: "test", text: "broken on purpose".to_owned() };
        assert_eq!(receiver.try_recv(), Ok(failure));
    }
}
