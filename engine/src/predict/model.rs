//! The parameters of the machine to predict for: the user's settings, else recorded numbers, else usual ones.

use crate::cpus::Cpus;
use crate::program::{MachineFacts, ObjectId, Operation, Program};
use crate::schedule::{SchedulerParameters, Setup, SharedCpuCosts, Sharing, base_slice};
use crate::time::Ticks;
use serde::Serialize;

/// The user's settings of the machine to predict for; all other facts come from the recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Model {
    /// How threads share processors. `None`: like Linux for a recorded program, or if one of the fields below from
    /// `slice_ns` on is set. Otherwise ideally, as in the papers, for a program written by hand.
    pub scheduler: Option<Scheduler>,
    /// How long a thread may run while another thread wants its CPU, ns.
    pub slice_ns: Option<u64>,
    /// Cost of putting another thread on a CPU, ns.
    pub switch_cost_ns: Option<u64>,
    /// Time from waking a thread to the thread's first instruction on an idle CPU, ns.
    pub wake_latency_ns: Option<u64>,
    /// CPU time that waking a thread on an idle CPU takes from its waker, in addition to the time in the recording, ns.
    pub wake_cost_ns: Option<u64>,
    /// An idle CPU only sometimes asks the other CPUs for waiting threads, and again after this time at most, ns; 0: it
    /// takes a waiting thread at once.
    pub idle_tick_ns: Option<u64>,
    /// CPU time that the program may use, in hundredths of a CPU.
    pub quota: Option<u32>,
    /// For each device, by the name of its object: number of waits that it serves at once; 0: any number.
    pub devices: Vec<(String, u32)>,
    /// Number of waits that other devices serve at once.
    pub io: Io,
    /// Seed of random choices for what the model leaves open; 0: run 0 makes none.
    pub seed: u64,
    /// How many times the program is run on each CPU count, each time with other random choices; at least 1.
    pub runs: u32,
}

impl Default for Model {
    fn default() -> Model {
        Model {
            scheduler: None,
            slice_ns: None,
            switch_cost_ns: None,
            wake_latency_ns: None,
            wake_cost_ns: None,
            idle_tick_ns: None,
            quota: None,
            devices: Vec::new(),
            io: Io::default(),
            seed: 0,
            runs: 5,
        }
    }
}

/// How threads of the model share processors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scheduler {
    /// As Linux has done since 6.6 (EEVDF).
    #[default]
    Eevdf,
    /// In infinitely small slices without any cost (2001, section 2.3).
    Ideal,
}

/// Number of waits that a device serves at once, unless a setting names it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Io {
    /// As many waits as the recording shows at once; any number if the recording shows nothing.
    #[default]
    AsRecorded,
    /// One wait (1999, section 4).
    Serial,
    /// Any number.
    Unlimited,
}

/// A number of nanoseconds, and where it is from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct KnownNs {
    /// Nanoseconds.
    pub ns: u64,
    /// `set`, `recorded`, `measured` (on the machine, at the start of the recording) or `assumed`.
    pub from: &'static str,
}

/// The parameters of a prediction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assumptions {
    /// How threads share processors in the model.
    pub scheduler: Scheduler,
    /// Slice; `None` if it depends on the CPU count ([`base_slice`], up to the next tick).
    pub slice: Option<KnownNs>,
    /// Cost of putting another thread on a CPU.
    pub switch_cost: KnownNs,
    /// Time from waking a thread to the thread's first instruction on an idle CPU.
    pub wake_latency: KnownNs,
    /// The slowest tenth of recorded latencies is longer than the first, the slowest hundredth than the second, ns; 0: not
    /// known.
    pub slow_wakes: [u64; 2],
    /// Of a thousand recorded wake-ups of threads whose own CPU was busy while another CPU was idle: how many got an
    /// idle CPU.
    pub idle_found: Option<u16>,
    /// CPU time that waking a thread on an idle CPU takes from its waker, in addition to the waker's compute times.
    pub wake_cost: KnownNs,
    /// How soon an idle CPU that found no waiting thread checks again; 0: it takes a waiting thread at once.
    pub idle_tick: KnownNs,
    /// The program's quota, in hundredths of a CPU.
    pub quota: Option<u32>,
    /// Devices that serve a limited number of waits at once, in order of their objects.
    pub devices: Vec<(String, u32)>,
    /// Number of cache lines for which threads wait longer on more CPUs.
    pub lines: usize,
    /// Whether CPU time at contended locks is absent on fewer CPUs.
    pub locks: bool,
    servers: Vec<u32>,
    tick: Option<Ticks>,
    seed: u64,
}

