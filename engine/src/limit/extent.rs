//! How much a search asks.

use super::search::Search;
use crate::experiment::Edit;

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

/// The first `most` of these questions, and the lock that threads wait for longest among them: how long threads want CPUs is a sum over
/// all of them, and large where one lock holds them up.
pub(super) fn first_asked(mut questions: Vec<(Edit, u64)>, most: usize) -> Vec<(Edit, u64)> {
    let lock = questions.iter().position(|(edit, _)| matches!(edit, Edit::FreeLocks(_)));
    if let Some(place) = lock.filter(|place| *place >= most) {
        questions[..=place].rotate_right(1);
    }
    questions.truncate(most);
    questions
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpus::Cpus;
    use crate::program::ObjectId;

    /// A mutex that four threads took 260,000 times was not asked about: "CPUs", though without it half of the time goes.
    #[test]
    fn the_lock_that_is_waited_for_longest_is_always_asked() {
        let lock = |number| Edit::FreeLocks(vec![ObjectId(number)]);
        let all =
            || vec![(Edit::Cpus(Cpus::Infinite), 9), (Edit::FreeHandOver, 8), (lock(1), 7), (lock(2), 6)];
        let asked = |most| first_asked(all(), most).into_iter().map(|(edit, _)| edit).collect::<Vec<_>>();
        assert_eq!(asked(2), [lock(1), Edit::Cpus(Cpus::Infinite)]);
        assert_eq!(asked(1), [lock(1)]);
        assert_eq!(asked(3), [Edit::Cpus(Cpus::Infinite), Edit::FreeHandOver, lock(1)], "it is among them");
        assert_eq!(first_asked(vec![(Edit::NoSleeps, 3)], 2), [(Edit::NoSleeps, 3)]);
    }
}
