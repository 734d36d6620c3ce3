//! Whether a server's own speed sets the rate of its requests, and not who sends them (ours): its connections have a request open
//! most of the time.

use crate::program::{Endpoint, Recorded};

/// Fewer requests say nothing.
const REQUESTS: u64 = 10;
/// The part of their time that connections have a request open, from which on their own pace sets the rate no longer.
const LOADED: f64 = 0.5;
/// Requests that take longer mostly wait for news (long polling), or are no requests.
const NEWS_NS: f64 = 250e6;

/// The requests of a server whose clients wait for it most of the time; of several ports those of which most are open.
pub(super) fn loaded(recorded: &Recorded) -> Option<&Endpoint> {
    let served = recorded.traffic.iter().filter(|end| end.served && end.count >= REQUESTS);
    let is_loaded = |end: &&Endpoint| end.load.is_some_and(|load| load >= LOADED) && end.mean_ns <= NEWS_NS;
    served.filter(|end| is_loaded(end) && end.open >= 1.0).max_by(|a, b| a.open.total_cmp(&b.open))
}
