//! Threads that tell the loop when they fail.

use capture::target::take_short_turns;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread::{Builder, JoinHandle};
use tokio::sync::mpsc::UnboundedSender;

/// A part of longpole that cannot continue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Which part, for people.
    pub part: &'static str,
    /// What it says.
    pub text: String,
}

/// Starts a named thread. If it panics, the loop gets a message and ends in an orderly way: it restores the
/// terminal and closes the file. `hold` is dropped after that, so that a thread waiting for its other end
/// does not take the failure for an ordinary end.
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
                // The loop may have left already.
                let _ = news.send(Failure { part, text }.into());
                std::panic::resume_unwind(panic)
            }
        }
    })
}

/// Puts the calling thread before ordinary ones (nice −10, as far as rights allow): on a machine that is full, the
/// rings of a flood fill up within the time that a fair turn takes, and the thread that empties them needs little.
pub fn before_others() {
    capture::probe::count_this_thread();
    take_short_turns();
    if let Err(error) = rustix::process::setpriority_process(None, NICE) {
        log::debug!("no higher priority: {error}");
    }
}

/// Lets the recorded program's threads go first, and get their CPU back soon: for a thread that has much to do, which is in no
/// hurry.
pub fn behind_others() {
    take_short_turns();
    if let Err(error) = rustix::process::setpriority_process(None, PATIENT) {
        log::debug!("no lower priority: {error}");
    }
}

/// For a thread that has much to do and must not fall behind: it has normal priority until it does.
pub struct Urgency {
    hurries: bool,
}

impl Urgency {
    /// Of the calling thread, which is in no hurry yet.
    pub fn of_this_thread() -> Urgency {
        capture::probe::count_this_thread();
        take_short_turns();
        Urgency { hurries: false }
    }

    /// Before others from now on, or among them.
    pub fn hurry(&mut self, hurries: bool) {
        if std::mem::replace(&mut self.hurries, hurries) == hurries {
            return;
        }
        if let Err(error) = rustix::process::setpriority_process(None, if hurries { NICE } else { 0 }) {
            log::debug!("priority stays: {error}");
        }
    }
}

/// The calling thread comes before others until this is dropped: while it looks at thousands of threads of a program
/// that has probes already.
pub struct Hurry(i32);

impl Hurry {
    /// From now on, if that is allowed.
    pub fn now() -> Option<Hurry> {
        Hurry::at(NICE)
    }

    /// The other way round: the calling thread has a lower priority than others until this is dropped, if it
    /// may come back.
    pub fn later() -> Option<Hurry> {
        take_short_turns();
        // A thread that may raise its priority may come back from a lower one.
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
/// As for the threads that read symbols: a tenth of the share of an ordinary thread.
const PATIENT: i32 = 10;

fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "internal error".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_becomes_a_message() {
        let (sender, mut receiver) = tokio::sync::mpsc::unbounded_channel::<Failure>();
        let thread = spawn("test", sender, (), || {
            std::panic::resume_unwind(Box::new("broken on purpose".to_owned()));
        });
        assert!(thread.expect("thread").join().is_err());
        let failure = Failure { part: "test", text: "broken on purpose".to_owned() };
        assert_eq!(receiver.try_recv(), Ok(failure));
    }
}
