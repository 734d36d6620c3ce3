//! How often functions of a running program are called, before they get probes: a moment in which calls are counted and
//! nothing else is done.
//!
//! Ours. Probes on a busy program slow it down most right after they came, until the governor has seen which ones are too
//! dear and has taken them off: the kernel needs tens of milliseconds to replace a link of some hundred functions, for
//! every one of them, and hot functions are everywhere. A Redis under load stood still for 0.3 s. A breakpoint at the first
//! instruction only, with a program that counts, is the cheapest hit there is; closing such links frees the program at
//! once; and what was called too often in that moment does not get its real probes at all. Putting probes on the others
//! takes as long as before, but the program hardly notices it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

use aya::Ebpf;
use aya::programs::UProbe;
use aya::programs::uprobe::{UProbeAttachLocation, UProbeAttachPoint, UProbeLink, UProbeScope};
use engine::event::{HitCosts, Note, NoteKind};
use std::num::NonZeroU32;

use super::attach::{Link, close_together, program};
use super::budget::Budget;
use super::capture::{Capture, now_ns};
use super::clocks::CpuTime;
use super::load::Shared;
use super::options::{CaptureOptions, ProbeFunction};

/// How long calls are counted when the last breakpoint is there.
const COUNTED: Duration = Duration::from_millis(10);

/// Of a CPU: what costs less in all does not make a program stand still, and is left to the governor, which sees more of it.
const BEARABLE: f64 = 1.0;

/// Fewer calls are no sign that it will go on like this: such functions are tried again when there is room for them.
const SURE: u64 = 30;

/// Functions that need not be tried.
#[derive(Debug, Default)]
pub(super) struct Census {
    /// Surely called more often than the limit, with calls per second.
    pub(super) hot: BTreeMap<u32, u64>,
    /// The dearest of the others, without which the rest can be borne until the governor sees it, with the share of a CPU that each would cost.
    pub(super) dear: BTreeMap<u32, f64>,
}

impl Capture {
    /// Functions that need not be tried are without probes from the beginning on: for good, or until there is room for them.
    pub(super) fn leave_out(&mut self, census: &Census, budget: &mut Budget) {
        let now_ns = now_ns();
        for &number in census.hot.keys() {
            self.common.shared.cut(number, now_ns);
        }
        let resting: BTreeSet<u32> = census.dear.keys().copied().collect();
        let probes = &mut *self.common.lock();
        if let Err(error) = probes.functions.rest(&mut probes.ebpf, &resting) {
            log::warn!("functions that cost too much get probes: {error}");
        }
        budget.leave_out(&census.dear, now_ns);
        let hot = census.hot.iter().map(|(number, rate)| (*number, *rate));
        let dear = resting.iter().map(|number| (*number, 0));
        let (functions, rates): (Vec<u32>, Vec<u64>) = hot.chain(dear).unzip();
        if !functions.is_empty() {
            self.own_notes.push(Note { time_ns: now_ns, kind: NoteKind::ProbesOff { functions, rates } });
        }
    }
}

/// Counts calls. Whatever cannot be probed is left to those who put on the real probes.
pub(super) fn take(
    ebpf: &mut Ebpf,
    shared: &Shared,
    options: &CaptureOptions,
    costs: Option<HitCosts>,
) -> Census {
    let wanted = options.uprobes && options.at_work && !options.functions.is_empty();
    let Some(budget_ppm) = options.budget_ppm.filter(|_| wanted) else {
        return Census::default();
    };
    let probe: &mut UProbe = match program(ebpf, "census_probe") {
        Ok(probe) => probe,
        Err(_) => return Census::default(),
    };
    if let Err(error) = probe.load() {
        log::debug!("calls are not counted beforehand: {error}");
        return Census::default();
    }
    let mut links = Vec::new();
    let mut cpu = CpuTime::default();
    cpu.read_processes(options.pids.iter().copied(), false);
    let began_ns = now_ns();
    for pid in options.pids.iter().filter_map(|pid| NonZeroU32::new(*pid)) {
        let of_pid = |function: &&ProbeFunction| function.pid.is_none_or(|only| only == pid.get());
        let mut by_binary: BTreeMap<&Path, Vec<&ProbeFunction>> = BTreeMap::new();
        for function in options.functions.iter().filter(of_pid) {
            by_binary.entry(&function.binary).or_default().push(function);
        }
        for (binary, functions) in by_binary {
            attach_some(probe, pid, binary, &functions, &mut links);
        }
    }
    let there_ns = now_ns();
    std::thread::sleep(COUNTED);
    // From the first breakpoint on: the last ones have counted for less time. What seems too rare is the governor's to see.
    let since_ns = now_ns().saturating_sub(began_ns).max(1);
    let numbers: BTreeSet<u32> = options.functions.iter().map(|function| function.id).collect();
    let calls: BTreeMap<u32, u64> = numbers
        .iter()
        .filter_map(|&number| Some((number, shared.function(number)?.calls)))
        .filter(|(_, calls)| *calls > 0)
        .collect();
    cpu.read_processes(options.pids.iter().copied(), false);
    for closing in close_together(links.into_iter().map(|link| Box::new(link) as Link).collect()) {
        // A panic in there would have been told.
        let _ = closing.join();
    }
    for &number in &numbers {
        shared.forget_calls(number);
    }
    log::debug!(
        "{} of {} functions were called in {since_ns} ns, {} ns of which the breakpoints took",
        calls.len(),
        numbers.len(),
        there_ns.saturating_sub(began_ns)
    );
    let costs = costs.unwrap_or_default();
    let call_ns = costs.entry_stepped.total_ns().saturating_add(costs.exit.total_ns());
    let stepped: BTreeMap<u32, bool> =
        options.functions.iter().map(|function| (function.id, function.entry_stepped)).collect();
    let hits_ns = calls.iter().fold(0u64, |sum, (number, calls)| {
        let stepped = stepped.get(number).copied().unwrap_or_default();
        let hit = if stepped { costs.entry_stepped } else { costs.entry };
        sum.saturating_add(calls.saturating_mul(hit.total_ns()))
    });
    let ns = undisturbed_ns(since_ns, cpu.total_ns(), hits_ns);
    let most = BEARABLE.max(f64::from(budget_ppm) / 1e6);
    let census = weigh(&calls, ns, options.max_rate_hz, most, call_ns);
    log::debug!("{} are hot, {} dear, in {ns} of {since_ns} ns", census.hot.len(), census.dear.len());
    census
}

