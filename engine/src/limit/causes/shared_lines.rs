//! Cache lines that several threads use together, as rows of the ledger; [`crate::predict::LineLoad`] has the model.

use crate::experiment::Edit;
use crate::limit::search::Search;
use crate::limit::watched_run::WatchedRun;
use crate::predict::LineLoad;

impl Search {
    /// The least time without the waits for the lines that one function uses most, nanoseconds: who gives each thread its own
    /// copy there has no waits for any of them. The change has the number of the line with most samples.
    pub(in crate::limit) fn without_lines(&self, run: &WatchedRun) -> Vec<(Edit, f64)> {
        let ns = |share: f64| run.time_ns() * (1.0 - share * computing(run));
        let firsts =
            (0..self.lines.len()).filter(|line| self.with_same_function(*line).next() == Some(*line));
        firsts
            .map(|line| {
                let is_false = self.recorded.lines.get(line).is_some_and(|line| line.is_false);
                let share = self.sum_of_lines(line, LineLoad::share);
                (Edit::OwnLines { line, is_false }, ns(share.min(1.0)))
            })
            .collect()
    }

    /// The smallest share of the time that is saved with own lines for each thread, where this line and others are used.
    pub(in crate::limit) fn least_without_line(&self, line: usize, run: &WatchedRun) -> f64 {
        self.sum_of_lines(line, LineLoad::least).min(1.0) * computing(run)
    }

    /// The part of all threads' CPU time at shared lines.
    pub(in crate::limit) fn at_lines(&self) -> f64 {
        self.lines.iter().map(LineLoad::share).sum::<f64>().min(1.0)
    }

    fn sum_of_lines(&self, line: usize, of: fn(&LineLoad) -> f64) -> f64 {
        self.with_same_function(line).filter_map(|line| self.lines.get(line)).map(of).sum()
    }

    /// The lines that the function uses most that uses this line most, in order.
    fn with_same_function(&self, line: usize) -> impl Iterator<Item = usize> {
        let lines = &self.recorded.lines;
        let of = lines.get(line).map(|line| (&line.function, line.is_false));
        let is_same = move |other: &usize| {
            let function = lines.get(*other).map(|line| (&line.function, line.is_false));
            *other == line || (function == of && function.is_some_and(|(function, _)| function.is_some()))
        };
        (0..self.lines.len()).filter(is_same)
    }

    /// The gain of more threads, reduced because all threads then wait longer for cache lines.
    pub(in crate::limit) fn with_lines(&self, edit: &Edit, gain: f64, run: &WatchedRun) -> f64 {
        let Edit::MoreThreads { more, .. } = edit else { return gain };
        let growth: f64 = self.lines.iter().map(|load| load.growth_with(*more, run.cpus)).sum();
        1.0 - (1.0 - gain) * (1.0 + growth * computing(run))
    }
}

/// The share of the path that is computing.
pub(in crate::limit) fn computing(run: &WatchedRun) -> f64 {
    run.causes.as_ref().map_or(1.0, |causes| run.share(causes.computing))
}
