//! Cache lines that several threads use together, as rows of the ledger; [`crate::predict::LineLoad`] has the model.

use crate::experiment::Edit;
use crate::limit::search::Search;
use crate::limit::watched_run::WatchedRun;

impl Search {
    /// The least time without the waits for each line, nanoseconds. At most the computing on the path is saved.
    pub(in crate::limit) fn without_lines(&self, run: &WatchedRun) -> Vec<(Edit, f64)> {
        let ns = |share: f64| run.time_ns() * (1.0 - share * computing(run));
        let edit = |line: usize| {
            let is_false = self.recorded.lines.get(line).is_some_and(|line| line.is_false);
            Edit::OwnLines { line, is_false }
        };
        self.lines.iter().enumerate().map(|(line, load)| (edit(line), ns(load.share()))).collect()
    }

    /// The smallest share of the time that is saved with a line for each thread.
    pub(in crate::limit) fn least_without_line(&self, line: usize, run: &WatchedRun) -> f64 {
        self.lines.get(line).map_or(0.0, |load| load.least() * computing(run))
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
