//! Finds the constraints that threads wait for, and the most that the removal of each may gain.

use super::WORTH;
use super::search::Search;
use super::threads::worker_groups::is_even;
use super::watched_run::WatchedRun;
use crate::cpus::Cpus;
use crate::experiment::{Edit, is_uneven, timers};
use crate::predict::{Assumptions, Scheduler, Timing};
use crate::program::{ObjectId, ObjectKind, Operation, taking};
use crate::schedule::RunOutcome;
use crate::time::Ticks;
use rustc_hash::FxHashMap;

/// Number of locks whose removal is tried: those with the longest waits.
const LOCKS: usize = 12;
/// Number of devices tried.
const DEVICES: usize = 4;
/// Threads that compute or are runnable for this share of the time are busy.
const BUSY: f64 = 0.6;
/// The place where a lock was first used: the lock's kind, the line of code, the process.
type Place<'a> = (&'a ObjectKind, &'a str, u32);

/// What the threads of a program do besides computing and taking locks.
struct Done {
    /// Ticks of all sleeps that threads ask for.
    slept: u64,
    /// For each object: whether threads wait for it as for a device other than a timer.
    is_device: Vec<bool>,
    is_barrier: bool,
    joins: u32,
    awaits: u64,
    /// Whether threads busy-wait for some of the wake edges that they await.
    spins: bool,
}

impl Search {
    fn sleeps(&self) -> impl Iterator<Item = Edit> {
        let polling = self.polling.clone().map(Edit::NoPolling);
        polling.into_iter().chain([Edit::NoSleeps])
    }

    /// The constraints that threads wait for, each with a bound of its gain in ticks, the largest first. The bound is
    /// the constraint's part of the path.
    pub(super) fn candidates(&self, run: &WatchedRun, timing: &Timing<'_>) -> Vec<(Edit, u64)> {
        let (cpus, base) = (run.cpus, &run.base);
        let worth = (base.length.0 as f64 * WORTH) as u64;
        let mut asked: Vec<(Edit, u64)> = self.locks(base, worth);
        let mut devices: Vec<(Edit, u64)> = Vec::new();
        let Done { slept, is_device, is_barrier, joins, awaits, spins } = self.done();
        for ((object, used), is_device) in (0..).zip(&base.objects).zip(is_device) {
            let most = run.causes.as_ref().map_or(used.blocked, |causes| causes.device(ObjectId(object)));
            if is_device && most >= worth {
                devices.push((Edit::FreeDevices(vec![ObjectId(object)]), most));
            }
        }
        asked.extend(self.more_permits(base, worth));
        devices.sort_by_key(|(_, blocked)| std::cmp::Reverse(*blocked));
        devices.truncate(DEVICES);
        asked.extend(devices);
        let slept = run.causes.as_ref().map_or(slept, |causes| causes.asleep);
        asked.extend(self.sleeps().filter(|_| slept >= worth).map(|edit| (edit, slept)));
        let sum = |part: fn(&crate::schedule::ThreadUse) -> u64| {
            base.threads.iter().fold(0u64, |sum, used| sum.saturating_add(part(used)))
        };
        let blocked = sum(|used| used.blocked);
        let may_be_uneven =
            is_barrier || joins > 1 || self.alike().iter().any(|group| is_uneven(self.program(), group));
        if blocked >= worth && may_be_uneven {
            asked.push((self.evenly(), blocked));
        }
        if spins && blocked >= worth {
            asked.push((Edit::NoSpunWaits, blocked));
        }
        let share = |ticks: u64| ticks as f64 / base.length.0 as f64;
        // A thread of Go's runtime runs any goroutine: one thread more brings no work.
        let most_busy = self.most_busy(cpus);
        let groups = if self.hidden { &[][..] } else { &self.groups[..] };
        for group in groups {
            let at_work = |thread: &usize| {
                base.threads.get(*thread).map_or(0.0, |used| share(used.busy.saturating_add(used.ready)))
            };
            let mean = group.threads.iter().map(at_work).sum::<f64>() / group.threads.len().max(1) as f64;
            let may_be_more = match group.threads[..] {
                [_] => self.is_stage(group),
                _ => is_even(&group.threads, base),
            };
            // If the threads already use all CPUs, one more thread finds no free CPU.
            let is_room = most_busy.is_none_or(|most| mean * (group.threads.len() as f64) < most);
            // It is unknown how threads that busy-wait, or wait for each other's wake-ups, would behave with one more thread.
            let blocked =
                group.threads.iter().filter_map(|thread| base.threads.get(*thread)).map(|used| used.blocked);
            let waits = blocked.fold(0u64, u64::saturating_add) / group.threads.len().max(1) as u64;
            let are_peers = group.threads.first().is_some_and(|thread| self.peers_of(*thread).is_some());
            let is_known = !(spins || are_peers) || waits < worth;
            if mean >= BUSY && may_be_more && is_room && is_known {
                // One thread more than k takes over at most 1 ÷ (k + 1) of the computing of each.
                let most = mean * base.length.0 as f64 / (group.threads.len() + 1) as f64;
                asked.push((self.more_of(&group.threads, 1, base), most as u64));
            }
        }
        asked.extend(self.more_sleepers(base, worth));
        asked.extend(self.fewer_threads(run, worth));
        let spinning = sum(|used| used.spinning);
        if spinning >= worth {
            asked.push((Edit::NoSpinning, spinning));
        }
        let costs = timing.assumptions();
        if costs.scheduler == Scheduler::Eevdf {
            let wakings = base.objects.iter().fold(awaits, |sum, used| sum.saturating_add(used.waits));
            let waking = wakings.saturating_mul(costs.wake_latency.ns + costs.wake_cost.ns);
            let switching = base.counts.switches.saturating_mul(costs.switch_cost.ns);
            let all = Ticks::from_ns(waking.saturating_add(switching)).0;
            let all = run.causes.as_ref().map_or(all, |causes| all.min(causes.handing_over));
            if all >= worth {
                asked.push((Edit::FreeHandOver, all));
            }
        }
        let ready = sum(|used| used.ready);
        let shared = costs.scheduler == Scheduler::Ideal && more_than(&base.busy, cpus);
        if cpus != Cpus::Infinite && (ready >= worth || shared) {
            asked.push((Edit::Cpus(Cpus::Infinite), ready.max(worth)));
        }
        if base.counts.throttled > 0 {
            asked.push((Edit::NoQuota, ready.max(worth)));
        }
        asked.sort_by_key(|(edit, bound)| (std::cmp::Reverse(*bound), edit.order()));
        asked
    }

