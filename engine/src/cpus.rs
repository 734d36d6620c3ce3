//! CPU counts and their grammar on the command line: `1,2,4-8,inf`.

use std::fmt;
use std::num::NonZeroU32;

use crate::words::quoted;
use serde::{Serialize, Serializer};

/// A number of processors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Cpus {
    /// This number of CPUs; never 0.
    Count(NonZeroU32),
    /// Enough CPUs that each thread has one.
    Infinite,
}

/// Serialized as the number, or `"inf"`.
impl Serialize for Cpus {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Cpus::Count(count) => serializer.serialize_u32(count.get()),
            Cpus::Infinite => serializer.serialize_str("inf"),
        }
    }
}

impl Cpus {
    /// One CPU: speed-ups are computed against it.
    pub const ONE: Cpus = Cpus::Count(NonZeroU32::MIN);

    /// Largest number of CPU counts in one list.
    pub const MOST: usize = 1024;

    /// A number of CPUs; `None` for 0.
    pub fn count(count: u32) -> Option<Cpus> {
        NonZeroU32::new(count).map(Cpus::Count)
    }

    /// The number; `unlimited` for `Cpus::Infinite`.
    pub fn or(self, unlimited: usize) -> usize {
        match self {
            Cpus::Count(count) => count.get() as usize,
            Cpus::Infinite => unlimited,
        }
    }

    /// Reads a list such as `1,2,4-8,inf`: numbers, ranges and `inf` (or `∞`), in the order given, without repetition.
    ///
    /// # Errors
    /// An empty list or part, 0, something that is not a number, a range that runs backwards, a count above
    /// 4,294,967,295, or more than [`Cpus::MOST`] counts.
    pub fn parse_list(text: &str) -> Result<Vec<Cpus>, CpusError> {
        let mut list = Vec::new();
        for part in text.split(',') {
            let part = part.trim();
            let (first, last) = match part.split_once('-') {
                Some((first, last)) => (first.trim(), last.trim()),
                None => (part, part),
            };
            if matches!(part, "inf" | "∞") {
                add(&mut list, Cpus::Infinite)?;
                continue;
            }
            let (first, last) = (number(first, part)?, number(last, part)?);
            if last < first {
                return Err(CpusError { problem: format!("the range {} runs backwards", quoted(part)) });
            }
            for count in first.get()..=last.get() {
                if let Some(cpus) = Cpus::count(count) {
                    add(&mut list, cpus)?;
                }
            }
        }
        Ok(list)
    }
}

fn add(list: &mut Vec<Cpus>, cpus: Cpus) -> Result<(), CpusError> {
    if list.contains(&cpus) {
        return Ok(());
    }
    if list.len() == Cpus::MOST {
        return Err(CpusError { problem: format!("more than {} CPU counts", Cpus::MOST) });
    }
    list.push(cpus);
    Ok(())
}

fn number(text: &str, part: &str) -> Result<NonZeroU32, CpusError> {
    let problem = if part.is_empty() {
        "an empty place in the list of CPU counts".to_owned()
    } else {
        match text.parse::<u32>() {
            Ok(value) => match NonZeroU32::new(value) {
                Some(count) => return Ok(count),
                None => "a CPU count of 0".to_owned(),
            },
            Err(_) => format!("{} is not a CPU count", quoted(part)),
        }
    };
    Err(CpusError { problem })
}

impl fmt::Display for Cpus {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Cpus::Count(count) => write!(out, "{count}"),
            Cpus::Infinite => out.write_str("inf"),
        }
    }
}

/// Why a list of CPU counts is refused. `Display` is one line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{problem}")]
pub struct CpusError {
    problem: String,
}

impl CpusError {
    /// How the user can correct the list; one line.
    pub fn hint(&self) -> &'static str {
        "give counts from 1 up, ranges and inf, e.g. 1,2,4-8,inf"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> String {
        match Cpus::parse_list(text) {
            Ok(list) => list.iter().map(Cpus::to_string).collect::<Vec<_>>().join(" "),
            Err(error) => format!("error: {error}"),
        }
    }

    #[test]
    fn a_cpu_list_has_numbers_ranges_and_inf() {
        assert_eq!(parsed("1,2,4-8,inf"), "1 2 4 5 6 7 8 inf");
        assert_eq!(parsed(" 8 , 2-3,2,inf,∞"), "8 2 3 inf");
        assert_eq!(parsed("4294967295"), "4294967295");
    }

    #[test]
    fn an_invalid_cpu_list_is_an_error_that_says_why() {
        assert_eq!(parsed("0"), "error: a CPU count of 0");
        assert_eq!(parsed("0-3"), "error: a CPU count of 0");
        assert_eq!(parsed(""), "error: an empty place in the list of CPU counts");
        assert_eq!(parsed("1,,2"), "error: an empty place in the list of CPU counts");
        assert_eq!(parsed("8-4"), "error: the range \"8-4\" runs backwards");
        assert_eq!(parsed("-4"), "error: \"-4\" is not a CPU count");
        assert_eq!(parsed("two"), "error: \"two\" is not a CPU count");
        assert_eq!(parsed("4294967296"), "error: \"4294967296\" is not a CPU count");
        assert_eq!(parsed("1-4294967295"), "error: more than 1024 CPU counts");
    }
}
