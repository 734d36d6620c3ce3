//! Requests over stream sockets. The kernel programs count all requests as sums in a map. Requests that recorded
//! processes answer are also records.

use crate::Header;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// The header's thread has begun the answer to a request.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct Answer {
    /// `tid` and `pid` are those of the thread that answers.
    pub header: Header,
    /// Time at which the request arrived in the socket (`CLOCK_MONOTONIC` nanoseconds); `read_ns` if that time is not
    /// known.
    pub arrived_ns: u64,
    /// Time at which the request or its first part was read (`CLOCK_MONOTONIC` nanoseconds).
    pub read_ns: u64,
    /// The thread that read the request at `read_ns`.
    pub reader: u32,
    /// The port on which the process listens, in host byte order; 0 for Unix sockets.
    pub port: u16,
    /// The socket's address family: `AF_INET`, `AF_INET6` or `AF_UNIX`, possibly with the bit [`Answer::INNER`].
    pub family: u16,
}

impl Answer {
    /// A bit of [`Answer::family`]: a host of the same recording has sent the request. Written only when recordings of
    /// several hosts are joined.
    pub const INNER: u16 = 1 << 15;
}

/// A request and the beginning of its answer on a TCP connection, as one end saw them. The recordings of both ends have
/// the same [`Exchange::request_end`] and [`Exchange::answer_begin`], even if addresses are translated between the
/// ends.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct Exchange {
    /// `tid` and `pid` are those of the thread that began the answer, or on the asking end of the thread that read the
    /// answer.
    pub header: Header,
    /// Time at which this end sent its message (`CLOCK_MONOTONIC` nanoseconds). The message is the answer, or on the
    /// asking end the request.
    pub sent_ns: u64,
    /// Time at which the other end's message arrived in the socket (`CLOCK_MONOTONIC` nanoseconds).
    pub arrived_ns: u64,
    /// Time at which a thread read the other end's message or its first part (`CLOCK_MONOTONIC` nanoseconds).
    pub read_ns: u64,
    /// The thread that read the request, or on the asking end the thread that sent the request.
    pub other: u32,
    /// TCP sequence number of the byte after the request.
    pub request_end: u32,
    /// TCP sequence number of the answer's first byte.
    pub answer_begin: u32,
    /// The port on which the answering process listens, in host byte order.
    pub port: u16,
    /// 1: this end answers. 0: this end asks.
    pub served: u16,
}

/// The key of a sum. Requests are added up for each process, direction, and port or peer.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct RequestKey {
    /// Process id. For served requests, the id of the process that answered.
    pub pid: u32,
    /// The peer's IPv4 address as in memory. 0 for other families and for served requests.
    pub address: u32,
    /// For served requests, the port on which the process listens. For sent requests, the peer's port. In host byte
    /// order; 0 for Unix sockets.
    pub port: u16,
    /// The socket's address family: `AF_INET`, `AF_INET6` or `AF_UNIX`.
    pub family: u16,
    /// 1: the process answers these requests; 0: it sends them.
    pub served: u32,
}

/// Sums of requests for one [`RequestKey`] on one CPU.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct RequestCounts {
    /// Number of requests whose answer has begun.
    pub count: u64,
    /// Sum of the times for which requests lay in the socket before a thread read them, in nanoseconds. 0 for requests
    /// that the process sends.
    pub queued_ns: u64,
    /// Sum of the times from the reading or sending of a request until its answer began, in nanoseconds.
    pub answered_ns: u64,
    /// Sum of the times from an answer until the next request on the same socket, in nanoseconds.
    pub between_ns: u64,
    /// Number of requests that came after an answer on the same socket.
    pub again: u64,
    /// Sum of the times that the requests counted in `again` took, in nanoseconds.
    pub again_ns: u64,
    /// The longest time of a request, in nanoseconds: in the socket and until the answer began, together.
    pub longest_ns: u64,
    /// Number of requests whose time is in each bucket (see [`request_bucket`]).
    pub buckets: [u64; REQUEST_BUCKETS],
}

