//! What is joined: recordings of hosts.

use crate::event::Recording;

/// A host's recording.
#[derive(Clone, Debug, Default)]
pub struct OfHost {
    /// Name of the host.
    pub name: String,
    /// Number of its CPUs; at least 1.
    pub cpus: u32,
    /// What was recorded on it.
    pub recording: Recording,
}
