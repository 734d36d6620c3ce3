//! What a rule is about.

use engine::report::Cpus;

/// One rule.
#[derive(Clone, Debug, PartialEq)]
pub struct Rule {
    /// What it is called in the outcome.
    pub name: String,
    /// What is measured.
    pub measure: Measure,
    /// On which CPU counts; empty for what has nothing to do with them.
    pub cpus: Vec<Cpus>,
    /// At least.
    pub min: Option<Limit>,
    /// At most.
    pub max: Option<Limit>,
}

/// A number of a report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Measure {
    /// Predicted time.
    Time,
    /// Predicted speed-up.
    Speedup,
    /// Share of the critical path in functions of this name or matching it, themselves.
    Own(String),
    /// The same with all that they call.
    Total(String),
    /// Calls on the critical path.
    Calls(String),
    /// Share of the critical path that is computed with locks of this name or matching it held.
    Held(String),
    /// Records lost.
    Lost,
    /// Waits whose end is not explained.
    Unmatched,
    /// Thread time about which nothing is known.
    Unknown,
    /// Findings of this kind, or of any.
    Findings(Option<String>),
}

/// What a number is counted in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Nanoseconds.
    Nanoseconds,
    /// Of the predicted time.
    Share,
    /// How many.
    Count,
    /// How many times as fast.
    Times,
}

/// A number that must not be passed, in the measure's unit.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Limit(pub f64);

impl Measure {
    /// What it is counted in.
    pub fn unit(&self) -> Unit {
        match self {
            Measure::Time | Measure::Unknown => Unit::Nanoseconds,
            Measure::Speedup => Unit::Times,
            Measure::Own(_) | Measure::Total(_) | Measure::Held(_) => Unit::Share,
            Measure::Calls(_) | Measure::Lost | Measure::Unmatched | Measure::Findings(_) => Unit::Count,
        }
    }

    /// Whether it differs from one CPU count to the other.
    pub fn depends_on_cpus(&self) -> bool {
        !matches!(self, Measure::Lost | Measure::Unmatched | Measure::Unknown | Measure::Findings(_))
    }

    /// In words: `self of parse`.
    pub fn text(&self) -> String {
        match self {
            Measure::Time => "time".to_owned(),
            Measure::Speedup => "speed-up".to_owned(),
            Measure::Own(name) => format!("self of {name}"),
            Measure::Total(name) => format!("total of {name}"),
            Measure::Calls(name) => format!("calls of {name}"),
            Measure::Held(name) => format!("{name} held"),
            Measure::Lost => "records lost".to_owned(),
            Measure::Unmatched => "unmatched waits".to_owned(),
            Measure::Unknown => "unknown time".to_owned(),
            Measure::Findings(Some(kind)) => format!("findings of kind {kind}"),
            Measure::Findings(None) => "findings".to_owned(),
        }
    }
}

impl Unit {
    /// A number of this unit for people.
    pub fn text(self, number: f64) -> String {
        match self {
            Unit::Nanoseconds => crate::cell::duration(number),
            Unit::Share => format!("{:.1} %", number * 100.0),
            Unit::Count => crate::cell::grouped(number as u64),
            Unit::Times => format!("{number:.2}×"),
        }
    }
}
