//! What distinguishes states, and stretches, of the page.

use serde::Serialize;

/// A state of a thread.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize)]
pub struct StateColour {
    /// running, spinning, ready, blocked, unknown, or none before and after its life.
    pub state: &'static str,
    /// The CPU, if it was on one that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu: Option<u32>,
    /// What it waits for, or why nothing is known of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<&'static str>,
    /// The object that it waits for, by its number among the names.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub object: Option<u32>,
    /// That object is a lock.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub lock: bool,
    /// It has nothing to do.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub idle: bool,
    /// What ended it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_by: Option<&'static str>,
}

/// A stretch of a critical path.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize)]
pub struct PathColour {
    /// Threads that compute.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thread: Option<u32>,
    /// The innermost function, if one is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub function: Option<u32>,
    /// What passes instead.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wait: Option<String>,
}
