//! The functions that compute most, and the program's gain by 10 % of each function's time.

use crate::experiment::Edit;
use crate::limit::search::{Found, Search};
use crate::limit::threads::holders::{self, Sums};
use crate::program::{FunctionRef, KernelShare};

/// Number of functions for which the gain of 10 % is simulated.
const FUNCTIONS: usize = 8;
/// Functions with less than this share of all computing are not tried.
const LEAST: f64 = 0.005;
/// Number of functions that are reported with their share.
const TOLD: usize = 256;
/// Factors of a function's time: a tenth less, and a tenth more.
const FACTORS: [f64; 2] = [0.9, 1.1];
/// The gains of both directions (10 % less, 10 % more) agree if they differ by at most half a percentage point, or by a
/// fifth of the larger one.
const AGREE: [f64; 2] = [0.005, 0.2];

/// A function's computing, and the gain of saving 10 % of it on the first CPU count.
#[derive(Clone, Debug, PartialEq)]
pub struct FunctionUse {
    /// Unique name.
    pub function: String,
    /// Share of the function in all computing, including the standard functions that it calls.
    pub computes: f64,
    /// The share of the predicted time that 10 % of the function's time are worth, simulated; `None` if the function computes
    /// too little, or the program is too large to try.
    pub tenth: Option<Tenth>,
    /// Share of the function's CPU time that it spends in the kernel, as clock ticks find it; `None`: not known.
    pub kernel: Option<f64>,
}

/// What 10 % of a function's time are worth, as a share of the predicted time: saved if the function takes 10 % less,
/// added if it takes 10 % more. If both numbers agree, the derivative is known. If they differ, the predicted time has
/// a corner there: another way through the run is about as long, or a small change decides about the order of events.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tenth {
    /// The share of the predicted time that 10 % less of the function saves.
    pub faster: f64,
    /// The share of the predicted time that 10 % more of the function adds.
    pub slower: f64,
}

impl Tenth {
    /// The gain of taking 10 % off, if both directions agree; `what-if --rank` shows the same number.
    pub fn agreed(&self) -> Option<f64> {
        let [least, share] = AGREE;
        let size = self.faster.abs().max(self.slower.abs());
        let apart = (self.faster - self.slower).abs();
        (apart <= least.max(share * size)).then_some(self.faster)
    }
}

impl Search {
    /// The functions that compute most, at most 256: each with its share of all computing, and whether 10 % of its time
    /// are simulated.
    pub fn functions(&self) -> Vec<(FunctionRef, f64, bool)> {
        let mut sums = Sums::default();
        for thread in self.groups().iter().flat_map(|group| &group.threads) {
            holders::of_thread(self.program(), self.owners(), *thread, None, &mut sums);
        }
        let all = sums.all().max(1) as f64;
        let functions = sums.sorted().into_iter().take(TOLD).enumerate();
        functions
            .map(|(place, (function, ticks))| {
                let share = ticks as f64 / all;
                (function, share, self.is_small() && place < FUNCTIONS && share >= LEAST)
            })
            .collect()
    }

    /// Makes the entry for one of [`Search::functions`]. `is_tried`: whether to simulate the gain of 10 % of its time
    /// on the first CPU count.
    pub fn tenth(
        &self,
        (function, computes, is_tried): (FunctionRef, f64, bool),
        found: &[Found],
    ) -> Option<FunctionUse> {
        let name = self.program().functions.get(function.0 as usize)?.name.clone();
        let first = found.first()?;
        let share = |factor: f64| {
            let edit = Edit::Scale(self.owners().owned_by(function), factor);
            self.trials.with(vec![edit]).gain(first.limit.cpus, 0)
        };
        let tenth = (is_tried && first.time_ns > 0.0).then(|| {
            let [less, more] = FACTORS;
            Some(Tenth { faster: share(less)?, slower: -share(more)? })
        });
        let kernel = self.recorded.in_kernel.iter().find(|of| of.function == name).map(KernelShare::share);
        Some(FunctionUse { function: name, computes, tenth: tenth.flatten(), kernel })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gains_of_faster_and_slower_that_agree_are_one_number() {
        let agreed = |faster, slower| Tenth { faster, slower }.agreed();
        assert_eq!(agreed(0.06, 0.0625), Some(0.06));
        assert_eq!(agreed(0.001, 0.005), Some(0.001));
        // Another way through the run is nearly as long: slowing the function down costs all, making it faster gains little.
        assert_eq!(agreed(0.01, 0.1), None);
        assert_eq!(agreed(-0.02, 0.02), None);
    }
}
