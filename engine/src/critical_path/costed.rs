//! The critical path where time passes without computing: sleeps, devices, and the time until a woken thread acts (engine
//! design, section 8; ours). In virtual time (work done by each executing thread) such a wait is longer or shorter with the
//! number of processors, so that each of them has a schedule of its own, and one reverse sweep over its events gives the exact
//! derivative of its length by every computation and every wait.
//!
//! With n⁻ and n⁺ executing threads before and after an event v, s(n) = max(1, n ÷ P), and δτ what moves v in virtual time:
//! real time as a function of virtual time moves by G = Σ over earlier events of (s(n⁻) − s(n⁺)) · δτ, so δt_v = G + s(n⁻) ·
//! δτ_v. The end of a computation has δτ_v = δτ_parent + δlength, that of a wait δτ_v = (δt_parent + δlength − G) ÷ s(n⁻). The
//! sweep goes back over this, with an adjoint for each point, one for the clock (G), and for each point the sum of the weights
//! of the waits that begin at it. Events at one instant are clusters, as without costs ([`super::clusters`]).

use super::clusters::{Clusters, Term};
use super::weights::Weights;
use crate::program::{Operation, Program};
use crate::report::{Cpus, Finding};
use crate::schedule::{Charge, Costed, Costs, Latency, Passing, PointId, Schedule, Simulation};
use crate::time::Ticks;

/// What weights are multiplied with to keep them as whole numbers: sums of them do not depend on their order, and parts of up to
/// 16 processors are exact.
const SCALE: i64 = (1 << 16) * 9 * 5 * 7 * 11 * 13;
/// No weight is kept larger than this.
const LARGEST: f64 = (1_u64 << 31) as f64;

/// A program's schedule on so many processors, and how its length moves with everything in it.
#[derive(Debug)]
pub struct CostedPath<'a> {
    program: &'a Program,
    cpus: [Cpus; 1],
    schedule: Schedule,
    /// By point: −∂T/∂length of what ends there.
    weights: Vec<f64>,
    latencies: Vec<Latency>,
    charges: Vec<Charge>,
    /// Ticks during which this many threads execute, by their number.
    executing: Vec<u64>,
}

/// What passes while nobody computes it, and what the time depends on it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Wait {
    /// What it is.
    pub of: Passing,
    /// How often.
    pub count: u64,
    /// Its length, summed, ticks.
    pub length: Ticks,
    /// Σ weight · length, ticks: what the predicted time owes to it.
    pub weighted: f64,
}

/// An instant of the schedule.
#[derive(Clone, Copy, Debug)]
struct Instant {
    /// Executing threads before it.
    before: u32,
    /// End of its terms.
    terms: u32,
    /// End of its points.
    points: u32,
}

impl<'a> CostedPath<'a> {
    /// Schedules the program, which has been checked, and weighs everything. O(V log n) for V events and n threads.
    pub fn of(program: &'a Program, cpus: Cpus, costs: &Costs) -> CostedPath<'a> {
        let mut simulation = Simulation::with_costs(program, costs);
        let (mut vertices, mut ended) = (Vec::new(), Vec::new());
        let mut clusters = Clusters::default();
        let (mut terms, mut points, mut instants) = (Vec::new(), Vec::new(), Vec::new());
        let mut executing: Vec<u64> = Vec::new();
        let (mut last, mut count) = (Ticks(0), 0_i64);
        while let Some(now) = simulation.next_with_ends(&mut vertices, &mut ended) {
            let level = usize::try_from(count).unwrap_or(0);
            if executing.len() <= level {
                executing.resize(level + 1, 0);
            }
            executing[level] += now.0.saturating_sub(last.0);
            last = now;
            let before = u32::try_from(count).unwrap_or(0);
            count = clusters.instant(simulation.forest(), count, &vertices, &mut terms);
            points.append(&mut ended);
            instants.push(Instant { before, terms: terms.len() as u32, points: points.len() as u32 });
        }
        let left = u32::try_from(count).unwrap_or(0);
        let Costed { schedule, latencies, charges, echoes, .. } = simulation.finish_with_costs();
        let sweep = Sweep {
            schedule: &schedule,
            terms: &terms,
            points: &points,
            instants: &instants,
            dilation: Dilation::of(costs.hundredths, program.threads.len()),
        };
        let mut weights = sweep.weights(&latencies, left);
        for (point, like) in echoes {
            weights[like.index()] += weights[point.index()];
        }
        CostedPath { program, cpus: [cpus], schedule, weights, latencies, charges, executing }
    }

    /// The length of the schedule.
    pub fn time(&self) -> Ticks {
        self.schedule.length
    }

    /// The weights of all computations.
    pub fn weights(&self) -> Weights<'_, 1> {
        let whole = |weight: &f64| {
            let limited = weight.clamp(-LARGEST, LARGEST) * SCALE as f64;
            #[expect(clippy::cast_possible_truncation, reason = "limited just before")]
            let whole = limited.round() as i64;
            [whole]
        };
        let values = self.weights.iter().map(whole).collect();
        let parts = self.executing.iter().zip(0_u64..).map(|(ticks, threads)| ticks.saturating_mul(threads));
        let executed = parts.fold(0, u64::saturating_add);
        Weights::given((self.program, &self.schedule), &self.cpus, SCALE, values, executed)
    }

