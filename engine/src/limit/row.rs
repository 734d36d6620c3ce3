//! Rows of the ledger ([`super::ledger`]).

use super::Kind;

/// How it is known what goes without a cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum Evidence {
    /// The program was simulated without it.
    Simulated,
    /// The recording shows it.
    Measured,
    /// A change would gain so much at most, if it is possible.
    Bounded,
    /// It is so much of the critical path, though without it alone other waits take as long.
    OnPath,
    /// Nobody knows what threads waited for, or when it is over is replayed as recorded.
    Unknown,
}

impl Evidence {
    /// Its name in JSON.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// A cause.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// What it is.
    pub kind: Kind,
    /// The smallest and the largest share of the predicted time that goes without it.
    pub least: f64,
    /// See `least`.
    pub most: f64,
    /// How that is known.
    pub evidence: Evidence,
}
