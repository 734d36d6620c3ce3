//! The ledger: a row for each cause that may limit a run, with the share of the time that is saved without the cause,
//! and how that share is known (a method of longpole's own). The first row is the limit.
//!
//! A row's gain is an interval. Both ends are equal if the gain was simulated. The lower end is 0 if the gain is assumed,
//! bounded by the cause's part of the path, or unknown. Rows are ordered by the middle, the expected gain. By the lower end a
//! simulated 5 % would hide a stretch of 60 % that might be divided; by the upper end an unknown cause would hide all known
//! ones. Of measured CPU time, [`SEEN`] is expected. Of two rows with about the same gain a simulated one comes first; of two
//! simulated rows, the one that says more precisely what to change. A row that may gain more than the first row stands below it
//! on the screen.

use super::causes::loaded::loaded;
use super::order::{
    as_many_as_cpus, most_sleepers, polling_before_sleep, sleep_is_polling, small_tasks_first,
    spinning_before_cpus, threads_before_cpus, waking_before_cpus,
};
use super::row::{Evidence, LedgerRow};
use super::search::Search;
use super::watched_run::WatchedRun;
use super::{LimitKind, WORTH};
use crate::event::SupportSubject;
use crate::experiment::Edit;
use crate::program::{ObjectId, ObjectMeaning, RecordedWait, SupportWork};

/// Two gains that differ by less than this are the same.
pub(super) const SAME: f64 = 0.02;
/// A lock's gain is the same as the first row's if it is less by at most half of the part of the run that the prediction
/// lacks, up to this: a prediction that is too short leaves the CPUs too busy.
const SAME_AT_MOST: f64 = 0.1;
/// The part that can be saved of CPU time that samples find in the kernel, in a runtime, at a cache line, or in threads that
/// are woken for nothing: in eighteen of nineteen public reports the remedy gained at least this part (VALIDATION.md).
pub(super) const SEEN: f64 = 2.0 / 3.0;
/// A cause with at least this part of the gain of cheaper work is the reason why the work costs more.
const REASON: f64 = 0.5;
/// If shared cache lines, or threads that put each other to sleep, take this part of the CPU time, nothing is known of more CPUs.
const MUCH_AT_LINES: f64 = 0.25;
/// A cause with at least this part of the gain of the kernel's work for threads that wait explains that work.
const EXPLAINS: f64 = 0.5;
/// A cause that takes more than this share of a run counts as most of the run.
const MOST: f64 = 0.5;
/// Fewer waits for work than this are no requests.
const REQUESTS: u64 = 10;
/// A program that keeps fewer CPUs busy than this may wait for work most of the time.
const AT_REST: f64 = 0.5;

/// The cause of a row, not yet in the program's words.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Cause {
    Edit(Edit),
    /// A constraint whose removal alone gains nothing.
    OnPath(Edit),
    Idle,
    LocksNotRecorded,
    /// The part of the recorded time that the prediction for the recorded machine lacks.
    Unexplained,
    /// Requests wait for something that is not visible.
    OpenRequests,
    /// Requests wait for a connection to another server.
    Connections,
    /// Requests wait for other requests.
    RequestWait,
    /// Requests lie unread, since all threads that answer have one.
    AnsweringThreads,
    /// Clients' connections are dropped.
    Backlog,
    /// Goroutines wait for each other, which only samples show.
    Goroutines,
    Work,
}

/// A row whose cause is not yet in the program's words.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Claim {
    pub(super) cause: Cause,
    pub(super) least: f64,
    pub(super) most: f64,
    pub(super) evidence: Evidence,
}

impl Claim {
    fn simulated(cause: Cause, gain: f64) -> Claim {
        Claim { cause, least: gain, most: gain, evidence: Evidence::Simulated }
    }

    pub(super) fn at_most(cause: Cause, most: f64, evidence: Evidence) -> Claim {
        Claim { cause, least: 0.0, most: most.clamp(0.0, 1.0), evidence }
    }

    /// Whether this is the kernel's work to put threads to sleep and wake them.
    pub(super) fn is_waking(&self) -> bool {
        matches!(self.cause, Cause::Edit(Edit::LessSupportWork { subject: SupportSubject::Waiting, .. }))
    }

    pub(super) fn middle(&self) -> f64 {
        f64::midpoint(self.least, self.most)
    }

