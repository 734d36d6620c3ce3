//! Adds up what recording has cost so far, and for which functions: from the programs' counters, the kernel's statistics
//! of the programs, and the CPU-time clocks of the target and of longpole.

use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::OwnedFd;
use std::sync::atomic::Ordering;
use std::time::Duration;

use aya::Ebpf;
use engine::event::{HitCosts, Overhead};
use probe_abi::{CpuCounters, SILENT_AT_ONCE};

use crate::target::BusyTimes;

use super::{
    poll_urgency::PollUrgency,
    preload_cost::PreloadCost,
    program_rates::{ASSUMED_EVENT_NS, HeldUp, Measured, ProgramRates},
    program_times::{kernel_programs_ns, statistics_on},
    spending::Spent,
};
use crate::probe::breakpoints::{FunctionProbes, LockProbes};
use crate::probe::kernel::Shared;
use crate::probe::sources::{CpuTime, OwnTime, now_ns, waited_for_ns};

/// The kernel's statistics cost two readings of the clock for each run of any program. So they are switched on only for
/// this long, soon after the start and then once in `SAMPLE_EVERY_NS`.
const SAMPLE_NS: u64 = 100_000_000;
const SAMPLE_EVERY_NS: u64 = 10_000_000_000;
/// Pause after a measurement without a result, ns. It must be long, since late checks would otherwise keep the kernel's
/// statistics on all the time.
const SAMPLE_AGAIN_NS: u64 = 1_000_000_000;
/// The costs of a recording from its start on.
pub(crate) struct CostAccounting {
    budget_ppm: Option<u32>,
    costs: Costs,
    start_ns: u64,
    /// The recorded processes at the start. They may have run before; later processes are born during the recording.
    first_pids: BTreeSet<u32>,
    children: bool,
    target: CpuTime,
    waited_for: WaitedFor,
    own: CpuTime,
    /// CPU time of all of longpole at the start, and the part of it that its helper processes used.
    longpole_before_ns: u64,
    helpers_before_ns: u64,
    /// Busy time of the CPUs before the start.
    busy_before: BusyTimes,
    functions: Vec<Line>,
    /// Counted calls of functions that have no probes any more.
    gone: BTreeMap<u32, u64>,
    /// The version of the probes that `functions` belongs to.
    version: u64,
    hits: u64,
    hit_ns: u64,
    last: Counted,
    /// CPU time of the recorded processes, with hits, but without samples and the library's operations.
    target_ns: u64,
    /// Number and cost of operations that the library in the processes has recorded, or not recorded on purpose.
    inside: PreloadCost,
    event_ns: f64,
    /// Time that the collector (longpole's threads that record) spent on scheduler events, ns.
    fixed_collector_ns: f64,
    rates: ProgramRates,
    looked_ns: u64,
    /// Time that the collector spent on records of probes, ns.
    probe_collector_ns: f64,
    sample: Option<Sample>,
    next_sample_ns: u64,
}

/// Costs that were measured before the recording.
#[derive(Clone, Copy)]
pub(crate) struct Costs {
    /// Cost of a probe hit, if it could be measured.
    pub(crate) hits: Option<HitCosts>,
    /// A tick of the clock, nanoseconds, without taking a stack.
    pub(crate) tick_ns: u64,
}

/// CPU time of children that have ended, taken from their parents: most children live for less than the time between
/// two checks.
#[derive(Default)]
struct WaitedFor {
    /// CPU time of ended children of the first processes before the recording.
    before_ns: u64,
    looked_ns: u64,
    /// The largest sum of all processes' CPU time seen so far. It is kept, since the time of a process that has ended is not
    /// visible until its parent waits for it.
    used_ns: u64,
}

impl WaitedFor {
    /// Computes the sum again. The more processes there are the more rarely, since each is a file to be read.
    fn look(&mut self, now_ns: u64, first: &BTreeSet<u32>, later: &[u32], clocks: &mut CpuTime) {
        const EVERY_NS: u64 = 100_000_000;
        const FEW: usize = 64;
        let often = 1 + ((first.len() + later.len()) / FEW) as u64;
        if now_ns.saturating_sub(self.looked_ns) < EVERY_NS * often {
            return;
        }
        self.looked_ns = now_ns;
        let by_first = sum(first.iter().copied());
        // The time of an ended process is counted in its parent's.
        clocks.forget_processes(|pid| !first.contains(&pid) && !later.contains(&pid));
        let waited_for = by_first.saturating_sub(self.before_ns).saturating_add(sum(later.iter().copied()));
        self.used_ns = self.used_ns.max(clocks.total_ns().saturating_add(waited_for));
    }
}

