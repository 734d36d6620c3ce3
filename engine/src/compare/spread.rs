//! How much the numbers of several recordings on each side differ by chance: the two-sample interval of Student (1908), with
//! one variance for both sides. What lasts for a whole run, such as a clock frequency, counts here, unlike in
//! [`mod@super::noise`].

use super::result::BeforeAfter;

/// Student's t for 95 %, by degrees of freedom from 1 on.
const STUDENT: [f64; 10] = [12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26, 2.23];

/// The means of both sides' recordings, and the chance in their difference; a side with no number counts as 0. With one
/// recording on each side, `noise` is not known.
pub(super) fn of_means(sides: [&[f64]; 2]) -> BeforeAfter {
    let [before, after] = sides.map(mean);
    BeforeAfter { before, after, noise: spread(sides) }
}

/// Half-width of the 95 % interval of the difference of both sides' means. `None`: too few recordings.
fn spread(sides: [&[f64]; 2]) -> Option<f64> {
    let freedom = (sides[0].len() + sides[1].len()).checked_sub(2).filter(|freedom| *freedom > 0)?;
    let squares = |side: &[f64]| side.iter().map(|number| (number - mean(side)).powi(2)).sum::<f64>();
    let variance = (squares(sides[0]) + squares(sides[1])) / freedom as f64;
    let parts: f64 = sides.iter().map(|side| 1.0 / side.len() as f64).sum();
    let spread = student(freedom) * (variance * parts).sqrt();
    spread.is_finite().then_some(spread)
}

fn student(freedom: usize) -> f64 {
    // Beyond the table: an approximation that errs by less than 0.01.
    STUDENT.get(freedom - 1).copied().unwrap_or(1.96 + 2.7 / freedom as f64)
}

fn mean(numbers: &[f64]) -> f64 {
    numbers.iter().sum::<f64>() / numbers.len().max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::of_means;

    #[test]
    fn the_interval_of_two_means_is_student_s() {
        let change = of_means([&[10.0, 12.0], &[20.0, 22.0]]);
        assert_eq!((change.before, change.after), (11.0, 21.0));
        // Both variances are 2, so that of the difference is 2; two degrees of freedom.
        assert!((change.noise.expect("chance") - 4.30 * 2f64.sqrt()).abs() < 1e-9, "{change:?}");
        assert!(change.is_clear() && !of_means([&[10.0, 12.0], &[16.0, 18.0]]).is_clear());
        assert_eq!(of_means([&[1.0], &[2.0]]).noise, None, "one recording has no spread");
        assert_eq!(of_means([&[], &[2.0, 2.0]]).noise, None);
    }

    /// Numbers of one distribution on both sides: one in twenty differences is called clear.
    #[test]
    fn one_in_twenty_differences_of_like_recordings_is_beyond_noise() {
        let mut state = 1u64;
        let mut number = || {
            // The sum of twelve even numbers is nearly a normal one.
            let even = || {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                (state >> 40) as f64 / (1u64 << 24) as f64
            };
            std::iter::repeat_with(even).take(12).sum::<f64>() + 100.0
        };
        for count in [2, 3, 10] {
            let clear = (0..2_000).filter(|_| {
                let sides: [Vec<f64>; 2] = std::array::from_fn(|_| (0..count).map(|_| number()).collect());
                of_means([&sides[0], &sides[1]]).is_clear()
            });
            let clear = clear.count();
            assert!((60..=140).contains(&clear), "{clear} of 2000 with {count} recordings on each side");
        }
    }
}
