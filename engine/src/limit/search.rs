//! The search: which constraints threads wait for, and the gain without each of them.

use super::causes::asked_again::AskedAgain;
use super::causes::idle::{MostlyAsleep, Rest, measured_busy};
use super::causes::pools;
use super::causes::stretch::{Stretch, without_turns};
use super::causes::unrecorded_locks::UnrecordedLocks;
use super::changes::fixes::Fix;
use super::changes::top_functions::FunctionUse;
use super::first_asked::first_asked;
use super::goroutines_wait::GoroutinesWait;
use super::threads::crews::crews;
use super::threads::holders::{self, Sums};
use super::threads::peers::wait_for_each_other;
use super::threads::thread_group::Group;
use super::threads::thread_samples::{ThreadSamples, has_twin, of_threads};
use super::threads::uses::{LockUse, States};
use super::threads::worker_groups::{groups, is_even};
use super::watched_run::WatchedRun;
use super::{Limit, LimitKind, Limits, MoreThreads, WORTH};
use crate::attribution::{Owners, with_sampled_calls};
use crate::cpus::Cpus;
use crate::experiment::{Changed, Edit, Permits, Polling, Trials, apply, bounded};
use crate::finding::{Finding, Stuck};
use crate::predict::{CpuCosts, LineLoad, Model, Timing};
use crate::program::{ObjectId, ObjectMeaning, Program, ProgramError, Recorded, bare_name};
use crate::schedule::RunOutcome;
use crate::time::Ticks;
use std::borrow::Cow;

/// A search in steps: [`Search::at`] for each of [`Search::counts`], [`Search::edits`], [`Search::fix`] for each of
/// these, [`Search::tenth`] for each of [`Search::functions`], [`Search::conclude`]. Calls of one step are independent.
#[derive(Debug)]
pub struct Search {
    pub(super) trials: Trials<'static>,
    pub(super) recorded: Recorded,
    counts: Vec<Cpus>,
    /// Threads that do the same, in one process or several.
    crews: Vec<Vec<usize>>,
    pub(super) groups: Vec<Group>,
    /// For each group: whether its threads wait for each other.
    pub(super) peers: Vec<bool>,
    pub(super) samples: Vec<ThreadSamples>,
    pub(super) rest: Option<Rest>,
    pub(super) unrecorded: Option<UnrecordedLocks>,
    /// The deadlock in which the recording ended.
    deadlock: Option<Stuck>,
    /// The search makes few trials.
    pub(super) is_brief: bool,
    /// Whether goroutines run, whose waits are not visible.
    pub(super) hidden: bool,
    /// Cache lines that several threads change, with the share of their time that threads spend at each line.
    pub(super) lines: Vec<LineLoad>,
    /// CPU time of functions on several CPU counts, if the command was run on them.
    pub(super) costs: Option<CpuCosts>,
    /// CPU time of busy waiting, as recorded.
    pub(super) asked_again: AskedAgain,
    /// Threads that poll.
    pub(super) polling: Option<Polling>,
    /// Bounded resources.
    pub(super) permits: Vec<Permits>,
}

/// The search's result for one CPU count.
#[derive(Clone, Debug)]
pub struct Found {
    pub(super) limit: Limit,
    /// Changes that gain anything, with the predicted time of each, nanoseconds, the best first.
    pub(super) without: Vec<(Edit, f64)>,
    /// For changes that are rows of the ledger: the smallest and the largest share of the time that each change saves.
    bounds: Vec<(Edit, (f64, f64))>,
    pub(super) time_ns: f64,
    /// The longest stretch that one thread computes alone.
    pub(super) stretch: Option<Stretch>,
    /// The thread that computes most of the time while others compute little.
    pub(super) busy_thread: Option<Stretch>,
    /// The largest share of the time that any single thread computes or is runnable.
    pub(super) at_work: f64,
    pub(super) locks: Vec<LockUse>,
    /// States of the threads, and the run's length.
    states: Option<(States, Ticks)>,
    more_threads: Option<MoreThreads>,
}

impl Found {
    /// The change of goroutines among the ledger's rows.
    pub(super) fn of_goroutines(&self) -> Option<Edit> {
        self.bounds.iter().find(|(row, _)| matches!(row, Edit::Goroutines(_))).map(|(edit, _)| edit.clone())
    }

