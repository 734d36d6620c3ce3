//! Work of the kernel and of runtimes for the program, as rows of the ledger.

use super::shared_lines::computing;
use crate::event::SupportSubject;
use crate::experiment::Edit;
use crate::limit::LimitKind;
use crate::limit::ledger::{Cause, Claim};
use crate::limit::row::Evidence;
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

    /// Adds the kernel's work of waiting to the gain of the lock that gains most without it, at the most: threads that wait for
    /// the lock cause that work. Not if they wait for conditions, or for work that others hand over.
    pub(in crate::limit) fn locks_with_waking(&self, claims: &mut [Claim]) {
        let hands_over = |claim: &Claim| {
            matches!(
                claim.cause,
                Cause::Edit(
                    Edit::LargerTasks { .. } | Edit::FreeHandOver | Edit::Permits { .. } | Edit::WakeOne(_)
                )
            )
        };
        let is_of_conditions = |work: &SupportWork| {
            work.subject == SupportSubject::Waiting
                && work.via.as_ref().is_some_and(|via| via.contains("cond"))
        };
        let Some(waking) = claims.iter().find(|claim| claim.is_waking()).map(|claim| claim.most) else {
            return;
        };
        if claims.iter().any(hands_over) || self.recorded.support.iter().any(is_of_conditions) {
            return;
        }
        let is_lock = |claim: &&mut Claim| match &claim.cause {
            Cause::Edit(Edit::FreeLocks(locks)) => {
                !locks.iter().any(|lock| self.program().meaning(*lock).is_interpreter_lock())
            }
            _ => false,
        };
        let most = claims.iter_mut().filter(is_lock).max_by(|a, b| a.most.total_cmp(&b.most));
        // A lock that gains more than its waking explains everything by itself.
        if let Some(lock) = most.filter(|lock| lock.most < waking) {
            lock.most = (lock.most + waking).min(1.0);
            lock.evidence = Evidence::Bounded;
        }
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
