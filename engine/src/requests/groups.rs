//! Fast and slow requests.

use crate::percentile::rank;

/// Least number of requests for which the slowest 1 % is a useful group.
const MANY: usize = 100;
/// With at least `MANY` requests, at least this number of requests count as slow.
const FEWEST_SLOW: usize = 10;

/// The rule by which requests count as slow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum SlowGroup {
    /// The slowest hundredth.
    Percent,
    /// The slowest ten, which are more than a hundredth.
    Ten,
    /// The slowest tenth, of fewer than 100 requests.
    Tenth,
    /// The slowest request, of fewer than 20.
    #[default]
    One,
}

/// Latencies in order, and the sizes of the groups.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Groups {
    /// Latencies in ascending order, ns.
    sorted: Vec<u64>,
    /// Number of requests in the fast half.
    pub fast: usize,
    /// Number of slow requests.
    pub slow: usize,
    /// The rule by which requests count as slow.
    pub slow_group: SlowGroup,
}

/// The group of a request, by its latency.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Group {
    Fast = 0,
    Middle = 1,
    Slow = 2,
}

/// Number of groups.
pub(super) const GROUPS: usize = 3;

impl Groups {
    /// Groups all latencies, ns.
    pub fn of(mut latencies: Vec<u64>) -> Groups {
        latencies.sort_unstable();
        let count = latencies.len();
        let (slow, slow_group) = match count {
            _ if count >= MANY * FEWEST_SLOW => (count / MANY, SlowGroup::Percent),
            _ if count >= MANY => (FEWEST_SLOW, SlowGroup::Ten),
            _ if count >= 2 * FEWEST_SLOW => (count / FEWEST_SLOW, SlowGroup::Tenth),
            _ => (count.min(1), SlowGroup::One),
        };
        let fast = count.div_ceil(2).min(count - slow);
        Groups { sorted: latencies, fast, slow, slow_group }
    }

    /// The latency that this percentage of the requests does not exceed (nearest rank), ns; 0 without requests.
    pub fn percentile_ns(&self, percent: u64) -> u64 {
        rank(self.sorted.len(), percent).and_then(|place| self.sorted.get(place)).copied().unwrap_or(0)
    }

    /// The longest latency, ns; 0 without requests.
    pub fn longest_ns(&self) -> u64 {
        self.sorted.last().copied().unwrap_or(0)
    }

    /// Number of requests.
    pub fn count(&self) -> usize {
        self.sorted.len()
    }

    /// The group of the request with this place in the order of latencies.
    pub(super) fn at(&self, place: usize) -> Group {
        match place {
            _ if place >= self.sorted.len().saturating_sub(self.slow) => Group::Slow,
            _ if place < self.fast => Group::Fast,
            _ => Group::Middle,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slow_group_of_requests_depends_on_how_many_there_are() {
        let of = |count: u64| {
            let groups = Groups::of((1..=count).rev().collect());
            (groups.fast, groups.slow, groups.slow_group, groups.percentile_ns(99))
        };
        assert_eq!(of(5_000), (2_500, 50, SlowGroup::Percent, 4_950));
        assert_eq!(of(300), (150, 10, SlowGroup::Ten, 297));
        assert_eq!(of(57), (29, 5, SlowGroup::Tenth, 57));
        assert_eq!(of(3), (2, 1, SlowGroup::One, 3));
        assert_eq!(of(0), (0, 0, SlowGroup::One, 0));
    }
}
