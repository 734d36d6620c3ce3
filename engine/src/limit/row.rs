//! Rows of the ledger ([`super::ledger`]).

use super::LimitKind;
use serde::Serialize;

/// How the gain of removing a cause is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
#[serde(rename_all = "snake_case")]
pub enum Evidence {
    /// The program was simulated without the cause.
    Simulated,
    /// The recording shows the gain.
    Measured,
    /// A change would gain at most this amount, if the change is possible.
    Bounded,
    /// The share is the cause's part of the critical path; without this cause alone, other waits take as long.
    OnPath,
    /// It is unknown what threads waited for, or their waits are replayed as recorded.
    Unknown,
}

impl Evidence {
    /// The evidence's name in JSON.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// A cause, and the gain of removing it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LedgerRow {
    /// The cause.
    #[serde(flatten)]
    pub kind: LimitKind,
    /// The smallest and the largest share of the predicted time that is saved without the cause.
    pub least: f64,
    /// See `least`.
    pub most: f64,
    /// How the gain is known.
    pub evidence: Evidence,
}
