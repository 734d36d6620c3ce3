//! Work of the kernel and of runtimes for the program, as rows of the ledger.

use super::shared_lines::computing;
use crate::event::SupportSubject;
use crate::experiment::Edit;
use crate::limit::LimitKind;
use crate::limit::search::Search;
use crate::limit::watched_run::WatchedRun;
use crate::program::SupportWork;

impl Search {
    /// Predicted time without each kind of support work, nanoseconds; at least this time remains.
    pub(in crate::limit) fn without_support_work(&self, run: &WatchedRun) -> Vec<(Edit, f64)> {
        let ns = |work: &SupportWork| run.time_ns() * (1.0 - work.share() * computing(run));
        let works = self.recorded.support.iter().enumerate();
        works.map(|(work, of)| (Edit::LessSupportWork { work, subject: of.subject }, ns(of))).collect()
    }

    /// Share of the CPU time that is kernel work in which threads may wait longer for each other if more of them run at
    /// once; 0 if there is little of that work.
    pub(in crate::limit) fn growing_kernel_work(&self) -> f64 {
        self.recorded.support.iter().filter(|work| work.grows()).map(SupportWork::share).sum()
    }

    /// Like [`Search::growing_kernel_work`], but including the kernel's work to put threads to sleep and wake them:
    /// locks protect its queues.
    pub(in crate::limit) fn kernel_work_in_the_way(&self) -> f64 {
        (self.growing_kernel_work() + self.kernel_work_of_waiting()).min(1.0)
    }

    /// Share of the CPU time in which the kernel puts threads to sleep and wakes them, if several threads do that.
    pub(in crate::limit) fn kernel_work_of_waiting(&self) -> f64 {
        let is_waiting = |work: &&SupportWork| work.subject == SupportSubject::Waiting && work.threads > 1;
        self.recorded.support.iter().filter(is_waiting).map(SupportWork::share).sum()
    }

    pub(in crate::limit) fn of_support_work(&self, number: usize) -> LimitKind {
        let Some(work) = self.recorded.support.get(number) else { return LimitKind::Nothing };
        LimitKind::SupportWork {
            subject: work.subject,
            calls: work.most(),
            cpu_share: work.share(),
            function: work.function.clone(),
            via: work.via.clone(),
            lock_waits: work.lock_waits,
            threads: usize::try_from(work.threads).unwrap_or(usize::MAX),
        }
    }
}
