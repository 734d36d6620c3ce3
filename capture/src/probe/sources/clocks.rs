//! CPU time of recorded processes, and of longpole's own threads.

pub use crate::target::monotonic_ns as now_ns;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use symbols::sandbox::{helpers_cpu_time_ns, own_cpu_time_ns};

/// CPU-time clocks of longpole's threads whose work is part of recording.
static OWN: Mutex<Vec<libc::clockid_t>> = Mutex::new(Vec::new());

/// Counts the calling thread's CPU time as a cost of recording from now on.
pub fn count_this_thread() {
    let mut clock: libc::clockid_t = 0;
    // SAFETY: it has no arguments, and cannot fail.
    let this = unsafe { libc::pthread_self() };
    // SAFETY: the calling thread lives, and one clock id is written, which is there.
    let failed = unsafe { libc::pthread_getcpuclockid(this, &raw mut clock) };
    let mut own = OWN.lock().unwrap_or_else(PoisonError::into_inner);
    if failed == 0 && !own.contains(&clock) {
        own.push(clock);
    }
}

/// CPU time of the calling thread, nanoseconds; 0 if it cannot be read.
pub fn this_thread_ns() -> u64 {
    read(libc::CLOCK_THREAD_CPUTIME_ID).unwrap_or(0)
}

/// How long an interrupt that comes every `period_ns` stops the calling thread at present, nanoseconds. A loop reads
/// the clock. Of its longest gaps, as many as there should be interrupts, the median is returned. `None` if few gaps
/// are long enough.
pub(crate) fn interruption_ns(period_ns: u64) -> Option<u64> {
    const ENOUGH: usize = 30;
    const LONGEST_NS: u64 = 50_000_000;
    // Reading the clock takes less than this, an interrupt more.
    const LEAST_NS: u64 = 600;
    let mut gaps = Vec::new();
    let start = now_ns();
    let mut last = start;
    while last - start < LONGEST_NS && (gaps.len() < ENOUGH || last - start < ENOUGH as u64 * period_ns) {
        let now = now_ns();
        if now - last >= LEAST_NS {
            gaps.push(now - last);
        }
        last = now;
    }
    middle_of_longest(gaps, ENOUGH)
}

/// The median of the longest gaps. Others are shorter: a hypervisor's, or frequent interrupts that do little.
fn middle_of_longest(mut gaps: Vec<u64>, count: usize) -> Option<u64> {
    gaps.sort_unstable_by(|a, b| b.cmp(a));
    gaps.truncate(count);
    (gaps.len() >= count / 2).then(|| gaps.get(gaps.len() / 2).copied()).flatten()
}

/// The sum of several CPU-time clocks. A clock may end; its last reading stays in the sum.
#[derive(Debug, Default)]
pub(crate) struct CpuTime {
    /// For each clock: its last reading, and its first reading, from which on its time counts.
    clocks: BTreeMap<libc::clockid_t, (u64, u64)>,
}

impl CpuTime {
    /// Reads a clock. It counts from its first reading, or from 0 if its process began during the recording (`new`).
    fn read(&mut self, clock: libc::clockid_t, new: bool) {
        if let Some(now) = read(clock) {
            let first = if new { 0 } else { now };
            let (last, _) = self.clocks.entry(clock).or_insert((now, first));
            // A PID that is used again starts from 0; then too little is counted.
            *last = now.max(*last);
        }
    }

    /// Removes the processes for which `gone` is true: their time is counted elsewhere.
    pub(crate) fn forget_processes(&mut self, gone: impl Fn(u32) -> bool) {
        self.clocks.retain(|clock, _| !gone(process_of(*clock)));
    }

    /// The sum since the first reading of each clock, nanoseconds.
    pub(crate) fn total_ns(&self) -> u64 {
        self.clocks.values().fold(0, |sum, (last, first)| sum.saturating_add(last.saturating_sub(*first)))
    }

    /// Reads the clocks of longpole's threads that count as recording.
    pub(crate) fn read_own_threads(&mut self) {
        for clock in OWN.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            self.read(*clock, false);
        }
    }

    /// Reads the clocks of these processes. `new`: the processes were born while they were recorded.
    pub(crate) fn read_processes(&mut self, pids: impl Iterator<Item = u32>, new: bool) {
        for pid in pids {
            if let Some(clock) = process_clock(pid) {
                self.read(clock, new);
            }
        }
    }
}

/// CPU time of a process's children that have ended and been waited for, and of their descendants in the same way,
/// nanoseconds; 0 if the process has ended. The kernel counts it in ticks.
pub(crate) fn waited_for_ns(pid: u32) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    waited_for_ticks(&text).saturating_mul(NS_PER_TICK)
}

