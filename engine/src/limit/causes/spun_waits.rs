//! What threads compute while others wait for them and keep CPUs busy.

use crate::limit::LimitKind;
use crate::limit::search::Search;
use crate::limit::threads::holders::{self, Sums};
use crate::limit::watched_run::WatchedRun;
use crate::program::FunctionRef;
use rustc_hash::FxHashMap;

/// Number of functions that are named, and the least share of the computing meanwhile for each.
const NAMED: usize = 3;
const SHARE: f64 = 0.1;

impl Search {
    /// The kind of limit, in the program's words.
    pub(in crate::limit) fn of_spun_waits(&self, run: &WatchedRun) -> LimitKind {
        let mut by_thread: FxHashMap<usize, Vec<(u64, u64)>> = FxHashMap::default();
        for (thread, part) in &run.spun_meanwhile {
            by_thread.entry(*thread).or_default().push(*part);
        }
        let mut sums = Sums::default();
        for (thread, parts) in &by_thread {
            holders::of_parts(self.program(), self.owners(), *thread, parts, &mut sums);
        }
        // A function that hardly runs without another thread's waiting is smaller than the wait, as a loop too short to divide.
        let mut all = Sums::default();
        for thread in 0..self.program().threads.len() {
            holders::of_thread(self.program(), self.owners(), thread, None, &mut all);
        }
        let all: FxHashMap<FunctionRef, u64> = all.sorted().into_iter().collect();
        let sorted = sums.sorted();
        let worth = (SHARE * sums.all() as f64) as u64;
        let large = || sorted.iter().filter(|(_, ticks)| *ticks >= worth);
        let is_small = |of: &&(FunctionRef, u64)| 2 * of.1 >= all.get(&of.0).copied().unwrap_or(0);
        let has_small = large().any(|of| is_small(&of));
        let named = large().filter(|of| !has_small || is_small(of)).take(NAMED);
        let functions = named.filter_map(|(function, _)| self.program().functions.get(function.0 as usize));
        let functions = functions.map(|function| function.name.clone()).collect();
        LimitKind::SpunWaits { waiting: run.share(run.states.spinning()), functions }
    }
}
