//! Chooses the trials that a large program gets.

use crate::experiment::Edit;

/// The first `most` trials, which always include the lock that threads wait for longest. The bound of more CPUs is a
/// sum over all threads, so it is large even where one lock holds the threads up.
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

    /// The lock is tried even if the program is so large that only the trials with larger bounds would fit.
    #[test]
    fn the_lock_with_the_longest_waits_is_always_among_the_trials() {
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