/// CPU time of the ended children of these processes, nanoseconds.
fn sum(pids: impl Iterator<Item = u32>) -> u64 {
    pids.map(waited_for_ns).fold(0, u64::saturating_add)
}

/// The costs of one function that has probes.
struct Line {
    number: u32,
    /// Cost of a call (an entry and its exit) to its thread, nanoseconds.
    call_ns: u64,
    calls: u64,
    /// Cost so far, nanoseconds, including the collector's reading of the records.
    cost_ns: f64,
}

/// Sums at the time of a check.
#[derive(Clone, Copy, Default)]
struct Counted {
    hits: u64,
    function_records: u64,
    events: u64,
    /// Network interrupts.
    interrupts: u64,
    samples: u64,
    /// Time for taking the samples.
    samples_ns: u64,
    /// The parts of samples and time that belong to sleeps and wake-ups.
    event_samples: u64,
    event_samples_ns: u64,
    /// Time of the clock's ticks in recorded processes.
    ticks_ns: u64,
    /// Time of ticks in other processes, ns. These ticks cost the recorded processes nothing, but longpole causes them.
    elsewhere_ns: u64,
    collector_ns: u64,
    /// The part of the collector's time that it spends on making samples of copied stacks, ns.
    unwinding_ns: u64,
}

impl Counted {
    fn of(total: &CpuCounters, tick_ns: u64, collector_ns: u64, unwinding_ns: u64) -> Counted {
        let hits_of_functions = total.entries.saturating_add(total.exits);
        let hits = hits_of_functions.saturating_add(total.libc_hits);
        // A folded or cut call has neither of its two records.
        let silent = total.folded.saturating_add(total.cut).saturating_mul(2);
        let function_records = hits_of_functions.saturating_sub(silent).saturating_add(total.libc_records);
        let told = silent / u64::from(SILENT_AT_ONCE);
        let function_records = function_records.saturating_add(told).min(total.sequence);
        let events = total.sequence.saturating_sub(function_records);
        let (samples, samples_ns) = (total.samples, total.samples_ns);
        let (event_samples, event_samples_ns) = (total.event_samples, total.event_samples_ns);
        let ticks_ns = total.ticks.saturating_mul(tick_ns);
        let elsewhere_ns = total.ticks_elsewhere.saturating_mul(tick_ns);
        let unwinding_ns = unwinding_ns.min(collector_ns);
        Counted {
            hits,
            function_records,
            events,
            interrupts: total.network_interrupts,
            samples,
            samples_ns,
            event_samples,
            event_samples_ns,
            ticks_ns,
            elsewhere_ns,
            collector_ns,
            unwinding_ns,
        }
    }

    /// Cost of samples at sleeps and wake-ups, including reading them, ns.
    fn events_cost_ns(&self) -> u64 {
        let reading = u128::from(self.unwinding_ns) * u128::from(self.event_samples);
        let reading = reading / u128::from(self.samples.max(1));
        self.event_samples_ns.saturating_add(u64::try_from(reading).unwrap_or(u64::MAX))
    }

    /// The recorded threads' time that all samples have taken.
    fn sampling_ns(&self) -> u64 {
        self.samples_ns.saturating_add(self.ticks_ns)
    }
}

/// A measurement with the kernel's statistics while these are on.
struct Sample {
    _on: OwnedFd,
    from_ns: u64,
    until_ns: u64,
    events: u64,
    interrupts: u64,
    network_ns: u64,
    others_ns: u64,
    samples_ns: u64,
}

