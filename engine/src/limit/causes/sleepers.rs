//! Finds pools whose threads all sleep during their work while there is more work.

use crate::experiment::{Edit, own_sleep};
use crate::limit::LimitKind;
use crate::limit::search::Search;
use crate::limit::threads::thread_group::{EVEN, Group};
use crate::program::{ObjectId, ObjectMeaning, Operation};
use crate::schedule::RunOutcome;

/// If threads compute, are runnable or sleep in their work for this share of the time, they never wait for work.
const ALWAYS: f64 = 0.8;
/// Threads of such a pool sleep for at least this share of that time.
const ASLEEP: f64 = 0.25;
/// Each thread sleeps at least this often, on average: in each task, not once.
const OFTEN: usize = 4;
/// Threads that wait for this share of the time for something outside of the program are mostly there.
const OUTSIDE: f64 = 0.5;
/// The factors by which the number of threads is tried.
const TIMES: [usize; 2] = [2, 4];

impl Search {
    /// The edits that add threads to pools that sleep during their work, each with a bound of its gain in ticks.
    pub(in crate::limit) fn more_sleepers(&self, base: &RunOutcome, worth: u64) -> Vec<(Edit, u64)> {
        let mut edits = Vec::new();
        let groups = self.groups.iter().filter(|group| group.threads.len() > 1 && !self.hidden);
        for group in groups.filter(|group| !self.polls(group)) {
            let Some(asleep) = self.asleep_at_work(&group.threads, base) else { continue };
            let count = group.threads.len();
            for times in TIMES {
                let more = count * (times - 1);
                // With more threads, sleeps that followed one another overlap.
                let most = (asleep as f64 * (1.0 - 1.0 / times as f64)) as u64;
                if most >= worth {
                    edits.push((Edit::MoreSleepers { threads: group.threads.clone(), more }, most));
                }
            }
        }
        edits
    }

    /// Number of the group that is the largest pool whose threads sleep during their work.
    pub(in crate::limit) fn sleeping_pool(&self) -> Option<usize> {
        let base = self.complete_run(*self.counts().first()?)?;
        let groups = self.groups.iter().enumerate().filter(|(_, group)| group.threads.len() > 1);
        let sleep = groups
            .filter(|(_, group)| !self.polls(group) && self.asleep_at_work(&group.threads, &base).is_some());
        sleep.max_by_key(|(_, group)| group.threads.len()).map(|(number, _)| number)
    }

    /// The edit that adds `more` threads like these: sleepers to a pool that sleeps during its work, else workers.
    pub(in crate::limit) fn more_alike(&self, threads: &[usize], more: usize, base: &RunOutcome) -> Edit {
        if self.sleeps_at_work(threads, base) {
            return Edit::MoreSleepers { threads: threads.to_vec(), more };
        }
        self.more_of(threads, more, base)
    }

    /// Whether these threads are a pool that sleeps during its work.
    pub(in crate::limit) fn sleeps_at_work(&self, threads: &[usize], base: &RunOutcome) -> bool {
        threads.len() > 1 && self.asleep_at_work(threads, base).is_some()
    }

    /// Whether these threads wait most of the time for something outside of the program: more of them would wait at the same
    /// time, which dividing their computing does not show.
    pub(in crate::limit) fn waits_outside(&self, threads: &[usize], base: &RunOutcome) -> bool {
        let is_outside = |device: ObjectId| !self.program().meaning(device).is_time();
        let own = threads.iter().filter_map(|thread| self.program().threads.get(*thread));
        let waited = own.flat_map(|thread| thread.operations.iter().take(thread.once()));
        let waited = waited.fold(0u64, |sum, operation| match operation {
            Operation::Io(device, length) if is_outside(*device) => sum.saturating_add(length.0),
            _ => sum,
        });
        waited as f64 >= OUTSIDE * base.length.0 as f64 * threads.len() as f64
    }

    fn polls(&self, group: &Group) -> bool {
        let polls =
            |thread: &usize| self.polling.as_ref().is_some_and(|polling| polling.threads.contains(thread));
        group.threads.iter().any(polls)
    }

    /// How long each of these threads sleeps in its work, on average, ticks. `None`: the threads wait for work, sleep
    /// little, or do not sleep in each task.
    fn asleep_at_work(&self, threads: &[usize], base: &RunOutcome) -> Option<u64> {
        let (mut all, mut most, mut sum, mut times) = (0u64, 0u64, 0u64, 0usize);
        for number in threads {
            let (sleeps, asleep) = self.own_sleep(*number);
            let used = base.threads.get(*number)?;
            let at_work = asleep.saturating_add(used.busy).saturating_add(used.ready);
            (all, most) = (all.saturating_add(at_work), most.max(at_work));
            (sum, times) = (sum.saturating_add(asleep), times.saturating_add(sleeps));
        }
        let count = threads.len() as f64;
        let mean = all as f64 / count;
        let is_pool = mean >= ALWAYS * base.length.0 as f64
            && most as f64 <= EVEN * mean
            && sum as f64 >= ASLEEP * all as f64
            && times as f64 >= OFTEN as f64 * count;
        is_pool.then_some((sum as f64 / count) as u64)
    }

    /// Number and total length (ticks) of a thread's sleeps in its work.
    fn own_sleep(&self, thread: usize) -> (usize, u64) {
        let Some(thread) = self.program().threads.get(thread) else { return (0, 0) };
        let (times, length) = own_sleep(self.program(), thread);
        (times, length.0)
    }

    /// The kind of limit, in the program's words.
    pub(in crate::limit) fn of_sleepers(
        &self,
        threads: &[usize],
        function: Option<String>,
        base: &RunOutcome,
    ) -> LimitKind {
        let (asleep, answers) = (self.asleep(threads, base), self.answers(threads));
        LimitKind::Sleepers { threads: threads.len(), function, asleep, answers }
    }

    /// The answers that these threads wait for, if they hardly sleep otherwise.
    fn answers(&self, threads: &[usize]) -> Option<String> {
        let operations = threads.iter().filter_map(|thread| self.program().threads.get(*thread));
        let (mut asleep, mut waited, mut answers) = (0u64, 0u64, None);
        for operation in operations.flat_map(|thread| thread.operations.iter().take(thread.once())) {
            match operation {
                Operation::Sleep(length) => asleep = asleep.saturating_add(length.0),
                Operation::Io(device, length) if self.program().meaning(*device) == ObjectMeaning::Answer => {
                    waited = waited.saturating_add(length.0);
                    answers = Some(*device);
                }
                _ => {}
            }
        }
        answers.filter(|_| waited / 16 > asleep).map(|device| self.object_name(device).to_owned())
    }

    /// Share of the time in which these threads sleep in their work.
    fn asleep(&self, threads: &[usize], base: &RunOutcome) -> f64 {
        let asleep = threads.iter().map(|thread| self.own_sleep(*thread).1).fold(0u64, u64::saturating_add);
        asleep as f64 / (base.length.0.max(1) as f64 * threads.len().max(1) as f64)
    }
}
