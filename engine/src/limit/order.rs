//! Rows of the ledger that go before others, whatever they gain.

use super::ledger::{Cause, Claim, SAME, SEEN};
use super::watched_run::WatchedRun;
use crate::event::SupportSubject;
use crate::experiment::Edit;
use crate::program::ObjectId;

/// If this many threads spin on average, they may keep others from the CPUs.
const SPINNING: f64 = 0.5;

/// Puts fewer threads, or fewer wake-ups, before more CPUs if they may gain [`SEEN`] of what CPUs are expected to gain:
/// those changes need no other machine. So does overlap of serial stretches with other work if it may gain clearly more than CPUs.
pub(super) fn threads_before_cpus(claims: &mut Vec<Claim>) {
    let is_fewer =
        |claim: &Claim| matches!(claim.cause, Cause::Edit(Edit::FewerThreads { .. } | Edit::WakeOne(_)));
    let is_serial = |claim: &Claim| matches!(claim.cause, Cause::Edit(Edit::Overlap { .. }));
    if let Some(first @ Claim { cause: Cause::Edit(Edit::Cpus(_)), .. }) = claims.first()
        && let Some(place) = claims.iter().position(|claim| {
            is_fewer(claim) && claim.most >= SEEN * first.middle()
                || is_serial(claim) && SEEN * claim.most >= first.middle()
        })
    {
        claims[..=place].rotate_right(1);
    }
    // With too many threads, one more thread would only wait for the others, so that is no advice.
    if matches!(claims.first(), Some(Claim { cause: Cause::Edit(Edit::FewerThreads { .. }), .. })) {
        claims.retain(|claim| !matches!(claim.cause, Cause::Edit(Edit::MoreThreads { .. })));
    }
}

/// Keeps one row for each group of which fewer threads are faster: with as many as CPUs unless half of them gain clearly more. A
/// thread that holds what others wait for then always has a CPU.
pub(super) fn as_many_as_cpus(claims: &mut Vec<Claim>) {
    let of = |claim: &Claim| match &claim.cause {
        Cause::Edit(Edit::FewerThreads { threads, kept }) => Some((threads.clone(), *kept)),
        _ => None,
    };
    let all: Vec<(Vec<usize>, usize, f64)> = claims
        .iter()
        .filter_map(|claim| of(claim).map(|(threads, kept)| (threads, kept, claim.most)))
        .collect();
    claims.retain(|claim| {
        of(claim).is_none_or(|(threads, kept)| {
            !all.iter().any(|(others, other_kept, most)| {
                let is_better = match other_kept.cmp(&kept) {
                    std::cmp::Ordering::Less => *most + SAME >= claim.most,
                    std::cmp::Ordering::Equal => false,
                    std::cmp::Ordering::Greater => *most > claim.most + SAME,
                };
                *others == threads && is_better
            })
        })
    });
}

/// Puts the kernel's work to put threads to sleep and wake them before more CPUs and threads, and before fewer threads that gain
/// hardly more. Threads meet at a lock more often the more of them run: three public programs with much of this work were
/// slower on two CPUs than on one (VALIDATION.md).
pub(super) fn waking_before_cpus(claims: &mut [Claim]) {
    const HARDLY: f64 = 0.8;
    let Some(place) = claims.iter().position(Claim::is_waking) else { return };
    let follows = match claims.first() {
        Some(Claim { cause: Cause::Edit(Edit::Cpus(_) | Edit::MoreThreads { .. }), .. }) => true,
        Some(Claim { cause: Cause::Edit(Edit::FewerThreads { .. }), most, .. }) => {
            claims[place].most >= HARDLY * most
        }
        _ => false,
    };
    if follows {
        claims[..=place].rotate_right(1);
    }
}

