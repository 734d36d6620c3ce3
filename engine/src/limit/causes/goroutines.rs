//! What goroutines wait for (a method of longpole's own): looks at Go's runtime show what each goroutine does, from which
//! bounds of gains follow. Without looks, samples of slow paths show waits for locks, where CPUs are idle and it is not
//! visible what for.
//!
//! A run of n CPUs takes at least the CPU time of all goroutines divided by n, and at least the longest time that one
//! goroutine computes. Looks show both as shares of the run.

use super::idle::measured_busy;
use super::open_requests::FULL;
use crate::cpus::Cpus;
use crate::experiment::{Edit, GoroutineChange};
use crate::limit::LimitKind;
use crate::limit::WORTH;
use crate::limit::goroutines_wait::GoroutinesWait;
use crate::limit::ledger::{Cause, Claim};
use crate::limit::row::Evidence;
use crate::limit::search::Search;
use crate::limit::watched_run::WatchedRun;
use crate::program::{GoroutineGroup, GoroutineWait, GoroutineWaits, GoroutineWork};

/// Fewer samples may be of rare waits. A wait costs some microseconds of CPU time, so that there are few.
const FEWEST: u64 = 3;
/// Fewer looks show too little.
const FEWEST_LOOKS: u64 = 20;
/// A goroutine that is busy at this share of the looks never waits for long.
const AT_WORK: f64 = 0.8;
/// Fewer goroutines that wait, on average, are by chance.
const WAITING: f64 = 0.1;
/// Half of the idle time of the CPUs, or half a goroutine.
const HALF: f64 = 0.5;
/// Number of waits shown.
const SHOWN: usize = 3;
/// If this share of the CPUs is used, goroutines wait for a CPU.
const ALL: f64 = 0.85;

/// Goroutines' part of a run, as shares of the run's time.
struct Shares<'w> {
    work: &'w GoroutineWork,
    looks: f64,
    /// CPUs that goroutines use, on average.
    running: f64,
    /// Goroutines that run or could run, on average.
    wanting: f64,
}

impl<'w> Shares<'w> {
    /// `busy`: CPUs that the program used; more than its goroutines ran, since Go's runtime runs on them, too.
    fn of(work: &'w GoroutineWork, busy: f64) -> Shares<'w> {
        let looks = work.looks.max(1) as f64;
        let sum = |of: fn(&GoroutineGroup) -> u64| {
            work.groups.iter().map(|group| of(group) as f64).sum::<f64>() / looks
        };
        let running = sum(|group| group.running);
        let busy = if running > 0.0 { busy.max(running) } else { 0.0 };
        Shares { work, looks, running: busy, wanting: running + sum(|group| group.runnable) }
    }

    /// The longest time that one goroutine computes, among groups for which `is_counted` holds.
    fn longest(&self, is_counted: impl Fn(&GoroutineGroup) -> bool) -> f64 {
        let groups = self.work.groups.iter().filter(|group| is_counted(group));
        groups.map(|group| self.alone(group)).fold(0.0, f64::max)
    }

    /// The time that one goroutine of the group computes.
    fn alone(&self, group: &GoroutineGroup) -> f64 {
        group.running as f64 / self.looks / group.most.max(1) as f64
    }

    /// The least time on this many CPUs if single goroutines compute `longest`.
    fn least(&self, cpus: f64, longest: f64) -> f64 {
        (self.running / cpus).max(longest).max(f64::MIN_POSITIVE)
    }
}

/// A limit of goroutines, with the largest share of the time that its change saves.
struct Found {
    change: GoroutineChange,
    most: f64,
}

impl Search {
    /// Adds what looks at goroutines show.
    fn claim_looks(&self, work: &GoroutineWork, claims: &mut Vec<Claim>, run: &WatchedRun) {
        self.bound_cpus(work, claims);
        let Some(found) = self.looked_at(work, run).filter(|found| found.most >= WORTH) else {
            self.claim_several(work, claims, run);
            return;
        };
        let claim =
            Claim::at_most(Cause::Edit(Edit::Goroutines(found.change)), found.most, Evidence::Bounded);
        if self.most_asked().is_none() {
            super::connections::place(claims, claim);
            claims.retain(|other| other.cause != Cause::Work);
        }
    }

