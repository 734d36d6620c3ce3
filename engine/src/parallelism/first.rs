//! Finds what to change first. (In the paper, section 4, the user does this by hand.) A function loses the processors
//! that are idle while it runs: with k of P busy, 1 − k/P of its normalized time. The walk starts at the outermost
//! function that loses most, with all time on its behalf. It goes down while one callee has most of that loss. It stops
//! where several callees share the loss, or where the function itself causes it. A function that only starts others and
//! waits for them leads to the started function that loses most: the slow stage of a pipeline. If threads queue for a
//! lock, and most of the loss is under that lock, the answer is the lock. Where next to nothing is lost, the answer is
//! the function with the most normalized self time. That includes the time of the language's runtime, the C library and
//! unnamed code on its behalf.

use super::advice::Advice;
use super::result::{Parallelism, ParallelismRow, ParallelismRowKind};
use rustc_hash::{FxHashMap, FxHashSet};

/// The walk goes down to a callee if the callee has this share of its caller's loss.
const MOST: f64 = 0.6;
/// A callee whose time is more than this multiple of its caller's time also has other callers, so it is not part of
/// this caller.
const INSIDE: f64 = 1.1;
/// A function only starts work if others do this share of the work: other threads, or the callees of an outermost
/// function.
const STARTS: f64 = 0.9;
/// The answer is a lock if this share of the loss is under the lock.
const UNDER: f64 = 0.5;
/// A futex with fewer waits may belong to a thread that has nothing to do.
const OFTEN: u64 = 8;
/// A loss below this share of the elapsed time is not worth changing the program's structure.
const WORTH: f64 = 0.1;

impl Parallelism {
    /// Normalized time of processors that were idle while work was done on the row's behalf, ns.
    pub fn lost_ns(&self, row: &ParallelismRow) -> f64 {
        let processors = f64::from(self.processors().max(1));
        let lost =
            row.total_by_busy.iter().map(|&(level, ns)| ns as f64 * (1.0 - f64::from(level) / processors));
        lost.sum::<f64>().max(0.0)
    }

    /// The row to change first, and how; `None` if no code of the program's own takes time.
    pub fn first(&self) -> Option<(&ParallelismRow, Advice)> {
        let functions: FxHashMap<&str, &ParallelismRow> = self
            .rows
            .iter()
            .filter(|row| row.kind == ParallelismRowKind::Function)
            .filter_map(|row| Some((row.name.as_deref()?, row)))
            .collect();
        let mut by_loss: Vec<&ParallelismRow> =
            functions.values().copied().filter(|row| !row.is_foreign).collect();
        by_loss.sort_by(|a, b| self.lost_ns(b).total_cmp(&self.lost_ns(a)).then_with(|| a.name.cmp(&b.name)));
        let is_worth = |row: &&&ParallelismRow| self.lost_ns(row) >= WORTH * self.elapsed_ns as f64;
        // First outermost functions: a function with many callers may lose more than its caller.
        let outermost = by_loss.iter().find(|row| is_outermost(row, &functions)).filter(is_worth);
        if let Some(root) = outermost.or(by_loss.first().filter(is_worth)) {
            let row = self.down(root, &functions);
            let row = row.map(|row| self.lock_over(row).or_else(|| self.waited_for(row)).unwrap_or(row));
            if let Some((row, advice)) = row.and_then(|row| Some((row, self.advice(row)?))) {
                return Some((row, advice));
            }
        }
        let own = functions.values().copied().filter(|row| !row.is_foreign && !is_others(row));
        let mut own: Vec<&ParallelismRow> = own.collect();
        own.sort_by(|a, b| {
            uses_ns(b, &functions).total_cmp(&uses_ns(a, &functions)).then_with(|| a.name.cmp(&b.name))
        });
        own.into_iter().find_map(|row| Some((row, self.advice(row)?)))
    }

