//! Threads that do the same.

/// Threads share the work evenly if none computes more than this multiple of their mean.
pub(in crate::limit) const EVEN: f64 = 1.5;

/// Threads that compute mostly the same function.
#[derive(Clone, Debug)]
pub(in crate::limit) struct Group {
    pub(in crate::limit) threads: Vec<usize>,
    /// Whether some of the threads wait for other threads, or wake them, during their work.
    pub(in crate::limit) meets: bool,
}
