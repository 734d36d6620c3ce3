//! Measures how long waking a thread on an idle CPU takes on this machine. A recording made on one CPU cannot show it, and a
//! prediction for two CPUs needs it.

use super::cpus::CpuList;
use crate::boot_cache;
use engine::event::IdleWake;
use rustix::thread::{CpuSet, sched_setaffinity};
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::thread::Thread;
use std::time::{Duration, Instant};

/// Number of wake-ups on another CPU, and number on the same CPU.
const REMOTE: u32 = 40;
const LOCAL: u32 = 20;
/// How long the other CPU is idle before a wake-up: as in a typical wait between threads that work together.
const IDLE: Duration = Duration::from_micros(300);
/// If all wake-ups together take longer than this, the CPUs are not free.
const LIMIT: Duration = Duration::from_millis(150);
/// If a wake-up typically takes longer than this, the CPUs are not free.
const MOST: Duration = Duration::from_millis(1);

/// Measures in some 20 ms, or uses a recent measurement. `None` if there is one CPU only, or other programs use the CPUs.
pub fn measure() -> Option<IdleWake> {
    let two = CpuList::allowed().ok()?.spread(2);
    let mut each = two.iter();
    between(&CpuList::of(each.next())?, &CpuList::of(each.next())?, Meanwhile::Spin)
}

/// Measures with a CPU that a running program, which may use the CPUs `used`, leaves free. The measurement takes less
/// than a millisecond of the used CPUs. `None` if the program may use all CPUs: then its own wake-ups show the latency.
pub fn measure_beside(used: &CpuList) -> Option<IdleWake> {
    let allowed = CpuList::allowed().ok()?;
    let there = CpuList::of(allowed.without(used)?.iter().next())?;
    let here = CpuList::of(allowed.without(&there)?.iter().next())?;
    between(&here, &there, Meanwhile::Sleep)
}

/// What the waker does until the other CPU is idle.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Meanwhile {
    /// It keeps its own CPU awake.
    Spin,
    /// It leaves its own CPU to other threads.
    Sleep,
}

/// A recent measurement from the cache, or a new one.
fn between(here: &CpuList, there: &CpuList, meanwhile: Meanwhile) -> Option<IdleWake> {
    let [from, to] = [here.iter().next()?, there.iter().next()?];
    let measure = || measure_between(here, there, meanwhile).map(|wake| [wake.latency_ns, wake.cost_ns]);
    let [latency_ns, cost_ns] =
        boot_cache::measured(&format!("idle-wake-{meanwhile:?}-{from}-{to}"), measure)?;
    Some(IdleWake { latency_ns, cost_ns })
}

fn measure_between(here: &CpuList, there: &CpuList, meanwhile: Meanwhile) -> Option<IdleWake> {
    let remote = rounds(here, there, meanwhile, REMOTE).ok()??;
    // Waker and wakee share a CPU, which must be free for both.
    let local = rounds(there, there, Meanwhile::Sleep, LOCAL).ok()??;
    (remote.latency < MOST).then(|| IdleWake {
        latency_ns: ns(remote.latency),
        cost_ns: ns(remote.call.saturating_sub(local.call)),
    })
}

/// Typical times of a wake-up.
struct Took {
    /// Time from before the waker's call to the wakee's first instruction.
    latency: Duration,
    /// The duration of the call.
    call: Duration,
}

/// Restricts the calling thread to these CPUs.
pub(super) fn pin(cpus: &CpuList) -> io::Result<()> {
    let mut set = CpuSet::new();
    cpus.iter().for_each(|cpu| set.set(cpu));
    Ok(sched_setaffinity(None, &set)?)
}

/// Messages between waker and wakee.
#[derive(Default)]
struct Shared {
    round: AtomicU32,
    answered: AtomicU32,
    arrived_ns: AtomicU64,
    over: AtomicBool,
}

/// Measures wake-ups. Latencies depend on how deeply the CPU sleeps, so their lower quartile is used. The call's time does
/// not, so its lowest tenth is used. Other work on the CPUs only makes both longer.
fn rounds(here: &CpuList, there: &CpuList, meanwhile: Meanwhile, count: u32) -> io::Result<Option<Took>> {
    let (began, shared) = (Instant::now(), Shared::default());
    std::thread::scope(|scope| {
        let sleeper = std::thread::Builder::new()
            .name("lp-sleeper".to_owned())
            .spawn_scoped(scope, || pin(there).map(|()| sleep_and_answer(&shared, began)))?;
        let (thread, words) = (sleeper.thread().clone(), &shared);
        let waker = std::thread::Builder::new()
            .name("lp-waker".to_owned())
            .spawn_scoped(scope, move || pin(here).map(|()| wake(words, began, &thread, meanwhile, count)));
        let took = waker.map(std::thread::ScopedJoinHandle::join);
        shared.over.store(true, Ordering::Release);
        sleeper.thread().unpark();
        took?.unwrap_or_else(|_| Err(io::Error::other("the measuring thread failed")))
    })
}

