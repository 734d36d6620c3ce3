//! The critical path where time passes without computing: sleeps, devices, and the time until a woken thread acts (a
//! method of longpole's own;  see docs/algorithms.md). In virtual time (work done by each executing thread), the length
//! of such a wait depends on the number of processors. So each number has a schedule of its own.
//!
//! Weights are *steady*: each wait keeps its virtual length in that schedule, and only computations move. They are the
//! weights of a program in which waits are computations on processors of their own. With s(n) = max(1, n ÷ P), a weight is
//! the sum of s(n⁻) − s(n⁺) over the events at and below a step ([`super::clusters`]), from one sweep over the forest. A
//! computation with weight w and length l accounts for w · l of the time, a wait for w · (its virtual length). All of them
//! add up to the time: T = Σ over events of τ · (s(n⁻) − s(n⁺)), where τ is the sum of the virtual lengths above the event.
//! The exact derivative, in which waits depend on the load of the processors, is useless: each wait multiplies a disturbance
//! by s(n⁻) ÷ s(n⁺), so some hundred waits make it arbitrary.

use super::clusters::{Term, sweep};
use super::lanes::Lane;
use super::weights::Weights;
use crate::cpus::Cpus;
use crate::finding::Finding;
#[cfg(any(test, feature = "synth"))]
use crate::program::ThreadId;
use crate::program::{Operation, Program};
use crate::schedule::{Charge, Costed, DelayKind, Latency, PointId, Schedule, SharedCpuCosts, Simulation};
use crate::time::Ticks;

/// A program's schedule on a limited number of CPUs, and how the schedule's length changes with each compute operation.
#[derive(Debug)]
pub struct CostedPath<'a> {
    program: &'a Program,
    cpus: [Cpus; 1],
    schedule: Schedule,
    /// For each point: ∂T/∂length of the step that ends at the point, multiplied by `scale`.
    weights: Vec<Lane<i64, 1>>,
    scale: i64,
    latencies: Vec<Latency>,
    charges: Vec<Charge>,
    /// Ticks by the number of threads that execute.
    executing: Vec<u64>,
}

/// Waits of one kind, and what they contribute to the predicted time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WeightedWait {
    /// The kind.
    pub of: DelayKind,
    /// Number of waits.
    pub count: u64,
    /// Sum of the waits' lengths, ticks.
    pub length: Ticks,
    /// Σ weight · virtual length, ticks: their contribution to the predicted time.
    pub weighted: f64,
}

impl<'a> CostedPath<'a> {
    /// Schedules a program that has passed its check, and computes all weights. O(V log n) for V events and n threads.
    pub fn of(program: &'a Program, cpus: Cpus, costs: &SharedCpuCosts) -> CostedPath<'a> {
        let mut simulation = Simulation::with_costs(program, costs);
        let (terms, executing, left) = sweep(&mut simulation);
        let dilation = Dilation(simulation.capacity());
        let Costed { schedule, latencies, charges, echoes, .. } = simulation.finish_with_costs();
        let mut weights = dilation.weights(&schedule, &terms, left);
        for (point, like) in echoes {
            weights[like.index()][0] += weights[point.index()][0];
        }
        let scale = dilation.0.0;
        CostedPath { program, cpus: [cpus], schedule, weights, scale, latencies, charges, executing }
    }

    /// The length of the schedule.
    pub fn time(&self) -> Ticks {
        self.schedule.length
    }

    /// The weights of all computations.
    pub fn weights(&self) -> Weights<'_, 1> {
        let parts = self.executing.iter().zip(0_u64..).map(|(ticks, threads)| ticks.saturating_mul(threads));
        let executed = parts.fold(0, u64::saturating_add);
        Weights::given((self.program, &self.schedule), &self.cpus, self.scale, self.weights.clone(), executed)
    }