/// Latency of waking a thread on an idle CPU, for recordings that do not show it, as on one CPU: an interrupt and
/// leaving the idle loop. The latency ranges from some 3 µs on a machine that idles lightly to some 30 µs on a virtual
/// one.
const USUAL_LATENCY_NS: u64 = 10_000;
/// Value of [`Model::quota`] that ignores even the recorded program's quota.
pub const NO_QUOTA: u32 = u32::MAX;
/// Upper limit of costs, latencies and slices: a second.
const MOST_NS: u64 = 1_000_000_000;
/// Lower limit of slices.
const LEAST_SLICE_NS: u64 = 1_000;
/// Largest number of slices in a run; longer slices make no visible difference.
const MOST_SLICES: u64 = 1 << 26;

/// Number of portions in which a quota gives out this work, in ticks: 5 ms each, or a period's quota if that is less. Bounds
/// the simulation, since a damaged file may claim any work; a real program has too many portions after 18 hours of CPU time
/// at the earliest.
fn portions(work: u64, hundredths: u32) -> u64 {
    work / Ticks::from_ns(1_000_000 * u64::from(hundredths.clamp(1, 5))).0
}

impl Assumptions {
    /// Settles the parameters for this program.
    pub(crate) fn of(program: &Program, model: &Model) -> Assumptions {
        let facts = program.machine.clone().unwrap_or_default();
        let known = |set: Option<u64>, recorded: Option<u64>, measured: Option<u64>, assumed: u64| {
            let (ns, from) = match (set, recorded, measured) {
                (Some(ns), _, _) => (ns, "set"),
                (None, Some(ns), _) => (ns, "recorded"),
                (None, None, Some(ns)) => (ns, "measured"),
                (None, None, None) => (assumed, "assumed"),
            };
            KnownNs { ns: ns.min(MOST_NS), from }
        };
        let wake = facts.idle_wake;
        // On several CPUs, the recorded compute times of wakers contain this cost already.
        let cost_recorded = facts.cpus_used.filter(|cpus| *cpus > 1).map(|_| 0);
        // A program written by hand has no costs unless the user sets them.
        let latency = if program.machine.is_some() { USUAL_LATENCY_NS } else { 0 };
        // Recorded slices include those that a wake-up ended, so the clock's tick is better evidence of the slice's
        // length.
        let tick = facts.tick_ns.filter(|tick| (LEAST_SLICE_NS..=MOST_NS).contains(tick));
        let recorded = facts.slice_ns.filter(|_| tick.is_none());
        let slice = model.slice_ns.or(recorded).map(|_| {
            let slice = known(model.slice_ns, recorded, None, 0);
            KnownNs { ns: slice.ns.max(LEAST_SLICE_NS), ..slice }
        });
        let servers = servers(program, model, &facts);
        let limited = servers.iter().zip(&program.objects).filter(|(servers, _)| **servers > 0);
        let numbers = [
            model.slice_ns,
            model.switch_cost_ns,
            model.wake_latency_ns,
            model.wake_cost_ns,
            model.idle_tick_ns,
        ];
        let has_scheduler = program.machine.is_some() || numbers.iter().any(Option::is_some);
        let usual = if has_scheduler { Scheduler::Eevdf } else { Scheduler::Ideal };
        let measured = wake.map(|wake| wake.latency_ns);
        let wake_latency = known(model.wake_latency_ns, facts.wake_latency_ns, measured, latency);
        let slow_wakes = facts.slow_wakes_ns.filter(|_| wake_latency.from == "recorded").unwrap_or_default();
        Assumptions {
            scheduler: model.scheduler.unwrap_or(usual),
            slice,
            switch_cost: known(model.switch_cost_ns, facts.switch_cost_ns, None, 0),
            wake_latency,
            slow_wakes: slow_wakes.map(|ns| ns.min(MOST_NS)),
            idle_found: facts.idle_found.filter(|_| model.idle_tick_ns != Some(0)),
            wake_cost: known(model.wake_cost_ns, cost_recorded, wake.map(|wake| wake.cost_ns), 0),
            idle_tick: known(model.idle_tick_ns, facts.idle_tick_ns, None, 0),
            quota: model
                .quota
                .or(facts.cpu_quota)
                .map(|quota| quota.max(1))
                .filter(|quota| *quota < NO_QUOTA),
            lines: facts.lines.len(),
            locks: facts.lock_work.is_some(),
            devices: limited.map(|(servers, name)| (name.clone(), *servers)).collect(),
            servers,
            tick: tick.map(Ticks::from_ns),
            seed: model.seed,
        }
    }