    /// Rank of the claim: of two claims with the same gain, the one with the smaller rank comes first.
    fn order(&self) -> u32 {
        match &self.cause {
            Cause::LocksNotRecorded => 0,
            Cause::Edit(edit) | Cause::OnPath(edit) => edit.order() + 1,
            Cause::Idle
            | Cause::Unexplained
            | Cause::OpenRequests
            | Cause::Connections
            | Cause::RequestWait
            | Cause::AnsweringThreads
            | Cause::Backlog
            | Cause::Goroutines
            | Cause::Work => u32::MAX,
        }
    }
}

/// Whether the cause explains why threads sleep and wake each other in the kernel.
fn explains_kernel_waiting(cause: &Cause) -> bool {
    let waits = |edit: &Edit| {
        matches!(
            edit,
            Edit::FreeLocks(_) | Edit::Permits { .. } | Edit::NoTurns | Edit::FreeHandOver | Edit::WakeOne(_)
        )
    };
    matches!(cause, Cause::Edit(edit) if waits(edit)) || *cause == Cause::LocksNotRecorded
}

impl Search {
    /// All rows: first the limit, then the rows with a gain of at least [`WORTH`]. `without`: the predicted time without each
    /// constraint, nanoseconds.
    pub(super) fn ledger(&self, without: &[(Edit, f64)], run: &WatchedRun) -> Vec<Claim> {
        let time_ns = run.time_ns();
        let gains = || without.iter().map(|(edit, ns)| (edit, 1.0 - ns / time_ns));
        let waits_for_work = gains()
            .any(|(edit, gain)| gain >= WORTH && self.is_waiting_for_work(edit) && self.recurs(edit, run));
        let mut claims: Vec<Claim> =
            gains().filter_map(|(edit, gain)| self.claim(edit, gain, waits_for_work, run)).collect();
        sleep_is_polling(&mut claims);
        most_sleepers(&mut claims);
        as_many_as_cpus(&mut claims);
        self.claim_unrecorded(&mut claims, run);
        // For a program that mostly waits, gains are shares of the measured time, of which computing takes only
        // milliseconds.
        let at_rest = self.rest.map_or(1.0, |rest| time_ns / rest.wall_ns);
        let unexplained = if self.is_explained(&claims, run) { 0.0 } else { self.unexplained(run) };
        // If the prediction explains most of the run, rows keep their weight; otherwise they count only for the
        // explained part.
        let explained = at_rest * if unexplained > MOST { 1.0 - unexplained } else { 1.0 };
        claims.retain(|claim| claim.most * explained >= WORTH);
        if unexplained > 0.0 {
            claims.push(Claim::at_most(Cause::Unexplained, unexplained, Evidence::Unknown));
        }
        self.locks_with_waking(&mut claims);
        let waking = claims.iter().find(|claim| claim.is_waking()).map_or(0.0, |claim| claim.most);
        let has_cause = claims
            .iter()
            .any(|claim| explains_kernel_waiting(&claim.cause) && claim.most >= EXPLAINS * waking);
        let weight = |claim: &Claim| match &claim.cause {
            _ if claim.is_waking() && has_cause => 0.0,
            Cause::Unexplained if unexplained <= MOST => 0.0,
            Cause::Unexplained => f64::INFINITY,
            _ => self.weight(claim) * explained,
        };
        claims.sort_by(|a, b| weight(b).total_cmp(&weight(a)));
        self.holders_first(&mut claims);
        let most = claims.first().map_or(0.0, weight);
        if most >= WORTH {
            let of_lock = (self.missing(run) / 2.0).clamp(SAME, SAME_AT_MOST);
            let is_lock = |claim: &Claim| matches!(claim.cause, Cause::Edit(Edit::FreeLocks(_)));
            // `holders_first` may have moved a row behind a smaller one; such a row must stay there.
            let is_same = |claim: &&Claim| {
                let same = if is_lock(claim) { of_lock } else { SAME };
                ((most - same).max(WORTH)..=most).contains(&weight(claim))
            };
            let same = claims.iter().take_while(is_same);
            let is_open = |claim: &Claim| claim.evidence != Evidence::Simulated;
            let first = same.enumerate().min_by_key(|(_, claim)| (is_open(claim), claim.order()));
            let first = first.map_or(0, |(place, _)| place);
            claims[..=first].rotate_right(1);
            // Threads that wait for a lock take turns because of the lock.
            if matches!(claims.first(), Some(Claim { cause: Cause::Edit(Edit::FreeLocks(_)), .. })) {
                claims.retain(|claim| claim.cause != Cause::Edit(Edit::NoTurns));
            }
            threads_before_cpus(&mut claims);
            self.lines_before_cpus(&mut claims);
            if !has_cause && self.meets_more_with_cpus() {
                waking_before_cpus(&mut claims);
            }
            spinning_before_cpus(&mut claims, run);
            polling_before_sleep(&mut claims);
            self.reasons_of_cost_first(&mut claims);
            self.busy_thread_before_imbalance(&mut claims, run);
            small_tasks_first(&mut claims, |locks| {
                locks.iter().any(|lock| self.program().meaning(*lock).is_interpreter_lock())
            });
        } else {
            claims.insert(0, self.on_path(run));
        }
        self.claim_open_requests(&mut claims, run);
        self.claim_goroutines(&mut claims, run);
        self.claim_request_wait(&mut claims, run);
        self.claim_connections(&mut claims, run);
        self.claim_answering_threads(&mut claims, run);
        claims[1..].sort_by(|a, b| b.most.total_cmp(&a.most));
        claims
    }

