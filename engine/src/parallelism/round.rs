//! Rounds exact values to integer nanoseconds without changing their sum (the method of the largest remainder). Each
//! value is rounded down; the missing nanoseconds go to the values with the largest remainders, the first of equals. So
//! every number is within a nanosecond of its exact value.

/// Each value divided by `unit` and rounded, so that all add up to `total`.
pub(super) fn apportion(values: &[u128], unit: u128, total: u64) -> Vec<u64> {
    let whole = |value: u128| u64::try_from(value / unit).unwrap_or(u64::MAX);
    let mut parts: Vec<u64> = values.iter().map(|value| whole(*value)).collect();
    let sum = parts.iter().fold(0u64, |sum, part| sum.saturating_add(*part));
    let mut order: Vec<usize> = (0..values.len()).filter(|place| values[*place] > 0).collect();
    order.sort_by_key(|place| (std::cmp::Reverse(values[*place] % unit), *place));
    if order.is_empty() {
        return parts;
    }
    let mut missing = total.saturating_sub(sum);
    // Less than one nanosecond is missing for each value, unless the values do not add up to the total.
    let every = missing / order.len() as u64;
    for place in &order {
        parts[*place] = parts[*place].saturating_add(every);
    }
    missing %= order.len() as u64;
    for place in order.iter().take(usize::try_from(missing).unwrap_or(usize::MAX)) {
        parts[*place] = parts[*place].saturating_add(1);
    }
    let mut over = sum.saturating_sub(total);
    for place in order.iter().rev() {
        let less = over.min(parts[*place]);
        parts[*place] -= less;
        over -= less;
    }
    parts
}

/// The quotient `value / unit`, rounded to the nearest integer.
pub(super) fn nearest(value: u128, unit: u128) -> u64 {
    u64::try_from(value.saturating_add(unit / 2) / unit).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn rounding_gives_the_missing_units_to_the_largest_remainders() {
        assert_eq!(apportion(&[33, 33, 34], 10, 10), [3, 3, 4]);
        assert_eq!(apportion(&[5, 5], 10, 1), [1, 0], "of equals to the first");
        assert_eq!(apportion(&[0, 19], 10, 2), [0, 2]);
        assert_eq!(apportion(&[19, 19], 10, 1), [1, 0], "a total that was rounded down itself");
        assert_eq!(apportion(&[], 10, 0), [0; 0]);
        assert_eq!((nearest(14, 10), nearest(15, 10)), (1, 2));
    }

    proptest! {
        #[test]
        fn rounded_parts_add_up_to_the_rounded_total(values in proptest::collection::vec(0u128..1_000_000, 1..20), unit in 1u128..5_000) {
            let total = nearest(values.iter().sum(), unit);
            let parts = apportion(&values, unit, total);
            if values.iter().any(|value| *value > 0) {
                prop_assert_eq!(parts.iter().sum::<u64>(), total);
            }
            for (part, value) in parts.iter().zip(&values) {
                let exact = *value as f64 / unit as f64;
                prop_assert!((*part as f64 - exact).abs() <= 1.0, "{} is not {}", part, exact);
            }
        }
    }
}