/// User space sees ticks of a hundredth of a second on every architecture that longpole knows (`USER_HZ`).
const NS_PER_TICK: u64 = 10_000_000;

/// The sum of `cutime` and `cstime` in a line of /proc/PID/stat. The name in the line may contain anything.
fn waited_for_ticks(stat: &str) -> u64 {
    let behind = stat.rsplit_once(')').map_or("", |(_, behind)| behind);
    // The state is the third field.
    let ticks = behind.split_ascii_whitespace().skip(16 - 3).take(2);
    ticks.fold(0, |sum, field| sum.saturating_add(field.parse().unwrap_or(0)))
}

/// The kernel's number of a process's CPU-time clock: the complement of the PID and `CPUCLOCK_SCHED`
/// (include/linux/posix-timers.h), as `clock_getcpuclockid` makes it.
fn process_clock(pid: u32) -> Option<libc::clockid_t> {
    const SCHED: libc::clockid_t = 2;
    let pid = libc::clockid_t::try_from(pid).ok().filter(|pid| *pid < 1 << 28)?;
    Some((!pid << 3) | SCHED)
}

/// The process that a clock belongs to.
fn process_of(clock: libc::clockid_t) -> u32 {
    u32::try_from(!(clock >> 3)).unwrap_or(0)
}

fn read(clock: libc::clockid_t) -> Option<u64> {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: it writes one `timespec`, which is there; an unknown clock is an error.
    let failed = unsafe { libc::clock_gettime(clock, &raw mut time) };
    let seconds = u64::try_from(time.tv_sec).ok()?;
    let nanoseconds = u64::try_from(time.tv_nsec).ok()?;
    (failed == 0).then(|| seconds.saturating_mul(1_000_000_000).saturating_add(nanoseconds))
}

/// CPU time of longpole.
#[derive(Clone, Copy)]
pub(crate) struct OwnTime {
    pub(crate) all_ns: u64,
    /// The part of that time that the helper processes used, ns.
    pub(crate) helpers_ns: u64,
}

impl OwnTime {
    pub(crate) fn now() -> OwnTime {
        let helpers_ns = helpers_cpu_time_ns();
        OwnTime { all_ns: own_cpu_time_ns(), helpers_ns }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn burn() {
        let before = read(libc::CLOCK_THREAD_CPUTIME_ID).expect("own clock");
        while read(libc::CLOCK_THREAD_CPUTIME_ID).expect("own clock") < before + 5_000_000 {}
    }

    #[test]
    fn a_process_s_cpu_time_counts_from_its_first_reading() {
        burn();
        let mut time = CpuTime::default();
        time.read_processes(std::iter::once(std::process::id()), false);
        assert_eq!(time.total_ns(), 0);
        burn();
        time.read_processes(std::iter::once(std::process::id()), false);
        assert!(time.total_ns() >= 5_000_000, "{}", time.total_ns());
        // A process that does not exist changes nothing.
        time.read_processes([u32::MAX, 0x0FFF_FFFF].into_iter(), true);
        assert!(time.total_ns() < 5_000_000_000);
    }

    #[test]
    fn cpu_time_of_awaited_children_is_read_from_their_parent() {
        let stat = "7 (a) b) S 1 7 7 0 -1 4194560 1 2 3 4 11 12 130 140 20 0 1 0 55 66 77";
        assert_eq!(waited_for_ticks(stat), 270);
        assert_eq!(waited_for_ticks("nonsense"), 0);
        assert_eq!(waited_for_ns(0x0FFF_FFFF), 0);
        let clock = process_clock(4242).expect("a clock");
        assert_eq!(process_of(clock), 4242);
    }

    #[test]
    fn only_repeated_long_gaps_count_as_interrupts() {
        let mut gaps = vec![13_000; 28];
        gaps.extend([700; 90]);
        gaps.push(4_000_000);
        assert_eq!(middle_of_longest(gaps, 30), Some(13_000));
        assert_eq!(middle_of_longest(vec![13_000; 14], 30), None);
    }

    #[test]
    fn threads_that_have_ended_keep_their_cpu_time() {
        let mut time = CpuTime::default();
        std::thread::scope(|scope| {
            let (told, wait) = std::sync::mpsc::channel::<()>();
            let (done, end) = std::sync::mpsc::channel::<()>();
            scope.spawn(move || {
                count_this_thread();
                told.send(()).expect("listening");
                end.recv().expect("told");
                burn();
                told.send(()).expect("listening");
                end.recv().expect("told");
            });
            wait.recv().expect("told");
            time.read_own_threads();
            done.send(()).expect("listening");
            wait.recv().expect("told");
            time.read_own_threads();
            done.send(()).expect("listening");
        });
        time.read_own_threads();
        assert!(time.total_ns() >= 5_000_000, "{}", time.total_ns());
    }
}