    /// The smallest and the largest share of the time that the edit saves; `None`: the ledger has no row for it.
    pub(super) fn bounds_of(&self, edit: &Edit) -> Option<(f64, f64)> {
        self.bounds.iter().find(|(row, _)| row == edit).map(|(_, bounds)| *bounds)
    }
}

/// The limits on all CPU counts, found sequentially.
pub fn limits(program: &Program, cpus: &[Cpus], model: &Model) -> Limits {
    Search::new(program, cpus, model).map_or_else(|_| Limits::default(), Search::all)
}

impl Search {
    /// `cpus` are the CPU counts asked for.
    ///
    /// # Errors
    /// The program fails [`Program::check`].
    pub fn new(program: &Program, cpus: &[Cpus], model: &Model) -> Result<Search, ProgramError> {
        Search::after(program, &[], cpus, model)
    }

    /// A search on the program with these changes; if they cannot be made, on the unchanged program. Samples of the
    /// unchanged program show callers and what threads do.
    ///
    /// # Errors
    /// The program fails [`Program::check`].
    pub fn after(
        program: &Program,
        edits: &[Edit],
        cpus: &[Cpus],
        model: &Model,
    ) -> Result<Search, ProgramError> {
        program.check()?;
        let machine = program.recorded_cpus.and_then(Cpus::count);
        let cpus = &program.counts(cpus)[..];
        let finite = cpus.iter().copied().filter(|cpus| *cpus != Cpus::Infinite).max();
        let largest = finite.or_else(|| cpus.first().copied());
        let mut counts: Vec<Cpus> = machine.into_iter().chain(largest).collect();
        counts.dedup();
        let owners = Owners::of(program);
        let samples = of_threads(program, &owners);
        let (lines, costs) = (LineLoad::of(program), CpuCosts::of(program));
        let program = with_sampled_calls(program.clone());
        let changed = apply(&program, &owners, model, edits);
        let (mut program, model) = match changed {
            Ok(Changed { program: changed, model }) => (changed.into_owned(), model.into_owned()),
            Err(_) => (program, model.clone()),
        };
        program = pools::put_back(program, &model);
        // The CPU time was measured for the unchanged program only.
        if !edits.is_empty() {
            program.overhead.iter_mut().for_each(|cost| cost.target_ns = 0);
        }
        let recorded = std::mem::take(&mut program.recorded);
        let rest = Rest::of(&program, &recorded);
        let unrecorded = UnrecordedLocks::of(&program, &recorded);
        let hidden = program.findings.iter().any(Finding::is_of_go);
        let deadlock = program.findings.iter().find_map(|finding| match finding {
            Finding::Deadlock { stuck, others_ran: Some(false) } => Some(stuck.clone()),
            _ => None,
        });
        let asked_again = AskedAgain::of(&program);
        program.findings.clear();
        let groups = groups(&program, &owners, &samples);
        let crews = crews(&program, &owners, &groups);
        let peers = if hidden { Vec::new() } else { wait_for_each_other(&program, &groups) };
        let permits = bounded(&program);
        let polling = Polling::of(&program, hidden);
        Ok(Search {
            trials: Trials::new(Cow::Owned(program), owners, &model),
            recorded,
            counts,
            peers,
            crews,
            groups,
            samples,
            rest,
            unrecorded,
            deadlock,
            is_brief: false,
            hidden,
            lines,
            costs,
            asked_again,
            polling,
            permits,
        })
    }

    /// Searches on this CPU count instead of the recorded machine's.
    pub fn on(mut self, cpus: Cpus) -> Search {
        let largest = self.counts.last().copied().filter(|largest| *largest != cpus);
        self.counts = std::iter::once(cpus).chain(largest).collect();
        self
    }

    /// All steps, sequentially.
    pub fn all(self) -> Limits {
        let found: Vec<Found> = self.counts.iter().map(|cpus| self.at(*cpus)).collect();
        let fixes = self.edits(&found);
        let fixes = fixes.iter().filter_map(|edit| self.fix(edit, &found)).collect();
        let functions = self.functions();
        let functions = functions.iter().filter_map(|function| self.tenth(*function, &found)).collect();
        self.conclude(found, fixes, functions)
    }

    /// The CPU counts to search on: the recorded machine's and the largest asked for.
    pub fn counts(&self) -> &[Cpus] {
        &self.counts
    }

