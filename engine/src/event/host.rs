//! The hosts of a recording that was joined from recordings of several hosts.

use serde::{Deserialize, Serialize};

/// Distance between the numbers of two hosts' processes and threads. Linux gives numbers below 4,194,304.
pub const IDS_OF_A_HOST: u32 = 10_000_000;

/// The largest number of hosts in one recording.
pub const MOST_HOSTS: usize = 256;

/// A host of a joined recording. The ids of its processes and threads begin at the host's place in [`super::Facts::hosts`] times
/// [`IDS_OF_A_HOST`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct HostFact {
    /// Its name, unique in the recording.
    pub name: String,
    /// Number of the host's first CPU in the recording.
    pub first_cpu: u32,
    /// Number of its CPUs.
    pub cpus: u32,
    /// How far its clock was ahead of the first host's clock in the middle of the recording, nanoseconds; already taken out.
    pub clock_ahead_ns: i64,
    /// The largest error of that, nanoseconds: half the time that messages were under way.
    pub clock_error_ns: u64,
    /// Messages from and to this host that were found at both ends.
    pub messages: u64,
}

/// The host that a thread or process belongs to, and its number there.
pub fn host_of(hosts: &[HostFact], id: u32) -> Option<(&HostFact, u32)> {
    Some((hosts.get((id / IDS_OF_A_HOST) as usize)?, id % IDS_OF_A_HOST))
}