/// How long the processes would have taken for what they did in `wall_ns` without the hits, which took so much of their
/// CPU time. Hits cost more than was measured while breakpoints come and go: one twentieth is believed.
fn undisturbed_ns(wall_ns: u64, cpu_ns: u64, hits_ns: u64) -> u64 {
    let share = cpu_ns.saturating_sub(hits_ns) as f64 / cpu_ns.max(1) as f64;
    (wall_ns as f64 * if cpu_ns == 0 { 1.0 } else { share.max(0.05) }) as u64
}

/// What follows from so many calls in so long a time.
fn weigh(calls: &BTreeMap<u32, u64>, ns: u64, limit_hz: u64, most: f64, call_ns: u64) -> Census {
    let mut census = Census::default();
    let mut others = Vec::new();
    for (&number, &calls) in calls {
        let rate_hz = calls as f64 * 1e9 / ns as f64;
        if limit_hz > 0 && rate_hz > limit_hz as f64 && calls >= SURE {
            census.hot.insert(number, rate_hz as u64);
        } else {
            others.push((rate_hz * call_ns as f64 / 1e9, number));
        }
    }
    others.sort_by(|a, b| b.0.total_cmp(&a.0));
    let mut left: f64 = others.iter().map(|(cost, _)| cost).sum();
    for (cost, number) in others {
        if left <= most {
            break;
        }
        left -= cost;
        census.dear.insert(number, cost);
    }
    census
}

/// Where the kernel refuses one of the instructions, halves are tried.
fn attach_some(
    probe: &mut UProbe,
    pid: NonZeroU32,
    binary: &Path,
    functions: &[&ProbeFunction],
    links: &mut Vec<UProbeLink>,
) {
    if functions.is_empty() {
        return;
    }
    let points = functions.iter().map(|function| UProbeAttachPoint {
        location: UProbeAttachLocation::AbsoluteOffset(function.entry_offset),
        cookie: Some(u64::from(function.id)),
    });
    let link = probe.attach(points, binary, UProbeScope::OneProcess(pid));
    match link.and_then(|id| probe.take_link(id)) {
        Ok(link) => links.push(link),
        Err(_) if functions.len() > 1 => {
            let (left, right) = functions.split_at(functions.len() / 2);
            attach_some(probe, pid, binary, left, links);
            attach_some(probe, pid, binary, right, links);
        }
        Err(error) => log::debug!("calls of function {} are not counted: {error}", functions[0].id),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_that_hits_took_does_not_count() {
        assert_eq!(undisturbed_ns(50_000, 0, 0), 50_000, "it slept");
        assert_eq!(undisturbed_ns(50_000, 40_000, 10_000), 37_500);
        assert_eq!(undisturbed_ns(50_000, 40_000, 90_000), 2_500, "never nothing");
    }

    #[test]
    fn what_is_called_too_often_or_costs_too_much_is_told_apart() {
        let calls = BTreeMap::from([(1, 1_001), (2, 1_000), (3, 200), (4, 150), (5, 1)]);
        // In a tenth of a second, with 10 microseconds for a call: 200 calls cost 2 %.
        let census = weigh(&calls, 100_000_000, 10_000, 0.02, 10_000);
        assert_eq!(census.hot, BTreeMap::from([(1, 10_010)]));
        assert_eq!(census.dear.keys().copied().collect::<Vec<_>>(), [2, 3]);
        assert!((census.dear[&2] - 0.1).abs() < 1e-9);
        // Too few to say it for good.
        let few = weigh(&BTreeMap::from([(1, 29), (2, 30)]), 1_000_000, 10_000, 0.02, 10_000);
        assert_eq!(few.hot.keys().chain(few.dear.keys()).copied().collect::<Vec<_>>(), [2, 1]);
        let unlimited = weigh(&calls, 100_000_000, 0, 1.0, 10_000);
        assert!(unlimited.hot.is_empty() && unlimited.dear.is_empty());
    }
}
