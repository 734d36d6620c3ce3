//! Measures how long an atomic change of a cache line takes on this machine, alone and while another CPU wants the line.
//! Machines differ several times over, sockets more than cores.

use super::cpus::CpuList;
use super::idle_wake::pin;
use crate::boot_cache;
use engine::event::LineTransfer;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Changes in a round: a fraction of a millisecond, in which other programs hardly ever interfere.
const CHANGES: u32 = 5_000;
/// Steps of work between two changes; together they take some 20 ns.
const WORK: u32 = 12;
/// Number of rounds. For one thread the shortest counts, for two the median.
const ROUNDS: usize = 9;
/// If a change takes longer than this, the CPUs are not free.
const MOST: Duration = Duration::from_micros(2);
/// If a thread does not start within this time, the CPUs are not free.
const START: Duration = Duration::from_millis(20);

/// Measures in some 5 ms, or uses a recent measurement. `None` if there is one CPU only, or other programs use the CPUs.
pub fn measure() -> Option<LineTransfer> {
    of(measure_on)
}

/// A recent measurement, if there is one. It is used for a running program, whose CPUs must not be disturbed.
pub fn known() -> Option<LineTransfer> {
    of(|_, _| None)
}

fn of(measure: impl Fn(&CpuList, &CpuList) -> Option<LineTransfer>) -> Option<LineTransfer> {
    let two = CpuList::allowed().ok()?.spread(2);
    let mut each = two.iter();
    let [first, second] = [each.next()?, each.next()?];
    let cpus = [CpuList::of([first])?, CpuList::of([second])?];
    let measured = || measure(&cpus[0], &cpus[1]).map(|line| [line.alone_ps, line.shared_ps]);
    let [alone_ps, shared_ps] = boot_cache::measured(&format!("line-transfer-{first}-{second}"), measured)?;
    Some(LineTransfer { alone_ps, shared_ps })
}

fn measure_on(first: &CpuList, second: &CpuList) -> Option<LineTransfer> {
    let (mut alone, mut working, mut shared) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        alone.push(round(&[first], 0)?);
        working.push(round(&[first], WORK)?);
        shared.push(round(&[first, second], WORK)?);
    }
    shared.sort_unstable();
    let (alone, working) = (alone.into_iter().min()?, working.into_iter().min()?);
    let shared = *shared.get(ROUNDS / 2)?;
    if shared > MOST * CHANGES {
        return None;
    }
    let ps = |time: Duration| time.as_nanos() as f64 * 1e3 / f64::from(CHANGES);
    let think = ps(working.saturating_sub(alone));
    let service = service(think, ps(shared) - think);
    (service >= ps(alone)).then_some(LineTransfer { alone_ps: ps(alone) as u64, shared_ps: service as u64 })
}

/// The service time at which a visit takes `visit` if two threads compute for `think` between visits. Mean value analysis gives
/// `visit = service (1 + service / (think + service))`.
fn service(think: f64, visit: f64) -> f64 {
    let less = visit - think;
    (less + (less * less + 8.0 * visit.max(0.0) * think).sqrt()) / 4.0
}

/// Mean time that threads on these CPUs take to change one word. `work`: number of steps between two changes.
fn round(cpus: &[&CpuList], work: u32) -> Option<Duration> {
    let (word, ready) = (AtomicU64::new(0), AtomicUsize::new(0));
    let change = |on: &CpuList| {
        pin(on).ok()?;
        let began = Instant::now();
        ready.fetch_add(1, Ordering::AcqRel);
        while ready.load(Ordering::Acquire) < cpus.len() {
            if began.elapsed() > START {
                return None;
            }
            std::hint::spin_loop();
        }
        let (began, mut state) = (Instant::now(), 1u64);
        for _ in 0..CHANGES {
            word.fetch_add(1, Ordering::Relaxed);
            for _ in 0..work {
                state = std::hint::black_box(state.wrapping_mul(3));
            }
        }
        Some(began.elapsed())
    };
    std::thread::scope(|scope| {
        let change = &change;
        let start = |on| {
            let thread = std::thread::Builder::new().name("lp-line".to_owned());
            thread.spawn_scoped(scope, move || change(on)).ok()
        };
        let threads: Vec<_> = cpus.iter().copied().filter_map(start).collect();
        let took: Option<Vec<Duration>> =
            threads.into_iter().map(|thread| thread.join().ok().flatten()).collect();
        let took = took.filter(|took| took.len() == cpus.len())?;
        Some(took.iter().sum::<Duration>() / took.len() as u32)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A machine may be too busy for some attempts.
    #[test]
    fn a_shared_cache_line_costs_no_less_than_an_unshared_one() {
        let has_two = CpuList::allowed().is_ok_and(|cpus| cpus.len() > 1);
        let Some(line) = std::iter::repeat_with(measure).take(20).flatten().next() else {
            let why = if has_two { "the machine is too busy" } else { "there is one CPU" };
            return println!("SKIP a_shared_cache_line_costs_no_less_than_an_unshared_one: {why}");
        };
        assert!(has_two && line.alone_ps > 0 && line.shared_ps >= line.alone_ps, "{line:?}");
        assert!(known().is_none_or(|known| known == line), "only root has a cache");
    }

    /// Numbers measured with `lock add`: 40 ns of work and a change took 43 ns alone and 65 ns with another CPU.
    #[test]
    fn a_line_s_service_time_is_half_of_a_visit_of_two_threads() {
        let service_ns = service(40.0, 25.0);
        assert!((18.0..20.0).contains(&service_ns), "{service_ns}");
        let visit = |service: f64| service * (1.0 + service / (40.0 + service));
        assert!((visit(service_ns) - 25.0).abs() < 1e-9);
        assert!((service(0.0, 15.0) - 7.5).abs() < 1e-9);
    }
}