impl CostAccounting {
    pub(crate) fn new(
        budget_ppm: Option<u32>,
        costs: Costs,
        first_pids: BTreeSet<u32>,
        children: bool,
    ) -> CostAccounting {
        let own = OwnTime::now();
        let mut accounting = CostAccounting {
            budget_ppm,
            costs,
            start_ns: now_ns(),
            first_pids,
            children,
            target: CpuTime::default(),
            waited_for: WaitedFor::default(),
            own: CpuTime::default(),
            longpole_before_ns: own.all_ns,
            helpers_before_ns: own.helpers_ns,
            busy_before: BusyTimes::now(),
            functions: Vec::new(),
            gone: BTreeMap::new(),
            version: 0,
            hits: 0,
            hit_ns: 0,
            last: Counted::default(),
            target_ns: 0,
            inside: PreloadCost::default(),
            event_ns: 0.0,
            fixed_collector_ns: 0.0,
            rates: ProgramRates::default(),
            looked_ns: now_ns(),
            probe_collector_ns: 0.0,
            sample: None,
            next_sample_ns: 0,
        };
        accounting.target.read_processes(accounting.first_pids.iter().copied(), false);
        if children {
            accounting.waited_for.before_ns = sum(accounting.first_pids.iter().copied());
        }
        accounting
    }

    /// Sets the recording's start. `before`: longpole's CPU time at that moment.
    pub(crate) fn begin(&mut self, start_ns: u64, before: OwnTime) {
        self.start_ns = start_ns;
        (self.longpole_before_ns, self.helpers_before_ns) = (before.all_ns, before.helpers_ns);
        self.busy_before = BusyTimes::now();
    }

    /// How soon costs should be added up, judged by the number of hits since the last check.
    pub(crate) fn poll_urgency(&self, shared: &Shared) -> PollUrgency {
        let total = shared.cpu_totals();
        let hits = total.entries.saturating_add(total.exits).saturating_add(total.libc_hits);
        let hits = hits.saturating_sub(self.last.hits);
        let each = self.costs.hits.map_or(1_000, |costs| costs.entry_stepped.total_ns());
        PollUrgency::of(hits.saturating_mul(each))
    }

    /// Longest time until the next check, while the programs' time is being measured.
    pub(crate) fn next_look(&self) -> Option<Duration> {
        self.sample.as_ref().map(|_| Duration::from_nanos(SAMPLE_NS))
    }

    /// Adds up all costs until now.
    pub(crate) fn look(
        &mut self,
        ebpf: &Ebpf,
        shared: &Shared,
        functions: &FunctionProbes,
        operations: &LockProbes,
    ) -> Spent {
        let now_ns = now_ns();
        self.target.read_processes(self.first_pids.iter().copied(), false);
        if self.children {
            let first = &self.first_pids;
            let later: Vec<u32> = shared.tracked_pids().filter(|pid| !first.contains(pid)).collect();
            self.target.read_processes(later.iter().copied(), true);
            self.waited_for.look(now_ns, first, &later, &mut self.target);
        }
        self.own.read_own_threads();
        let unwinding_ns = shared.unwinding_ns.load(Ordering::Relaxed);
        let counted =
            Counted::of(&shared.cpu_totals(), self.costs.tick_ns, self.own.total_ns(), unwinding_ns);
        self.inside = shared.operations.load();
        let last = std::mem::replace(&mut self.last, counted);
        let since = |now: u64, before: u64| now.saturating_sub(before) as f64;
        let collector = since(counted.collector_ns, last.collector_ns);
        let collector = (collector - since(counted.unwinding_ns, last.unwinding_ns)).max(0.0);
        let function_records = since(counted.function_records, last.function_records);
        let events = since(counted.events, last.events);
        let interrupts = since(counted.interrupts, last.interrupts);
        let passed = since(now_ns, std::mem::replace(&mut self.looked_ns, now_ns));
        self.event_ns += self.rates.cost_ns(passed, events, interrupts);
        let each_hit = self.costs.hits.map_or(ASSUMED_EVENT_NS, |costs| costs.entry.total_ns() as f64);
        let of_functions = reading_ns(collector, function_records, events, each_hit);
        self.fixed_collector_ns += collector - of_functions;
        self.probe_collector_ns += of_functions;
        self.hits = counted.hits;

        let version = functions.version().wrapping_add(operations.version());
        if version != self.version {
            self.version = version;
            self.renew(functions, operations, shared);
        }
        for line in &mut self.functions {
            let calls = shared.function(line.number).map_or(0, |counters| counters.calls);
            let more = calls.saturating_sub(line.calls);
            line.calls = calls;
            let cost = more.saturating_mul(line.call_ns);
            self.hit_ns = self.hit_ns.saturating_add(cost);
            line.cost_ns += cost as f64;
            // Its share of the collector's time, by calls: each has two hits.
            line.cost_ns += of_functions * more as f64 / since(counted.hits, last.hits).max(1.0) * 2.0;
        }
        self.sample(ebpf, now_ns, &counted);
        let added_ns = counted.sampling_ns().saturating_add(self.inside.took_ns());
        // The two were not read at the same time, so the difference could fall.
        self.target_ns = self.target_ns.max(self.used_ns().saturating_sub(added_ns));
        Spent {
            now_ns,
            target_ns: self.target_ns,
            hits_ns: self.hit_ns,
            probes_ns: self.hit_ns.saturating_add(self.probe_collector_ns as u64),
            // Ticks in other processes count in [`CostAccounting::overhead`] only; on a full machine they never end.
            samples_ns: counted.sampling_ns().saturating_add(counted.unwinding_ns),
            event_samples_ns: counted.events_cost_ns(),
            fixed_ns: ((self.event_ns + self.fixed_collector_ns) as u64)
                .saturating_add(self.inside.took_ns()),
            probes: self.functions.iter().map(|line| (line.number, line.cost_ns as u64)).collect(),
        }
    }

