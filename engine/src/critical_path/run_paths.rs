//! For recordings: the path of the run whose length is the predicted time, and paths of further runs with random choices
//! where the scheduler's model leaves a choice open ([`crate::schedule::RunPath`]). Each tick of a run belongs to one
//! function, wait or hand-over. So shares are never negative and add up to the whole, on any number of CPUs.

use super::costed::WeightedWait;
use super::pieces::Pieces;
use super::weights::Weights;
use crate::cpus::Cpus;
use crate::program::Program;
use crate::schedule::{DelayKind, Passed, RunOutcome, RunPath, Runs};
use crate::time::Ticks;
use std::collections::{BTreeMap, BTreeSet};

/// A program's paths in several runs on a number of processors; the first run has no random choices.
#[derive(Debug)]
pub struct RunPaths<'a, const N: usize> {
    program: &'a Program,
    cpus: [Cpus; 1],
    runs: Runs,
    /// For each thread: the largest number of operations that it executed in any of the runs.
    done: Vec<usize>,
    pieces: [Pieces; N],
    lengths: [Ticks; N],
    passed: [BTreeMap<DelayKind, Passed>; N],
    waking: [Passed; N],
    /// Outcome of the first run.
    pub(crate) plain: RunOutcome,
}

impl<'a, const N: usize> RunPaths<'a, N> {
    /// Adds up the paths of runs. `run` returns the run with this index.
    pub(crate) fn of(
        program: &'a Program,
        cpus: Cpus,
        run: impl Fn(u32) -> (RunOutcome, RunPath, Runs),
    ) -> RunPaths<'a, N> {
        let mut first: Option<(RunOutcome, Runs)> = None;
        let mut done: Vec<usize> = Vec::new();
        let mut lengths = [Ticks(0); N];
        let mut passed: [BTreeMap<DelayKind, Passed>; N] = std::array::from_fn(|_| BTreeMap::new());
        let mut waking = [Passed::default(); N];
        let pieces = std::array::from_fn(|number| {
            let (outcome, path, runs) = run(number as u32);
            // If the first run stops early, the way to that point is all that is known.
            let counts = number == 0 || outcome.is_complete(program);
            lengths[number] = if counts { outcome.length } else { Ticks(0) };
            passed[number] = path.passed;
            waking[number] = path.waking;
            let pieces = Pieces::of(path.visits, runs.len());
            done.resize(outcome.done.len(), 0);
            done.iter_mut().zip(&outcome.done).for_each(|(most, done)| *most = (*most).max(*done));
            match &mut first {
                Some((_, all)) => all.add(&runs),
                None => first = Some((outcome, runs)),
            }
            pieces
        });
        let (plain, runs) = first.unwrap_or_default();
        RunPaths { program, cpus: [cpus], runs, done, pieces, lengths, passed, waking, plain }
    }

    /// Length of each run; 0 for a run other than the first that stopped before its end.
    pub fn lengths(&self) -> [Ticks; N] {
        self.lengths
    }

    /// The parts of computations on each path.
    pub fn weights(&self) -> Weights<'_, N> {
        Weights::on_paths(self.program, &self.runs, &self.done, &self.cpus, &self.pieces)
    }

    /// The waits by kind, in order; and the computing of threads that wake others.
    ///
    /// Counts and lengths are those of the first run. `weighted` is the mean share of the paths, times the length of the
    /// first run.
    pub fn waits(&self) -> (Vec<WeightedWait>, WeightedWait) {
        let kinds: BTreeSet<DelayKind> =
            self.passed.iter().flat_map(|passed| passed.keys().copied()).collect();
        let wait = |of: DelayKind, each: [Passed; N]| {
            let first = each.first().copied().unwrap_or_default();
            let shares = each.iter().zip(self.lengths).filter(|(_, length)| length.0 > 0);
            let count = shares.clone().count().max(1) as f64;
            let shares = shares.map(|(passed, length)| passed.on_path.0 as f64 / length.0 as f64);
            let weighted = shares.sum::<f64>() / count * self.plain.length.0 as f64;
            WeightedWait { of, count: first.count, length: first.length, weighted }
        };
        let of_kind = |of: DelayKind| {
            wait(of, self.passed.each_ref().map(|passed| passed.get(&of).copied().unwrap_or_default()))
        };
        (kinds.into_iter().map(of_kind).collect(), wait(DelayKind::Woken(None), self.waking))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::{Operation, Thread};

    /// If one of several runs stops in a deadlock of the simulation after 90 ms, its length must not count: a program
    /// of 3.1 s would be predicted to take "90 ms to 3.1 s".
    #[test]
    fn a_run_that_stops_before_its_end_has_no_length_unless_all_do() {
        let thread = Thread { operations: vec![Operation::Exec(Ticks(100))], ..Thread::default() };
        let program = Program { threads: vec![thread], ..Program::default() };
        let outcome = |length: u64, done: usize| RunOutcome {
            length: Ticks(length),
            done: vec![done],
            ..RunOutcome::default()
        };
        let path = |on_path: u64| RunPath {
            passed: [(DelayKind::Scheduling, Passed { on_path: Ticks(on_path), ..Passed::default() })].into(),
            ..RunPath::default()
        };
        let run = |number| match number {
            0 => (outcome(100, 1), path(50), Runs::default()),
            _ => (outcome(10, 0), path(10), Runs::default()),
        };
        let runs = RunPaths::<2>::of(&program, Cpus::ONE, run);
        assert_eq!(runs.lengths(), [Ticks(100), Ticks(0)]);
        let (waits, _) = runs.waits();
        assert_eq!(waits[0].weighted, 50.0, "half of the run that came to its end");
        let stops = |_| (outcome(10, 0), path(10), Runs::default());
        assert_eq!(RunPaths::<1>::of(&program, Cpus::ONE, stops).lengths(), [Ticks(10)], "all that is known");
    }
}