/// A socket in use, and its last message. The map keeps the entry at [`OpenSocket::place`]. Another socket with the
/// same place replaces the entry.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct OpenSocket {
    /// The number that the kernel has given the socket. The kernel never uses a number again.
    pub socket: u64,
    /// On a socket that asks: a message came in before the programs noticed a request. There was no request, or they
    /// noticed it too late.
    pub unasked: u64,
    /// Number of the stretch of time in which requests are counted.
    pub stretch: u64,
    /// The key of the sum to which this socket's requests are added.
    pub key: RequestKey,
    /// Time at which the request that is not read or not answered yet arrived (`CLOCK_MONOTONIC` nanoseconds); 0: not
    /// known.
    pub arrived_ns: u64,
    /// Time at which the request that is not answered yet was read or sent (`CLOCK_MONOTONIC` nanoseconds); 0: there is
    /// no such request.
    pub began_ns: u64,
    /// Time at which the last request was answered (`CLOCK_MONOTONIC` nanoseconds); 0: not known.
    pub ended_ns: u64,
    /// The thread that read or sent the request at `began_ns`.
    pub reader: u64,
    /// On a socket that asks: the time at which the answer arrived in the socket (`CLOCK_MONOTONIC` nanoseconds); 0:
    /// not known.
    pub answered_ns: u64,
}

/// Number of entries for sockets in use.
pub const OPEN_SOCKETS: u32 = 1 << 16;

impl OpenSocket {
    /// The entry of a socket in the map, computed from its number (multiplicative hashing, Knuth 6.4).
    pub const fn place(socket: u64) -> u32 {
        (socket.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 48) as u32
    }
}

/// Largest number of different [`RequestKey`]s that are counted.
pub const MAX_REQUEST_KEYS: u32 = 1 << 10;

/// Largest number of ports on which recorded processes listen.
pub const MAX_LISTENING: u32 = 1 << 10;

/// Number of buckets in [`RequestCounts`]. Each doubling of the time has four buckets, from 1 us to an hour.
pub const REQUEST_BUCKETS: usize = 128;

/// Logarithm of the shortest time that has a bucket of its own, which is 2^10 ns.
const FIRST_BUCKET_BITS: u32 = 10;

/// The bucket of a time in nanoseconds.
pub const fn request_bucket(ns: u64) -> usize {
    // The position of the highest bit that is set. BPF has no instruction for this, so a loop computes it.
    let mut bits = 0u32;
    let mut rest = ns;
    let mut step = 32u32;
    while step > 0 {
        if rest >> step != 0 {
            rest >>= step;
            bits += step;
        }
        step /= 2;
    }
    if bits < FIRST_BUCKET_BITS {
        return 0;
    }
    let quarter = (ns >> (bits - 2)) & 3;
    let bucket = ((bits - FIRST_BUCKET_BITS) * 4) as usize + quarter as usize;
    if bucket < REQUEST_BUCKETS { bucket } else { REQUEST_BUCKETS - 1 }
}

/// The shortest time of a bucket, in nanoseconds. For the number after the last bucket, the end of the last bucket.
pub const fn bucket_begins_ns(bucket: usize) -> u64 {
    if bucket == 0 {
        return 0;
    }
    let quarters = 4 + (bucket % 4) as u64;
    quarters << (FIRST_BUCKET_BITS as usize + bucket / 4 - 2)
}

const _: () = assert!(size_of::<Answer>() == 48);
const _: () = assert!(size_of::<Exchange>() == 64);
const _: () = assert!(size_of::<RequestKey>() == 16);
const _: () = assert!(size_of::<OpenSocket>() == 80 && OPEN_SOCKETS == 1 << 16);
const _: () = assert!(size_of::<RequestCounts>() == 56 + 8 * REQUEST_BUCKETS);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_s_length_lies_in_its_bucket() {
        for ns in [0, 1, 900, 1023, 1024, 1279, 1280, 5000, 123_456, 99_999_999, 1 << 40, (1 << 42) - 1] {
            let bucket = request_bucket(ns);
            assert!(bucket_begins_ns(bucket) <= ns && ns < bucket_begins_ns(bucket + 1), "{ns} in {bucket}");
        }
        assert_eq!([request_bucket(u64::MAX), request_bucket(1 << 42)], [REQUEST_BUCKETS - 1; 2]);
    }
}
