//! Requests that arrive at sockets: each begins when it lies in the socket and ends when its answer begins. That is a guess
//! about what a request is: several that were sent together count as one, and the rest of a long answer is not part of it.

use super::calls::{Calls, Request};
use crate::event::UNIX;
use crate::timeline::{SocketRequest, Timeline};

/// Which sockets are meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sockets {
    /// All on which the program answers; of a joined recording without requests from one of its hosts to another.
    All,
    /// Connections to this port.
    Port(u16),
    /// Unix sockets.
    Unix,
}

impl Sockets {
    fn contain(self, request: &SocketRequest) -> bool {
        match self {
            Sockets::All => !request.inner,
            Sockets::Port(port) => request.family != UNIX && request.port == port,
            Sockets::Unix => request.family == UNIX,
        }
    }
}

/// The requests that arrived at these sockets.
pub fn at_sockets(timeline: &Timeline, sockets: Sockets) -> Calls {
    let wanted = timeline.socket_requests.iter().filter(|request| sockets.contain(request));
    let requests = wanted.map(|request| Request {
        begin_thread: request.reader,
        begin: request.arrived.max(timeline.start),
        taken: request.read.max(timeline.start),
        end_thread: request.answered.map_or(request.reader, |(thread, _)| thread),
        end: request.answered.map(|(_, time)| time),
        began_before: request.arrived < timeline.start,
        ..Request::default()
    });
    let partly = timeline.requests.as_ref().is_some_and(|requests| requests.pauses > 0 || requests.lost > 0);
    Calls { requests: requests.collect(), partly, ..Calls::default() }
}
