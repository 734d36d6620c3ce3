//! Watches calls of libc's `prctl` and `syscall` that take system calls or the clock away from a thread. The library
//! then does everything before such a call that it may not do afterwards.
//!
//! - **Filters of system calls** (seccomp, and dispatch of system calls to the program itself): afterwards, the library
//!   makes no system calls. The library does not signal the doorbell, so longpole empties the rings more often. Later
//!   threads get their ids from libc. If reading the clock is a system call, operations are only counted.
//! - **Strict seccomp** and **`PR_SET_TSC`** affect only the calling thread, see [`crate::watched::restricted`].
//!
//! If a program has filters when it starts, an ancestor has installed them. Then the library does not record the
//! program at all ([`crate::process`]). The library does not notice a program that makes these system calls by its own
//! instructions. Go's runtime does that, but uses none of libc's locks. A few libraries for Rust do that, too.

use crate::process;
use crate::real::{self, Real};
use crate::records::ring;
use crate::watched::restricted;
use crate::watched::watch::watch;
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

static FILTERED: AtomicBool = AtomicBool::new(false);

/// Whether a filter may forbid system calls in this process.
#[inline(always)]
pub fn is_filtered() -> bool {
    FILTERED.load(Ordering::Relaxed)
}

/// Must be called when a filter is about to be installed. Makes the necessary system calls before that.
fn comes() {
    // This thread takes its ring now, because taking a ring needs the thread's id.
    ring::prepare();
    if FILTERED.swap(true, Ordering::Relaxed) {
        return;
    }
    let Some(shared) = process::shared() else { return };
    if !process::is_recorded(process::epoch()) {
        return;
    }
    if process::is_clock_free(&shared) {
        shared.falls_silent();
    } else {
        process::forbid();
    }
}

const PR_SET_SECCOMP: u32 = 22;
const PR_SET_TSC: u32 = 26;
const PR_SET_SYSCALL_USER_DISPATCH: u32 = 59;
const SECCOMP_SET_MODE_STRICT: usize = 0;
const SECCOMP_SET_MODE_FILTER: usize = 1;
const SECCOMP_MODE_STRICT: usize = 1;
const PR_TSC_ENABLE: usize = 1;
#[cfg(target_arch = "x86_64")]
const SYS_SECCOMP: u32 = 317;
#[cfg(target_arch = "x86_64")]
const SYS_PRCTL: u32 = 157;
#[cfg(target_arch = "aarch64")]
const SYS_SECCOMP: u32 = 277;
#[cfg(target_arch = "aarch64")]
const SYS_PRCTL: u32 = 167;

/// The effect of a call on this library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Threat {
    None,
    /// From now on, the kernel may end this process for a system call.
    Filter,
    /// From now on, the kernel may end this thread for a system call or for reading the clock.
    Strict,
    /// From now on, the kernel may end this thread, and threads that it starts, for reading the clock.
    NoClock,
    /// This thread may read the clock again.
    Clock,
}

fn of_prctl(option: u32, value: usize) -> Threat {
    match (option, value) {
        (PR_SET_SECCOMP, SECCOMP_MODE_STRICT) => Threat::Strict,
        (PR_SET_SECCOMP | PR_SET_SYSCALL_USER_DISPATCH, _) => Threat::Filter,
        (PR_SET_TSC, PR_TSC_ENABLE) => Threat::Clock,
        (PR_SET_TSC, _) => Threat::NoClock,
        _ => Threat::None,
    }
}

fn of_syscall(number: u32, [first, second]: [usize; 2]) -> Threat {
    match (number, first) {
        (SYS_SECCOMP, SECCOMP_SET_MODE_STRICT) => Threat::Strict,
        (SYS_SECCOMP, SECCOMP_SET_MODE_FILTER) => Threat::Filter,
        (SYS_PRCTL, option) => of_prctl(option as u32, second),
        _ => Threat::None,
    }
}

static PRCTL: Real = Real::new(c"prctl");
static SYSCALL: Real = Real::new(c"syscall");
/// Address at which `syscall` continues in libc; 0 until it is known. Some programs call `syscall` often, so the
/// address is stored.
static BEHIND_SYSCALL: AtomicUsize = AtomicUsize::new(0);

extern "C" fn before_prctl(option: u32, value: usize) -> usize {
    let go_on = prctl as extern "C" fn(usize, usize, usize, usize, usize) -> i32;
    before(of_prctl(option, value), &PRCTL, go_on as usize)
}

