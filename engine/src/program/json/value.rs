//! Reads single values of an operation: names, lengths, counts.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, Visitor};

use super::names::Names;
use crate::time::Ticks;

/// Makes `$seed` read a `$value` by this method of the deserializer.
macro_rules! reads {
    ($seed:ty, $value:ty, $method:ident) => {
        impl<'de> DeserializeSeed<'de> for $seed {
            type Value = $value;

            fn deserialize<D: Deserializer<'de>>(self, input: D) -> Result<$value, D::Error> {
                input.$method(self)
            }
        }
    };
}
pub(super) use reads;

/// Reads a name; returns its number.
pub(super) struct Name<'n>(pub(super) &'n mut Names);

reads!(Name<'_>, u32, deserialize_str);

impl Visitor<'_> for Name<'_> {
    type Value = u32;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a name")
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<u32, E> {
        self.0.number(name).ok_or_else(|| E::custom("more than 4,294,967,295 names"))
    }
}

/// Reads a length in nanoseconds. Whole numbers are exact. Fractions are exact up to an hour, and beyond that as precise as a
/// double.
pub(super) struct Length;

reads!(Length, Ticks, deserialize_any);

impl Visitor<'_> for Length {
    type Value = Ticks;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a length in nanoseconds")
    }

    fn visit_u64<E: Error>(self, ns: u64) -> Result<Ticks, E> {
        let ticks = ns.checked_mul(Ticks::PER_NS).filter(|ticks| *ticks <= Ticks::MAX_TOTAL);
        ticks.map(Ticks).ok_or_else(|| too_long(ns))
    }

    fn visit_i64<E: Error>(self, ns: i64) -> Result<Ticks, E> {
        u64::try_from(ns).map_err(|_| negative(ns)).and_then(|ns| self.visit_u64(ns))
    }

    fn visit_f64<E: Error>(self, ns: f64) -> Result<Ticks, E> {
        if ns < 0.0 {
            return Err(negative(shown(ns)));
        }
        let whole = ns.trunc();
        if !ns.is_finite() || whole > (Ticks::MAX_TOTAL / Ticks::PER_NS) as f64 {
            return Err(too_long(shown(ns)));
        }
        // Both parts are in range now, and the subtraction does not round.
        let part = ((ns - whole) * Ticks::PER_NS as f64).round() as u64;
        let ticks = (whole as u64).saturating_mul(Ticks::PER_NS).saturating_add(part);
        if ticks > Ticks::MAX_TOTAL { Err(too_long(shown(ns))) } else { Ok(Ticks(ticks)) }
    }
}

/// A number in few characters: `1e300` would have 301 digits, with the reason after them.
fn shown(ns: f64) -> String {
    if ns.abs() < 1e20 { ns.to_string() } else { format!("{ns:e}") }
}

fn negative<E: Error>(ns: impl fmt::Display) -> E {
    E::custom(format!("a negative length of {ns} ns"))
}

fn too_long<E: Error>(ns: impl fmt::Display) -> E {
    let most = Ticks::MAX_TOTAL / Ticks::PER_NS;
    E::custom(format!("a length of {ns} ns is more than {most} ns (106 days)"))
}

/// Second value of `exec`: a function's number or, without one, the length.
pub(super) enum NameOrLength {
    Name(u32),
    Length(Ticks),
}

/// Reads a [`NameOrLength`].
pub(super) struct ExecValue<'n>(pub(super) &'n mut Names);

reads!(ExecValue<'_>, NameOrLength, deserialize_any);

impl Visitor<'_> for ExecValue<'_> {
    type Value = NameOrLength;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a function's name or a length in nanoseconds")
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<NameOrLength, E> {
        Name(self.0).visit_str(name).map(NameOrLength::Name)
    }

    fn visit_u64<E: Error>(self, ns: u64) -> Result<NameOrLength, E> {
        Length.visit_u64(ns).map(NameOrLength::Length)
    }

    fn visit_i64<E: Error>(self, ns: i64) -> Result<NameOrLength, E> {
        Length.visit_i64(ns).map(NameOrLength::Length)
    }

    fn visit_f64<E: Error>(self, ns: f64) -> Result<NameOrLength, E> {
        Length.visit_f64(ns).map(NameOrLength::Length)
    }
}
