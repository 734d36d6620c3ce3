//! Tests of samples and their stacks.

use super::{PID, recording, tid};
use crate::event::{LeftOut, Note, NoteKind};
use crate::finding::Finding;
use crate::timeline::build;
use probe_abi::{Header, Kind, Record, Sample};

/// If a stack arrives after its sample, only the stack shows that it is cut off.
#[test]
fn a_sample_is_cut_off_if_itself_or_its_stack_is() {
    let mut recording = recording("A runs");
    for (id, cut) in [(1, false), (2, true)] {
        let kind = NoteKind::Stack { id, pid: PID, frames: vec![0x10, 0x20], cut };
        recording.notes.push(Note { time_ns: 1, kind });
    }
    for (time_ns, stack, flags) in [(10, 1, 0), (20, 1, 1), (30, 2, 0), (40, 3, 0), (50, 3, 1)] {
        let header = Header {
            time_ns,
            sequence: 0,
            cpu: 0,
            kind: Kind::Sample as u8,
            context: 0,
            tid: tid("A"),
            pid: PID,
        };
        recording.events.push(Record::Sample(Sample { header, stack, reason: 0, flags, reserved: 0 }));
    }
    let timeline = build(&recording);
    let cut: Vec<bool> = timeline.threads[0].samples.iter().map(|seen| seen.truncated).collect();
    assert_eq!(cut, [false, true, true, false, true]);
}

#[test]
fn stacks_that_a_file_had_no_room_for_are_a_finding() {
    let mut recording = recording("A runs");
    assert!(build(&recording).findings.is_empty());
    let end = recording.facts.end.as_mut().expect("an end");
    end.left_out = LeftOut { stacks: 2, ..LeftOut::default() };
    let findings = build(&recording).findings;
    assert_eq!(findings, [Finding::FileFull { left_out: LeftOut { stacks: 2, ..LeftOut::default() } }]);
}
