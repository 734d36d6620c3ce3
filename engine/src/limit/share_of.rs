//! A function, or what threads did, with its share of a total.

use crate::json::number;
use crate::program::CauseKind;
use serde::Serialize;

/// A function and its share of a total, such as all computing under a lock.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FunctionShare {
    /// The function's name.
    pub function: String,
    /// The share, from 0 to 1.
    #[serde(rename = "function_share")]
    pub share: f64,
}

/// What threads did while requests waited for them.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Meanwhile {
    /// The kind.
    pub kind: CauseKind,
    /// The function, or the kind of wait with its function.
    pub name: String,
    /// Share of the wait, from 0 to 1.
    #[serde(serialize_with = "number")]
    pub share: f64,
}
