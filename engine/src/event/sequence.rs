//! Record numbers of a CPU: holes are lost records, repeats are duplicates. Works on sets, not on order, since an interrupt
//! may swap neighbours. Works across the wrap of the 32-bit counter.

use std::collections::VecDeque;

/// Numbers missing between two records of one CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Hole {
    /// First missing number (unwrapped).
    first: i64,
    /// Last missing number (unwrapped).
    last: i64,
    /// Time of the record before the hole.
    pub(super) from_ns: u64,
    /// Time of the record after the hole.
    pub(super) until_ns: u64,
    /// Whether the missing numbers lie below the first number seen: such records may still come, but it is not known
    /// whether they exist.
    guessed: bool,
}

impl Hole {
    /// How many numbers are missing in this hole.
    pub(super) fn missing(&self) -> u64 {
        u64::try_from(self.last.saturating_sub(self.first)).unwrap_or(0).saturating_add(1)
    }
}

/// Numbers below a CPU's first record that may still come, swapped.
const BEFORE_FIRST: i64 = 1024;

/// The numbers seen so far of one CPU.
#[derive(Clone, Debug, Default)]
pub(super) struct Sequence {
    /// Highest number so far, unwrapped to 64 bits, and the time of its record.
    highest: Option<(i64, u64)>,
    /// Missing numbers below `highest`, ascending.
    holes: VecDeque<Hole>,
    /// The very first number, if known.
    first: Option<u32>,
}

impl Sequence {
    /// No number seen yet. `first`: the very first number, if known.
    pub(super) fn starting_at(first: Option<u32>) -> Sequence {
        Sequence { first, ..Sequence::default() }
    }

    /// Notes a record; returns its unwrapped number.
    ///
    /// `None` if the number cannot be new: it was seen, or its hole is older than `bound_ns` and was closed.
    pub(super) fn see(&mut self, sequence: u32, time_ns: u64, bound_ns: u64) -> Option<i64> {
        let Some((highest, highest_time)) = self.highest else {
            return Some(self.see_first(sequence, time_ns));
        };
        let step = sequence.wrapping_sub(highest as u32) as i32;
        let number = highest.saturating_add(i64::from(step));
        if step > 0 {
            if step > 1 {
                self.holes.push_back(Hole {
                    first: highest + 1,
                    last: number - 1,
                    from_ns: highest_time.min(time_ns),
                    until_ns: highest_time.max(time_ns),
                    guessed: false,
                });
            }
            self.highest = Some((number, time_ns));
            return Some(number);
        }
        let index = self.holes.partition_point(|hole| hole.last < number);
        let hole = *self.holes.get(index).filter(|hole| hole.first <= number && hole.until_ns >= bound_ns)?;
        self.holes.remove(index);
        let below = Hole { last: number - 1, until_ns: time_ns.clamp(hole.from_ns, hole.until_ns), ..hole };
        let above = Hole { first: number + 1, from_ns: time_ns.clamp(hole.from_ns, hole.until_ns), ..hole };
        for part in [above, below] {
            if part.first <= part.last {
                self.holes.insert(index, part);
            }
        }
        Some(number)
    }

    fn see_first(&mut self, sequence: u32, time_ns: u64) -> i64 {
        // More than half of all numbers above `first` would mean that the number lies below it. That is impossible, so
        // `first` is not used.
        let known = self.first.filter(|first| sequence.wrapping_sub(*first) < 1 << 31);
        let hole = match known {
            Some(first) => {
                let before = i64::from(sequence.wrapping_sub(first));
                let first = i64::from(first);
                // The missing records may be from any earlier time.
                Hole { first, last: first + before - 1, from_ns: 0, until_ns: time_ns, guessed: false }
            }
            None => {
                let number = i64::from(sequence);
                Hole {
                    first: number - BEFORE_FIRST,
                    last: number - 1,
                    from_ns: time_ns,
                    until_ns: time_ns,
                    guessed: true,
                }
            }
        };
        let number = hole.last + 1;
        self.highest = Some((number, time_ns));
        if hole.first <= hole.last {
            self.holes.push_back(hole);
        }
        number
    }

