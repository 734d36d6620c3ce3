//! Names of the files and other ends of sockets that threads wait for.

use crate::event::{AwaitedFact, RequestSums};
use crate::program::traffic;

/// The name of a file with its folder; of a socket's other end `clients of port 80`, or as in
/// [`Endpoint::name`](crate::program::Endpoint).
pub(crate) fn awaited_name(fact: &AwaitedFact) -> String {
    let AwaitedFact { served, family, port, address, .. } = *fact;
    if !fact.file.is_empty() {
        return fact.file.clone();
    }
    let end = traffic::name(&RequestSums { served, family, port, address, ..RequestSums::default() });
    if served { format!("clients of {end}") } else { end }
}

/// A wait with what it is for: `file sync of pg_wal/000000010000`, `socket receive from port 80`.
pub fn wait_of(wait: &str, of: &str) -> String {
    let joined = match wait {
        "socket receive" => "from",
        "socket send" => "to",
        _ => "of",
    };
    format!("{wait} {joined} {of}")
}
