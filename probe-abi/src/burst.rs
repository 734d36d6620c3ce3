//! A record for a mutex, or for a read-write lock that is taken for reading, which one thread takes and releases many
//! times.

use crate::{Header, Operation, OperationFlags, SyncOperation};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// A thread has taken and released a mutex several times in a row, at the same two places of the program. In that time
/// the thread did not wait and did no other operation. No other thread held the mutex in between, or waited for it at a
/// release. Only the library that longpole loads before libc writes this record ([`crate::interpose`]).
///
/// The object may also be a read-write lock that was taken for reading ([`OperationFlags::READS`]). Then no writer had
/// the lock in between, but other readers may have had it.
///
/// Each acquisition and each release counts as an instant, because no thread waits in it. The record has the sum and
/// the minimum of the hold times. The times between a release and the next acquisition follow from the other fields
/// ([`Burst::apart_ns`]).
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct Burst {
    /// `tid` and `pid` are the caller's; `time_ns` is the time of the last release.
    pub header: Header,
    /// Address of the mutex in the caller's memory.
    pub object: u64,
    /// Return address of the calls that acquired the object.
    pub caller: u64,
    /// Time from the first acquisition to the last release, in nanoseconds.
    pub span_ns: u32,
    /// Sum of the times for which the object was held, in nanoseconds.
    pub held_ns: u32,
    /// Shortest time for which the object was held, in nanoseconds.
    pub held_least_ns: u32,
    /// Shortest time from a release to the next acquisition, in nanoseconds; 0 if there was only one acquisition.
    pub apart_least_ns: u32,
    /// Return address of the calls that released the object, minus `caller`.
    pub release: i32,
    /// Number of acquisitions. 0 is invalid.
    pub count: u16,
    /// [`OperationFlags`] bits about the kind of mutex, or [`OperationFlags::READS`].
    pub flags: u16,
}

const _: () = assert!(size_of::<Burst>() == 64);

/// If a thread holds a mutex for at least this time (nanoseconds), the acquisition is not part of a burst. Recording
/// such a long hold separately costs little. Sleeping takes longer than this time, so no thread sleeps while it holds
/// the mutex of a burst.
pub const MOST_HELD_NS: u64 = 1 << 14;

/// An acquisition that comes at least this time after the preceding release (nanoseconds) begins another burst.
pub const MOST_APART_NS: u64 = 1 << 15;

/// An acquisition that comes at least this time after a burst's first one (nanoseconds) begins another burst, because
/// the rate of acquisitions may change with time.
pub const MOST_SPAN_NS: u64 = 1 << 23;

impl Burst {
    /// The operation by which a burst with these flags acquires its object.
    pub const fn taking(flags: u16) -> SyncOperation {
        if flags & OperationFlags::READS != 0 { SyncOperation::RwLockRead } else { SyncOperation::MutexLock }
    }

    /// The operation by which a burst with these flags releases its object.
    pub const fn giving(flags: u16) -> SyncOperation {
        if flags & OperationFlags::READS != 0 {
            SyncOperation::RwLockUnlock
        } else {
            SyncOperation::MutexUnlock
        }
    }

    /// Time of the first acquisition.
    pub fn began_ns(&self) -> u64 {
        self.header.time_ns.saturating_sub(u64::from(self.span_ns))
    }

    /// Sum of the times from a release to the next acquisition, in nanoseconds.
    pub fn apart_ns(&self) -> u64 {
        u64::from(self.span_ns.saturating_sub(self.held_ns))
    }

    /// Number of operations in the burst: one acquisition and one release for each count.
    pub fn operations(&self) -> u64 {
        2 * u64::from(self.count)
    }

    /// Return address of the calls that released the object.
    pub fn released_at(&self) -> u64 {
        self.caller.wrapping_add_signed(i64::from(self.release))
    }

    /// The burst as single operations that are spread evenly over its time. All of them have the burst's number.
    pub fn each_operation(self) -> impl Iterator<Item = Operation> {
        let count = u64::from(self.count);
        let held_ns = u64::from(self.held_ns.min(self.span_ns));
        let apart_ns = u64::from(self.span_ns) - held_ns;
        let (taking, giving) = (Burst::taking(self.flags), Burst::giving(self.flags));
        let flags = self.flags & !(OperationFlags::CONTENDED | OperationFlags::READS);
        (0..2 * count).map(move |number| {
            let (pair, is_release) = (number / 2, number % 2 == 1);
            let held = held_ns * (pair + u64::from(is_release)) / count;
            let at_ns = self.began_ns() + held + (apart_ns * pair).checked_div(count - 1).unwrap_or(0);
            Operation {
                header: Header { time_ns: at_ns, kind: crate::Kind::Operation as u8, ..self.header },
                began_ns: at_ns,
                object: self.object,
                second: 0,
                caller: if is_release { self.released_at() } else { self.caller },
                operation: if is_release { giving } else { taking } as u16,
                flags: if is_release { 0 } else { flags },
                outcome: 0,
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Context, Kind};

    fn burst(count: u16, span_ns: u32, held_ns: u32) -> Burst {
        let header = Header {
            time_ns: 1_000_000,
            sequence: 7,
            cpu: Header::NO_CPU,
            kind: Kind::Burst as u8,
            context: Context::Task as u8,
            tid: 2,
            pid: 1,
        };
        Burst {
            header,
            object: 0x1000,
            caller: 0x5000,
            span_ns,
            held_ns,
            held_least_ns: 1,
            apart_least_ns: 1,
            release: -0x10,
            count,
            flags: OperationFlags::KIND_KNOWN,
        }
    }

    #[test]
    fn operations_of_a_burst_of_reads_are_reads() {
        let burst = Burst { flags: OperationFlags::READS, ..burst(2, 100, 30) };
        let (read, unlock) = (SyncOperation::RwLockRead as u16, SyncOperation::RwLockUnlock as u16);
        assert_eq!(burst.each_operation().count(), 4);
        for (operation, expected) in burst.each_operation().zip([read, unlock, read, unlock]) {
            assert_eq!((operation.operation, operation.flags), (expected, 0));
        }
    }

    #[test]
    fn operations_of_a_burst_add_up_to_its_span_and_held_time() {
        for (count, span_ns, held_ns) in [(1, 10, 10), (2, 100, 31), (1_000, 999_999, 77_777), (3, 7, 9)] {
            let burst = burst(count, span_ns, held_ns);
            let (mut number, mut held, mut before_ns) = (0, 0, burst.began_ns());
            for operation in burst.each_operation() {
                let at_ns = operation.header.time_ns;
                assert!(at_ns >= before_ns && operation.began_ns == at_ns);
                assert!(number > 0 || at_ns == burst.began_ns());
                if operation.operation == SyncOperation::MutexUnlock as u16 {
                    held += at_ns - before_ns;
                    assert_eq!(operation.caller, 0x4ff0);
                }
                (number, before_ns) = (number + 1, at_ns);
            }
            assert_eq!((number, before_ns), (burst.operations(), 1_000_000));
            assert_eq!(held, u64::from(held_ns.min(span_ns)));
        }
        assert_eq!(burst(0, 5, 5).each_operation().count(), 0);
    }
}