    fn down<'r>(
        &self,
        from: &'r ParallelismRow,
        functions: &FxHashMap<&str, &'r ParallelismRow>,
    ) -> Option<&'r ParallelismRow> {
        let only_starts = |row: &ParallelismRow| Self::only_starts(row, functions);
        // Rows other than the author's functions are passed through.
        let own = |row: &'r ParallelismRow| (!row.is_foreign && !is_others(row)).then_some(row);
        let (mut row, mut found) = (from, own(from));
        let mut passed: FxHashSet<&str> = row.name.as_deref().into_iter().collect();
        loop {
            let whole = found.unwrap_or(row).normalized_total_ns as f64;
            let callees = row.callees.iter().filter(|link| link.kind == ParallelismRowKind::Function);
            let callees = callees.filter_map(|link| functions.get(link.name.as_deref()?).copied());
            let inside = callees.filter(|callee| {
                let is_new = callee.name.as_deref().is_some_and(|name| !passed.contains(name));
                is_new && callee.normalized_total_ns as f64 <= INSIDE * whole
            });
            let most = inside.max_by(|a, b| self.lost_ns(a).total_cmp(&self.lost_ns(b)));
            let is_enough = |callee: &&ParallelismRow| {
                only_starts(row) || self.lost_ns(callee) >= MOST * self.lost_ns(row)
            };
            let Some(next) = most.filter(is_enough) else { return found };
            passed.extend(next.name.as_deref());
            row = next;
            found = own(next).or(found);
        }
    }

    /// Whether the row does next to nothing itself, because other threads do its work, or the callees of an outermost
    /// function do.
    fn only_starts(row: &ParallelismRow, functions: &FxHashMap<&str, &ParallelismRow>) -> bool {
        let own = row.normalized_self_ns as f64;
        let is_left = own <= (1.0 - STARTS) * row.normalized_total_ns as f64;
        is_others(row) || is_left && is_outermost(row, functions)
    }

    /// The object that threads wait for at least as long as the row loses. It is a barrier, if the row cannot be made
    /// parallel, or a possible lock with unknown critical sections. [`Self::lock_over`] has the locks with known sections.
    fn waited_for(&self, row: &ParallelismRow) -> Option<&ParallelismRow> {
        let is_optimized = matches!(self.advice(row), Some(Advice::Optimize { .. }) | None);
        let waited = |row: &ParallelismRow| row.own.blocked.ns.saturating_add(row.own.spinning.ns);
        let objects = self.rows.iter().filter(|object| match self.advice(object) {
            Some(Advice::Wait { .. }) => object.calls.is_some_and(|calls| calls >= OFTEN),
            Some(Advice::Balance { .. }) => is_optimized,
            _ => false,
        });
        let most = objects.max_by_key(|object| (waited(object), std::cmp::Reverse(&object.name)))?;
        (waited(most) as f64 >= self.lost_ns(row)).then_some(most)
    }

    /// The lock for which threads queue and under which most of the row's loss lies.
    fn lock_over(&self, row: &ParallelismRow) -> Option<&ParallelismRow> {
        let lost = self.lost_ns(row);
        let locks = self.rows.iter().filter(|lock| lock.kind == ParallelismRowKind::Lock);
        let mut waited: Vec<&ParallelismRow> = locks
            .filter(|lock| matches!(self.advice(lock), Some(Advice::Split { .. } | Advice::Processes { .. })))
            .filter(|lock| self.lost_ns(lock) >= UNDER * lost)
            .collect();
        waited.sort_by(|a, b| self.lost_ns(b).total_cmp(&self.lost_ns(a)).then_with(|| a.name.cmp(&b.name)));
        waited.first().copied()
    }
}

/// Normalized self time of the row, including the foreign functions that it calls, nanoseconds.
fn uses_ns(row: &ParallelismRow, functions: &FxHashMap<&str, &ParallelismRow>) -> f64 {
    let used = row.callees.iter().filter_map(|link| {
        let callee = functions.get(link.name.as_deref()?).filter(|callee| callee.is_foreign)?;
        let own = callee.normalized_self_ns as f64 / callee.normalized_total_ns.max(1) as f64;
        Some(link.normalized_ns as f64 * own)
    });
    row.normalized_self_ns as f64 + used.sum::<f64>()
}

/// Whether no function of the author calls this row's function.
fn is_outermost(row: &ParallelismRow, functions: &FxHashMap<&str, &ParallelismRow>) -> bool {
    let mut callers = row.callers.iter().filter_map(|link| functions.get(link.name.as_deref()?));
    callers.all(|caller| caller.is_foreign)
}

/// Whether other threads do the work on the row's behalf.
fn is_others(row: &ParallelismRow) -> bool {
    row.normalized_others_ns as f64 >= STARTS * row.normalized_total_ns as f64
}
