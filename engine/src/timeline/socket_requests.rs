//! Requests over sockets, one by one.

use crate::event::{Facts, OpenRequest};
use crate::time::Timestamp;
use probe_abi::Answer;
use rustc_hash::FxHashMap;

/// A request over a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SocketRequest {
    /// The port on which the process listens; 0 for Unix sockets.
    pub port: u16,
    /// The socket's address family: `AF_INET`, `AF_INET6` or `AF_UNIX`.
    pub family: u16,
    /// The request came from another host of a joined recording, so it is part of a request there.
    pub inner: bool,
    /// Time at which the request lay in the socket.
    pub arrived: Timestamp,
    /// Time at which a thread read it; at least `arrived`.
    pub read: Timestamp,
    /// Index in [`super::Timeline::threads`] of the thread that read it.
    pub reader: u32,
    /// Index of the thread that began the answer, and when; `None`: the request was not answered.
    pub answered: Option<(u32, Timestamp)>,
}

/// Collects requests in order of their answers.
#[derive(Clone, Debug, Default)]
pub(super) struct SocketRequests {
    all: Vec<SocketRequest>,
}

impl SocketRequests {
    /// `thread` has answered a request that `reader` has read; `None`: its reader is not known.
    pub(super) fn answered(&mut self, answer: &Answer, reader: Option<u32>, thread: u32) {
        let end = answer.header.time_ns;
        // Another CPU's clock may be a little ahead.
        let read = answer.read_ns.min(end);
        self.all.push(SocketRequest {
            port: answer.port,
            family: answer.family & !Answer::INNER,
            inner: answer.family & Answer::INNER != 0,
            arrived: Timestamp(answer.arrived_ns.min(read)),
            read: Timestamp(read),
            reader: reader.unwrap_or(thread),
            answered: Some((thread, Timestamp(end))),
        });
    }

    /// All requests, with those that are open at the end of the recording, `end`. `live`: threads by their ids.
    pub(super) fn with_open(
        mut self,
        facts: &Facts,
        live: &FxHashMap<u32, u32>,
        end: Timestamp,
    ) -> Vec<SocketRequest> {
        let requests = facts.end.as_ref().and_then(|end| end.requests.as_ref());
        let open = requests.iter().flat_map(|requests| &requests.open);
        self.all.extend(open.filter(|request| request.arrived_ns < end.0).filter_map(|request| {
            let OpenRequest { reader, port, family, arrived_ns, read_ns } = *request;
            let read = read_ns.clamp(arrived_ns, end.0);
            Some(SocketRequest {
                port,
                family,
                inner: false,
                arrived: Timestamp(arrived_ns),
                read: Timestamp(read),
                reader: *live.get(&reader)?,
                answered: None,
            })
        }));
        self.all
    }
}
