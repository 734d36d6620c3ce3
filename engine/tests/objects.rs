//! Names of synchronization objects.

use engine::event::{AddressFact, Facts, Recording, WindowEnd};
use engine::timeline::build;
use engine::translation::from_timeline;
use probe_abi::{Context, Header, Kind, Operation, Record, SyncOperation};

const PID: u32 = 7;

/// An operation of thread 1 that takes no time.
fn operation(operation: SyncOperation, object: u64, time_ns: u64, caller: u64) -> Record {
    let header = Header {
        time_ns,
        sequence: 0,
        cpu: Header::NO_CPU,
        kind: Kind::Operation as u8,
        context: Context::Task as u8,
        tid: 1,
        pid: PID,
    };
    Record::Operation(Operation {
        header,
        began_ns: time_ns,
        object,
        second: 0,
        caller,
        operation: operation as u16,
        flags: 0,
        outcome: 0,
    })
}

fn fact(address: u64, since_ns: u64, name: Option<&str>, location: Option<&str>) -> AddressFact {
    let (name, location) = (name.map(str::to_owned), location.map(str::to_owned));
    AddressFact { pid: PID, address, since_ns, name, location, ..AddressFact::default() }
}

fn objects(operations: Vec<Record>, addresses: Vec<AddressFact>) -> Vec<String> {
    let mut events = operations;
    for (number, event) in (0..).zip(&mut events) {
        if let Record::Operation(operation) = event {
            operation.header.sequence = number;
        }
    }
    let facts = Facts {
        addresses,
        end: Some(WindowEnd { end_ns: 1000, ..WindowEnd::default() }),
        ..Facts::default()
    };
    from_timeline(&build(&Recording { facts, events, ..Recording::default() })).objects
}

fn pair(object: u64, time_ns: u64, caller: u64) -> [Record; 2] {
    [
        operation(SyncOperation::MutexLock, object, time_ns, caller),
        operation(SyncOperation::MutexUnlock, object, time_ns + 5, 0x9999),
    ]
}

/// A lock's name comes from facts of the program that the process ran then: its variable, else the line of its first use,
/// else its address.
#[test]
fn locks_are_called_by_their_variable_first_use_or_address() {
    let mut operations = vec![operation(SyncOperation::MutexInit, 0x300, 12, 0x1000)];
    let uses =
        [(0x100, 0x2000), (0x200, 0x2000), (0x300, 0x2000), (0x400, 0x1000), (0x500, 0x3000), (0x600, 0)];
    for (number, (object, caller)) in (2..).zip(uses) {
        operations.extend(pair(object, 10 * number, caller));
    }
    let facts = vec![
        fact(0x100, 1_000, Some("of_a_later_program"), None),
        fact(0x100, 0, Some("queue_lock"), None),
        fact(0x1000, 0, Some("setup"), Some("/home/me/src/hash.c:12")),
        fact(0x2000, 0, Some("work"), Some("/home/me/src/hash.c:41")),
        fact(0x3000, 0, Some("without_lines"), None),
        fact(0, 0, Some("nothing lies at 0"), Some("no.c:1")),
    ];
    assert_eq!(
        objects(operations, facts)[..6],
        [
            "mutex queue_lock",
            "mutex at hash.c:41",
            "mutex at hash.c:12 #1",
            "mutex at hash.c:12 #2",
            "mutex first used in without_lines",
            "mutex 0x600"
        ]
    );
}

/// Java programmers know objects by Java's names, not by the JVM's C++ functions.
#[test]
fn objects_of_the_jvm_have_names_that_java_has() {
    let operations: Vec<_> =
        [0x100, 0x200, 0x300].into_iter().zip(2..).flat_map(|(it, at)| pair(it, 10 * at, 16 * it)).collect();
    let facts = vec![
        fact(0x1000, 0, Some("os::PlatformEvent::PlatformEvent()"), Some("os_posix.cpp:1622")),
        fact(0x2000, 0, Some("os::PlatformParker::PlatformParker()"), None),
        fact(0x3000, 0, Some("os::PlatformMonitor::PlatformMonitor()"), None),
    ];
    let names = objects(operations, facts);
    assert_eq!(names[..3], ["mutex of a Java monitor", "mutex in LockSupport.park", "mutex of the JVM"]);
}

/// Two variables have one name (in two files), and one variable held two objects, one after the other.
#[test]
fn names_of_objects_are_unique_whatever_the_facts_are() {
    let mut operations = Vec::new();
    operations.extend(pair(0x100, 20, 0));
    operations.extend(pair(0x200, 30, 0));
    operations.push(operation(SyncOperation::MutexDestroy, 0x100, 40, 0));
    operations.extend(pair(0x100, 50, 0));
    operations.extend(pair(0x300, 60, 0));
    let facts = vec![
        fact(0x100, 0, Some("lock"), None),
        fact(0x200, 0, Some("lock"), None),
        fact(0x300, 0, Some("lock #2"), None),
    ];
    let names = objects(operations, facts);
    assert_eq!(names[..4], ["mutex lock", "mutex lock #2", "mutex lock #3", "mutex lock #2#2"]);
}
