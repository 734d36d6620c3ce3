//! Conditions that save a ring: a value of the running program, a limit, and how long the condition has to hold.

use crate::exit::UserError;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// The value that is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// Number of the program's threads that have a CPU, on average.
    Parallelism,
    /// Share of the threads' time for which they sleep in futex calls, 0 to 1: locks, condition variables, joins.
    LockWait,
}

/// How a value is compared with its limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// The sign `<`: true for smaller values.
    Below,
    /// The sign `>`: true for larger values.
    Above,
}

/// A condition on the running program, such as `parallelism<1.5 for 2s`.
#[derive(Clone, Debug, PartialEq)]
pub struct Condition {
    /// The value that is compared.
    pub measure: Measure,
    /// How the value is compared with the limit.
    pub comparison: Comparison,
    /// The limit with which the value is compared, in the measure's unit.
    pub limit: f64,
    /// How long the condition must hold without a break.
    pub lasting: Duration,
}

/// How long a condition must hold by default.
const USUALLY_LASTING: Duration = Duration::from_secs(1);

/// A hint with two valid conditions.
const HINT: &str = "give a condition such as @ 'parallelism<1.5 for 2s' or @ 'lock_wait>20% for 5s'";

impl Condition {
    /// Whether a value meets the condition.
    pub fn is_met(&self, value: f64) -> bool {
        match self.comparison {
            Comparison::Below => value < self.limit,
            Comparison::Above => value > self.limit,
        }
    }
}

impl FromStr for Condition {
    type Err = UserError;

    /// Reads `MEASURE<VALUE for TIME`; without a time, a second.
    ///
    /// # Errors
    /// A usage error with two valid conditions as a hint. `@` in it stands for the option's name.
    fn from_str(text: &str) -> Result<Condition, UserError> {
        let wrong = |why: &str| UserError::usage(format!("@ '{text}': {why}"), HINT);
        let Some((at, sign)) = text.char_indices().find(|(_, sign)| matches!(sign, '<' | '>')) else {
            return Err(wrong("there is no < or > in it"));
        };
        let comparison = if sign == '<' { Comparison::Below } else { Comparison::Above };
        let (name, rest) = (text[..at].trim(), &text[at + 1..]);
        let measure = match name {
            "parallelism" => Measure::Parallelism,
            "lock_wait" => Measure::LockWait,
            _ => return Err(wrong("only parallelism and lock_wait can be compared")),
        };
        let (value, lasting) = match rest.split_once(" for ") {
            Some((value, time)) => (value.trim(), time.trim()),
            None => (rest.trim(), ""),
        };
        let limit = match measure {
            Measure::Parallelism => {
                number(value).ok_or_else(|| wrong("parallelism is a number of threads"))?
            }
            Measure::LockWait => {
                let percent = value.strip_suffix('%').and_then(|digits| number(digits.trim_end()));
                percent.ok_or_else(|| wrong("lock_wait is a share in percent"))? / 100.0
            }
        };
        let never = match (comparison, measure) {
            (Comparison::Below, _) => limit <= 0.0,
            (Comparison::Above, Measure::LockWait) => limit >= 1.0,
            (Comparison::Above, Measure::Parallelism) => false,
        };
        if never {
            return Err(wrong("this is never true"));
        }
        let lasting = match lasting {
            "" if rest.contains(" for ") => None,
            "" => Some(USUALLY_LASTING),
            time => humantime::parse_duration(time).ok().filter(|time| !time.is_zero()),
        };
        let lasting = lasting.ok_or_else(|| wrong("`for` needs a time after it"))?;
        Ok(Condition { measure, comparison, limit, lasting })
    }
}

/// A finite number that is not negative.
fn number(text: &str) -> Option<f64> {
    text.parse::<f64>().ok().filter(|number| number.is_finite() && *number >= 0.0)
}

impl fmt::Display for Condition {
    /// Writes the condition as on the command line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Condition { measure, comparison, limit, lasting } = self;
        let sign = if *comparison == Comparison::Below { '<' } else { '>' };
        match measure {
            Measure::Parallelism => write!(f, "parallelism{sign}{limit}")?,
            // The share was given in percent: rounding removes what the division has added.
            Measure::LockWait => write!(f, "lock_wait{sign}{}%", (limit * 1e6).round() / 1e4)?,
        }
        write!(f, " for {}", humantime::format_duration(*lasting))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exit::Code;
    use proptest::prelude::*;

    fn parsed(text: &str) -> Condition {
        text.parse().expect(text)
    }

    #[test]
    fn conditions_are_parsed_and_printed_in_the_same_form() {
        let low = parsed("parallelism<1.5 for 2s");
        let expected = Condition {
            measure: Measure::Parallelism,
            comparison: Comparison::Below,
            limit: 1.5,
            lasting: Duration::from_secs(2),
        };
        assert_eq!(low, expected);
        assert!(low.is_met(1.49) && !low.is_met(1.5));
        let locks = parsed(" lock_wait > 20 % for 1m 30s");
        assert_eq!((locks.measure, locks.limit, locks.lasting.as_secs()), (Measure::LockWait, 0.2, 90));
        assert!(locks.is_met(0.21) && !locks.is_met(0.2));
        for text in ["parallelism<1.5 for 2s", "lock_wait>20% for 5s", "lock_wait<0.7% for 1m 30s"] {
            assert_eq!(parsed(text).to_string(), text);
        }
        assert_eq!(parsed("parallelism>3").to_string(), "parallelism>3 for 1s");
    }

    #[test]
    fn an_invalid_condition_is_a_usage_error_with_an_example() {
        for wrong in [
            "",
            "parallelism",
            "parallelism=3",
            "<3",
            "threads<3 for 1s",
            "parallelism<",
            "parallelism<=3",
            "parallelism<-1",
            "parallelism<nan",
            "parallelism<inf",
            "parallelism<0 for 1s",
            "parallelism<20%",
            "lock_wait>20",
            "lock_wait>100%",
            "lock_wait<0%",
            "lock_wait>20% for",
            "lock_wait>20% for 0s",
            "lock_wait>20% for ever",
            "lock_wait>20% for  ",
            "lock_wait>20%for 5s",
            "é<3",
        ] {
            let error = wrong.parse::<Condition>().expect_err(wrong);
            assert_eq!(error.code, Code::Usage, "{wrong}");
            assert!(error.hint.contains("'parallelism<1.5 for 2s'"), "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn any_condition_is_refused_or_read_back_as_printed(text in "\\PC{0,30}") {
            if let Ok(condition) = text.parse::<Condition>() {
                let again = parsed(&condition.to_string());
                prop_assert_eq!(again.lasting, condition.lasting);
            }
        }
    }
}