    /// Groups of several threads that do the same; none if their waits are not visible.
    pub(super) fn alike(&self) -> Vec<Vec<usize>> {
        let several = self.groups.iter().map(|group| &group.threads).filter(|group| group.len() > 1);
        several.filter(|_| !self.hidden).cloned().collect()
    }

    /// The change that gives equally much work to threads that wait for each other.
    pub fn evenly(&self) -> Edit {
        Edit::DivideEvenly(self.alike())
    }

    fn done(&self) -> Done {
        let is_device = vec![false; self.program().objects.len()];
        let mut done = Done { slept: 0, is_device, is_barrier: false, joins: 0, awaits: 0, spins: false };
        let timers = timers(self.program());
        for thread in self.program().threads.iter().filter(|thread| thread.background.is_none()) {
            for operation in &thread.operations {
                match operation {
                    Operation::Io(device, length) if timers.get(device.0 as usize) == Some(&true) => {
                        done.slept = done.slept.saturating_add(length.0);
                    }
                    Operation::Io(device, _) => {
                        if let Some(is_device) = done.is_device.get_mut(device.0 as usize) {
                            *is_device = true;
                        }
                    }
                    Operation::Sleep(length) | Operation::SleepNext(length) => {
                        done.slept = done.slept.saturating_add(length.0);
                    }
                    Operation::SleepUntil(until) => done.slept = done.slept.max(until.0),
                    Operation::Barrier(..) => done.is_barrier = true,
                    Operation::Join(_) => done.joins += 1,
                    Operation::Await(edge) => {
                        done.awaits += 1;
                        done.spins |= self.program().is_spinning(*edge);
                    }
                    _ => {}
                }
            }
        }
        done
    }

    /// Locks with waits of at least `worth` ticks; locks that were first used in one place count as one.
    pub(super) fn locks(&self, base: &RunOutcome, worth: u64) -> Vec<(Edit, u64)> {
        let mut waited: FxHashMap<ObjectId, u64> = FxHashMap::default();
        for thread in &self.program().threads {
            for operation in &thread.operations {
                if let Some((object, true)) = taking(operation) {
                    let sum = waited.entry(object).or_insert_with(|| {
                        let used = base.objects.get(object.0 as usize).copied().unwrap_or_default();
                        used.blocked.saturating_add(used.spun)
                    });
                    if let Operation::Held(_, length) = operation {
                        *sum = sum.saturating_add(length.0);
                    }
                }
            }
        }
        let known: FxHashMap<&str, Place<'_>> = self
            .recorded
            .objects
            .iter()
            .filter_map(|object| {
                Some((object.name.as_str(), (&object.kind, object.group.as_deref()?, object.pid)))
            })
            .collect();
        // The key is the place of the first use; without one, the lock itself.
        let mut groups: FxHashMap<Result<Place<'_>, ObjectId>, Vec<(u64, ObjectId)>> = FxHashMap::default();
        for (object, sum) in waited {
            let name = self.program().objects.get(object.0 as usize).map_or("", String::as_str);
            let group = known.get(name).copied().ok_or(object);
            groups.entry(group).or_default().push((sum, object));
        }
        let mut locks: Vec<(Edit, u64)> = groups
            .into_values()
            .filter_map(|mut members| {
                members.sort_by_key(|(sum, object)| (std::cmp::Reverse(*sum), *object));
                let sum = members.iter().fold(0u64, |all, (sum, _)| all.saturating_add(*sum));
                let objects = members.into_iter().map(|(_, object)| object).collect();
                (sum >= worth && sum > 0).then_some((Edit::FreeLocks(objects), sum))
            })
            .collect();
        locks.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| first_object(&a.0).cmp(&first_object(&b.0))));
        locks.truncate(LOCKS);
        locks
    }

    /// Largest number of CPUs that the program can keep busy on average: all CPUs, or the quota of its control groups.
    pub(super) fn most_busy(&self, cpus: Cpus) -> Option<f64> {
        let quota = self.quota().map(|hundredths| f64::from(hundredths) / 100.0);
        let count = match cpus {
            Cpus::Count(count) => Some(f64::from(count.get())),
            Cpus::Infinite => None,
        };
        count.into_iter().chain(quota).reduce(f64::min)
    }

    /// The quota of the program's control groups, hundredths of a CPU.
    pub(super) fn quota(&self) -> Option<u32> {
        Assumptions::of(self.program(), self.trials.model()).quota
    }
}

fn first_object(edit: &Edit) -> Option<ObjectId> {
    match edit {
        Edit::FreeLocks(objects) | Edit::FreeDevices(objects) => objects.first().copied(),
        _ => None,
    }
}

/// Whether more threads than CPUs compute at any time, with ideal sharing.
fn more_than(busy: &[u64], cpus: Cpus) -> bool {
    match cpus {
        Cpus::Count(count) => busy.iter().skip(count.get() as usize + 1).any(|ticks| *ticks > 0),
        Cpus::Infinite => false,
    }
}
