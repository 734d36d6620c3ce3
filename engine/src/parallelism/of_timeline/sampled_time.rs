//! Divides the measured run's time by samples. Time is split by thread, innermost function with probes, innermost object and
//! number of busy processors; a sample stands only for time that agrees with it in all of these. So a function that runs
//! alone gets the time in which its thread was alone, and a function that runs in parallel gets none of it. Where there are
//! too few samples, those of other threads count, then those of other numbers of busy processors; the rest stays undivided.

use super::super::account::NONE;
use super::super::balance::Balance;
use super::super::spread::{Part, RowErrors, Shares, spread};
use crate::attribution::{Keys, NO_KEY, View};
use crate::program::Program;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

/// Fewest samples that divide time.
const FEWEST: u32 = 2;

/// The properties by which functions' time is divided into parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Key {
    pub(super) thread: u32,
    /// The innermost function with probes, or the row outside of functions.
    pub(super) top: u32,
    /// The innermost object, or `NONE`.
    pub(super) object: u32,
    /// While the thread sleeps: the view of the sample taken when it went to sleep. Else `NONE`.
    pub(super) asleep: u32,
    /// The innermost row of another thread on whose behalf this thread works, or `NONE`.
    pub(super) behalf: u32,
}

/// Parts and samples of a run.
#[derive(Debug, Default)]
pub(super) struct Parts {
    numbers: FxHashMap<Key, u32>,
    keys: Vec<Key>,
    views: Vec<View>,
    view_numbers: FxHashMap<View, u32>,
    /// For each part and place of the number of busy processors: how many samples had each view.
    seen: BTreeMap<(u32, u32), BTreeMap<u32, u32>>,
    pub(super) samples: u64,
    /// For functions that compilers made of parallel regions: the functions that contain the regions.
    regions: FxHashMap<u32, u32>,
}

/// Number of samples by view.
type Counts = BTreeMap<u32, u32>;

impl Parts {
    pub(super) fn new(program: &Program) -> Parts {
        let numbers: FxHashMap<&str, u32> = program
            .functions
            .iter()
            .zip(0..)
            .map(|(function, number)| (function.name.as_str(), number))
            .collect();
        let regions = program.functions.iter().zip(0..).filter_map(|(function, number)| {
            Some((number, *numbers.get(function_of_region(&function.name)?)?))
        });
        Parts { regions: regions.collect(), ..Parts::default() }
    }

    /// The number of a part; gives it one at first use.
    pub(super) fn number(&mut self, key: Key) -> u32 {
        if let Some(number) = self.numbers.get(&key) {
            return *number;
        }
        let number = u32::try_from(self.keys.len()).unwrap_or(NONE);
        self.keys.push(key);
        self.numbers.insert(key, number);
        number
    }

    /// Number of the view of a sampled stack: its rows that are not open anyway; `None` if its innermost frame has no row.
    pub(super) fn view(
        &mut self,
        program: &Program,
        keys: &Keys,
        stack: u32,
        is_open: impl Fn(u32) -> bool,
    ) -> Option<u32> {
        let rows: Vec<u32> = program.samples.stack(stack).map(|(place, _)| keys.of_place(place)).collect();
        let own = rows.first().copied().filter(|row| *row != NO_KEY)?;
        let mut within: Vec<u32> = Vec::new();
        for row in rows.iter().copied().filter(|row| *row != NO_KEY) {
            // An OpenMP region counts for the function that contains it. That function is on no stack of the team's
            // other threads.
            let region_of = self.regions.get(&row).copied().filter(|function| !rows.contains(function));
            for row in [Some(row), region_of].into_iter().flatten() {
                if !is_open(row) && !within.contains(&row) {
                    within.push(row);
                }
            }
        }
        let view = View { own, within };
        if let Some(number) = self.view_numbers.get(&view) {
            return Some(*number);
        }
        let number = u32::try_from(self.views.len()).ok()?;
        self.views.push(view.clone());
        self.view_numbers.insert(view, number);
        Some(number)
    }

    /// Counts a sample with this view, at this place of the number of busy processors.
    pub(super) fn add(&mut self, part: u32, level: usize, view: u32) {
        let level = u32::try_from(level).unwrap_or(u32::MAX);
        *self.seen.entry((part, level)).or_default().entry(view).or_insert(0) += 1;
        self.samples += 1;
    }

