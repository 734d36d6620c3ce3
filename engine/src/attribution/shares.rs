//! Divides a stratum's time among rows by the stratum's samples, and computes the possible error.

use super::keys::{Keys, NO_KEY};
use super::strata::{Strata, Stratum, View};
use rustc_hash::FxHashMap;

/// The normal distribution has 95 % within this many standard deviations.
const NINETY_FIVE: f64 = 1.96;

/// The share of a row in a stratum.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Share {
    /// The row.
    pub(crate) key: u32,
    /// Number of samples with the row innermost, and that number summed over all earlier rows.
    pub(crate) own: u32,
    pub(crate) own_before: u32,
    /// Number of samples with the row anywhere on the stack; 0 if a probed function of the row is open.
    pub(crate) within: u32,
}

/// The rows of a stratum in order of names, [`NO_KEY`] last. The row that has the time without samples is always there. The
/// `own` of all add up to the number of samples.
pub(crate) fn divide(keys: &Keys, strata: &Strata, stratum: &Stratum) -> Vec<Share> {
    let shares = divide_sampled(keys, stratum.top, strata.seen(stratum));
    debug_assert!(
        shares.iter().map(|share| share.own).sum::<u32>() == stratum.samples,
        "every sample has one innermost row"
    );
    shares
}

/// Divides time among the rows that the given samples show. Without samples all of that time would belong to `top`.
pub(crate) fn divide_sampled<'v>(
    keys: &Keys,
    top: u32,
    seen: impl Iterator<Item = (&'v View, u32)>,
) -> Vec<Share> {
    let mut counts: FxHashMap<u32, (u32, u32)> = FxHashMap::default();
    counts.insert(top, (0, 0));
    for (view, count) in seen {
        counts.entry(view.own).or_default().0 += count;
        for key in &view.within {
            counts.entry(*key).or_default().1 += count;
        }
    }
    let mut shares: Vec<Share> =
        counts.into_iter().map(|(key, (own, within))| Share { key, own, own_before: 0, within }).collect();
    shares.sort_unstable_by_key(|share| keys.rank(share.key));
    let mut before = 0;
    for share in &mut shares {
        share.own_before = before;
        before += share.own;
    }
    debug_assert!(shares.iter().all(|share| share.key != NO_KEY || share.within == 0));
    shares
}

/// The first `count` of `of` equal parts of a whole, rounded towards 0; all parts add up to the whole exactly.
pub(crate) fn part(whole: i128, count: u32, of: u32) -> i128 {
    if of == 0 {
        return 0;
    }
    let each = whole / i128::from(of);
    // Less than `of`, so that the product with a count does not overflow.
    let rest = whole - each * i128::from(of);
    let more = rest.unsigned_abs() as u64 * u64::from(count) / u64::from(of);
    each * i128::from(count) + i128::from(more) * rest.signum()
}

/// The error of a number that is a sum of shares.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Errors {
    /// Sum of the variances in all strata.
    variance: f64,
    /// Number of samples in the shares.
    samples: f64,
    squares: f64,
    /// Time with too few samples to be divided: all of it may belong to others.
    undivided: f64,
    /// Like `samples` and `squares`, but for all samples of the strata, not only those in the shares.
    others: f64,
    other_squares: f64,
}

impl Errors {
    /// Adds a share: `count` of a stratum's `of` samples, which together stand for the time `whole`.
    pub(crate) fn add(&mut self, whole: f64, count: u32, of: u32) {
        if of == 0 {
            return;
        }
        let (count, of) = (f64::from(count), f64::from(of));
        let share = count / of;
        let each = (whole / of).powi(2);
        self.variance += whole * whole * share * (1.0 - share) / (of - 1.0).max(1.0);
        self.samples += count;
        self.squares += count * each;
        self.others += of;
        self.other_squares += of * each;
    }

    /// Adds time that was not divided.
    pub(crate) fn add_undivided(&mut self, whole: f64) {
        self.undivided += whole.abs();
    }

    /// Half-width of the 95 % interval; `None` if nothing was divided: the number is exact.
    pub(crate) fn half_width(&self) -> Option<f64> {
        // The variance of one further sample.
        let one = if self.samples > 0.0 {
            self.squares / self.samples
        } else if self.others > 0.0 {
            self.other_squares / self.others
        } else {
            return (self.undivided > 0.0).then_some(self.undivided);
        };
        Some(NINETY_FIVE * (self.variance + one).sqrt() + self.undivided)
    }

    /// Number of samples in the shares.
    pub(crate) fn samples(&self) -> u64 {
        self.samples as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_part_of_a_whole_is_exact_and_never_larger_than_it() {
        for whole in [0, 1, -1, 7, -1_000_003, i128::from(i64::MAX) * i128::from(i64::MAX), i128::MIN / 2] {
            for of in [1, 2, 3, 7, 1_000, u32::MAX] {
                assert_eq!(part(whole, of, of), whole);
                let half = part(whole, of / 2, of);
                assert!(half.unsigned_abs() <= whole.unsigned_abs(), "{whole} {of}");
            }
        }
        assert_eq!(part(100, 1, 4), 25);
        assert_eq!(part(-10, 1, 3), -3);
    }

    #[test]
    fn the_interval_of_a_sampled_share_is_binomial_and_never_empty() {
        let mut errors = Errors::default();
        assert_eq!(errors.half_width(), None);
        errors.add(101.0, 50, 101);
        let width = errors.half_width().expect("sampled");
        let binomial = 1.96 * (101.0 * (50.0 / 101.0) * (51.0 / 101.0) * 1.01 + 1.0_f64).sqrt();
        assert!((width - binomial).abs() < 1e-9, "{width} {binomial}");
        let mut never_seen = Errors::default();
        never_seen.add(101.0, 0, 101);
        assert_eq!(never_seen.half_width(), Some(1.96));
        let mut always = Errors::default();
        always.add(101.0, 101, 101);
        assert_eq!(always.half_width(), Some(1.96));
    }
}