    /// What passes without being computed, by what it is, in that order; and last what threads compute to wake others.
    pub fn waits(&self) -> (Vec<Wait>, Wait) {
        let mut all: Vec<(Passing, Ticks, f64)> = self
            .latencies
            .iter()
            .map(|latency| (latency.of, latency.length, self.weight(latency.point)))
            .collect();
        all.sort_by_key(|(of, ..)| *of);
        let mut waits: Vec<Wait> = Vec::new();
        for (of, length, weight) in all {
            match waits.last_mut().filter(|wait| wait.of == of) {
                Some(wait) => wait.add(length, weight),
                None => {
                    let mut wait = Wait { of, count: 0, length: Ticks(0), weighted: 0.0 };
                    wait.add(length, weight);
                    waits.push(wait);
                }
            }
        }
        let mut waking = Wait { of: Passing::Woken(None), count: 0, length: Ticks(0), weighted: 0.0 };
        for charge in &self.charges {
            waking.add(charge.length, self.weight(charge.point));
        }
        (waits, waking)
    }

    /// −∂T/∂length of the step that ends at this point.
    pub fn weight(&self, point: PointId) -> f64 {
        self.weights.get(point.index()).copied().unwrap_or(0.0)
    }

    /// Ticks during which so many threads execute, by their number; spinning counts.
    pub fn executing(&self) -> &[u64] {
        &self.executing
    }

    /// Deadlocks and contradictions in the program.
    pub fn findings(&self) -> &[Finding] {
        &self.schedule.findings
    }

    /// The program that was scheduled.
    pub fn program(&self) -> &'a Program {
        self.program
    }
}

impl Wait {
    fn add(&mut self, length: Ticks, weight: f64) {
        self.count += 1;
        self.length = Ticks(self.length.0.saturating_add(length.0));
        self.weighted += weight * length.0 as f64;
    }
}

/// Whether time passes in a program without being computed, so that no two numbers of processors share a schedule.
pub fn has_waits_by_the_clock(program: &Program) -> bool {
    let mut operations = program.threads.iter().flat_map(|thread| &thread.operations);
    operations.any(|operation| {
        matches!(
            operation,
            Operation::Io(..) | Operation::Sleep(_) | Operation::SleepUntil(_) | Operation::SleepNext(_)
        )
    })
}

/// s(n): how much longer than alone threads take if so many execute.
struct Dilation {
    hundredths: f64,
}

impl Dilation {
    fn of(hundredths: u64, threads: usize) -> Dilation {
        let most = u64::try_from(threads).unwrap_or(u64::MAX).max(1).saturating_mul(100);
        Dilation { hundredths: hundredths.clamp(1, most) as f64 }
    }

    #[inline]
    fn at(&self, executing: u32) -> f64 {
        (f64::from(executing) * 100.0 / self.hundredths).max(1.0)
    }
}

struct Sweep<'s> {
    schedule: &'s Schedule,
    terms: &'s [Term],
    points: &'s [PointId],
    instants: &'s [Instant],
    dilation: Dilation,
}

impl Sweep<'_> {
    /// By point. Each is complete when its instant is reached: whatever depends on it comes later.
    fn weights(&self, latencies: &[Latency], left: u32) -> Vec<f64> {
        let forest = &self.schedule.forest;
        let mut is_latency = vec![false; forest.len()];
        for latency in latencies {
            is_latency[latency.point.index()] = true;
        }
        let mut adjoints = vec![0.0_f64; forest.len()];
        // Σ of the weights of the waits that begin at a point.
        let mut begun = vec![0.0_f64; forest.len()];
        let mut weights = vec![0.0_f64; forest.len()];
        let mut clock = 1.0;
        // The end of the run: what comes earlier there is time saved at the rate of what still executes.
        adjoints[self.schedule.end.index()] += self.dilation.at(left);
        for (place, instant) in self.instants.iter().enumerate().rev() {
            let from = place.checked_sub(1).map(|before| self.instants[before]);
            let (first_term, first_point) = from.map_or((0, 0), |from| (from.terms, from.points));
            for term in &self.terms[first_term as usize..instant.terms as usize] {
                adjoints[term.point.index()] +=
                    clock * (self.dilation.at(term.from) - self.dilation.at(term.to));
            }
            let here = self.dilation.at(instant.before);
            let mut moved = 0.0;
            for point in self.points[first_point as usize..instant.points as usize].iter().rev() {
                let index = point.index();
                let waits = begun[index];
                let adjoint = adjoints[index] + waits * here;
                moved += waits;
                let parent = forest.parent(*point).index();
                if is_latency[index] {
                    let weight = adjoint / here;
                    moved -= weight;
                    begun[parent] += weight;
                    weights[index] = weight;
                } else {
                    adjoints[parent] += adjoint;
                    weights[index] = adjoint;
                }
            }
            clock += moved;
        }
        weights
    }
}
