//! Sentences about requests over sockets.

use crate::cell::{duration, grouped};
use crate::present::words::cause::words;
use crate::present::words::short::short;
use engine::program::{CauseKind, Endpoint, TimePart};

const FEWEST: u64 = Endpoint::FEWEST;
/// The sentence omits unread time below this part of the requests' time.
const QUEUED: f64 = 0.1;
/// The sentence omits new connections below this part of the requests, or with fewer requests: a recording sees each connection
/// for the first time once.
const FIRST: f64 = 0.3;
const ENOUGH: u64 = 100;
/// Least number of open requests at other servers for which the first screen has a line about them.
const ASKED: f64 = 0.05;
/// Smaller parts of a request's time are not shown, nor more than `MOST` parts.
const LISTED: f64 = 0.05;
const MOST: usize = 4;

/// Labels and sentences for the largest endpoint that the program serves, for its requests' time, and for the largest one that it asks.
pub(crate) fn lines(ends: &[Endpoint]) -> Vec<(&'static str, String)> {
    let largest = |served: bool| {
        ends.iter().find(|end| end.served == served && end.count >= FEWEST && (served || end.open >= ASKED))
    };
    let more =
        |served: bool| match ends.iter().filter(|end| end.served == served && end.count >= FEWEST).count() {
            0 | 1 => String::new(),
            count => format!(" (and {} more)", count - 1),
        };
    let served = largest(true).map(|end| ("SERVES", format!("{}{}", sentence(end), more(true))));
    let spent = largest(true).and_then(|end| Some(("SPENDS", spent(&end.spent)?)));
    let asked = largest(false).map(|end| ("ASKS", format!("{}{}", sentence(end), more(false))));
    served.into_iter().chain(spent).chain(asked).collect()
}

/// One sentence about an endpoint.
pub(crate) fn sentence(end: &Endpoint) -> String {
    let queued = if end.queued >= QUEUED {
        format!("; {:.0} % of that unread in the socket", end.queued * 100.0)
    } else {
        String::new()
    };
    let first = if end.first >= FIRST && end.count >= ENOUGH && !end.in_stretches {
        format!("; {:.0} % on new connections", end.first * 100.0)
    } else {
        String::new()
    };
    let seen = if end.in_stretches { " (of those up to 1 s)" } else { "" };
    format!(
        "{} requests/s, {}: {:.1} open at a time, {} each, 99 % within {}{seen}{queued}{first}",
        rate(end.per_second),
        end.name,
        end.open,
        duration(end.mean_ns),
        duration(end.p99_ns as f64)
    )
}

/// The cause of a part of a request's time, in a few words; for a function only that it computes.
pub(crate) fn cause(part: &TimePart) -> String {
    match part.kind {
        CauseKind::Computing => "computing".to_owned(),
        kind => words(kind, &part.name),
    }
}

/// What a request spends its time on, in one sentence; `None`: not known.
fn spent(parts: &[TimePart]) -> Option<String> {
    let is_computing = |part: &&TimePart| part.kind == CauseKind::Computing;
    let computing = parts.iter().filter(is_computing);
    let share: f64 = computing.clone().map(|part| part.share).sum();
    let most = computing.max_by(|a, b| a.share.total_cmp(&b.share));
    let computing = most.map(|most| (share, format!("computing, most in {}", short(&most.name))));
    let others = parts.iter().filter(|part| !is_computing(part));
    let others = others.map(|part| (part.share, cause(part)));
    let mut all: Vec<(f64, String)> = others.chain(computing).filter(|(share, _)| *share >= LISTED).collect();
    all.sort_by(|a, b| b.0.total_cmp(&a.0));
    let all: Vec<String> =
        all.iter().take(MOST).map(|(share, words)| format!("{:.0} % {words}", share * 100.0)).collect();
    (!all.is_empty()).then(|| format!("a request's time: {}", all.join(", ")))
}

/// A rate per second: with one decimal below 10, otherwise rounded.
pub(crate) fn rate(per_second: f64) -> String {
    match per_second {
        rate if rate < 10.0 => format!("{rate:.1}"),
        rate => grouped(rate.round() as u64),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_serves_has_the_busiest_port_and_counts_the_others() {
        let end = |served, name: &str, count, open| Endpoint {
            served,
            name: name.to_owned(),
            count,
            per_second: count as f64 / 4.0,
            open,
            mean_ns: 390_000.0,
            p99_ns: 560_000,
            queued: 0.94,
            ..Endpoint::default()
        };
        let ends = [
            end(true, "port 80", 9_000, 15.9),
            end(true, "port 443", 90, 0.1),
            end(false, "10.0.0.7:5432", 20, 0.01),
        ];
        let first = Endpoint { first: 0.9, ..ends[1].clone() };
        assert!(!sentence(&first).contains("new connections"), "too few");
        assert!(sentence(&Endpoint { count: 900, ..first }).ends_with("; 90 % on new connections"));
        let lines = super::lines(&ends);
        let expected = "2,250 requests/s, port 80: 15.9 open at a time, 390 µs each, 99 % within 560 µs; 94 % of that unread in the socket (and 1 more)";
        assert_eq!(lines, [("SERVES", expected.to_owned())]);
    }
}
