//! Requests that were recorded at both ends of their TCP connection.

use super::of_host::OfHost;
use probe_abi::{Answer, Exchange, Header, Record};
use rustc_hash::{FxHashMap, FxHashSet};

/// One end of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct End {
    /// Index of the host.
    pub(super) host: usize,
    /// What was recorded there, on that host's clock.
    pub(super) exchange: Exchange,
}

/// A request with both ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Both {
    pub(super) asks: End,
    pub(super) answers: End,
}

/// The requests between two of the hosts, in order of their records in the asking hosts. The error is the index of a host
/// without records of requests.
///
/// Two ends belong together if TCP's numbers of the request's last byte and of the answer's first byte agree. Both are random
/// at the start of a connection, so two different requests have the same ones once in 2^64; numbers that occur twice are
/// dropped.
pub(super) fn of_both_ends(hosts: &[OfHost]) -> Result<Vec<Both>, usize> {
    let mut ends: FxHashMap<(u32, u32), [Found; 2]> = FxHashMap::default();
    let mut order = Vec::new();
    for (host, of_host) in hosts.iter().enumerate() {
        let mut has_any = false;
        for record in &of_host.recording.events {
            let Record::Exchange(exchange) = record else { continue };
            has_any = true;
            let key = (exchange.request_end, exchange.answer_begin);
            let found = &mut ends.entry(key).or_default()[usize::from(exchange.served != 0)];
            *found = match found {
                Found::None => Found::One(End { host, exchange: *exchange }),
                Found::One(_) | Found::Several => Found::Several,
            };
            if exchange.served == 0 {
                order.push(key);
            }
        }
        if !has_any {
            return Err(host);
        }
    }
    let both = order.iter().filter_map(|key| match ends.get(key)? {
        [Found::One(asks), Found::One(answers)] if asks.host != answers.host => {
            Some(Both { asks: *asks, answers: *answers })
        }
        _ => None,
    });
    Ok(both.collect())
}

/// Marks the requests that come from another host of the recording: each is a part of a request there.
pub(super) fn mark_inner(hosts: &mut [OfHost], both: &[Both]) {
    let key = |header: &Header| (header.tid, header.time_ns);
    for (host, of_host) in hosts.iter_mut().enumerate() {
        let answers = both.iter().map(|both| both.answers).filter(|answers| answers.host == host);
        let inner: FxHashSet<(u32, u64)> = answers.map(|end| key(&end.exchange.header)).collect();
        for record in &mut of_host.recording.events {
            if let Record::Answer(answer) = record
                && inner.contains(&key(&answer.header))
            {
                answer.family |= Answer::INNER;
            }
        }
    }
}

#[derive(Clone, Copy, Debug, Default)]
enum Found {
    #[default]
    None,
    One(End),
    Several,
}