    /// Puts the waits of goroutines before a first row that explains little of the CPUs' idle time, or that says that the
    /// program is idle while its own functions sleep.
    fn claim_several(&self, work: &GoroutineWork, claims: &mut Vec<Claim>, run: &WatchedRun) {
        let shares = self.shares(work);
        let cpus = run.cpus.or(usize::MAX) as f64;
        let idle = 1.0 - (shares.running + self.cpus_of_others()) / cpus;
        let Some(first) = claims.first().filter(|_| idle > 1.0 - ALL) else { return };
        let explains = match &first.cause {
            Cause::Work => false,
            Cause::Idle => sleeping(&shares) < HALF,
            Cause::OpenRequests | Cause::Connections => true,
            _ => first.most >= HALF * idle,
        };
        if !explains && !most_waits(work).is_empty() {
            claims.retain(|claim| !matches!(claim.cause, Cause::Work | Cause::Idle));
            claims.insert(0, Claim::at_most(Cause::Goroutines, idle, Evidence::Unknown));
        } else if let Some(first) = claims.first_mut().filter(|first| first.cause == Cause::Work) {
            first.cause = Cause::Goroutines;
        }
    }

    /// More CPUs bring at most what the longest goroutine allows, whatever threads of Go's runtime do.
    fn bound_cpus(&self, work: &GoroutineWork, claims: &mut Vec<Claim>) {
        let most = (1.0 - self.shares(work).longest(|_| true)).max(0.0);
        for claim in claims.iter_mut().filter(|claim| matches!(claim.cause, Cause::Edit(Edit::Cpus(_)))) {
            (claim.least, claim.most) = (claim.least.min(most), claim.most.min(most));
        }
        let first = claims.first().cloned();
        claims.retain(|claim| claim.most >= WORTH);
        if claims.is_empty() {
            let work = Claim::at_most(Cause::Work, 1.0, Evidence::OnPath);
            claims.push(
                first.filter(|first| !matches!(first.cause, Cause::Edit(Edit::Cpus(_)))).unwrap_or(work),
            );
        }
    }

    /// The largest limit that looks at goroutines show.
    fn looked_at(&self, work: &GoroutineWork, run: &WatchedRun) -> Option<Found> {
        let shares = self.shares(work);
        let cpus = run.cpus.or(usize::MAX) as f64;
        let others = self.cpus_of_others();
        let is_free = shares.running + others < ALL * cpus;
        let mut all: Vec<Found> = Vec::new();
        if is_free {
            all.extend(lock(&shares, cpus));
            all.extend(permits(&shares));
        }
        all.extend(stage(&shares, cpus));
        if let Cpus::Count(count) = run.cpus
            && self.counts().first() == Some(&run.cpus)
            && shares.wanting > cpus + WAITING
            && shares.running >= ALL * cpus
        {
            let longest = shares.longest(|_| true);
            let twice = shares.least(2.0 * cpus, longest) / shares.least(cpus, longest);
            let more = count.get().saturating_mul(2);
            all.push(Found { change: GoroutineChange::Cpus(more), most: 1.0 - twice });
        }
        all.into_iter().max_by(|a, b| a.most.total_cmp(&b.most))
    }

    /// The process whose goroutines compute most, if there were enough looks.
    fn goroutine_work(&self) -> Option<&GoroutineWork> {
        let works = self.recorded.goroutine_work.iter().filter(|work| work.looks >= FEWEST_LOOKS);
        works.max_by(|a, b| Shares::of(a, 0.0).wanting.total_cmp(&Shares::of(b, 0.0).wanting))
    }