    /// Puts a busy thread, or one that computes alone again and again, before the imbalance that the thread causes, because
    /// only the first row names the thread.
    fn busy_thread_before_imbalance(&self, claims: &mut [Claim], run: &WatchedRun) {
        let busy = self.busy_thread(run).map(|busy| busy.part(None));
        let is_it = |claim: &Claim| match &claim.cause {
            Cause::Edit(Edit::Divide(part, _)) => busy.as_ref() == Some(part),
            Cause::Edit(Edit::Overlap { .. }) => true,
            _ => false,
        };
        if let Some(Cause::Edit(Edit::DivideEvenly(_))) = claims.first().map(|first| &first.cause)
            && let Some(place) = claims.iter().position(is_it)
        {
            claims[..=place].rotate_right(1);
        }
    }

    /// Whether threads wait so much for cache lines and put each other to sleep so often that nothing is known of more CPUs.
    fn meets_more_with_cpus(&self) -> bool {
        self.at_lines() + self.kernel_work_of_waiting() >= MUCH_AT_LINES
    }

    /// Puts shared cache lines before more CPUs and threads if these lines take much of the CPU time: the model of lines says
    /// too little of how long they take on more CPUs, and a run on fewer may even be faster.
    fn lines_before_cpus(&self, claims: &mut [Claim]) {
        let is_more =
            |claim: &Claim| matches!(claim.cause, Cause::Edit(Edit::Cpus(_) | Edit::MoreThreads { .. }));
        let is_line = |claim: &Claim| matches!(claim.cause, Cause::Edit(Edit::OwnLines { .. }));
        if self.at_lines() >= MUCH_AT_LINES
            && claims.first().is_some_and(is_more)
            && let Some(place) = claims.iter().position(is_line)
        {
            claims[..=place].rotate_right(1);
        }
    }

    /// Puts the reason why work costs more on more CPUs (cache line, spinning, kernel) before the cost itself. If the line's
    /// function is the one whose cost grows most, the runs on several CPU counts show that the line gains at least as much as
    /// the cost.
    fn reasons_of_cost_first(&self, claims: &mut [Claim]) {
        let Some(place) =
            claims.iter().position(|claim| matches!(claim.cause, Cause::Edit(Edit::CostAsOn(_))))
        else {
            return;
        };
        let cost = claims[place].clone();
        let grown = self
            .costs
            .as_ref()
            .and_then(|costs| costs.grown().into_iter().next())
            .map(|grown| grown.function);
        for claim in claims.iter_mut() {
            let Cause::Edit(Edit::OwnLines { line, .. }) = &claim.cause else { continue };
            let line = self.recorded.lines.get(*line);
            if grown.is_some() && line.and_then(|line| line.function.as_ref()) == grown.as_ref() {
                claim.least = claim.least.max(cost.least.min(claim.most));
            }
        }
        let is_reason = |claim: &Claim| match &claim.cause {
            Cause::Edit(Edit::OwnLines { .. } | Edit::NoSpinning | Edit::NoSpunWaits) => {
                claim.most >= REASON * cost.most
            }
            Cause::Edit(Edit::LessSupportWork { work, .. }) => {
                let grows = self.recorded.support.get(*work).is_some_and(SupportWork::grows);
                grows && claim.most >= REASON * cost.most
            }
            _ => false,
        };
        if place == 0
            && let Some(reason) = claims.iter().position(is_reason)
        {
            claims[..=reason].rotate_right(1);
        }
    }

