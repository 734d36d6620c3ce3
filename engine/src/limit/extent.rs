//! Limits how many simulations a search makes.

use super::search::Search;

/// Largest number of operations simulated for one CPU count: a large program gets fewer trials, those first that may
/// gain most.
const OPERATIONS: usize = 2_500_000;
/// Programs with more operations get no optional trials: a hot lock with 80,000 acquisitions has 300,000 operations.
const SMALL: usize = 600_000;
/// Trials that any program gets.
const FEWEST: usize = 2;
/// Largest number of trials for one program.
const MOST: usize = 12;
/// Largest number of trials for an answer that is computed again and again, as for `top`.
const BRIEF: usize = 5;

impl Search {
    /// Makes the search try few changes, and no optional ones: for answers that are computed again and again.
    pub fn briefly(mut self) -> Search {
        self.is_brief = true;
        self
    }

    /// How many simulations the search may make for a CPU count.
    pub(super) fn questions(&self) -> usize {
        let most = if self.is_brief { BRIEF } else { MOST };
        (OPERATIONS / self.trials.operations().max(1)).clamp(FEWEST, most)
    }

    /// Whether there is time for optional trials: bands, the largest CPU count, 10 % of each function.
    pub(super) fn is_small(&self) -> bool {
        self.trials.operations() <= SMALL && !self.is_brief
    }
}
