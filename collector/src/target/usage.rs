//! What ended children have used, and what longpole and its helpers have.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Processes that work for longpole and have not ended.
static HELPERS: Mutex<Helpers> = Mutex::new(Helpers { running: Vec::new(), ended_ns: 0 });

struct Helpers {
    running: Vec<libc::clockid_t>,
    ended_ns: u64,
}

/// A child process whose CPU time is longpole's, until this is dropped, which must be before somebody waits for it.
#[derive(Debug)]
pub struct Helper(Option<libc::clockid_t>);

impl Helper {
    /// A child that was just started.
    pub fn of(pid: u32) -> Helper {
        let mut clock: libc::clockid_t = 0;
        let pid = libc::pid_t::try_from(pid).unwrap_or(0);
        // SAFETY: writes one clock id, which is there.
        let failed = unsafe { libc::clock_getcpuclockid(pid, &raw mut clock) };
        let clock = (failed == 0).then_some(clock);
        HELPERS.lock().unwrap_or_else(PoisonError::into_inner).running.extend(clock);
        Helper(clock)
    }
}

impl Drop for Helper {
    fn drop(&mut self) {
        let Some(clock) = self.0 else { return };
        let mut helpers = HELPERS.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(at) = helpers.running.iter().position(|&other| other == clock) {
            helpers.running.swap_remove(at);
            helpers.ended_ns = helpers.ended_ns.saturating_add(cpu_time_ns(clock));
        }
    }
}

/// CPU time of this process, all of its threads, and of its helpers, those that have ended included; nanoseconds.
pub fn own_cpu_time_ns() -> u64 {
    let helpers = HELPERS.lock().unwrap_or_else(PoisonError::into_inner);
    let running = helpers.running.iter().map(|&clock| cpu_time_ns(clock));
    let sum = running.fold(helpers.ended_ns, u64::saturating_add);
    sum.saturating_add(cpu_time_ns(libc::CLOCK_PROCESS_CPUTIME_ID))
}

/// 0 if it cannot be read.
fn cpu_time_ns(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: writes one `timespec`, which is there.
    if unsafe { libc::clock_gettime(clock, &raw mut time) } != 0 {
        return 0;
    }
    (time.tv_sec as u64).saturating_mul(1_000_000_000).saturating_add(time.tv_nsec as u64)
}

/// CPU time, in the program and in the kernel, of all children of this process that have ended and been waited for,
/// with their own; zero if the kernel refuses, which it does not.
pub fn children_cpu_time() -> Duration {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: `usage` is a valid place for one rusage for the time of the call.
    if unsafe { libc::getrusage(libc::RUSAGE_CHILDREN, usage.as_mut_ptr()) } != 0 {
        return Duration::ZERO;
    }
    // SAFETY: zeroed at first, which is a valid rusage, and filled by the kernel since.
    let usage = unsafe { usage.assume_init() };
    [usage.ru_utime, usage.ru_stime].iter().fold(Duration::ZERO, |sum, time| {
        let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
        let microseconds = u64::try_from(time.tv_usec).unwrap_or(0);
        sum.saturating_add(Duration::from_secs(seconds)).saturating_add(Duration::from_micros(microseconds))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_helper_counts_while_it_runs_and_when_it_has_ended() {
        let before = own_cpu_time_ns();
        let mut child =
            std::process::Command::new("sh").args(["-c", "while :; do :; done"]).spawn().expect("sh");
        let helper = Helper::of(child.id());
        let enough = before + 50_000_000;
        while own_cpu_time_ns() < enough {
            std::thread::sleep(Duration::from_millis(1));
        }
        child.kill().expect("killed");
        drop(helper);
        child.wait().expect("waited");
        assert!(own_cpu_time_ns() >= enough);
    }

    #[test]
    fn a_child_that_computes_adds_to_it() {
        let before = children_cpu_time();
        let status = std::process::Command::new("sh")
            .args(["-c", "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done"])
            .status()
            .expect("sh");
        assert!(status.success());
        assert!(children_cpu_time() > before);
    }
}