    fn shares<'w>(&self, work: &'w GoroutineWork) -> Shares<'w> {
        let several = self.recorded.goroutine_work.len() > 1;
        let busy = measured_busy(self.program(), None).filter(|_| !several);
        Shares::of(work, busy.unwrap_or(0.0))
    }

    /// Whether it is not visible what goroutines wait for.
    pub(in crate::limit) fn is_hidden(&self) -> bool {
        self.hidden && self.goroutine_work().is_none()
    }

    /// The lock's type and the function that a change is about.
    pub(in crate::limit) fn about_goroutines(
        &self,
        change: GoroutineChange,
    ) -> (Option<String>, Option<String>) {
        match self.of_goroutine_change(change) {
            LimitKind::GoroutinesWait(GoroutinesWait::Lock { lock, function, .. }) => (Some(lock), function),
            LimitKind::GoroutinesWait(GoroutinesWait::Channel { function, .. }) => (None, function),
            LimitKind::GoroutinesWait(GoroutinesWait::Stage { function, .. }) => (None, Some(function)),
            _ => (None, None),
        }
    }

    /// The limit in the program's words.
    pub(in crate::limit) fn of_goroutine_change(&self, change: GoroutineChange) -> LimitKind {
        let Some(work) = self.goroutine_work() else { return LimitKind::Nothing };
        let shares = self.shares(work);
        let group = |number: usize| work.groups.get(number);
        let wait = |of: usize, number: usize| group(of).and_then(|group| group.waits.get(number));
        let waits = match change {
            GoroutineChange::Cpus(_) => return LimitKind::Cpus { wanting: shares.wanting, goroutines: true },
            GoroutineChange::LessLocked { group: of, wait: number } => {
                wait(of, number).map(|wait| GoroutinesWait::Lock {
                    lock: wait.reason.clone(),
                    function: wait.function.clone(),
                    waiting: waiters(&shares, &wait.reason),
                })
            }
            GoroutineChange::MorePermits { group: of, wait: number, .. } => {
                wait(of, number).map(|wait| GoroutinesWait::Channel {
                    capacity: wait.capacity.unwrap_or_default(),
                    function: wait.function.clone(),
                    waiting: wait.count as f64 / shares.looks,
                })
            }
            GoroutineChange::SecondOfStage { group: of } => group(of).map(|group| GoroutinesWait::Stage {
                function: group.name().to_owned(),
                at_work: group.busy as f64 / group.there.max(1) as f64,
                waiting: in_channels(&shares, of),
            }),
        };
        waits.map_or(LimitKind::Nothing, LimitKind::GoroutinesWait)
    }
}

/// The lock that most goroutines wait for. While one waits, CPUs without work could be used.
fn lock(shares: &Shares<'_>, cpus: f64) -> Option<Found> {
    let (group, wait, of) =
        waits(shares).filter(|(.., wait)| wait.is_lock()).max_by_key(|(.., wait)| wait.count)?;
    let waiting = waiters(shares, &of.reason);
    let at_all = (of.looks as f64 / shares.looks).min(1.0);
    let most = at_all * (1.0 - (shares.running / cpus).min(1.0));
    (waiting >= WAITING).then_some(Found { change: GoroutineChange::LessLocked { group, wait }, most })
}

/// How many goroutines wait for locks of this type, on average.
fn waiters(shares: &Shares<'_>, lock: &str) -> f64 {
    let of = waits(shares).filter(|(.., wait)| wait.reason == lock);
    of.map(|(.., wait)| wait.count as f64).sum::<f64>() / shares.looks
}

/// A channel whose places are permits: goroutines that do the same wait to send to it, and as many as it has places do not.
fn permits(shares: &Shares<'_>) -> Option<Found> {
    let found = waits(shares).filter_map(|(group, number, wait)| {
        let of = shares.work.groups.get(group)?;
        let capacity = wait.capacity.filter(|_| wait.reason == "chan send")?.max(1) as f64;
        let waiting = wait.count as f64 / shares.looks;
        let all = of.all() as f64 / shares.looks;
        let others = all - waiting;
        let is_permit = of.most as f64 > capacity && (others - capacity).abs() <= (capacity / 5.0).max(1.0);
        let most = (wait.looks as f64 / shares.looks).min(1.0) * (1.0 - capacity / all.max(capacity));
        let then = wait.capacity.unwrap_or(1).max(1).saturating_mul(2);
        (is_permit && waiting >= WAITING)
            .then_some(Found { change: GoroutineChange::MorePermits { group, wait: number, then }, most })
    });
    found.max_by(|a, b| a.most.total_cmp(&b.most))
}

/// A goroutine that is always at work, while others wait for it in channels.
fn stage(shares: &Shares<'_>, cpus: f64) -> Option<Found> {
    let (number, group) = shares
        .work
        .groups
        .iter()
        .enumerate()
        .filter(|(_, group)| group.most == 1)
        .max_by(|a, b| shares.alone(a.1).total_cmp(&shares.alone(b.1)))?;
    let at_work = group.busy as f64 / group.there.max(1) as f64;
    let alone = shares.alone(group);
    let others = shares.longest(|other| other.function != group.function);
    let now = shares.least(cpus, alone);
    let most = 1.0 - shares.least(cpus, others.max(alone / 2.0)) / now;
    let is_there = group.there as f64 >= AT_WORK * shares.looks;
    (is_there && at_work >= AT_WORK && in_channels(shares, number) >= WAITING)
        .then_some(Found { change: GoroutineChange::SecondOfStage { group: number }, most })
}

