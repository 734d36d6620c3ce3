//! One answer for every question about a program's time: what the scheduler's model says how long it takes on so many CPUs,
//! and a schedule on as many that are shared ideally, with what waking costs, which says what that time depends on. All
//! commands take their times and weights from here, so that no two of them differ.

use super::model::{Assumptions, Model, Scheduler};
use crate::critical_path::{CostedPath, CriticalPath, Wait, Weights, has_waits_by_the_clock};
use crate::program::{Operation, Program, ProgramError};
use crate::report::{Cpus, Finding};
use crate::schedule::{Costs, Outcome, run};
use crate::time::Ticks;

/// A program on a machine.
#[derive(Debug)]
pub struct Timing<'a> {
    program: &'a Program,
    assumptions: Assumptions,
    /// All that its threads do, ticks.
    work: u64,
    /// The schedule that all CPU counts share: with ideal sharing, of a program in which nothing passes by the clock.
    shared: Option<CriticalPath<'a>>,
}

/// Who wants to know what a program's time depends on.
pub trait Visitor {
    /// For these CPU counts, in the order of their places in `weights`.
    fn visit<const N: usize>(&mut self, weights: &Weights<'_, N>, paths: &[PathFacts]);
}

/// The schedule that weights belong to.
#[derive(Clone, Debug, PartialEq)]
pub struct PathFacts {
    /// The CPU count.
    pub cpus: Cpus,
    /// How long the schedule is, nanoseconds. With a scheduler's model the predicted time differs by what ideal sharing leaves out.
    pub length_ns: f64,
    /// What passes in it without being computed.
    pub waits: Vec<Wait>,
    /// What threads compute to wake others.
    pub waking: Option<Wait>,
    /// Ticks during which this many threads execute, by their number.
    pub executing: Vec<u64>,
    /// Deadlocks and contradictions in the program.
    pub findings: Vec<Finding>,
}

impl<'a> Timing<'a> {
    /// # Errors
    /// The program fails [`Program::check`].
    pub fn new(program: &'a Program, model: &Model) -> Result<Timing<'a>, ProgramError> {
        program.check()?;
        let assumptions = Assumptions::of(program, model);
        let ideal = assumptions.scheduler == Scheduler::Ideal && assumptions.quota.is_none();
        let shared = match ideal && !has_waits_by_the_clock(program) {
            true => Some(CriticalPath::of(program)?),
            false => None,
        };
        let operations = program.threads.iter().flat_map(|thread| &thread.operations);
        let work =
            operations.filter_map(Operation::length).fold(0, |sum, length| length.0.saturating_add(sum));
        Ok(Timing { program, assumptions, work, shared })
    }

    /// The program.
    pub fn program(&self) -> &'a Program {
        self.program
    }

    /// The numbers that the machine is made of.
    pub fn assumptions(&self) -> &Assumptions {
        &self.assumptions
    }

    /// Runs the program on the model of the machine. The run with number 0 leaves nothing to chance: its length is the predicted
    /// time. Others decide by chance what the model leaves open, each in its own way.
    pub fn run(&self, cpus: Cpus, number: u32) -> Outcome {
        let setup = self.assumptions.setup(cpus, self.program.threads.len(), self.work, number);
        // It has been checked.
        run(self.program, &setup).unwrap_or_else(|error| Outcome {
            length: Ticks(0),
            done: Vec::new(),
            findings: vec![Finding { kind: "invalid_program".to_owned(), text: error.to_string() }],
            threads: Vec::new(),
            objects: Vec::new(),
            busy: Vec::new(),
            counts: Default::default(),
        })
    }

    /// The predicted time, nanoseconds.
    pub fn time_ns(&self, cpus: Cpus) -> f64 {
        match &self.shared {
            Some(path) => path.time(cpus).as_ns_f64(),
            None => self.run(cpus, 0).length.as_ns_f64(),
        }
    }

    /// The same, given that run.
    pub(super) fn time_of_ns(&self, cpus: Cpus, plain: &Outcome) -> f64 {
        match &self.shared {
            Some(path) => path.time(cpus).as_ns_f64(),
            None => plain.length.as_ns_f64(),
        }
    }

    /// CPU counts that are best looked at together.
    pub fn groups(&self, cpus: &[Cpus]) -> Vec<Vec<Cpus>> {
        match &self.shared {
            Some(_) => vec![cpus.to_vec()],
            None => cpus.iter().map(|cpus| vec![*cpus]).collect(),
        }
    }

    /// Tells what the time on each of these CPU counts depends on, in the order given.
    pub fn weigh(&self, cpus: &[Cpus], visitor: &mut impl Visitor) {
        if let Some(path) = &self.shared {
            for weights in path.weights(cpus) {
                let facts = weights.cpus().iter().map(|cpus| PathFacts {
                    cpus: *cpus,
                    length_ns: path.time(*cpus).as_ns_f64(),
                    waits: Vec::new(),
                    waking: None,
                    executing: path.executing().to_vec(),
                    findings: path.findings().to_vec(),
                });
                visitor.visit(&weights, &facts.collect::<Vec<_>>());
            }
            return;
        }
        for cpus in cpus {
            let path = CostedPath::of(self.program, *cpus, &self.costs(*cpus));
            let (waits, waking) = path.waits();
            let facts = PathFacts {
                cpus: *cpus,
                length_ns: path.time().as_ns_f64(),
                waits,
                waking: Some(waking).filter(|waking| waking.count > 0),
                executing: path.executing().to_vec(),
                findings: path.findings().to_vec(),
            };
            visitor.visit(&path.weights(), &[facts]);
        }
    }

    /// What waking costs on so many CPUs that are shared ideally.
    pub fn costs(&self, cpus: Cpus) -> Costs {
        self.assumptions.costs(cpus, self.program.threads.len())
    }
}