    /// Finds what limits the program on this CPU count.
    pub fn at(&self, cpus: Cpus) -> Found {
        let mut found = self.predicted(cpus);
        if let Some(stuck) = &self.deadlock {
            found.limit = Limit::known(cpus, found.time_ns, LimitKind::Deadlock { stuck: stuck.clone() });
        }
        found
    }

    /// Number of different runs that the search has made so far, of the program and of changed programs.
    pub fn runs(&self) -> usize {
        self.trials.runs()
    }

    pub(super) fn program(&self) -> &Program {
        self.trials.program()
    }

    pub(super) fn owners(&self) -> &Owners {
        self.trials.owners()
    }

    /// The predicted time, nanoseconds, without each of the constraints that threads wait for most.
    fn times_without(&self, run: &WatchedRun, timing: &Timing<'_>) -> Vec<(Edit, f64)> {
        let cpus = run.cpus;
        let candidates = self.candidates(run, timing);
        // The limit on the largest CPU count is only additional information, so a large program gets half of the trials.
        let is_asked = self.is_small() || self.counts.first() == Some(&cpus);
        let most = if is_asked { self.questions() } else { (self.questions() / 2).max(1) };
        let candidates = first_asked(candidates, most);
        let time = |edit: &Edit| match edit {
            Edit::MoreThreads { .. } => self.time_with_more(cpus, edit, &run.base),
            Edit::FewerThreads { .. } => self.time_with_fewer(cpus, edit, &run.base),
            _ => self.trials.with(vec![edit.clone()]).time_ns(cpus, 0),
        };
        candidates.into_iter().filter_map(|(edit, _)| time(&edit).map(|ns| (edit, ns))).collect()
    }

    /// Finds what limits the predicted run.
    fn predicted(&self, cpus: Cpus) -> Found {
        let Ok(timing) = Timing::new(self.program(), self.trials.model()) else { return nothing(cpus) };
        let run = self.watched(&timing, cpus);
        let time_ns = run.time_ns();
        if time_ns == 0.0 {
            return nothing(cpus);
        }
        self.trials.know(cpus, 0, run.is_complete.then_some(time_ns));
        if !run.is_complete {
            // A recorded program came to its end in reality. So only a program written by hand can have this deadlock.
            let known = self.program().machine.is_none();
            let stuck = run.base.findings.iter().find_map(Finding::deadlock).cloned();
            let kind = match stuck.filter(|_| known) {
                Some(stuck) => LimitKind::Deadlock { stuck },
                None => LimitKind::NotKnown { missing: 0.0 },
            };
            return Found { limit: Limit::known(cpus, time_ns, kind), time_ns, ..nothing(cpus) };
        }
        let mut without = self.times_without(&run, &timing);
        if let Some(turns) = &run.turns {
            // The stages of a pipeline compute at the same time.
            without.retain(|(edit, _)| !matches!(edit, Edit::MoreThreads { .. }));
            without.push((Edit::NoTurns, without_turns(cpus, turns)));
        } else {
            without.extend(self.without_waits_alone(&run));
        }
        let busy_thread = self.without_busy_thread(&run, &without);
        without.extend(busy_thread.into_iter().chain(self.without_serial_again(&run)));
        // Evenly divided work between barriers or until joins is simulated, and the same advice.
        if !without
            .iter()
            .any(|(edit, ns)| matches!(edit, Edit::DivideEvenly(_)) && 1.0 - ns / time_ns >= WORTH)
        {
            without.extend(self.without_uneven_rounds(&run));
        }
        let cost = self.at_least_cost(&run);
        without.extend(cost.and_then(|cost| {
            let ns = self.trials.with(vec![cost.clone()]).time_ns(cpus, 0)?;
            Some((cost, ns))
        }));
        without.extend(self.without_lines(&run));
        without.extend(self.without_support_work(&run));
        without.extend(self.without_starved_writer(&run));
        without.extend(self.without_wakings_for_nothing(&run));
        // Threads that are all woken for each task, and find none, are no sign of small tasks.
        if !without.iter().any(|(edit, _)| matches!(edit, Edit::WakeOne(_))) {
            without.extend(self.without_small_tasks(&run));
        }
        let more_threads = self.more_threads(&without, &run);
        // `FewerThreads` stays without a simulated gain: the simulation lacks the CPU time that spinning takes.
        without.retain(|(edit, ns)| *ns < time_ns || matches!(edit, Edit::FewerThreads { .. }));
        without.sort_by(|a, b| a.1.total_cmp(&b.1));
        let claims = self.ledger(&without, &run);
        let rows = claims.iter().map(|claim| self.row(claim, &run)).collect();
        let bounds = Self::bounds(claims);
        let limit = Limit::of(cpus, time_ns, rows);
        let at_work = run.base.threads.iter().map(|used| used.busy.saturating_add(used.ready)).max();
        // If one thread works at a time, or no CPU is free for long, one more thread gains by chance.
        let grows = self.growing_kernel_work() > 0.0 || self.costs.as_ref().is_some_and(CpuCosts::grows);
        let is_bound = more_threads.is_some_and(|more| more.gain >= WORTH && (limit.kind.is_full() || grows));
        Found {
            limit,
            without,
            bounds,
            time_ns,
            stretch: run.stretch,
            busy_thread: self.busy_thread(&run),
            at_work: run.share(at_work.unwrap_or(0)),
            locks: self.lock_rows(&run.base),
            more_threads: more_threads.filter(|_| !is_bound),
            states: Some((run.states, run.base.length)),
        }
    }

