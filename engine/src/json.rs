//! Serializes results as JSON in ways that serde does not offer.

use serde::{Serialize, Serializer};

/// A number, serialized by [`number`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Number(pub f64);

impl Serialize for Number {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        number(&self.0, serializer)
    }
}

/// Serializes a number: as an integer if it is one and a double holds it exactly, else with all its digits; infinity
/// and NaN as `null`.
///
/// # Errors
/// Those of the serializer.
pub fn number<S: Serializer>(value: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if value.fract() == 0.0 && value.abs() <= EXACT {
        serializer.serialize_i64(*value as i64)
    } else {
        serializer.serialize_f64(*value)
    }
}

/// Serializes a number, or `null`.
#[expect(clippy::ref_option, reason = "serde wants this")]
pub(crate) fn maybe_number<S: Serializer>(value: &Option<f64>, serializer: S) -> Result<S::Ok, S::Error> {
    value.map(Number).serialize(serializer)
}

/// Serializes a list of numbers.
pub(crate) fn numbers<S: Serializer>(values: &[f64], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(values.iter().copied().map(Number))
}

/// Serializes only the name of a pair of name and share.
#[expect(clippy::ref_option, reason = "serde wants this")]
pub(crate) fn name_only<S: Serializer>(of: &Option<(String, f64)>, serializer: S) -> Result<S::Ok, S::Error> {
    of.as_ref().map(|(name, _)| name).serialize(serializer)
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde wants a reference")]
pub(crate) fn is_zero(value: &u64) -> bool {
    *value == 0
}

#[cfg(test)]
mod tests {
    use super::number;

    #[test]
    fn numbers_that_are_not_finite_are_null_in_json() {
        let json = |value: f64| {
            let mut out = Vec::new();
            number(&value, &mut serde_json::Serializer::new(&mut out)).expect("written");
            String::from_utf8(out).expect("text")
        };
        assert_eq!(json(f64::NAN), "null");
        assert_eq!(json(f64::INFINITY), "null");
        assert_eq!(json(-0.0), "0");
        assert_eq!(json(1e300).parse::<f64>().expect("number"), 1e300);
        assert_eq!(json(0.1), "0.1");
    }
}