    /// Number of missing records between the highest number seen and `next`, if any. If no number was seen, all are
    /// missing.
    pub(super) fn missing_after_last(&self, next: u32) -> Option<u64> {
        let missing = match self.highest {
            Some((highest, _)) => next.wrapping_sub(highest as u32).wrapping_sub(1),
            None => next.wrapping_sub(self.first.unwrap_or(0)),
        };
        // More than half of all numbers: `next` is older than the last record.
        (missing > 0 && missing < 1 << 31).then(|| u64::from(missing))
    }

    /// Time of the record with the highest number, 0 if there is none.
    pub(super) fn last_ns(&self) -> u64 {
        self.highest.map_or(0, |(_, time_ns)| time_ns)
    }

    /// Removes holes that no record can fill any more, and passes the holes of records that surely existed to `lost`.
    pub(super) fn settle(&mut self, bound_ns: u64, mut lost: impl FnMut(Hole)) {
        if self.holes.iter().all(|hole| hole.until_ns >= bound_ns) {
            return;
        }
        self.holes.retain(|hole| {
            let open = hole.until_ns >= bound_ns;
            if !open && !hole.guessed {
                lost(*hole);
            }
            open
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sees the numbers at times 10, 20, ...; compares which were accepted, and lost stretches as (from, until, count).
    fn check(numbers: &[u32], accepted: &[bool], lost: &[(u64, u64, u64)]) {
        let mut sequence = Sequence::default();
        let got: Vec<bool> = numbers
            .iter()
            .zip(1u64..)
            .map(|(&number, i)| sequence.see(number, i * 10, 0).is_some())
            .collect();
        assert_eq!(got, accepted);
        let mut holes = Vec::new();
        sequence.settle(u64::MAX, |hole| holes.push((hole.from_ns, hole.until_ns, hole.missing())));
        assert_eq!(holes, lost);
    }

    #[test]
    fn numbers_in_order_have_no_holes() {
        check(&[5, 6, 7], &[true; 3], &[]);
    }

    #[test]
    fn numbers_missing_before_the_first_are_a_hole_if_the_start_is_known() {
        for first in [0, 7, u32::MAX, u32::MAX - 1] {
            let seen = |numbers: &[u32]| {
                let mut sequence = Sequence::starting_at(Some(first));
                for (number, i) in numbers.iter().zip(1u64..) {
                    assert!(sequence.see(first.wrapping_add(*number), i * 10, 0).is_some());
                }
                assert_eq!(sequence.see(first.wrapping_sub(1), 90, 0), None, "before the start");
                let mut holes = Vec::new();
                sequence.settle(u64::MAX, |hole| holes.push((hole.from_ns, hole.until_ns, hole.missing())));
                holes
            };
            assert_eq!(seen(&[0, 1]), []);
            assert_eq!(seen(&[3, 4]), [(0, 10, 3)]);
            // The missing record came at 20, after its two neighbours at 10.
            assert_eq!(seen(&[3, 0, 4]), [(10, 10, 2)], "swapped");
        }
    }

    #[test]
    fn a_missing_number_is_a_hole() {
        check(&[5, 7, 11], &[true; 3], &[(10, 20, 1), (20, 30, 3)]);
    }

    #[test]
    fn swapped_numbers_are_no_hole_even_at_the_start() {
        check(&[5, 7, 6, 8], &[true; 4], &[]);
        check(&[1, 0, 2], &[true; 3], &[]);
    }

    #[test]
    fn a_repeated_number_is_refused() {
        check(&[5, 5, 6, 5, 6], &[true, false, true, false, false], &[]);
    }

    #[test]
    fn numbers_that_wrap_around_have_no_holes() {
        check(&[u32::MAX - 1, u32::MAX, 1, 0, 2], &[true; 5], &[]);
        check(&[u32::MAX, 2], &[true; 2], &[(10, 20, 2)]);
    }

    #[test]
    fn a_number_in_the_middle_of_a_hole_splits_it() {
        check(&[0, 10, 5], &[true; 3], &[(10, 20, 4), (20, 20, 4)]);
    }
}
