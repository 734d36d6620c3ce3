//! Records without any sense.

use super::checks::{assert_no_deadlock, assert_tiles};
use engine::event::{Facts, GapReason, Note, NoteKind, Recording, ThreadFact, ThreadState, WindowEnd};
use engine::timeline::{Window, build};
use engine::translation::from_timeline;
use probe_abi::{Kind, Record};
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// Records without any sense make no analysis panic.
    #[test]
    fn a_recording_of_arbitrary_records_is_analysed_without_a_panic(recording in nonsense(), parts in prop::collection::vec(0u64..120, 0..3)) {
        let timeline = build(&recording);
        assert_tiles(&timeline);
        assert_no_deadlock(&from_timeline(&timeline));
        let mut window = Window::new(recording.facts.clone());
        recording.events.iter().for_each(|event| window.push(*event));
        recording.notes.iter().for_each(|note| window.push_note(note.clone()));
        for part in parts {
            window.advance(part);
            let end = WindowEnd { end_ns: 120, ..WindowEnd::default() };
            let timeline = build(&window.ending(end));
            assert_tiles(&timeline);
            assert_no_deadlock(&from_timeline(&timeline));
        }
    }
}

/// Records of few threads and CPUs with times close together, so that they conflict.
pub(super) fn nonsense() -> impl Strategy<Value = Recording> {
    let small = |bound: u64| (0..bound).prop_map(|n| n as u8);
    let bytes = (
        0u64..100,
        0u32..9,
        0u16..3,
        0usize..Kind::ALL.len(),
        0u8..7,
        0u32..4,
        1u32..3,
        prop::collection::vec(small(5), 32),
    )
        .prop_map(|(time, sequence, cpu, kind, context, tid, pid, body)| {
            let mut bytes = vec![0u8; 64];
            bytes[..8].copy_from_slice(&time.to_le_bytes());
            bytes[8..12].copy_from_slice(&sequence.to_le_bytes());
            bytes[12..14].copy_from_slice(&cpu.to_le_bytes());
            bytes[14] = Kind::ALL[kind] as u8;
            bytes[15] = context;
            bytes[16..20].copy_from_slice(&tid.to_le_bytes());
            bytes[20..24].copy_from_slice(&pid.to_le_bytes());
            // Small numbers in every 32-bit field; a dead state now and then.
            for (field, value) in body.iter().enumerate().take(8) {
                bytes[24 + 4 * field] = *value;
            }
            if Kind::ALL[kind] == Kind::Switch && body[0] == 3 {
                bytes[32] = 0x80;
            }
            Record::decode(&bytes).expect("a whole record")
        });
    let fact = (1u32..4, 1u32..3, 0u64..120, 0u8..4, prop::option::of(0u64..100)).prop_map(
        |(tid, pid, seen_ns, state, cpu_time_ns)| ThreadFact {
            tid,
            pid,
            seen_ns,
            cpu_time_ns,
            state: [ThreadState::Running, ThreadState::Sleeping, ThreadState::Stopped, ThreadState::Unknown]
                [usize::from(state)],
            ..ThreadFact::default()
        },
    );
    let gap = (0u64..120, 0u64..130, prop::option::of(0u16..3), 0u32..3).prop_map(
        |(time_ns, until_ns, cpu, pid)| {
            let kind = NoteKind::Gap { pid, cpu, until_ns, lost: 1, reason: GapReason::RingFull };
            Note { time_ns, kind }
        },
    );
    (
        prop::collection::vec(bytes, 0..60),
        prop::collection::vec(fact.clone(), 0..4),
        prop::collection::vec(fact, 0..4),
        prop::collection::vec(gap, 0..3),
        (0u64..40, any::<bool>(), any::<bool>()),
    )
        .prop_map(|(mut events, threads, at_end, notes, (start_ns, sorted, ended))| {
            if sorted {
                events.sort_by_key(|event| event.header().time_ns);
            }
            let end = ended.then_some(WindowEnd { end_ns: 110, threads: at_end, ..WindowEnd::default() });
            Recording { facts: Facts { start_ns, threads, end, ..Facts::default() }, events, notes }
        })
}
