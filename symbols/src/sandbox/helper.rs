//! Measures the CPU time of longpole and of its helper processes.

use std::sync::{Mutex, PoisonError};

/// The helpers: child processes that work for longpole and have not ended.
static HELPERS: Mutex<Helpers> = Mutex::new(Helpers { running: Vec::new(), ended_ns: 0 });

struct Helpers {
    running: Vec<libc::clockid_t>,
    ended_ns: u64,
}

/// A child process whose CPU time counts as longpole's as long as this value exists. The value must be dropped before
/// the process is waited for, because its clock is gone afterwards.
#[derive(Debug)]
pub struct Helper(Option<libc::clockid_t>);

impl Helper {
    /// The helper of a child that was just started.
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

/// CPU time of this process and of all its helpers, ended ones too, in nanoseconds.
pub fn own_cpu_time_ns() -> u64 {
    helpers_cpu_time_ns().saturating_add(cpu_time_ns(libc::CLOCK_PROCESS_CPUTIME_ID))
}

/// CPU time of all helpers of this process, ended ones too, in nanoseconds.
pub fn helpers_cpu_time_ns() -> u64 {
    let helpers = HELPERS.lock().unwrap_or_else(PoisonError::into_inner);
    let running = helpers.running.iter().map(|&clock| cpu_time_ns(clock));
    running.fold(helpers.ended_ns, u64::saturating_add)
}

/// The time of a CPU clock, in nanoseconds; 0 if the clock cannot be read.
fn cpu_time_ns(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: writes one `timespec`, which is there.
    if unsafe { libc::clock_gettime(clock, &raw mut time) } != 0 {
        return 0;
    }
    (time.tv_sec as u64).saturating_mul(1_000_000_000).saturating_add(time.tv_nsec as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_helper_s_cpu_time_counts_while_it_runs_and_afterwards() {
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
}
