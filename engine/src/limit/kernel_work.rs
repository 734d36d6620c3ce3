//! What the kernel computes for the program, as rows of the ledger.

use super::Kind;
use super::search::Search;
use super::shared_lines::computing;
use super::watched_run::WatchedRun;
use crate::experiment::Edit;
use crate::program::KernelWork;

impl Search {
    /// The time without each kind of it, at best, nanoseconds.
    pub(super) fn without_kernel_work(&self, run: &WatchedRun) -> Vec<(Edit, f64)> {
        let ns = |work: &KernelWork| run.time_ns() * (1.0 - work.share() * computing(run));
        let works = self.recorded.kernel.iter().enumerate();
        works.map(|(work, of)| (Edit::LessKernelWork { work, subject: of.subject }, ns(of))).collect()
    }

    /// The part of the CPU time in which threads may wait for each other in the kernel longer than recorded, when more of them run at
    /// once; 0 if that is little.
    pub(super) fn growing_kernel_work(&self) -> f64 {
        self.recorded.kernel.iter().filter(|work| work.grows()).map(KernelWork::share).sum()
    }

    pub(super) fn of_kernel_work(&self, number: usize) -> Kind {
        let Some(work) = self.recorded.kernel.get(number) else { return Kind::Nothing };
        Kind::KernelWork {
            subject: work.subject,
            calls: work.most(),
            cpu_share: work.share(),
            function: work.function.clone(),
            threads: usize::try_from(work.threads).unwrap_or(usize::MAX),
        }
    }
}
