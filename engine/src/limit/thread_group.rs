//! Threads that do the same.

/// Threads share the work if none computes more than this many times as long as they do on average.
pub(super) const EVEN: f64 = 1.5;

/// Threads that compute mostly the same function.
#[derive(Clone, Debug)]
pub(super) struct Group {
    pub(super) threads: Vec<usize>,
    /// Some of them wait for, or wake, other threads on their way.
    pub(super) meets: bool,
}