fn sleep_and_answer(shared: &Shared, began: Instant) {
    let mut seen = 0;
    while !shared.over.load(Ordering::Acquire) {
        let now = shared.round.load(Ordering::Acquire);
        if now == seen {
            // Parking may end without a reason.
            std::thread::park_timeout(LIMIT);
            continue;
        }
        shared.arrived_ns.store(ns(began.elapsed()), Ordering::Relaxed);
        shared.answered.store(now, Ordering::Release);
        seen = now;
    }
}

/// The waker's part; `None`: the CPUs are not free.
fn wake(shared: &Shared, began: Instant, sleeper: &Thread, meanwhile: Meanwhile, count: u32) -> Option<Took> {
    let (mut latencies, mut calls) = (Vec::new(), Vec::new());
    for round in 1..=count {
        match meanwhile {
            Meanwhile::Spin => {
                let from = Instant::now();
                while from.elapsed() < IDLE {
                    std::hint::spin_loop();
                }
            }
            Meanwhile::Sleep => std::thread::sleep(IDLE),
        }
        let before = began.elapsed();
        shared.round.store(round, Ordering::Release);
        sleeper.unpark();
        calls.push(began.elapsed().saturating_sub(before));
        while shared.answered.load(Ordering::Acquire) != round {
            if began.elapsed() > LIMIT {
                return None;
            }
            match meanwhile {
                Meanwhile::Spin => std::hint::spin_loop(),
                Meanwhile::Sleep => std::thread::sleep(Duration::from_micros(10)),
            }
        }
        let arrived = Duration::from_nanos(shared.arrived_ns.load(Ordering::Relaxed));
        latencies.push(arrived.saturating_sub(before));
    }
    Some(Took { latency: part(latencies, 4)?, call: part(calls, 10)? })
}

/// The quantile 1/`parts`.
fn part(mut times: Vec<Duration>, parts: usize) -> Option<Duration> {
    times.sort_unstable();
    times.get(times.len() / parts.max(1)).copied()
}

fn ns(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A machine may be too busy for some attempts, but each must end, and a result must be plausible.
    #[test]
    fn measuring_idle_wake_ups_ends_with_a_plausible_time() {
        let attempt = || {
            let began = Instant::now();
            let wake = measure();
            assert!(began.elapsed() < Duration::from_secs(20));
            wake
        };
        let has_two = CpuList::allowed().is_ok_and(|cpus| cpus.len() > 1);
        let Some(wake) = std::iter::repeat_with(attempt).take(20).flatten().next() else {
            let why = if has_two { "the machine is too busy" } else { "there is one CPU" };
            return println!("SKIP measuring_idle_wake_ups_ends_with_a_plausible_time: {why}");
        };
        assert!(has_two && wake.latency_ns > 0 && wake.latency_ns < ns(MOST), "{wake:?}");
        assert!(wake.cost_ns < ns(LIMIT), "{wake:?}");
    }

    /// A program that is attached on one CPU must not be simulated with wake-ups of 10 µs if they take 40 µs.
    #[test]
    fn idle_wake_ups_are_not_measured_if_the_program_may_use_all_cpus() {
        let allowed = CpuList::allowed().unwrap();
        assert_eq!(measure_beside(&allowed), None);
        if let Some(used) = CpuList::of(allowed.iter().skip(1))
            && let Some(wake) = measure_beside(&used)
        {
            assert!(wake.latency_ns > 0 && wake.latency_ns < ns(MOST), "{wake:?}");
        }
    }

    #[test]
    fn the_time_at_a_quarter_is_found_in_any_order() {
        let times = |all: &[u64]| all.iter().map(|&time| Duration::from_nanos(time)).collect();
        assert_eq!(part(times(&[9, 1, 5, 3]), 4), Some(Duration::from_nanos(3)));
        assert_eq!(part(Vec::new(), 4), None);
    }
}
