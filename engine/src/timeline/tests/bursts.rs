//! Operations that were recorded as sums, and the finding if there are too many.

use super::{PID, recording, tid};
use crate::finding::Finding;
use crate::timeline::{LockOperation, Timeline, build, build_with};
use probe_abi::{Burst, Header, Kind, Record, SyncOperation};

/// A thread takes a mutex `count` times, until this instant.
fn burst(who: &str, until_ns: u64, object: u64, count: u16) -> Record {
    let header = Header {
        time_ns: until_ns,
        sequence: 0,
        cpu: 0,
        kind: Kind::Burst as u8,
        context: 0,
        tid: tid(who),
        pid: PID,
    };
    Record::Burst(Burst {
        header,
        object,
        caller: 0x400,
        span_ns: 10,
        held_ns: 5,
        held_least_ns: 0,
        apart_least_ns: 0,
        release: 8,
        count,
        flags: 0,
    })
}

fn said(timeline: &Timeline) -> Vec<&Finding> {
    let joined = |finding: &&Finding| matches!(finding, Finding::OperationsJoined { .. });
    timeline.findings.iter().filter(joined).collect()
}

/// If one pair stands for several acquisitions, a finding must say so.
#[test]
fn joined_acquisitions_of_a_shared_lock_are_a_finding() {
    let mut recording = recording("A runs\nB runs");
    let (shared, own) = (0x10, 0x20);
    recording.events =
        vec![burst("A", 20, shared, 70), burst("B", 40, shared, 30), burst("A", 50, own, 1_000)];
    let taken = |timeline: &Timeline, object: u64| -> (usize, u32) {
        let object = timeline.locks.iter().position(|lock| lock.address == object).expect("recorded") as u32;
        let uses = timeline.lock_operations.iter().filter(|used| used.object == object);
        let uses: Vec<&LockOperation> =
            uses.filter(|used| used.operation == SyncOperation::MutexLock).collect();
        (uses.len(), uses.iter().map(|used| used.times).sum())
    };
    let whole = build(&recording);
    assert_eq!((taken(&whole, shared), taken(&whole, own)), ((100, 100), (1, 1_000)));
    assert!(said(&whole).is_empty(), "that of one thread is in nobody's way");
    assert!(said(&build_with(&recording, 100)).is_empty());
    let joined = build_with(&recording, 10);
    assert_eq!((taken(&joined, shared), taken(&joined, own)), ((10, 100), (1, 1_000)));
    assert_eq!(said(&joined), [&Finding::OperationsJoined { acquisitions: 100, pairs: 10 }]);
}
