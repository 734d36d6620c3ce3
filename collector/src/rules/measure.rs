//! The numbers that rules are about.

use engine::report::Cpus;

/// A rule for `check`: a number with its limits.
#[derive(Clone, Debug, PartialEq)]
pub struct Rule {
    /// The rule's name in the outcome.
    pub name: String,
    /// The number that is checked.
    pub measure: Measure,
    /// CPU counts; empty if the number does not depend on them.
    pub cpus: Vec<Cpus>,
    /// Least allowed value.
    pub min: Option<Limit>,
    /// Largest value allowed.
    pub max: Option<Limit>,
}

/// A number of a report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Measure {
    /// Predicted time.
    Time,
    /// Predicted speed-up.
    Speedup,
    /// Share of the critical path in functions with this name (or matching it as a pattern), without the functions that
    /// they call.
    Own(String),
    /// Share of the critical path in functions with this name (or matching it as a pattern), including the functions
    /// that they call.
    Total(String),
    /// Calls on the critical path.
    Calls(String),
    /// Share of the critical path that is computed while locks with this name (or matching it as a pattern) are held.
    Held(String),
    /// Requests answered per second, at the endpoint with most of them.
    Requests,
    /// This percentile of the time until a request's answer, 50 or 99, at the endpoint with most requests.
    Latency(u8),
    /// Records lost.
    Lost,
    /// Waits without a recorded wake-up.
    Unmatched,
    /// Thread time for which nothing is known.
    Unknown,
    /// Number of findings of this kind, or of all kinds.
    Findings(Option<String>),
}

/// The unit of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Nanoseconds.
    Nanoseconds,
    /// Share of the predicted time.
    Share,
    /// A count.
    Count,
    /// A factor, as for a speed-up.
    Times,
}

/// A limit, in the measure's unit.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Limit(pub f64);

impl Measure {
    /// The measure's unit.
    pub fn unit(&self) -> Unit {
        match self {
            Measure::Time | Measure::Unknown | Measure::Latency(_) => Unit::Nanoseconds,
            Measure::Speedup => Unit::Times,
            Measure::Own(_) | Measure::Total(_) | Measure::Held(_) => Unit::Share,
            Measure::Calls(_)
            | Measure::Requests
            | Measure::Lost
            | Measure::Unmatched
            | Measure::Findings(_) => Unit::Count,
        }
    }

    /// Whether the number depends on the CPU count.
    pub fn depends_on_cpus(&self) -> bool {
        let is_recorded =
            matches!(self, Measure::Lost | Measure::Unmatched | Measure::Unknown | Measure::Findings(_));
        !is_recorded && !matches!(self, Measure::Requests | Measure::Latency(_))
    }

    /// The measure in words: `self of parse`.
    pub fn text(&self) -> String {
        match self {
            Measure::Time => "time".to_owned(),
            Measure::Speedup => "speed-up".to_owned(),
            Measure::Own(name) => format!("self of {name}"),
            Measure::Total(name) => format!("total of {name}"),
            Measure::Calls(name) => format!("calls of {name}"),
            Measure::Held(name) => format!("{name} held"),
            Measure::Requests => "requests a second".to_owned(),
            Measure::Latency(percent) => format!("time of {percent} % of requests"),
            Measure::Lost => "records lost".to_owned(),
            Measure::Unmatched => "unmatched waits".to_owned(),
            Measure::Unknown => "unknown time".to_owned(),
            Measure::Findings(Some(kind)) => format!("findings of kind {kind}"),
            Measure::Findings(None) => "findings".to_owned(),
        }
    }
}

impl Unit {
    /// A number of this unit as text, for people.
    pub fn text(self, number: f64) -> String {
        match self {
            Unit::Nanoseconds => crate::cell::duration(number),
            Unit::Share => format!("{:.1} %", number * 100.0),
            Unit::Count => crate::cell::grouped(number as u64),
            Unit::Times => format!("{number:.2}×"),
        }
    }
}