    /// The edit of each row with the smallest and the largest gain; rows without an edit are omitted.
    pub(super) fn bounds(claims: Vec<Claim>) -> Vec<(Edit, (f64, f64))> {
        let bounds = |claim: Claim| match claim.cause {
            Cause::Edit(edit) => Some((edit, (claim.least, claim.most))),
            _ => None,
        };
        claims.into_iter().filter_map(bounds).collect()
    }

    /// Puts a lock, permit or pool before the sleep inside it, however much the sleep gains. Sleeping with a lock or permit is
    /// the holder's work; sleeping threads of a pool with more work show that more threads would sleep at the same time.
    fn holders_first(&self, claims: &mut [Claim]) {
        let is_holder = |other: &Claim, sleeping: &Edit| match &other.cause {
            Cause::Edit(
                holding @ (Edit::FreeLocks(_) | Edit::Permits { .. } | Edit::MoreSleepers { .. }),
            ) => other.most >= WORTH && self.is_inside(sleeping, holding),
            _ => false,
        };
        while let Some(Cause::Edit(sleeping @ (Edit::FreeDevices(_) | Edit::NoSleeps | Edit::NoPolling(_)))) =
            claims.first().map(|first| &first.cause)
            && let Some(place) = claims.iter().position(|other| is_holder(other, sleeping))
        {
            claims[..=place].rotate_right(1);
        }
    }

    /// Whether a claim explains the time that the prediction lacks: by spinning without CPUs, or by wake-ups for nothing.
    fn is_explained(&self, claims: &[Claim], run: &WatchedRun) -> bool {
        let missing = self.unexplained(run);
        let is_cause =
            |claim: &&Claim| matches!(claim.cause, Cause::Edit(Edit::FewerThreads { .. } | Edit::WakeOne(_)));
        claims.iter().filter(is_cause).any(|claim| claim.most >= missing)
    }

    /// The claim for a constraint's removal; `None`: where requests set the pace, this removal shows nothing.
    fn claim(&self, edit: &Edit, gain: f64, waits_for_work: bool, run: &WatchedRun) -> Option<Claim> {
        let cause = Cause::Edit(edit.clone());
        let is_unknown = |device: &ObjectId| self.program().meaning(*device) == ObjectMeaning::Unknown;
        Some(match edit {
            _ if self.is_waiting_for_work(edit) => Claim::simulated(Cause::Idle, gain),
            Edit::FreeHandOver if self.most_awaited(&run.base).is_some_and(|of| self.is_idle_device(of)) => {
                // The sender of the work wakes the thread: with more work the thread would not be put to sleep.
                Claim::simulated(Cause::Idle, gain)
            }
            _ if self.is_at_rest(edit, run) => Claim::simulated(Cause::Idle, gain),
            Edit::NoSleeps | Edit::NoPolling(_) if self.is_sleep_of_go() => return None,
            Edit::FreeDevices(devices) if devices.iter().all(is_unknown) => {
                Claim::at_most(cause, gain, Evidence::Unknown)
            }
            // Threads that wait for children that were not recorded wait for none of the program's own.
            Edit::NoTurns if self.children_compute_more(run) => return None,
            // Computing between two requests sets the pace together with the clients, however long the computing is.
            Edit::Divide(..) | Edit::Overlap { .. } | Edit::EvenRounds { .. } | Edit::NoTurns
                if waits_for_work =>
            {
                return None;
            }
            Edit::MoreThreads { threads, .. } if waits_for_work && threads.len() == 1 => return None,
            Edit::FewerThreads { .. } => {
                let most = self.most_with_fewer(gain, run);
                let evidence = if most > gain { Evidence::Bounded } else { Evidence::Simulated };
                Claim { cause, least: gain, most, evidence }
            }
            // The work that the threads look for when they wake may not exist earlier.
            Edit::NoPolling(_) | Edit::MoreSleepers { .. } => Claim::at_most(cause, gain, Evidence::Bounded),
            Edit::OwnLines { line, .. } => {
                let least = self.least_without_line(*line, run);
                Claim { cause, least, most: gain.max(least), evidence: Evidence::Bounded }
            }
            Edit::CostAsOn(_) => {
                let (least, most) = self.bounds_of_cost(gain);
                Claim { cause, least, most, evidence: Evidence::Bounded }
            }
            // Waking also takes time outside of the kernel, and woken threads wait for what their wakers still hold.
            Edit::LargerTasks { .. } => Claim { cause, least: gain, most: gain, evidence: Evidence::Bounded },
            // The longer waits for cache lines on more CPUs come from a model, not from a run.
            Edit::Cpus(_) | Edit::NoQuota | Edit::MoreThreads { .. }
                if !self.lines.is_empty() || self.kernel_work_in_the_way() >= WORTH =>
            {
                let known = if self.meets_more_with_cpus() { 0.0 } else { 1.0 };
                let least =
                    known * self.with_lines(edit, gain, run).max(0.0) * (1.0 - self.kernel_work_in_the_way());
                Claim { cause, least, most: least.max(gain), evidence: Evidence::Bounded }
            }
            _ if edit.is_assumed() => Claim::at_most(cause, gain, Evidence::Bounded),
            _ => Claim::simulated(cause, gain),
        })
    }