    /// The locks that threads wait for, and unrecorded futex words that may be locks.
    fn lock_rows(&self, base: &RunOutcome) -> Vec<LockUse> {
        let mut locks = self.lock_uses(base);
        let words = self.unrecorded.iter().flat_map(|unrecorded| &unrecorded.words);
        // A lock that got its probes late already has a row of its own.
        let is_there = |word: &&LockUse| {
            let name = word.lock.split_once(' ').map_or(word.lock.as_str(), |(_, name)| name);
            locks.iter().any(|lock| bare_name(&lock.lock) == name)
        };
        let words: Vec<LockUse> = words.filter(|word| !is_there(word)).cloned().collect();
        locks.extend(words);
        locks
    }

    /// Whether threads wait at this device for work.
    pub(super) fn is_idle_device(&self, device: ObjectId) -> bool {
        self.program().meaning(device) == ObjectMeaning::Idle
    }

    /// Computing of all threads of the group together, ticks.
    pub(super) fn computed(&self, group: &Group) -> u64 {
        let mut sums = Sums::default();
        for thread in &group.threads {
            holders::of_thread(self.program(), self.owners(), *thread, None, &mut sums);
        }
        sums.all()
    }

    /// Number of the group that has several threads and computes more than half of all.
    fn pool(&self) -> Option<usize> {
        let sums: Vec<u64> = self.groups.iter().map(|group| self.computed(group)).collect();
        let all = sums.iter().fold(0u64, |all, sum| all.saturating_add(*sum));
        let (pool, sum) = sums.iter().enumerate().max_by_key(|(_, sum)| **sum)?;
        let several = self.groups.get(pool).is_some_and(|group| group.threads.len() > 1);
        (several && *sum > all / 2).then_some(pool)
    }

    /// Whether the group is the single thread of a pipeline's stage, which may get a second thread.
    pub(super) fn is_stage(&self, group: &Group) -> bool {
        matches!(group.threads[..], [thread] if group.meets && !has_twin(&self.samples, thread))
    }

    /// Number of the group that is the pipeline stage with most computing.
    fn stage(&self) -> Option<usize> {
        let stages = self.groups.iter().enumerate().filter(|(_, group)| self.is_stage(group));
        stages.max_by_key(|(_, group)| self.computed(group)).map(|(stage, _)| stage)
    }

    /// The group whose number of threads may be changed: the pool, a sleeping pool, or the busiest stage of a pipeline.
    fn changeable(&self) -> Option<usize> {
        self.pool().or_else(|| self.sleeping_pool()).or_else(|| self.stage())
    }

    /// The threads of the pool that does most of the work, of a sleeping pool, or of a pipeline's busiest stage.
    pub fn workers(&self) -> Option<Vec<usize>> {
        self.changeable().and_then(|pool| self.groups.get(pool)).map(|group| group.threads.clone())
    }

    /// A run of the program; `None`: the run stops before its end.
    pub(super) fn complete_run(&self, cpus: Cpus) -> Option<RunOutcome> {
        let base = Timing::new(self.program(), self.trials.model()).ok()?.run(cpus, 0);
        base.is_complete(self.program()).then_some(base)
    }

