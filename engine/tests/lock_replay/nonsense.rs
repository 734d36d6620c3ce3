//! Operation records without any sense.

use engine::event::{Facts, Recording, WindowEnd};
use engine::program::json;
use engine::report::{Cpus, Detail, Finding, report};
use engine::timeline::build;
use engine::translation::from_timeline;
use probe_abi::{Call, Context, Fork, Header, Kind, Operation, Record, Switch, SyncOperation, Waking};
use proptest::prelude::*;

fn header(kind: Kind, time_ns: u64, tid: u32, cpu: u16) -> Header {
    let context = Context::Task as u8;
    Header { time_ns, sequence: 0, cpu, kind: kind as u8, context, tid, pid: 1 + tid / 4 }
}

/// Records of few threads, objects and instants, so that they conflict.
fn record() -> impl Strategy<Value = Record> {
    let operation = (
        (0u64..200, 0u64..60, 1u32..5, 0usize..SyncOperation::ALL.len(), 0u64..3, 0u64..3),
        (
            0u32..6,
            0u16..1024,
            prop_oneof![3 => Just(0), 1 => Just(110), 1 => Just(-1), 1 => Just(130)],
            any::<bool>(),
        ),
    )
        .prop_map(|((time, length, tid, kind, object, second), (sequence, flags, outcome, own))| {
            let cpu = if own { Header::NO_CPU } else { 0 };
            let header = Header { sequence, ..header(Kind::Operation, time, tid, cpu) };
            Record::Operation(Operation {
                header,
                began_ns: time.saturating_sub(length),
                object: object * 64,
                second: second * 64,
                caller: object,
                operation: SyncOperation::ALL[kind] as u16,
                flags,
                outcome,
            })
        });
    let futex = Call { number: 202, argument1: 128, argument0: 64 };
    let switch = (0u64..200, 0u32..5, 0u32..5, 0u32..2).prop_map(move |(time, tid, next_tid, prev_state)| {
        Record::Switch(Switch {
            header: header(Kind::Switch, time, tid, 0),
            next_tid,
            next_pid: 1 + next_tid / 4,
            prev_state,
            flags: 6,
            prev_user_sp: 0,
            prev_call: futex,
        })
    });
    let waking = (0u64..200, 1u32..5, 1u32..5).prop_map(move |(time, tid, wakee_tid)| {
        Record::Waking(Waking {
            header: header(Kind::Waking, time, tid, 0),
            wakee_tid,
            wakee_pid: 1 + wakee_tid / 4,
            flags: 1,
            wakee_state: 1,
            waker_call: 202,
            cause: 0,
            wakee_call: futex,
        })
    });
    let fork = (0u64..200, 1u32..5, 1u32..5).prop_map(|(time, tid, child_tid)| {
        Record::Fork(Fork {
            header: header(Kind::Fork, time, tid, 0),
            child_tid,
            child_pid: 1 + child_tid / 4,
            child_start_ns: 0,
            comm: [0; 16],
        })
    });
    prop_oneof![6 => operation, 3 => switch, 2 => waking, 1 => fork]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// The program that comes out can be simulated to its end, written and read again.
    #[test]
    fn arbitrary_operations_become_a_program_that_never_hangs(mut events in prop::collection::vec(record(), 0..80), sorted in any::<bool>()) {
        if sorted {
            events.sort_by_key(|event| event.header().time_ns);
        }
        let end = Some(WindowEnd { end_ns: 210, ..WindowEnd::default() });
        let recording = Recording { facts: Facts { end, ..Facts::default() }, events, ..Recording::default() };
        let program = from_timeline(&build(&recording));
        program.check().expect("a valid program");
        let answer = report(&program, &[Cpus::ONE, Cpus::Infinite], Detail::Segments);
        let bad = ["deadlock", "invalid_program", "created_twice", "released_twice", "unlock_not_held"];
        // Arbitrary operations may end in a recorded deadlock.
        let recorded = |finding: &&Finding| matches!(finding, Finding::Deadlock { others_ran: Some(_), .. });
        let found = answer.findings.iter().filter(|finding| !recorded(finding));
        let found: Vec<_> = found.filter(|finding| bad.contains(&finding.kind())).collect();
        prop_assert!(found.is_empty(), "{found:?}\n{program:#?}");
        let mut text = Vec::new();
        json::write(&program, &mut text).expect("written");
        let again = json::read(std::str::from_utf8(&text).expect("text")).expect("a program");
        prop_assert_eq!(report(&again, &[Cpus::ONE, Cpus::Infinite], Detail::Segments), answer);
    }
}