/// The waits that most goroutines are in, without those for goroutines to end.
fn most_waits(work: &GoroutineWork) -> Vec<(String, f64)> {
    let shares = Shares::of(work, 0.0);
    let mut found: Vec<&GoroutineWait> = waits(&shares).map(|(.., wait)| wait).collect();
    found.retain(|wait| wait.reason != "sync.WaitGroup" && wait.count as f64 >= WAITING * shares.looks);
    found.sort_by_key(|wait| std::cmp::Reverse(wait.count));
    found.truncate(SHOWN);
    found.into_iter().map(|wait| (wait.name(), wait.count as f64 / shares.looks)).collect()
}

/// How many goroutines sleep in the program's own functions, on average.
fn sleeping(shares: &Shares<'_>) -> f64 {
    let of = waits(shares).filter(|(.., wait)| wait.reason == "sleep" && wait.function.is_some());
    of.map(|(.., wait)| wait.count as f64).sum::<f64>() / shares.looks
}

/// How many goroutines of other groups wait for channels, on average.
fn in_channels(shares: &Shares<'_>, but: usize) -> f64 {
    let of = waits(shares).filter(|(group, _, wait)| {
        *group != but && (wait.reason.starts_with("chan ") || wait.reason == "select")
    });
    of.map(|(.., wait)| wait.count as f64).sum::<f64>() / shares.looks
}

/// All waits, with the numbers of their group and of the wait in it.
fn waits<'w>(shares: &Shares<'w>) -> impl Iterator<Item = (usize, usize, &'w GoroutineWait)> + Clone {
    let groups = shares.work.groups.iter().enumerate();
    groups
        .flat_map(|(group, of)| of.waits.iter().enumerate().map(move |(number, wait)| (group, number, wait)))
}

impl Search {
    /// Replaces a row that says that waits are not visible by the lock that samples show.
    pub(in crate::limit) fn claim_goroutines(&self, claims: &mut Vec<Claim>, run: &WatchedRun) {
        if let Some(work) = self.goroutine_work() {
            return self.claim_looks(work, claims, run);
        }
        let cpus = run.cpus.or(usize::MAX) as f64;
        let busy = self.rest.map_or_else(|| run.busy(), |rest| rest.busy);
        if !self.hidden || self.most_asked().is_some() || self.most_waited_for().is_none() {
            return;
        }
        let Some(first) = claims.first_mut() else { return };
        let idle = 1.0 - busy / cpus;
        let most = match first.cause {
            // Open requests wait, regardless of who has the CPUs.
            Cause::OpenRequests => first.most.min(idle),
            Cause::Work if busy + self.cpus_of_others() < FULL * cpus => idle,
            _ => return,
        };
        *first = Claim { cause: Cause::Goroutines, least: 0.0, most, evidence: Evidence::Unknown };
    }

    /// The function whose goroutines wait for a lock in most samples, and the samples of all.
    fn most_waited_for(&self) -> Option<(&GoroutineWaits, u64)> {
        let waits = &self.recorded.goroutines;
        let all = waits.iter().fold(0u64, |all, of| all.saturating_add(of.count));
        let first = waits.iter().max_by_key(|of| of.count)?;
        (all >= FEWEST).then_some((first, all))
    }

    /// Whether threads sleep in Go's runtime, which looks after goroutines now and then. A goroutine that sleeps has no thread.
    pub(in crate::limit) fn is_sleep_of_go(&self) -> bool {
        self.hidden && self.sleeps_in().is_some_and(|function| function.starts_with("runtime."))
    }

    /// The limit "goroutines wait for a lock", with the program's names.
    pub(in crate::limit) fn of_goroutines(&self, busy: f64) -> LimitKind {
        if let Some(work) = self.goroutine_work() {
            return LimitKind::GoroutinesWait(GoroutinesWait::Several { waits: most_waits(work), busy });
        }
        let Some((first, samples)) = self.most_waited_for() else { return LimitKind::Nothing };
        LimitKind::Goroutines { lock: first.lock.clone(), function: first.function.clone(), samples, busy }
    }
}