extern "C" fn before_syscall(number: u32, first: usize, second: usize) -> usize {
    let go_on = syscall as extern "C" fn(usize, usize, usize, usize, usize, usize) -> isize;
    BEHIND_SYSCALL.store(SYSCALL.get(), Ordering::Relaxed);
    before(of_syscall(number, [first, second]), &SYSCALL, go_on as usize)
}

/// Prepares the library for the call. Returns the address at which to continue: in libc, or in a function of the
/// library that sees the result.
fn before(threat: Threat, real: &Real, go_on: usize) -> usize {
    let errno = real::errno();
    let address = real.get();
    let to = match threat {
        Threat::None => address,
        Threat::Filter => {
            comes();
            address
        }
        Threat::Strict | Threat::NoClock | Threat::Clock => go_on,
    };
    real::set_errno(errno);
    to
}

/// Makes a call that changes this thread's right to read the clock. No code of the library runs between the last step
/// of recording and the change.
fn change(threat: Threat, real: impl FnOnce() -> isize) -> isize {
    let errno = real::errno();
    let begun = threat != Threat::Clock && restricted::begin();
    real::set_errno(errno);
    let result = real();
    match (result, threat) {
        (0, Threat::NoClock) => restricted::clock_is_lost(),
        (0, Threat::Clock) => restricted::end(),
        (0, _) => {}
        (_, _) if begun => restricted::end(),
        (_, _) => {}
    }
    result
}

extern "C" fn prctl(option: usize, value: usize, third: usize, fourth: usize, fifth: usize) -> i32 {
    type Prctl = extern "C" fn(usize, usize, usize, usize, usize) -> i32;
    // SAFETY: libc's prctl takes up to five arguments, none larger than a register.
    let real: Prctl = unsafe { core::mem::transmute(PRCTL.get()) };
    change(of_prctl(option as u32, value), || real(option, value, third, fourth, fifth) as isize) as i32
}

extern "C" fn syscall(number: usize, a: usize, b: usize, c: usize, d: usize, e: usize) -> isize {
    type Syscall = extern "C" fn(usize, usize, usize, usize, usize, usize) -> isize;
    // SAFETY: libc's syscall gets a number and the arguments of that call. The calls here have at most five.
    let real: Syscall = unsafe { core::mem::transmute(SYSCALL.get()) };
    change(of_syscall(number as u32, [a, b]), || real(number, a, b, c, d, e))
}

/// Looks up the two original functions, because a first call may come in a signal handler or between vfork and exec.
pub fn find() {
    PRCTL.find();
    BEHIND_SYSCALL.store(SYSCALL.get(), Ordering::Relaxed);
}

watch!("prctl", before_prctl);
watch!("syscall", before_syscall, if SYS_SECCOMP or SYS_PRCTL, BEHIND_SYSCALL);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_that_restricts_a_thread_is_known_by_its_numbers() {
        for (option, value, threat) in [
            (22, 1, Threat::Strict),
            (22, 2, Threat::Filter),
            (26, 2, Threat::NoClock),
            (26, 1, Threat::Clock),
            (59, 1, Threat::Filter),
            (15, 1, Threat::None),
        ] {
            assert_eq!(of_prctl(option, value), threat, "{option} {value}");
            assert_eq!(of_syscall(SYS_PRCTL, [option as usize, value]), threat, "{option} {value}");
        }
        for (first, threat) in [(0, Threat::Strict), (1, Threat::Filter), (2, Threat::None)] {
            assert_eq!(of_syscall(SYS_SECCOMP, [first, 0]), threat);
        }
        assert_eq!(of_syscall(0, [0, 0]), Threat::None);
    }

    #[test]
    fn a_failed_restriction_leaves_a_thread_as_it_was() {
        std::thread::spawn(|| {
            let own = crate::tls::tls();
            assert_eq!(change(Threat::Strict, || -1), -1);
            assert!(!restricted::is_silent(own));
            assert_eq!(change(Threat::Strict, || 0), 0);
            assert!(restricted::is_silent(own));
            assert_eq!(change(Threat::Strict, || -1), -1);
            assert!(restricted::is_silent(own), "it was before");
            assert_eq!(change(Threat::Clock, || 0), 0);
            assert!(!restricted::is_silent(own));
        })
        .join()
        .expect("thread");
    }
}
