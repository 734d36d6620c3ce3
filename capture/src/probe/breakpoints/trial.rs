//! Counts calls of functions with hardware breakpoints that the kernel itself switches off after a few hits. However
//! often a function is called, a trial costs the program less than a millisecond, while ordinary probes would slow the
//! program until the overhead controller notices.
//!
//! A breakpoint counts for one thread and only while that thread runs. A processor has four breakpoints, which
//! debuggers use, too: if none is free, the calls are unknown.

use std::{
    fs::File,
    io::{self, Read as _},
    os::fd::{AsRawFd as _, FromRawFd as _},
    time::Duration,
};

/// Breakpoints that a processor has.
pub const AT_ONCE: usize = 4;
/// Hits after which the kernel switches a breakpoint off.
const MOST_HITS: i32 = 32;

/// Calls of one address by one thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Calls {
    /// Number of calls, at most some thirty.
    pub count: u64,
    /// Running time of the thread in which the calls happened, nanoseconds.
    pub ran_ns: u64,
}

/// Counts calls for this time. A point is a thread and the address of a function's first instruction, at most
/// [`AT_ONCE`] for each thread. `None`: the kernel refused, or the thread has ended.
pub fn count_calls(points: &[(u32, u64)], time: Duration) -> Vec<Option<Calls>> {
    let breakpoints: Vec<io::Result<Breakpoint>> =
        points.iter().map(|(thread, address)| Breakpoint::set(*thread, *address)).collect();
    for error in breakpoints.iter().filter_map(|breakpoint| breakpoint.as_ref().err()).take(1) {
        log::debug!("calls cannot be counted: {error}");
    }
    if breakpoints.iter().any(Result::is_ok) {
        std::thread::sleep(time);
    }
    breakpoints.into_iter().map(|breakpoint| breakpoint.and_then(Breakpoint::read).ok()).collect()
}

struct Breakpoint(File);

impl Breakpoint {
    fn set(thread: u32, address: u64) -> io::Result<Breakpoint> {
        const CLOSE_ON_EXEC: libc::c_ulong = 8;
        const NO_GROUP: libc::c_int = -1;
        const ANY_CPU: libc::c_int = -1;
        let attributes = attributes(address);
        let thread = i32::try_from(thread).map_err(|_| io::ErrorKind::InvalidInput)?;
        // SAFETY: the attributes are there, and contain their length; the rest are numbers.
        let number = unsafe {
            libc::syscall(
                libc::SYS_perf_event_open,
                attributes.as_ptr(),
                thread,
                ANY_CPU,
                NO_GROUP,
                CLOSE_ON_EXEC,
            )
        };
        let number = i32::try_from(number).unwrap_or(-1);
        if number < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: a new descriptor with no other owner.
        let breakpoint = Breakpoint(unsafe { File::from_raw_fd(number) });
        // `PERF_EVENT_IOC_REFRESH` enables the event, and disables it after this number of overflows.
        const REFRESH: libc::Ioctl = 0x2402;
        // SAFETY: a descriptor of ours; the argument is a number.
        let failed = unsafe { libc::ioctl(breakpoint.0.as_raw_fd(), REFRESH, MOST_HITS) };
        if failed == 0 { Ok(breakpoint) } else { Err(io::Error::last_os_error()) }
    }

    fn read(mut self) -> io::Result<Calls> {
        let mut words = [0; 16];
        self.0.read_exact(&mut words)?;
        let [count, ran_ns] = [&words[..8], &words[8..]]
            .map(|word| word.try_into().map(u64::from_ne_bytes).unwrap_or_default());
        Ok(Calls { count, ran_ns })
    }
}

/// Makes a `struct perf_event_attr` of version 5, which every supported kernel knows.
fn attributes(address: u64) -> [u8; 112] {
    const BREAKPOINT: u32 = 5;
    const EACH: u64 = 1;
    // The count is followed by the time for which the event was enabled.
    const READ_FORMAT: u64 = 1;
    // Disabled at first; not in the kernel or a hypervisor; removed on exec, when the address becomes another program's.
    const FLAGS: u64 = 1 | 1 << 5 | 1 << 6 | 1 << 36;
    const EXECUTED: u32 = 4;
    // For an instruction breakpoint the length must be the size of a word, whatever the instruction's length.
    const LENGTH: u64 = size_of::<libc::c_long>() as u64;
    let mut attributes = [0; 112];
    let mut put = |at: usize, bytes: &[u8]| attributes[at..at + bytes.len()].copy_from_slice(bytes);
    put(0, &BREAKPOINT.to_ne_bytes());
    put(4, &112u32.to_ne_bytes());
    put(16, &EACH.to_ne_bytes());
    put(32, &READ_FORMAT.to_ne_bytes());
    put(40, &FLAGS.to_ne_bytes());
    put(52, &EXECUTED.to_ne_bytes());
    put(56, &address.to_ne_bytes());
    put(64, &LENGTH.to_ne_bytes());
    attributes
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, Ordering};

    #[inline(never)]
    fn often(number: u64) -> u64 {
        std::hint::black_box(number.wrapping_mul(3))
    }

    #[inline(never)]
    fn never(number: u64) -> u64 {
        std::hint::black_box(number.wrapping_mul(5))
    }

    #[test]
    fn a_trial_counts_calls_up_to_its_limit_only() {
        static STOP: AtomicBool = AtomicBool::new(false);
        let (tell, told) = std::sync::mpsc::channel();
        let worker = std::thread::spawn(move || {
            let thread = rustix::thread::gettid().as_raw_nonzero().get();
            tell.send(thread as u32).expect("somebody listens");
            let mut number = 1;
            while !STOP.load(Ordering::Relaxed) {
                number = often(number);
            }
            if number == 0 { never(number) } else { number }
        });
        let thread = told.recv().expect("started");
        let points = [(thread, often as *const () as u64), (thread, never as *const () as u64)];
        let calls = count_calls(&points, Duration::from_millis(100));
        let again = count_calls(&points[..1], Duration::from_millis(50));
        STOP.store(true, Ordering::Relaxed);
        worker.join().expect("ended");
        let [Some(often), Some(never)] = calls[..] else {
            return println!("SKIP a_trial_counts_calls_up_to_its_limit_only: no hardware breakpoints here");
        };
        assert_eq!((often.count, never.count), (MOST_HITS as u64, 0));
        assert!(often.ran_ns < never.ran_ns, "switched off when it was enough: {often:?} {never:?}");
        assert_eq!(again[0].map(|calls| calls.count), Some(MOST_HITS as u64), "they are free again");
        let gone = count_calls(&[(u32::MAX, 0x1000)], Duration::from_secs(60));
        assert_eq!(gone, [None], "and it is not waited for");
    }
}
