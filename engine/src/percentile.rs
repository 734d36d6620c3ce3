//! Percentiles of sorted values, by nearest rank.

/// The index of a percentile in `count` sorted values; `None` if there are none.
pub(crate) fn rank(count: usize, percent: u64) -> Option<usize> {
    let place = (count as u64).saturating_mul(percent.min(100)).div_ceil(100);
    usize::try_from(place).ok()?.max(1).checked_sub(1).filter(|place| *place < count)
}