    /// Divides all parts among the rows.
    pub(super) fn spread(&self, keys: &Keys, balance: &mut Balance) -> Vec<RowErrors> {
        let rows = if self.samples == 0 { 0 } else { balance.places.part(0) as usize };
        let mut errors = vec![RowErrors::default(); rows];
        let outside = balance.places.outside();
        let top_of = |key: &Key| if key.top == outside { NO_KEY } else { key.top };
        let mut by_part: BTreeMap<u32, Counts> = BTreeMap::new();
        let mut by_level: BTreeMap<(u32, u32), Counts> = BTreeMap::new();
        let mut by_top: BTreeMap<u32, Counts> = BTreeMap::new();
        for (&(part, level), counts) in &self.seen {
            let Some(key) = self.keys.get(part as usize) else { continue };
            merge(by_part.entry(part).or_default(), counts);
            merge(by_level.entry((key.top, level)).or_default(), counts);
            merge(by_top.entry(key.top).or_default(), counts);
        }
        let enough = |counts: Option<&Counts>, top: u32, behalf: u32| {
            let counts = counts.filter(|counts| counts.values().sum::<u32>() >= FEWEST)?;
            Some(self.shares(keys, top, behalf, counts))
        };
        // Shares of several parts together, for parts with too few samples of their own.
        let pooled_levels: BTreeMap<(u32, u32), Option<Shares>> = by_level
            .iter()
            .map(|(&(top, level), counts)| {
                let key = if top == outside { NO_KEY } else { top };
                ((top, level), enough(Some(counts), key, NONE))
            })
            .collect();
        let pooled: BTreeMap<u32, Option<Shares>> = by_top
            .iter()
            .map(|(&top, counts)| {
                (top, enough(Some(counts), if top == outside { NO_KEY } else { top }, NONE))
            })
            .collect();
        for (number, key) in (0u32..).zip(&self.keys) {
            let top = top_of(key);
            let row = balance.places.part(number);
            if key.asleep != NONE {
                let counts = Counts::from_iter([(key.asleep, 1)]);
                let shares = self.shares(keys, top, key.behalf, &counts);
                let part = Part { row, top, levels: Vec::new(), all: Some(&shares), blocked: Some(&shares) };
                spread(balance, &part, &mut errors);
                continue;
            }
            let levels = balance.meters.get(row as usize).map_or(0, |meter| meter.normalized.len());
            let own: Vec<Option<Shares>> = (0u32..)
                .take(levels)
                .map(|level| enough(self.seen.get(&(number, level)), top, key.behalf))
                .collect();
            let of_all = enough(by_part.get(&number), top, key.behalf);
            let all = of_all.as_ref().or_else(|| pooled.get(&key.top).and_then(Option::as_ref));
            let chosen = (0u32..).zip(&own).map(|(level, own)| {
                let level = pooled_levels.get(&(key.top, level)).and_then(Option::as_ref);
                own.as_ref().or(level)
            });
            let part = Part { row, top, levels: chosen.collect(), all, blocked: None };
            spread(balance, &part, &mut errors);
        }
        errors
    }

    fn shares(&self, keys: &Keys, top: u32, behalf: u32, counts: &Counts) -> Shares {
        let seen = counts.iter().filter_map(|(view, count)| Some((self.views.get(*view as usize)?, *count)));
        Shares::of(keys, top, if top == NO_KEY { behalf } else { top }, seen)
    }
}

/// The function that contains a parallel region, from the region's name by GCC (`f._omp_fn.0`) or Clang (`f.omp_outlined`).
fn function_of_region(name: &str) -> Option<&str> {
    let end = name.find("._omp_fn.").or_else(|| name.find(".omp_outlined"))?;
    name.get(..end).filter(|function| !function.is_empty())
}

fn merge(into: &mut Counts, counts: &Counts) {
    for (view, count) in counts {
        *into.entry(*view).or_insert(0) += count;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_openmp_region_is_named_after_its_function() {
        assert_eq!(function_of_region("Wide._omp_fn.0"), Some("Wide"));
        assert_eq!(function_of_region("render(int).omp_outlined"), Some("render(int)"));
        assert_eq!(function_of_region(".omp_outlined."), None, "older Clangs name them after nothing");
        assert_eq!(function_of_region("Wide"), None);
    }
}
