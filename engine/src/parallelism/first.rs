//! What to change first (ours; the paper's user walks down by hand, section 4). Code costs the program the processors that
//! are idle while it runs: at k of P busy ones, 1 − k/P of its normalized time. From the function that costs most, with
//! all done on its behalf, the walk goes down as long as one callee has most of that: there it is split among several, or it
//! is the function's own. If threads queue for a lock meanwhile and most of it is executed under that, it is the lock. Where
//! next to nothing is lost, what is left is the function with the most normalized time of its own.

use super::advice::Advice;
use super::result::{Kind, Parallelism, Row};
use rustc_hash::{FxHashMap, FxHashSet};

/// A callee that has this share of what its caller costs is the one to look at.
const MOST: f64 = 0.6;
/// A lock under which this share of it is executed is what costs it.
const UNDER: f64 = 0.5;
/// Less than this share of the elapsed time is not worth changing the program's structure.
const WORTH: f64 = 0.1;

impl Parallelism {
    /// Normalized time that other processors were idle meanwhile, with all that was done on the row's behalf, ns.
    pub fn lost_ns(&self, row: &Row) -> f64 {
        let processors = f64::from(self.processors().max(1));
        let lost =
            row.total_by_busy.iter().map(|&(level, ns)| ns as f64 * (1.0 - f64::from(level) / processors));
        lost.sum::<f64>().max(0.0)
    }

    /// The row to change first, and how; `None` if nothing of the program's own takes time.
    pub fn first(&self) -> Option<(&Row, Advice)> {
        let functions: FxHashMap<&str, &Row> = self
            .rows
            .iter()
            .filter(|row| row.kind == Kind::Function)
            .filter_map(|row| Some((row.name.as_deref()?, row)))
            .collect();
        let mut by_loss: Vec<&Row> = functions.values().copied().filter(|row| !row.is_foreign).collect();
        by_loss.sort_by(|a, b| self.lost_ns(b).total_cmp(&self.lost_ns(a)).then_with(|| a.name.cmp(&b.name)));
        if let Some(root) =
            by_loss.first().filter(|root| self.lost_ns(root) >= WORTH * self.elapsed_ns as f64)
        {
            let row = self.down(root, &functions);
            let row = self.lock_over(row).or_else(|| self.waited_for(row)).unwrap_or(row);
            if let Some(advice) = self.advice(row) {
                return Some((row, advice));
            }
        }
        let mut own: Vec<&Row> = functions.into_values().collect();
        own.sort_by(|a, b| b.normalized_self_ns.cmp(&a.normalized_self_ns).then_with(|| a.name.cmp(&b.name)));
        own.into_iter().find_map(|row| Some((row, self.advice(row)?)))
    }

    fn down<'r>(&self, from: &'r Row, functions: &FxHashMap<&str, &'r Row>) -> &'r Row {
        let (mut row, mut own) = (from, from);
        let mut passed: FxHashSet<&str> = row.name.as_deref().into_iter().collect();
        loop {
            let callees = row.callees.iter().filter(|link| link.kind == Kind::Function);
            let next =
                callees.filter_map(|link| functions.get(link.name.as_deref()?).copied()).find(|callee| {
                    let is_new = callee.name.as_deref().is_some_and(|name| !passed.contains(name));
                    is_new && self.lost_ns(callee) >= MOST * self.lost_ns(row)
                });
            let Some(next) = next else { return own };
            passed.extend(next.name.as_deref());
            row = next;
            // What stands between two of the author's functions is passed through.
            own = if next.is_foreign { own } else { next };
        }
    }

    /// What threads wait for at least as long as the row costs, if its code cannot be made parallel, or if it is not known
    /// what is executed under it.
    fn waited_for(&self, row: &Row) -> Option<&Row> {
        let is_optimized = matches!(self.advice(row), Some(Advice::Optimize { .. }) | None);
        let waited = |row: &Row| row.own.blocked.ns.saturating_add(row.own.spinning.ns);
        let objects = self.rows.iter().filter(|object| match self.advice(object) {
            Some(Advice::Wait { .. }) => true,
            Some(Advice::Balance { .. } | Advice::Split { .. }) => is_optimized,
            _ => false,
        });
        let most = objects.max_by_key(|object| (waited(object), std::cmp::Reverse(&object.name)))?;
        (waited(most) as f64 >= self.lost_ns(row)).then_some(most)
    }

    /// The lock for which threads queue and under which most of what the row costs is executed.
    fn lock_over(&self, row: &Row) -> Option<&Row> {
        let lost = self.lost_ns(row);
        let locks = self.rows.iter().filter(|lock| lock.kind == Kind::Lock);
        let mut waited: Vec<&Row> = locks
            .filter(|lock| matches!(self.advice(lock), Some(Advice::Split { .. })))
            .filter(|lock| self.lost_ns(lock) >= UNDER * lost)
            .collect();
        waited.sort_by(|a, b| self.lost_ns(b).total_cmp(&self.lost_ns(a)).then_with(|| a.name.cmp(&b.name)));
        waited.first().copied()
    }
}