    /// Replaces the rows for hand-overs, CPUs and turns by one row for unrecorded locks: the waits for these locks are
    /// replayed, so the gains are not distinguishable. The row's gain is at most the share of CPUs that are idle.
    fn claim_unrecorded(&self, claims: &mut Vec<Claim>, run: &WatchedRun) {
        let Some(locks) = &self.unrecorded else { return };
        let idle = 1.0 - run.busy() / run.cpus.or(usize::MAX) as f64;
        let unknown = Claim::at_most(Cause::LocksNotRecorded, locks.waiting.min(idle), Evidence::Unknown);
        if unknown.middle() < WORTH {
            return;
        }
        let is_replayed = |edit: &Edit| match edit {
            Edit::FreeHandOver | Edit::Cpus(_) | Edit::NoQuota | Edit::NoTurns => true,
            // Threads that wait for an unrecorded lock look like a stage or a pool.
            Edit::MoreThreads { .. } | Edit::FewerThreads { .. } => locks.is_lock,
            _ => false,
        };
        let (replayed, others): (Vec<Claim>, Vec<Claim>) = claims
            .drain(..)
            .partition(|claim| matches!(&claim.cause, Cause::Edit(edit) if is_replayed(edit)));
        let most = replayed.iter().fold(unknown.most, |most, claim| most.max(claim.most));
        claims.extend(others);
        claims.push(Claim { most, ..unknown });
    }

    /// The limit if no single constraint's removal gains enough: the largest part of the path. Without a path, the work.
    fn on_path(&self, run: &WatchedRun) -> Claim {
        if let Some(rest) = self.rest {
            let share = 1.0 - rest.busy;
            return Claim { cause: Cause::Idle, least: share, most: share, evidence: Evidence::Measured };
        }
        let on_path = |edit: Edit, ticks: u64| {
            let is_idle = self.is_waiting_for_work(&edit) || self.is_at_rest(&edit, run);
            let cause = if is_idle { Cause::Idle } else { Cause::OnPath(edit) };
            Claim::at_most(cause, run.share(ticks), Evidence::OnPath)
        };
        let Some(causes) = &run.causes else { return Claim::at_most(Cause::Work, 1.0, Evidence::OnPath) };
        // The waits for each single device may be short, although all devices together take most of the path.
        let devices = causes.devices();
        let idle = devices.iter().filter(|(device, _)| self.is_idle_device(*device));
        let idle = idle.map(|(device, sum)| on_path(Edit::FreeDevices(vec![*device]), *sum));
        let (busy, sums): (Vec<ObjectId>, Vec<u64>) =
            devices.iter().filter(|(device, _)| !self.is_idle_device(*device)).copied().unzip();
        let largest = busy.first().copied().zip(sums.first());
        let largest = largest.map(|(device, sum)| on_path(Edit::FreeDevices(vec![device]), *sum)).into_iter();
        let sum = sums.iter().fold(0u64, |all, sum| all.saturating_add(*sum));
        let all = (busy.len() > 1).then(|| on_path(Edit::FreeDevices(busy), sum));
        let others = [
            on_path(Edit::NoSleeps, if self.is_sleep_of_go() { 0 } else { causes.asleep }),
            on_path(Edit::NoSpinning, causes.spinning),
            on_path(Edit::FreeHandOver, causes.handing_over),
        ];
        let work = Claim::at_most(Cause::Work, run.share(causes.computing), Evidence::OnPath);
        // Computing is the limit unless a wait takes longer: first the longest single wait, then all devices together.
        let longer = largest.chain(idle).chain(others).filter(|claim| claim.most > work.most);
        let longest = longer.max_by(|a, b| a.most.total_cmp(&b.most));
        longest.or(all.filter(|claim| claim.most > work.most)).unwrap_or(work)
    }

