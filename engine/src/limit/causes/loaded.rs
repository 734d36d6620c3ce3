//! The requests of a server whose clients wait for it most of the time.

use crate::program::{Endpoint, Recorded};

/// The requests of a server that sets their rate ([`Endpoint::is_loaded`]). Of several ports it is the one with most open
/// requests.
pub(in crate::limit) fn loaded(recorded: &Recorded) -> Option<&Endpoint> {
    let loaded = recorded.traffic.iter().filter(|end| end.is_loaded());
    loaded.max_by(|a, b| a.open.total_cmp(&b.open))
}
