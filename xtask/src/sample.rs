//! Repeated measurements of one quantity, with their median and their smallest and largest value.

use std::fmt;

/// Measurements of one quantity, in the order of the runs.
#[derive(Clone, Debug, Default)]
pub struct Sample(Vec<f64>);

impl FromIterator<f64> for Sample {
    fn from_iter<I: IntoIterator<Item = f64>>(values: I) -> Self {
        Self(values.into_iter().collect())
    }
}

impl Sample {
    /// Adds a measurement.
    pub fn push(&mut self, value: f64) {
        self.0.push(value);
    }

    /// All measurements.
    pub fn values(&self) -> &[f64] {
        &self.0
    }

    /// Combines each measurement with the other one of the same run.
    pub fn with(&self, other: &Sample, both: impl Fn(f64, f64) -> f64) -> Sample {
        self.0.iter().zip(&other.0).map(|(own, other)| both(*own, *other)).collect()
    }

    fn sorted(&self) -> Vec<f64> {
        let mut values = self.0.clone();
        values.sort_by(f64::total_cmp);
        values
    }

    /// The number of measurements.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// The median. For an even number of measurements, the mean of the middle two; 0 if there are none.
    pub fn median(&self) -> f64 {
        let (sorted, middle) = (self.sorted(), self.0.len() / 2);
        match (sorted.get(middle.wrapping_sub(1)), sorted.get(middle)) {
            (Some(below), Some(above)) if self.0.len().is_multiple_of(2) => (below + above) / 2.0,
            (_, Some(value)) => *value,
            _ => 0.0,
        }
    }

    /// The standard error of the mean: standard deviation ÷ √count. `None` if there are fewer than two measurements.
    pub fn standard_error(&self) -> Option<f64> {
        let count = self.0.len() as f64;
        let mean = self.0.iter().sum::<f64>() / count;
        let squares: f64 = self.0.iter().map(|value| (value - mean).powi(2)).sum();
        (self.0.len() > 1).then(|| (squares / (count - 1.0) / count).sqrt())
    }

    /// Multiplies every measurement by a factor, to change the unit.
    pub fn scaled(&self, factor: f64) -> Self {
        Self(self.0.iter().map(|value| value * factor).collect())
    }
}

/// Prints `median (smallest–largest)` with three significant digits.
impl fmt::Display for Sample {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sorted = self.sorted();
        let (first, last) = (sorted.first().copied().unwrap_or(0.0), sorted.last().copied().unwrap_or(0.0));
        write!(f, "{} ({}–{})", digits(self.median()), digits(first), digits(last))
    }
}

/// The value with three significant digits.
pub fn digits(value: f64) -> String {
    let decimals = match value.abs() {
        v if v >= 100.0 => 0,
        v if v >= 10.0 => 1,
        v if v >= 1.0 => 2,
        _ => 3,
    };
    format!("{value:.decimals$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_s_median_of_an_even_number_is_between_the_middle_two() {
        let mut sample = Sample::default();
        assert_eq!(sample.median(), 0.0);
        for value in [5.0, 1.0, 3.0] {
            sample.push(value);
        }
        assert_eq!(sample.median(), 3.0);
        sample.push(100.0);
        assert_eq!(sample.median(), 4.0);
        assert_eq!(sample.to_string(), "4.00 (1.00–100)");
    }

    #[test]
    fn the_standard_error_of_a_mean_needs_more_than_one_value() {
        let mut sample = Sample::default();
        assert_eq!(sample.standard_error(), None);
        sample.push(1.0);
        assert_eq!(sample.standard_error(), None);
        // The deviations are 3, 1, 1 and 3. Their squares add up to 20, which is divided by 3 and then by 4.
        for value in [3.0, 5.0, 7.0] {
            sample.push(value);
        }
        let error = sample.standard_error().expect("four of them");
        assert!((error - (20.0_f64 / 12.0).sqrt()).abs() < 1e-12, "{error}");
    }
}
