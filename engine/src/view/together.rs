//! Report, prediction and call stacks of a program from the same runs, so that each run is made once.

use super::stacks::{StackBuilder, StackPart, Stacks};
use crate::attribution::Grouping;
use crate::cpus::Cpus;
use crate::critical_path::Weights;
use crate::predict::{CountRuns, Forecast, Led, Model, PathFacts, Prediction, Timing, Visitor};
use crate::program::ProgramError;
use crate::report::{Builder, CpuResult, Detail, Report, ReportPart};
use rustc_hash::FxHashMap;

/// All three in the making. [`Together::at`] is the work; its calls are independent of each other.
#[derive(Debug)]
pub struct Together<'a> {
    timing: &'a Timing<'a>,
    asked: Vec<Cpus>,
    forecast: Forecast<'a>,
    report: Option<Builder<'a>>,
    stacks: StackBuilder<'a>,
    /// For each function, by name: its number.
    numbers: FxHashMap<&'a str, usize>,
}

/// The parts of all three for some CPU counts.
#[derive(Debug)]
pub struct TogetherPart {
    report: Vec<ReportPart>,
    runs: Vec<CountRuns>,
    stacks: Vec<StackPart>,
}

/// A visitor that keeps the path facts.
#[derive(Default)]
struct Kept(Vec<PathFacts>);

impl Visitor for Kept {
    fn visit<const N: usize>(&mut self, _: &Weights<'_, N>, paths: &[PathFacts]) {
        self.0.extend_from_slice(paths);
    }
}

impl<'a> Together<'a> {
    /// Prepares report, prediction and call stacks for these CPU counts, on the machine of the timing.
    ///
    /// # Errors
    /// The program fails [`crate::program::Program::check`].
    pub fn new(timing: &'a Timing<'a>, cpus: &[Cpus], model: &Model) -> Result<Together<'a>, ProgramError> {
        let program = timing.program();
        let functions = program.functions.iter().enumerate();
        Ok(Together {
            timing,
            asked: cpus.to_vec(),
            forecast: Forecast::new(program, cpus, model)?,
            // Cannot fail: the program has been checked.
            report: Builder::new(program, cpus, Detail::Functions, Grouping::Function, model).ok(),
            stacks: StackBuilder::new(timing),
            numbers: functions.map(|(number, function)| (function.name.as_str(), number)).collect(),
        })
    }

    /// Groups of CPU counts that are computed fastest together: those asked for, one and unlimited.
    pub fn groups(&self) -> Vec<Vec<Cpus>> {
        self.timing.groups(self.forecast.wanted())
    }

    /// Computes the parts for these CPU counts.
    pub fn at(&self, cpus: &[Cpus]) -> TogetherPart {
        let mut found = (Kept::default(), self.stacks.parts());
        let report = match &self.report {
            Some(builder) => {
                let mut all = (builder.parts(), found);
                self.timing.weigh(cpus, &mut all);
                found = all.1;
                all.0.parts
            }
            None => Vec::new(),
        };
        let (Kept(paths), stacks) = found;
        let led = paths.into_iter().zip(&report).map(|(path, part)| {
            let leader = self.leader(part.result());
            self.forecast.led(path.cpus, Some(Led { path, leader }))
        });
        TogetherPart { runs: led.collect(), report, stacks: stacks.parts }
    }

    /// The function with most computing on the path, and its share. Of equal functions, the first in the program.
    fn leader(&self, result: &CpuResult) -> Option<(String, f64)> {
        let number = |name: &str| self.numbers.get(name).copied().unwrap_or(usize::MAX);
        let computing = result.functions.iter().filter(|row| row.tet_ns > 0.0);
        let first = computing.max_by(|a, b| {
            let by_number = || number(&b.function).cmp(&number(&a.function));
            a.tet_ns.total_cmp(&b.tet_ns).then_with(by_number)
        })?;
        let share = if result.time_ns > 0.0 { first.tet_ns / result.time_ns } else { 0.0 };
        Some((first.function.clone(), share))
    }

    /// All three; `parts` are for all [`Together::groups`], in their order.
    pub fn conclude(self, parts: Vec<TogetherPart>) -> (Report, Prediction, Stacks) {
        let (mut report, mut runs, mut stacks) = (Vec::new(), Vec::new(), Vec::new());
        for part in parts {
            report.extend(part.report);
            runs.extend(part.runs);
            stacks.extend(part.stacks);
        }
        let report = self.report.map(|builder| builder.conclude(report)).unwrap_or_default();
        (report, self.forecast.conclude(runs), self.stacks.conclude(&self.asked, stacks))
    }
}