    pub(super) fn watched(&self, timing: &Timing<'_>, cpus: Cpus) -> WatchedRun {
        let work: u64 = self.groups.iter().flat_map(|group| &group.threads).count() as u64;
        let all = self.program().compute_times().total().0;
        let run = WatchedRun::of(timing, cpus, all / work.max(1) / 10_000, &self.crews);
        // It is not visible which goroutine does what, so turns are not reported.
        WatchedRun { turns: run.turns.filter(|_| !self.hidden), ..run }
    }

    /// The gain of one more thread in the pool. For a large program it is taken from `known`, or not reported.
    fn more_threads(&self, known: &[(Edit, f64)], run: &WatchedRun) -> Option<MoreThreads> {
        let base = &run.base;
        let pool = self.groups.get(self.pool()?)?;
        let are_peers = pool.threads.first().is_some_and(|thread| self.peers_of(*thread).is_some());
        let is_unknown = self.hidden || are_peers || self.waits_outside(&pool.threads, base);
        if is_unknown || !is_even(&pool.threads, base) {
            return None;
        }
        let edit = self.more_of(&pool.threads, 1, base);
        let ns = match known.iter().find(|(known, _)| known.is_same(&edit)) {
            Some((_, ns)) => *ns,
            None if self.is_small() => self.time_with_more(run.cpus, &edit, base)?,
            None => return None,
        };
        let gain = self.with_lines(&edit, 1.0 - ns / base.length.as_ns_f64(), run);
        Some(MoreThreads { threads: pool.threads.len(), gain })
    }

    /// Puts the results together; `fixes` are the results for [`Search::edits`], `functions` for [`Search::functions`].
    pub fn conclude(self, mut found: Vec<Found>, mut fixes: Vec<Fix>, functions: Vec<FunctionUse>) -> Limits {
        fixes.sort_by(|a, b| b.gain.total_cmp(&a.gain));
        fixes.truncate(super::changes::fixes::SHOWN);
        let (mut locks, mut threads, mut more_threads) = (Vec::new(), Vec::new(), None);
        if let Some(first) = found.first() {
            (locks, more_threads) = (first.locks.clone(), first.more_threads);
            if let Some((states, length)) = &first.states {
                let kinds: Vec<&LimitKind> = found.iter().map(|found| &found.limit.kind).collect();
                threads = self.thread_uses(states, *length, &kinds);
            }
        }
        let first = found.first().map(|found| &found.limit);
        let asleep = first.and_then(|limit| MostlyAsleep::of(self.program(), &self.recorded, limit));
        // On the recorded machine the number of busy CPUs was measured.
        if let Some(limit) = found.first_mut().map(|found| &mut found.limit)
            && self.program().recorded_cpus.and_then(Cpus::count) == Some(limit.cpus)
            && let LimitKind::Work { busy, .. }
            | LimitKind::Goroutines { busy, .. }
            | LimitKind::GoroutinesWait(GoroutinesWait::Several { busy, .. })
            | LimitKind::Idle { busy } = &mut limit.kind
            && let Some(measured) = measured_busy(self.program(), asleep.as_ref())
        {
            *busy = measured;
        }
        Limits {
            costs: self.costs,
            asleep,
            traffic: self.recorded.traffic.clone(),
            others: self.recorded.others.clone(),
            children: self.recorded.children.clone(),
            at: found.into_iter().map(|found| found.limit).collect(),
            fixes,
            locks,
            functions,
            threads,
            more_threads,
        }
    }

    /// The locks whose removal gained something, the largest gain first.
    pub(super) fn locks_found<'f>(found: &'f Found) -> impl Iterator<Item = &'f [ObjectId]> + 'f {
        found.without.iter().filter_map(|(edit, _)| match edit {
            Edit::FreeLocks(locks) => Some(&locks[..]),
            _ => None,
        })
    }

    pub(super) fn groups(&self) -> &[Group] {
        &self.groups
    }
}

fn nothing(cpus: Cpus) -> Found {
    Found {
        limit: Limit::known(cpus, 0.0, LimitKind::Nothing),
        without: Vec::new(),
        bounds: Vec::new(),
        time_ns: 0.0,
        stretch: None,
        busy_thread: None,
        at_work: 0.0,
        locks: Vec::new(),
        states: None,
        more_threads: None,
    }
}
