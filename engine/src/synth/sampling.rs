//! A generated recording as it would have been with probes on some of its functions and a sampling clock on every CPU.

use super::expected::{Doing, MODULE, Truth};
use crate::event::{
    CodeFact, FunctionId, MappingFact, Note, NoteKind, Recording, SampleCounts, SamplingFact,
};
use probe_abi::{Header, Kind, Record, Sample, SampleReason};
use rustc_hash::FxHashMap;

/// Where the generated binary lies.
const BASE: u64 = 0x40_0000;
/// A function is where its `FunctionFact::offset` says, and this far into it is all of its code.
const INSIDE: u64 = 4;

/// The recording without the calls of functions that are not `probed`, and with samples of all threads at `rate_hz`: at
/// the same instants on all CPUs, the first one at `phase_ns` into the recording. `truth` is what the threads did.
pub fn sampled_recording(
    mut recording: Recording,
    truth: &[Truth],
    probed: impl Fn(FunctionId) -> bool,
    rate_hz: u32,
    phase_ns: u64,
) -> Recording {
    let pid = recording.facts.processes.first().map_or(0, |process| process.pid);
    let period_ns = (1_000_000_000 / u64::from(rate_hz.max(1))).max(1);
    let offsets: FxHashMap<FunctionId, u64> =
        recording.facts.functions.iter().map(|function| (function.id, function.offset)).collect();
    let mut stacks: FxHashMap<u32, Vec<FunctionId>> = FxHashMap::default();
    let mut numbers: FxHashMap<Vec<u64>, u32> = FxHashMap::default();
    let mut tick = recording.facts.start_ns.saturating_add(phase_ns);
    let mut events = Vec::with_capacity(recording.events.len());
    let mut notes = Vec::new();
    let mut taken = 0;
    for record in std::mem::take(&mut recording.events) {
        let header = *record.header();
        while tick <= header.time_ns {
            for life in truth.iter().filter(|life| is_running(life, tick)) {
                let stack = stacks.get(&life.tid).map_or(&[][..], Vec::as_slice);
                let frames: Vec<u64> = stack
                    .iter()
                    .rev()
                    .enumerate()
                    .map(|(index, function)| {
                        let offset = offsets.get(function).copied().unwrap_or(0);
                        // The address that a call returns to is one byte after it.
                        BASE + offset + INSIDE + u64::from(index > 0)
                    })
                    .collect();
                let next = numbers.len() as u32 + 1;
                let number = *numbers.entry(frames.clone()).or_insert_with(|| {
                    let kind = NoteKind::Stack { id: next, pid, frames, cut: false };
                    notes.push(Note { time_ns: tick, kind });
                    next
                });
                taken += 1;
                events.push(Record::Sample(Sample {
                    header: Header { time_ns: tick, kind: Kind::Sample as u8, tid: life.tid, pid, ..header },
                    stack: number,
                    reason: SampleReason::Tick as u8,
                    flags: 0,
                    reserved: 0,
                }));
            }
            tick = tick.saturating_add(period_ns);
        }
        let keep = match &record {
            Record::FunctionEnter(enter) => {
                stacks.entry(header.tid).or_default().push(enter.function);
                probed(enter.function)
            }
            Record::FunctionExit(exit) => {
                stacks.entry(header.tid).or_default().pop();
                probed(exit.function)
            }
            _ => true,
        };
        if keep {
            events.push(record);
        }
    }
    let facts = &mut recording.facts;
    facts.mappings = vec![MappingFact {
        pid,
        start: BASE,
        end: BASE + (1 << 20),
        path: format!("/{MODULE}"),
        ..MappingFact::default()
    }];
    facts.code = facts
        .functions
        .iter()
        .map(|function| CodeFact {
            path: format!("/{MODULE}"),
            offset: function.offset + INSIDE,
            function: Some(function.name.clone()),
            entry: Some(function.offset),
            line: Some(format!("synthetic.c:{}", function.id)),
            ..CodeFact::default()
        })
        .collect();
    facts.functions.retain(|function| probed(function.id));
    facts.sampling = Some(SamplingFact { rate_hz, ..SamplingFact::default() });
    if let Some(end) = &mut facts.end {
        end.samples = Some(SampleCounts { taken, ..SampleCounts::default() });
    }
    recording.events = events;
    recording.notes.extend(notes);
    recording.notes.sort_by_key(|note| note.time_ns);
    recording
}

fn is_running(life: &Truth, time_ns: u64) -> bool {
    let by_then = life.changes.partition_point(|(from, _)| *from <= time_ns);
    by_then
        .checked_sub(1)
        .and_then(|last| life.changes.get(last))
        .is_some_and(|(_, doing)| *doing == Doing::Running)
}