/// Puts fewer threads before more CPUs if threads spin much: where a lock goes to the thread that waits longest, a spinning
/// thread is next and has no CPU, so what more CPUs bring is not known.
pub(super) fn spinning_before_cpus(claims: &mut [Claim], run: &WatchedRun) {
    let is_cpus = |claim: &Claim| matches!(claim.cause, Cause::Edit(Edit::Cpus(_)));
    let is_fewer = |claim: &Claim| matches!(claim.cause, Cause::Edit(Edit::FewerThreads { .. }));
    if run.share(run.states.spinning()) >= SPINNING
        && claims.first().is_some_and(is_cpus)
        && let Some(place) = claims.iter().position(is_fewer)
    {
        claims[..=place].rotate_right(1);
    }
}

/// Puts tasks that are too small first if the first row is a consequence of handing over each of them: threads that want CPUs,
/// wait for work, for each other's wake-ups or for the lock of an interpreter that each of them needs when it wakes.
pub(super) fn small_tasks_first(claims: &mut Vec<Claim>, is_interpreters: impl Fn(&[ObjectId]) -> bool) {
    let is_small = |claim: &Claim| matches!(claim.cause, Cause::Edit(Edit::LargerTasks { .. }));
    let is_same = |claim: &Claim| {
        matches!(
            claim.cause,
            Cause::Edit(Edit::LessSupportWork { subject: SupportSubject::Waiting, .. } | Edit::FreeHandOver)
        )
    };
    let follows = |claim: &Claim| match &claim.cause {
        Cause::LocksNotRecorded | Cause::Unexplained => true,
        Cause::Edit(Edit::FreeLocks(locks)) => is_interpreters(locks),
        Cause::Edit(edit) => matches!(
            edit,
            Edit::Cpus(_)
                | Edit::NoTurns
                | Edit::Overlap { .. }
                | Edit::MoreThreads { .. }
                | Edit::FewerThreads { .. }
                | Edit::DivideEvenly(_)
                | Edit::Divide(..)
        ),
        _ => false,
    };
    if !claims.iter().any(is_small) {
        return;
    }
    claims.retain(|claim| !is_same(claim));
    if claims.first().is_some_and(follows)
        && let Some(place) = claims.iter().position(is_small)
    {
        claims[..=place].rotate_right(1);
        claims.retain(|claim| !follows(claim) || claim.cause == Cause::Unexplained);
    }
}

/// Removes the row for sleeping if threads that poll do nearly all of the sleeping.
pub(super) fn sleep_is_polling(claims: &mut Vec<Claim>) {
    if let Some(most) = claims.iter().find(|claim| is_polling(claim)).map(|claim| claim.most) {
        claims.retain(|claim| claim.cause != Cause::Edit(Edit::NoSleeps) || claim.most > most + SAME);
    }
}

/// Puts polling before sleeping if most of the sleep is for it: other sleep may be work.
pub(super) fn polling_before_sleep(claims: &mut [Claim]) {
    let Some(sleep) = claims.first().filter(|claim| claim.cause == Cause::Edit(Edit::NoSleeps)) else {
        return;
    };
    let is_most = |claim: &Claim| is_polling(claim) && claim.most > sleep.most / 2.0;
    if let Some(place) = claims.iter().position(is_most) {
        claims[..=place].rotate_right(1);
    }
}

fn is_polling(claim: &Claim) -> bool {
    matches!(claim.cause, Cause::Edit(Edit::NoPolling(_)))
}

/// Keeps one row for each pool that sleeps: the row whose number of threads gains most.
pub(super) fn most_sleepers(claims: &mut Vec<Claim>) {
    let of = |claim: &Claim| match &claim.cause {
        Cause::Edit(Edit::MoreSleepers { threads, .. }) => Some(threads.clone()),
        _ => None,
    };
    claims.sort_by(|a, b| b.most.total_cmp(&a.most));
    let mut seen: Vec<Vec<usize>> = Vec::new();
    claims.retain(|claim| {
        of(claim).is_none_or(|threads| {
            let is_new = !seen.contains(&threads);
            seen.push(threads);
            is_new
        })
    });
}