    /// CPU time of the recorded processes, including everything that recording does in them, ns.
    fn used_ns(&self) -> u64 {
        self.waited_for.used_ns.max(self.target.total_ns())
    }

    /// Makes the programs' time be measured again, since programs were attached or detached.
    pub(crate) fn measure_soon(&mut self) {
        self.sample = None;
        self.next_sample_ns = 0;
    }

    /// Adds the cost of counting requests.
    pub(crate) fn charge(&mut self, cost_ns: u64) {
        self.event_ns += cost_ns as f64;
    }

    /// Whether the cost of recording is limited.
    pub(crate) fn has_budget(&self) -> bool {
        self.budget_ppm.is_some()
    }

    /// The costs as of the last check.
    pub(crate) fn overhead(&self) -> Overhead {
        // Reading symbols and drawing must not cause probes to be removed, but the user sees their cost.
        let now = OwnTime::now();
        let longpole_ns = now.all_ns.saturating_sub(self.longpole_before_ns).max(self.last.collector_ns);
        let reading_ns = now.helpers_ns.saturating_sub(self.helpers_before_ns).min(longpole_ns);
        let event_ns = self.event_ns as u64;
        let added_ns = self.hit_ns.saturating_add(event_ns).saturating_add(self.last.sampling_ns());
        let added_ns = added_ns.saturating_add(self.inside.took_ns());
        let busy = BusyTimes::now().all_since(&self.busy_before);
        let busy_ns = u64::try_from(busy.as_nanos()).unwrap_or(u64::MAX);
        Overhead {
            budget_ppm: self.budget_ppm,
            wall_ns: now_ns().saturating_sub(self.start_ns),
            target_ns: self.used_ns().saturating_sub(added_ns),
            hits: self.hits,
            hit_ns: self.hit_ns,
            events: self.last.events,
            event_ns,
            operations: self.inside.recorded,
            operation_ns: self.inside.recorded_ns,
            left_out: self.inside.left_out,
            left_out_ns: self.inside.left_out_ns,
            samples: self.last.samples,
            sample_ns: self.last.sampling_ns(),
            once_ns: self.longpole_before_ns.saturating_add(reading_ns),
            collector_ns: longpole_ns.saturating_sub(reading_ns).saturating_add(self.last.elsewhere_ns),
            unwinding_ns: self.last.unwinding_ns,
            others_ns: busy_ns.saturating_sub(self.used_ns()).saturating_sub(longpole_ns),
            hosts: 0,
        }
    }

