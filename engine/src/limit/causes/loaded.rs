//! Whether the rate of a server's requests is set by the server's own speed and not by its clients: then its
//! connections have a request open most of the time. Where each request has a connection of its own, requests lie unread most
//! of their time. (These criteria are longpole's own.)

use crate::program::{Endpoint, Recorded};

/// Fewer requests than this show nothing.
const REQUESTS: u64 = 10;
/// If connections have an open request for at least this share of their time, the server's speed sets the rate, not its
/// clients.
const LOADED: f64 = 0.5;
/// Requests on connections of their own show it if they lie unread for at least this share of their time.
const QUEUED: f64 = 0.5;
/// Requests with a longer mean mostly wait for news (long polling), or are no requests, nanoseconds.
const NEWS_NS: f64 = 1e9;

/// The requests of a server whose clients wait for it most of the time. Of several ports it is the one with most open
/// requests.
pub(in crate::limit) fn loaded(recorded: &Recorded) -> Option<&Endpoint> {
    let served = recorded.traffic.iter().filter(|end| end.served && end.count >= REQUESTS);
    let is_loaded = |end: &&Endpoint| match end.load {
        Some(load) => load >= LOADED && end.mean_ns <= NEWS_NS,
        None => end.queued >= QUEUED,
    };
    served.filter(|end| is_loaded(end) && end.open >= 1.0).max_by(|a, b| a.open.total_cmp(&b.open))
}
