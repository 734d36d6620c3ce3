//! How much a search asks.

use super::search::Search;

/// Operations simulated for one CPU count at most: a large program is asked fewer questions, those first that may bring most.
const OPERATIONS: usize = 2_500_000;
/// Programs with more are not asked what is only good to know: a hot lock with 80,000 acquisitions has 300,000.
const SMALL: usize = 600_000;
/// Questions that any program is asked.
const FEWEST: usize = 2;
/// Questions that no program is asked more of.
const MOST: usize = 12;
/// And of more where answers come again and again.
const BRIEF: usize = 5;

impl Search {
    /// Asks few questions, and nothing that is only good to know: for answers that come again and again.
    pub fn briefly(mut self) -> Search {
        self.is_brief = true;
        self
    }

    /// How many simulations a CPU count may take.
    pub(super) fn questions(&self) -> usize {
        let most = if self.is_brief { BRIEF } else { MOST };
        (OPERATIONS / self.trials.operations().max(1)).clamp(FEWEST, most)
    }

    /// Whether there is time for what is only good to know: bands, the largest CPU count, 10 % of each function.
    pub(super) fn is_small(&self) -> bool {
        self.trials.operations() <= SMALL && !self.is_brief
    }
}