    /// Adapts the lines to a changed set of functions with probes; functions that keep their probes keep their lines.
    fn renew(&mut self, functions: &FunctionProbes, operations: &LockProbes, shared: &Shared) {
        let costs = self.costs.hits.unwrap_or_default();
        let mut old: BTreeMap<u32, Line> =
            std::mem::take(&mut self.functions).into_iter().map(|line| (line.number, line)).collect();
        let mut lines = BTreeMap::new();
        for function in functions.functions() {
            let entry = if function.entry_stepped { costs.entry_stepped } else { costs.entry };
            let exit = match (function.exit_offsets.is_empty(), function.exits_stepped) {
                (true, _) => 0,
                (false, true) => costs.exit.total_ns(),
                (false, false) => costs.entry.total_ns(),
            };
            lines.entry(function.id).or_insert_with(|| {
                old.remove(&function.id).unwrap_or_else(|| Line {
                    number: function.id,
                    call_ns: entry.total_ns().saturating_add(exit),
                    calls: self.gone.get(&function.id).copied().unwrap_or(0),
                    cost_ns: 0.0,
                })
            });
        }
        for (number, ..) in operations.families() {
            // Some of libc's functions begin with an instruction that is stepped over.
            let call_ns = costs.entry_stepped.total_ns().saturating_add(costs.exit.total_ns());
            lines.entry(number).or_insert_with(|| {
                old.remove(&number).unwrap_or_else(|| Line {
                    number,
                    call_ns,
                    calls: shared.function(number).map_or(0, |counters| counters.calls),
                    cost_ns: 0.0,
                })
            });
        }
        self.functions = lines.into_values().collect();
        // Calls since the last check, before the probes were removed, still count.
        for line in old.values() {
            let calls = shared.function(line.number).map_or(0, |counters| counters.calls);
            let cost = calls.saturating_sub(line.calls).saturating_mul(line.call_ns);
            self.hit_ns = self.hit_ns.saturating_add(cost);
            self.gone.insert(line.number, calls.max(line.calls));
        }
    }

    /// Begins or ends a measurement of the scheduler programs' time.
    fn sample(&mut self, ebpf: &Ebpf, now_ns: u64, counted: &Counted) {
        let Counted { events, interrupts, samples_ns, .. } = *counted;
        match self.sample.take_if(|sample| now_ns >= sample.until_ns) {
            Some(sample) => {
                let (network_ns, others_ns) = kernel_programs_ns(ebpf);
                let samples_ns = samples_ns.saturating_sub(sample.samples_ns);
                let measured = Measured {
                    lasted_ns: now_ns.saturating_sub(sample.from_ns),
                    events: events.saturating_sub(sample.events),
                    interrupts: interrupts.saturating_sub(sample.interrupts),
                    network_ns: network_ns.saturating_sub(sample.network_ns),
                    others_ns: others_ns.saturating_sub(sample.others_ns).saturating_sub(samples_ns),
                };
                match self.rates.measured(&measured) {
                    Ok(rates) => self.rates = rates,
                    Err(HeldUp) => self.next_sample_ns = now_ns.saturating_add(SAMPLE_AGAIN_NS),
                }
            }
            None if self.sample.is_none() && now_ns >= self.next_sample_ns => {
                self.next_sample_ns = now_ns.saturating_add(SAMPLE_EVERY_NS);
                let (network_ns, others_ns) = kernel_programs_ns(ebpf);
                self.sample = statistics_on().map(|on| Sample {
                    _on: on,
                    from_ns: now_ns,
                    until_ns: now_ns.saturating_add(SAMPLE_NS),
                    events,
                    interrupts,
                    network_ns,
                    others_ns,
                    samples_ns,
                });
            }
            None => {}
        }
    }
}

/// The collector's time for records of probes: its time is divided by numbers of records, but reading a record takes no
/// longer than its hit. An idle collector's time is no probe's doing, even if the few records that it finds are all
/// of probes.
fn reading_ns(collector_ns: f64, of_probes: f64, others: f64, each_hit_ns: f64) -> f64 {
    let share = of_probes / (of_probes + others).max(1.0);
    (collector_ns * share).min(of_probes * each_hit_ns)
}

#[cfg(test)]
mod tests {
    use super::reading_ns;

    /// The collector also takes time for other work, such as removing probes. If that time were charged to the few
    /// records of a rarely called function, the function would lose its probes.
    #[test]
    fn an_idle_collector_s_time_is_not_charged_to_records() {
        assert_eq!(reading_ns(7_000_000.0, 80.0, 14.0, 6_500.0), 80.0 * 6_500.0);
        assert_eq!(reading_ns(7_000_000.0, 10_000.0, 10_000.0, 6_500.0), 3_500_000.0);
        assert_eq!(reading_ns(7_000_000.0, 0.0, 0.0, 6_500.0), 0.0);
    }
}