    /// The machine for run number `time`. `work` is the length of all operations, in ticks.
    pub(super) fn setup(&self, cpus: Cpus, threads: usize, work: u64, time: u32) -> Setup {
        let count = match cpus {
            Cpus::Count(count) => count.get(),
            Cpus::Infinite => u32::try_from(threads).unwrap_or(u32::MAX).max(1),
        };
        let processors = match self.scheduler {
            Scheduler::Ideal => {
                let all = u64::from(count).saturating_mul(100);
                Sharing::Ideal { hundredths: self.quota.map_or(all, |quota| all.min(u64::from(quota))) }
            }
            Scheduler::Eevdf => {
                // A scheduler model with ticks ends slices at ticks without a slice length.
                let tick = self.tick.filter(|_| self.idle_tick.ns == 0);
                let slice =
                    self.slice.map_or(to_tick(base_slice(count), tick), |slice| Ticks::from_ns(slice.ns));
                Sharing::Scheduled(SchedulerParameters {
                    cpus: count,
                    slice: slice.max(Ticks(work / MOST_SLICES)),
                    switch_cost: Ticks::from_ns(self.switch_cost.ns),
                    wake_latency: Ticks::from_ns(self.wake_latency.ns),
                    slow_wakes: self.slow_wakes.map(Ticks::from_ns),
                    idle_found: self.idle_found.map_or(1000, u32::from),
                    wake_cost: Ticks::from_ns(self.wake_cost.ns),
                    tick: match self.idle_tick.ns {
                        0 => Ticks(0),
                        ns => Ticks::from_ns(ns).max(Ticks(work / MOST_SLICES)),
                    },
                    quota: self.quota.filter(|quota| {
                        // The quota is ignored if all these CPUs together cannot use it up.
                        u64::from(*quota) < u64::from(count) * 100 && portions(work, *quota) <= MOST_SLICES
                    }),
                    seed: if time == 0 { self.seed } else { mixed(self.seed, time) },
                })
            }
        };
        Setup { processors, servers: self.servers.clone() }
    }

    /// Ideally shared processors with costs of waking, for the extended critical path.
    pub(super) fn costs(&self, cpus: Cpus, threads: usize) -> SharedCpuCosts {
        let count = match cpus {
            Cpus::Count(count) => u64::from(count.get()),
            Cpus::Infinite => u64::try_from(threads).unwrap_or(u64::MAX).max(1),
        };
        let all = count.saturating_mul(100);
        let of = |known: KnownNs| match self.scheduler {
            Scheduler::Ideal => Ticks(0),
            Scheduler::Eevdf => Ticks::from_ns(known.ns),
        };
        SharedCpuCosts {
            hundredths: self.quota.map_or(all, |quota| all.min(u64::from(quota))),
            wake_latency: of(self.mean_wake_latency()),
            wake_cost: of(self.wake_cost),
            servers: self.servers.clone(),
        }
    }

    /// The mean of the latencies that the scheduler's model draws, for a schedule with one latency for all wake-ups.
    fn mean_wake_latency(&self) -> KnownNs {
        let ([slow, slowest], KnownNs { ns, from }) = (self.slow_wakes, self.wake_latency);
        if slow <= ns {
            return self.wake_latency;
        }
        // The median, the 90th and the 99th percentile are given. Draws are linear between half of the median, these three,
        // and twice the last.
        let sum = 375 * ns + 200 * (ns + slow) + 45 * (slow + slowest) + 15 * slowest;
        KnownNs { ns: sum / 1000, from }
    }

    pub(super) fn servers(&self, object: ObjectId) -> u32 {
        self.servers.get(object.0 as usize).copied().unwrap_or(0)
    }
}

/// Rounds a slice up to a multiple of the tick: the kernel checks slices only at ticks (`update_curr` in `entity_tick`,
/// kernel/sched/fair.c).
fn to_tick(slice: Ticks, tick: Option<Ticks>) -> Ticks {
    match tick {
        Some(tick) if tick.0 > 0 => Ticks(slice.0.div_ceil(tick.0).saturating_mul(tick.0)),
        _ => slice,
    }
}

/// A seed for run number `time`. Never 0, which would mean no random choices.
fn mixed(seed: u64, time: u32) -> u64 {
    crate::numbers::Numbers::new(seed ^ (u64::from(time) << 32)).next_u64() | 1
}

