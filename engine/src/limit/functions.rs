//! The functions that compute most, and what the whole program gains by the time of each.

use super::holders::{self, Sums};
use super::search::{Found, Search};
use crate::program::FunctionRef;
use crate::what_if::{Edit, edited};

/// Functions looked at.
const FUNCTIONS: usize = 8;
/// Those with less than this share of what is computed are left out.
const LEAST: f64 = 0.005;
/// A tenth off.
const FACTOR: f64 = 0.9;

/// A function on the first CPU count.
#[derive(Clone, Debug, PartialEq)]
pub struct FunctionUse {
    /// Unique name.
    pub function: String,
    /// Its share of all that is computed, with what standard functions compute for it.
    pub computes: f64,
    /// The share of the predicted time that goes if it takes 10 % less, simulated; `None` if the program is too large to try.
    pub tenth: Option<f64>,
}

impl Search {
    /// The functions to look at, with their shares of all that is computed.
    pub fn functions(&self) -> Vec<(FunctionRef, f64)> {
        let mut sums = Sums::default();
        for thread in self.groups().iter().flat_map(|group| &group.threads) {
            holders::of_thread(&self.program, &self.owners, *thread, None, &mut sums);
        }
        let all = sums.all().max(1) as f64;
        let functions = sums.sorted().into_iter().map(|(function, ticks)| (function, ticks as f64 / all));
        functions.take_while(|(_, share)| *share >= LEAST).take(FUNCTIONS).collect()
    }

    /// What 10 % less of a function brings on the first CPU count.
    pub fn tenth(&self, function: FunctionRef, computes: f64, found: &[Found]) -> Option<FunctionUse> {
        let name = self.program.functions.get(function.0 as usize)?.name.clone();
        let first = found.first()?;
        let tenth = (self.is_small() && first.time_ns > 0.0).then(|| {
            let faster =
                edited(&self.program, &[Edit::Scale(self.owners.owned_by(function), FACTOR)]).ok()?;
            let ns = self.time_ns(&faster, first.limit.cpus, &self.model, 0)?;
            Some(1.0 - ns / first.time_ns)
        });
        Some(FunctionUse { function: name, computes, tenth: tenth.flatten() })
    }
}
