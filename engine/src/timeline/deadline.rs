//! Waits until a point in time, as opposed to waits for a length of time.
//!
//! A runtime may sleep for a length of time by a wait until "now + length", as CPython has done since 3.11. The lengths
//! of such waits vary only with the requested length, but the times between their ends vary with the work in between,
//! too. Waits for real deadlines are the opposite: their ends are regular, their lengths vary (a method of longpole's
//! own).

use super::model::{State, Thread, Wait};
use super::thread::wait_reason::WaitReason;
use crate::event::CallKind;
use probe_abi::Descriptor;

impl Wait {
    /// Whether the wait was for a point in time, which does not move with what the thread did before.
    ///
    /// That is a time of a clock (`clock_nanosleep` with `TIMER_ABSTIME`), or a timer that repeats or was set to such a time.
    pub fn has_deadline(&self) -> bool {
        /// `clock_nanosleep(2)` on x86-64.
        const CLOCK_NANOSLEEP: u32 = 230;
        const TIMER_ABSTIME: u32 = 1;
        /// The clocks of CPU time, which do not advance by themselves. Single processes' and threads' clocks are negative.
        const CPU_TIME: [u32; 2] = [2, 3];
        match self.reason {
            WaitReason::Futex(_) => false,
            _ if self.from_now => false,
            WaitReason::Kernel { descriptor: Descriptor::Deadline, .. } => self.kind() == CallKind::Read,
            WaitReason::Kernel { call, .. } => {
                let clock = call.argument0 as u32;
                call.number == CLOCK_NANOSLEEP
                    && call.argument1 & TIMER_ABSTIME != 0
                    && !CPU_TIME.contains(&clock)
                    && i32::try_from(clock).is_ok()
            }
        }
    }
}

/// Least number of waits from which a thread's kind of wait can be decided.
const FEWEST: usize = 4;

/// Marks waits until a point in time that are really for a length of time, as `from_now`.
pub(super) fn tell_lengths_from_deadlines(threads: &mut [Thread]) {
    for thread in threads {
        let (mut lengths, mut between, mut last) = (Vec::new(), Vec::new(), None);
        for (start, end, state) in thread.spans() {
            let State::Blocked(wait) = state else { continue };
            let wait = thread.waits.get(wait as usize);
            if wait.is_none_or(|wait| wait.cut_at_start || !is_until_a_time(wait)) {
                continue;
            }
            lengths.push(end.0.saturating_sub(start.0));
            between.extend(last.replace(end.0).map(|last| end.0.saturating_sub(last)));
        }
        if lengths.len() >= FEWEST && spread(lengths) < spread(between) {
            thread
                .waits
                .iter_mut()
                .filter(|wait| is_until_a_time(wait))
                .for_each(|wait| wait.from_now = true);
        }
    }
}

/// Whether the wait lasts until a time that its call names. Timers do not count: they never depend on the thread.
fn is_until_a_time(wait: &Wait) -> bool {
    wait.has_deadline() && wait.kind() == CallKind::Sleep
}

/// Median distance of the values from their own median.
fn spread(mut values: Vec<u64>) -> u64 {
    let middle = |values: &mut Vec<u64>| {
        values.sort_unstable();
        values.get(values.len() / 2).copied().unwrap_or(0)
    };
    let of = middle(&mut values);
    values.iter_mut().for_each(|value| *value = value.abs_diff(of));
    middle(&mut values)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Timestamp;
    use crate::timeline::{External, Interval, Wake};
    use probe_abi::Call;

    /// A thread that waits until points in time: when each wait begins and ends, ms.
    fn thread(waits: &[(u64, u64)]) -> Thread {
        let call = Call { number: 230, argument0: 1, argument1: 1 };
        let reason = WaitReason::Kernel { call, descriptor: Descriptor::Unknown, task_state: 1 };
        let wake = Wake::External(External::Timer);
        let mut thread = Thread::default();
        for (start, end) in waits {
            let at = |ms: u64, state| Interval { start: Timestamp(ms * 1_000_000), state, first_step: 0 };
            thread.intervals.push(at(*start, State::Blocked(thread.waits.len() as u32)));
            thread.intervals.push(at(*end, State::Running { cpu: Some(0) }));
            thread.waits.push(Wait { reason, wake, cut_at_start: false, moved_to: None, from_now: false });
        }
        thread
    }

    /// A program of Python 3.11 sleeps 5 ms after work of 1 to 9 ms, and another one continues every 10 ms.
    #[test]
    fn sleeps_of_equal_length_have_no_deadline_and_ends_every_10_ms_have_one() {
        let sleeps = thread(&[(1, 6), (8, 13), (22, 27), (31, 36), (37, 42)]);
        let ticks = thread(&[(1, 10), (18, 20), (23, 30), (39, 40), (41, 50)]);
        let few = thread(&[(1, 6), (9, 14)]);
        let mut threads = [sleeps, ticks, few];
        tell_lengths_from_deadlines(&mut threads);
        let have = threads.map(|thread| thread.waits.iter().all(Wait::has_deadline));
        assert_eq!(have, [false, true, true]);
    }
}