    /// The waits by kind, in order; and the computing of threads that wake others.
    pub fn waits(&self) -> (Vec<WeightedWait>, WeightedWait) {
        let owed = |latency: &Latency| {
            self.weight(latency.point) * latency.virtual_length as f64 / self.scale as f64
        };
        let mut all: Vec<(DelayKind, Ticks, f64)> =
            self.latencies.iter().map(|latency| (latency.of, latency.length, owed(latency))).collect();
        all.sort_by_key(|(of, ..)| *of);
        let mut waits: Vec<WeightedWait> = Vec::new();
        for (of, length, owed) in all {
            match waits.last_mut().filter(|wait| wait.of == of) {
                Some(wait) => wait.add(length, owed),
                None => {
                    let mut wait = WeightedWait { of, count: 0, length: Ticks(0), weighted: 0.0 };
                    wait.add(length, owed);
                    waits.push(wait);
                }
            }
        }
        let mut waking =
            WeightedWait { of: DelayKind::Woken(None), count: 0, length: Ticks(0), weighted: 0.0 };
        for charge in &self.charges {
            waking.add(charge.length, self.weight(charge.point) * charge.length.0 as f64);
        }
        (waits, waking)
    }

    /// Waits for timers and devices with their virtual lengths in this schedule: thread, index of the operation, ticks.
    #[cfg(any(test, feature = "synth"))]
    pub fn virtual_lengths(&self) -> impl Iterator<Item = (ThreadId, usize, f64)> + '_ {
        let by_clock = self.latencies.iter().filter(|latency| matches!(latency.of, DelayKind::Clock(_)));
        by_clock.map(|latency| {
            let length = latency.virtual_length as f64 / self.scale as f64;
            let (thread, next) = latency.of_thread;
            (thread, (next as usize).saturating_sub(1), length)
        })
    }

    /// ∂T/∂length of the step that ends at this point.
    pub fn weight(&self, point: PointId) -> f64 {
        let [weight] = self.weights.get(point.index()).copied().unwrap_or([0]);
        weight as f64 / self.scale as f64
    }

    /// Ticks by the number of threads that execute; spinning counts as executing.
    pub fn executing(&self) -> &[u64] {
        &self.executing
    }

    /// Deadlocks and contradictions in the program.
    pub fn findings(&self) -> &[Finding] {
        &self.schedule.findings
    }
}

impl WeightedWait {
    fn add(&mut self, length: Ticks, owed: f64) {
        self.count += 1;
        self.length = Ticks(self.length.0.saturating_add(length.0));
        self.weighted += owed;
    }
}

/// Whether time passes in the program without computing, so that each number of processors needs its own schedule.
pub fn has_waits_by_the_clock(program: &Program) -> bool {
    let mut operations = program.threads.iter().flat_map(|thread| &thread.operations);
    operations.any(|operation| {
        matches!(
            operation,
            Operation::Io(..) | Operation::Sleep(_) | Operation::SleepUntil(_) | Operation::SleepNext(_)
        )
    })
}

/// s(n): how much longer threads take if n of them execute on the processors than if each had its own. Has the capacity of
/// the processors as a fraction.
struct Dilation((i64, i64));

impl Dilation {
    /// s(n) times the numerator of the capacity.
    #[inline]
    fn at(&self, executing: u32) -> i64 {
        i64::from(executing).saturating_mul(self.0.1).max(self.0.0)
    }

    /// For each point: the weight, multiplied by one factor for all points. Parents have smaller numbers than their
    /// children.
    fn weights(&self, schedule: &Schedule, terms: &[Term], left: u32) -> Vec<Lane<i64, 1>> {
        let forest = &schedule.forest;
        let mut weights = vec![[0]; forest.len()];
        for term in terms {
            weights[term.point.index()][0] += self.at(term.from) - self.at(term.to);
        }
        // At the end of the run, an earlier end saves time at the rate of the threads that still execute.
        weights[schedule.end.index()][0] += self.at(left);
        for point in (1..weights.len()).rev() {
            let parent = forest.parent(PointId(point as u32)).index();
            weights[parent][0] += weights[point][0];
        }
        weights
    }
}
