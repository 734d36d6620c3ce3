//! Defines what determines the colour of a state or a stretch in the page.

use serde::Serialize;

/// A state of a thread.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize)]
pub struct StateColour {
    /// running, spinning, ready, blocked, unknown, or none before and after the thread's life.
    pub state: &'static str,
    /// The CPU, if the thread was on a known one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu: Option<u32>,
    /// What the thread waits for, or why its state is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<&'static str>,
    /// The object that the thread waits for, by its number among the names.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub object: Option<u32>,
    /// The object is a lock.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub lock: bool,
    /// The thread has nothing to do.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub idle: bool,
    /// What ended the wait.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_by: Option<&'static str>,
}

/// A stretch of a critical path.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize)]
pub struct PathColour {
    /// The thread, if a thread computes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thread: Option<u32>,
    /// The innermost function, if a function is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub function: Option<u32>,
    /// The wait or hand-over, if no thread computes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wait: Option<String>,
}
