//! Which file, or which other end of a socket, threads slept for.

use serde::{Deserialize, Serialize};

/// A file, or the other end of a socket, for which threads slept in a system call with a descriptor.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct AwaitedFact {
    /// The number in records ([`probe_abi::SwitchFlags::AWAITED`]).
    pub number: u32,
    /// File or device: the names of its folder and its own when a thread first slept for it, as in `pg_wal/000000010000`;
    /// the folder may be cut to 31 bytes, the name to 63. Empty for sockets.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub file: String,
    /// The socket's address family, `AF_INET` (2), `AF_INET6` (10) or `AF_UNIX` (1); 0 for files.
    pub family: u16,
    /// The process listens on the port; otherwise the port is the peer's.
    pub served: bool,
    /// The port; 0 for Unix sockets and files.
    pub port: u16,
    /// The peer's IPv4 address; zeros for other families, and if the process listens.
    pub address: [u8; 4],
}