/// Number of waits that each device serves at once, by object; 0 is any number.
fn servers(program: &Program, model: &Model, facts: &MachineFacts) -> Vec<u32> {
    let mut servers = vec![0; program.objects.len()];
    if model.io == Io::Serial {
        let operations = program.threads.iter().flat_map(|thread| &thread.operations);
        for operation in operations {
            if let Operation::Io(object, _) = operation
                && let Some(servers) = servers.get_mut(object.0 as usize)
            {
                *servers = 1;
            }
        }
    }
    for (servers, name) in servers.iter_mut().zip(&program.objects) {
        if model.io == Io::AsRecorded
            && let Some(device) = facts.devices.iter().find(|device| device.name == *name)
        {
            *servers = device.most_at_once;
        }
        if let Some((_, set)) = model.devices.iter().find(|(device, _)| device == name) {
            *servers = *set;
        }
    }
    servers
}

#[cfg(test)]
mod tests {
    use super::*;

    fn assumed(machine: MachineFacts, model: &Model) -> Assumptions {
        let program = Program { machine: Some(machine), ..Program::default() };
        Assumptions::of(&program, model)
    }

    fn slice(assumptions: &Assumptions, cpus: u32) -> Ticks {
        match assumptions.setup(Cpus::count(cpus).expect("a count"), 1, 0, 0).processors {
            Sharing::Scheduled(parameters) => parameters.slice,
            Sharing::Ideal { .. } => Ticks(0),
        }
    }

    /// A file may claim thousands of years of CPU time under a quota of one hundredth: too many periods to simulate.
    #[test]
    fn a_quota_is_simulated_only_where_the_simulation_ends() {
        let machine = MachineFacts { cpu_quota: Some(120), ..MachineFacts::default() };
        let quota = |cpus: u32, work_s: u64, model: &Model| {
            let work = Ticks::from_ns(work_s * 1_000_000_000).0;
            match assumed(machine.clone(), model)
                .setup(Cpus::count(cpus).expect("a count"), 4, work, 0)
                .processors
            {
                Sharing::Scheduled(parameters) => parameters.quota,
                Sharing::Ideal { .. } => None,
            }
        };
        let as_recorded = Model::default();
        assert_eq!(quota(2, 3_600, &as_recorded), Some(120));
        assert_eq!(quota(1, 3_600, &as_recorded), None, "one CPU cannot use it up");
        assert_eq!(quota(2, 3_600, &Model { quota: Some(50), ..Model::default() }), Some(50));
        assert_eq!(quota(2, 3_600, &Model { quota: Some(NO_QUOTA), ..Model::default() }), None);
        assert_eq!(quota(2, 1_000_000, &as_recorded), None);
    }

    #[test]
    fn a_slice_ends_at_a_tick_of_the_clock() {
        let facts = |tick_ns| MachineFacts { tick_ns, slice_ns: Some(300_000), ..MachineFacts::default() };
        let model = Model::default();
        // 1.4 ms, and 2.8 ms on eight; the recorded slices are those that something ended early.
        assert_eq!(slice(&assumed(facts(Some(4_000_000)), &model), 2), Ticks::from_ns(4_000_000));
        assert_eq!(slice(&assumed(facts(Some(1_000_000)), &model), 2), Ticks::from_ns(2_000_000));
        assert_eq!(slice(&assumed(facts(Some(1_000_000)), &model), 8), Ticks::from_ns(3_000_000));
        assert_eq!(slice(&assumed(facts(None), &model), 2), Ticks::from_ns(300_000));
        assert_eq!(slice(&assumed(facts(Some(0)), &model), 2), Ticks::from_ns(300_000));
        let set = Model { slice_ns: Some(5_000), ..model };
        assert_eq!(slice(&assumed(facts(Some(4_000_000)), &set), 2), Ticks::from_ns(5_000));
    }

    #[test]
    fn recorded_wake_ups_are_preferred_to_the_measured_one() {
        let measured = crate::event::IdleWake { latency_ns: 25_000, cost_ns: 9_000 };
        let facts = |cpus_used, wake_latency_ns| MachineFacts {
            idle_wake: Some(measured),
            cpus_used,
            wake_latency_ns,
            ..MachineFacts::default()
        };
        let one = assumed(facts(Some(1), None), &Model::default());
        assert_eq!(
            (one.wake_latency, one.wake_cost),
            (KnownNs { ns: 25_000, from: "measured" }, KnownNs { ns: 9_000, from: "measured" },)
        );
        let two = assumed(facts(Some(2), Some(7_000)), &Model::default());
        assert_eq!(
            (two.wake_latency, two.wake_cost),
            (KnownNs { ns: 7_000, from: "recorded" }, KnownNs { ns: 0, from: "recorded" },)
        );
    }
}
