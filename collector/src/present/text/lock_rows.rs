//! The rows of the report by lock. A lock with a name of its own has a row of its own. Locks that were first used on
//! the same line, as those of a table's buckets, share a row, which names the worst of them.

use crate::cell::percent;
use crate::cell::{duration, grouped};
use engine::event::SyncObject;
use engine::limit::Limits;
use engine::program::{ObjectKind, Queue, RecordedObject};
use engine::report::{CpuResult, LockRow, Report};
use std::collections::HashMap;

/// One row: a lock, or several locks that share the row.
pub(in crate::present) struct Row<'a> {
    /// The row's name.
    pub(in crate::present) name: String,
    /// The function that takes the row's locks most often.
    pub(in crate::present) holder: Option<&'a str>,
    /// The row's locks, by their places in [`Report::locks`], the one with the longest waits first.
    members: Vec<(usize, &'a LockRow)>,
    queue: Option<&'a Queue>,
    /// Whether uses without a wait were estimated from samples, so that their number is an estimate.
    pub(super) is_estimated: bool,
}

/// All rows. Those with the largest share of the predicted time on any CPU count come first, then those with the longest wait.
pub(in crate::present) fn rows(report: &Report) -> Vec<Row<'_>> {
    let known: HashMap<&str, &RecordedObject> =
        report.recorded.objects.iter().map(|object| (object.name.as_str(), object)).collect();
    let mut groups: HashMap<(&ObjectKind, &str, u32), usize> = HashMap::new();
    let mut rows: Vec<Row<'_>> = Vec::new();
    for (number, lock) in report.locks.iter().enumerate() {
        let object = known.get(lock.lock.as_str()).copied();
        let group = object.and_then(|object| Some((&object.kind, object.group.as_deref()?, object.pid)));
        let queue = object.and_then(|object| object.queue.as_ref());
        let is_estimated = object.is_some_and(|object| object.put_back.is_some());
        if let Some(place) = group.and_then(|group| groups.get(&group)) {
            if let Some(row) = rows.get_mut(*place) {
                row.members.push((number, lock));
                row.is_estimated |= is_estimated;
                if longer(queue, row.queue) {
                    row.queue = queue;
                }
            }
            continue;
        }
        if let Some(group) = group {
            groups.insert(group, rows.len());
        }
        rows.push(Row {
            name: lock.lock.clone(),
            holder: lock.holder.as_deref(),
            members: vec![(number, lock)],
            queue,
            is_estimated,
        });
    }
    for ((kind, place, _), row) in groups {
        if let Some(row) = rows.get_mut(row).filter(|row| row.members.len() > 1) {
            row.name = format!("{} {} {place}", grouped(row.members.len() as u64), many(kind));
        }
    }
    // Sorted after grouping: a group may be worse than a lock that is worse than each of the group's locks.
    let share = |row: &Row<'_>| {
        let shares = report.results.iter().filter(|result| result.time_ns > 0.0);
        shares.map(|result| row.held(result) / result.time_ns).fold(f64::NEG_INFINITY, f64::max)
    };
    let mut order: Vec<(f64, f64, Row<'_>)> =
        rows.into_iter().map(|row| (share(&row), row.sum(|lock| lock.wait_ns).unwrap_or(0.0), row)).collect();
    order.sort_by(|a, b| b.0.total_cmp(&a.0).then(b.1.total_cmp(&a.1)).then_with(|| a.2.name.cmp(&b.2.name)));
    order.into_iter().map(|(_, _, row)| row).collect()
}

fn longer(queue: Option<&Queue>, than: Option<&Queue>) -> bool {
    let key = |queue: &Queue| (queue.waiters.len(), queue.length_ns);
    queue.is_some_and(|queue| than.is_none_or(|than| key(queue) > key(than)))
}

/// The plural of a kind of lock.
fn many(kind: &ObjectKind) -> String {
    let ending = if *kind == ObjectKind::Sync(SyncObject::Mutex) { "es" } else { "s" };
    format!("{kind}{ending}")
}