    /// Whether threads wait for these devices again and again, as for requests.
    fn recurs(&self, edit: &Edit, run: &WatchedRun) -> bool {
        let Edit::FreeDevices(devices) = edit else { return false };
        let waits = devices.iter().filter_map(|device| run.base.objects.get(device.0 as usize));
        waits.map(|used| used.waits).sum::<u64>() >= REQUESTS
    }

    fn is_waiting_for_work(&self, edit: &Edit) -> bool {
        matches!(edit, Edit::FreeDevices(devices) if devices.iter().all(|device| self.is_idle_device(*device)))
    }

    /// Whether the threads' sleeps, or their waits for these devices, were mostly waiting for work when recorded, in a
    /// program that does little else.
    fn is_at_rest(&self, edit: &Edit, run: &WatchedRun) -> bool {
        let is_of: &dyn Fn(&RecordedWait) -> bool = match edit {
            Edit::NoSleeps | Edit::NoPolling(_) if self.rest.is_some() => return true,
            Edit::NoSleeps | Edit::NoPolling(_) => &RecordedWait::is_for_time,
            Edit::FreeDevices(devices) => {
                &|wait| devices.iter().any(|device| self.object_name(*device) == wait.name.as_str())
            }
            _ => return false,
        };
        let sum = |idle: bool| {
            let waits = self.recorded.waits.iter().filter(|wait| wait.idle == idle && is_of(wait));
            waits.fold(0u64, |sum, wait| sum.saturating_add(wait.wait_ns))
        };
        run.busy() < AT_REST && sum(true) > sum(false) && loaded(&self.recorded).is_none()
    }

    /// The weight by which rows are ordered. A futex word that no thread was seen to use as a lock gets at most [`WORTH`]:
    /// after simulated rows, before the largest part of the path.
    fn weight(&self, claim: &Claim) -> f64 {
        let is_lock = self.unrecorded.as_ref().is_none_or(|locks| locks.is_lock);
        match claim.cause {
            Cause::LocksNotRecorded if !is_lock => claim.middle().min(WORTH),
            // The length of the sleep is known; only what replaces the sleep is unknown.
            Cause::Edit(Edit::NoPolling(_) | Edit::MoreSleepers { .. }) => claim.most,
            Cause::Edit(Edit::LessSupportWork { .. } | Edit::WakeOne(_) | Edit::OwnLines { .. }) => {
                claim.least.max(SEEN * claim.most)
            }
            Cause::Edit(Edit::FreeLocks(_)) if claim.evidence == Evidence::Bounded => {
                claim.least.max(SEEN * claim.most)
            }
            _ => claim.middle(),
        }
    }

    /// The claim as a row, in the program's words.
    pub(super) fn row(&self, claim: &Claim, run: &WatchedRun) -> LedgerRow {
        let busy = self.rest.map_or_else(|| run.busy(), |rest| rest.busy);
        let kind = match &claim.cause {
            Cause::Edit(edit) | Cause::OnPath(edit) => self.kind(edit, run),
            Cause::Idle => LimitKind::Idle { busy },
            Cause::OpenRequests => self.of_open_requests(busy),
            Cause::Connections => self.of_connections(busy),
            Cause::RequestWait => self.of_request_wait(),
            Cause::AnsweringThreads => self.of_answering_threads(busy),
            Cause::Backlog => self.of_backlog(),
            Cause::Goroutines => self.of_goroutines(busy),
            Cause::Work => LimitKind::Work { busy, hidden: self.is_hidden() },
            Cause::Unexplained => {
                let (predicted_ns, measured_ns) = (run.time_ns(), self.measured_ns(run).unwrap_or(0.0));
                LimitKind::Unexplained { predicted_ns, measured_ns }
            }
            Cause::LocksNotRecorded => {
                self.unrecorded.as_ref().map_or(LimitKind::Nothing, |locks| locks.kind())
            }
        };
        LedgerRow { kind, least: claim.least, most: claim.most, evidence: claim.evidence }
    }
}