impl Row<'_> {
    /// Time on the critical path that is computed while one of the locks is held, nanoseconds.
    pub(in crate::present) fn held(&self, result: &CpuResult) -> f64 {
        self.members.iter().filter_map(|(number, _)| result.locks_held_ns.get(*number)).sum()
    }

    /// The sum over the row's locks; `None` if a value is not known.
    fn sum(&self, pick: impl Fn(&LockRow) -> Option<f64>) -> Option<f64> {
        self.members.iter().map(|(_, lock)| pick(lock)).sum()
    }

    /// Number of acquisitions that had to wait; `None` if that is not known for all locks.
    pub(super) fn contended(&self) -> Option<f64> {
        self.sum(|lock| lock.contended.map(|count| count as f64))
    }

    /// Time for which threads waited for the locks, nanoseconds.
    pub(in crate::present) fn waited(&self) -> Option<f64> {
        self.sum(|lock| lock.wait_ns)
    }

    /// Time for which threads held the locks, nanoseconds.
    pub(super) fn held_for(&self) -> Option<f64> {
        self.sum(|lock| lock.hold_ns)
    }

    /// Whether a thread waited for one of the locks, in the recording or the prediction. If that is unknown, the result
    /// is yes.
    pub(super) fn is_waited_for(&self, limits: &Limits) -> bool {
        let is_predicted =
            |lock: &LockRow| limits.locks.iter().any(|used| used.lock == lock.lock && used.waits > 0);
        self.contended() != Some(0.0)
            || self.queue.is_some()
            || self.members.iter().any(|(_, lock)| is_predicted(lock))
    }

    /// Number of times that the locks were taken.
    pub(in crate::present) fn taken(&self) -> u64 {
        self.members.iter().fold(0, |sum, (_, lock)| sum.saturating_add(lock.acquisitions))
    }

    /// Uses of each side of a read-write lock that was read: a writer waits for all readers, a reader for no other reader.
    fn sides(&self) -> Option<[String; 2]> {
        let reading = |lock: &LockRow| lock.reading.unwrap_or_default();
        let sum =
            |pick: &dyn Fn(&LockRow) -> f64| self.members.iter().map(|(_, lock)| pick(lock)).sum::<f64>();
        let read =
            self.members.iter().fold(0u64, |sum, (_, lock)| sum.saturating_add(reading(lock).acquisitions));
        if read == 0 {
            return None;
        }
        let [contended, wait, hold] = [
            sum(&|lock| reading(lock).contended as f64),
            sum(&|lock| reading(lock).waited.as_ns_f64()),
            sum(&|lock| reading(lock).held.as_ns_f64()),
        ];
        let rest = |all: Option<f64>, part: f64| all.map(|all| (all - part).max(0.0));
        let written = self.taken().saturating_sub(read);
        Some([
            format!("reading: {}", uses(read, Some(contended), Some(wait), Some(hold))),
            format!(
                "writing: {}",
                uses(
                    written,
                    rest(self.sum(|lock| lock.contended.map(|count| count as f64)), contended),
                    rest(self.sum(|lock| lock.wait_ns), wait),
                    rest(self.sum(|lock| lock.hold_ns), hold),
                )
            ),
        ])
    }

    /// Further lines: uses of each side, the worst of several locks, and the longest queue.
    pub(in crate::present) fn more(&self) -> Vec<String> {
        let mut lines: Vec<String> = self.sides().into_iter().flatten().collect();
        let longest = self
            .members
            .iter()
            .max_by(|a, b| a.1.wait_ns.unwrap_or(0.0).total_cmp(&b.1.wait_ns.unwrap_or(0.0)))
            .filter(|_| self.members.len() > 1);
        if let Some((_, worst)) = longest
            && let (Some(contended), Some(wait)) = (worst.contended, worst.wait_ns)
            && contended > 0
        {
            let share = percent(contended as f64 / worst.acquisitions.max(1) as f64);
            lines.push(format!(
                "the worst: {}, taken {} times, {share} not free, waited for {}",
                worst.lock,
                grouped(worst.acquisitions),
                duration(wait)
            ));
        }
        lines.extend(self.queue.map(queue));
        lines
    }
}

/// A lock's counts and times in words: `taken 1,000 times, 12.0 % not free; waited for 3.2 ms, held for 10 ms`.
fn uses(taken: u64, contended: Option<f64>, wait: Option<f64>, hold: Option<f64>) -> String {
    let times = match taken {
        0 => "never".to_owned(),
        1 => "once".to_owned(),
        _ => format!("{} times", grouped(taken)),
    };
    let mut text = format!("taken {times}");
    if let Some(contended) = contended.filter(|_| taken > 0) {
        text.push_str(&format!(", {} not free", percent(contended / taken as f64)));
    }
    if let (Some(wait), Some(hold)) = (wait, hold) {
        text.push_str(&format!("; waited for {}, held for {}", duration(wait), duration(hold)));
    }
    text
}

/// A lock's queue in words: `longest queue: 3.1 ms; at most 7 threads, behind Worker-3/123, which held it for 1.2 ms;
/// empty 2.0 ms later`.
fn queue(queue: &Queue) -> String {
    let threads = queue.waiters.len();
    let who =
        if threads == 1 { "1 thread".to_owned() } else { format!("{} threads", grouped(threads as u64)) };
    let mut text = format!("longest queue: {}; at most {who}", duration(queue.length_ns as f64));
    match &queue.holder {
        Some(holder) => {
            text.push_str(&format!(
                ", behind {holder}, which held it for {}",
                duration(queue.held_ns as f64)
            ));
        }
        // All threads may wait while the lock is free: the thread that released it asks for it again before another one runs.
        None => text.push_str(", while no thread held it"),
    }
    if threads > 1 {
        text.push_str(&format!("; empty {} later", duration(queue.dissolved_ns as f64)));
    }
    text
}
