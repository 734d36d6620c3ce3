//! Makes a generated recording look as if it was made with probes on some of its functions and a sampling clock on
//! every CPU.

use super::expected::{Doing, MODULE, Truth};
use crate::event::{
    CodeFact, FunctionId, MappingFact, Note, NoteKind, Recording, SampleCounts, SamplingFact,
};
use probe_abi::{Header, Kind, Record, Sample, SampleReason};
use rustc_hash::FxHashMap;

/// Address of the generated binary.
const BASE: u64 = 0x40_0000;
/// Offset of all sampled addresses in a function, whose own offset is `FunctionFact::offset`.
const INSIDE: u64 = 4;

/// The recording without calls of functions that are not `probed`, and with samples of all threads at `rate_hz`. They are at
/// the same instants on all CPUs, the first one `phase_ns` after the start. `truth` has the threads' states.
pub fn sampled_recording(
    mut recording: Recording,
    truth: &[Truth],
    probed: impl Fn(FunctionId) -> bool,
    rate_hz: u32,
    phase_ns: u64,
) -> Recording {
    let pid = recording.facts.processes.first().map_or(0, |process| process.pid);
    let period_ns = (1_000_000_000 / u64::from(rate_hz.max(1))).max(1);
    let mut sampler = Sampler::new(&recording, pid);
    let mut tick = recording.facts.start_ns.saturating_add(phase_ns);
    let mut events = Vec::with_capacity(recording.events.len());
    let mut taken = 0;
    for record in std::mem::take(&mut recording.events) {
        let header = *record.header();
        while tick <= header.time_ns {
            for life in truth.iter().filter(|life| is_running(life, tick)) {
                taken += 1;
                events.push(sampler.sample(tick, life.tid, header));
            }
            tick = tick.saturating_add(period_ns);
        }
        sampler.follow(&record);
        let keep = match &record {
            Record::FunctionEnter(enter) => probed(enter.function),
            Record::FunctionExit(exit) => probed(exit.function),
            _ => true,
        };
        if keep {
            events.push(record);
        }
    }
    add_facts(&mut recording, pid, probed, rate_hz, taken);
    recording.events = events;
    recording.notes.extend(sampler.notes);
    recording.notes.sort_by_key(|note| note.time_ns);
    recording
}

/// The call stacks of all threads, and the notes that give each sampled stack a number.
struct Sampler {
    pid: u32,
    offsets: FxHashMap<FunctionId, u64>,
    stacks: FxHashMap<u32, Vec<FunctionId>>,
    numbers: FxHashMap<Vec<u64>, u32>,
    notes: Vec<Note>,
}

impl Sampler {
    fn new(recording: &Recording, pid: u32) -> Sampler {
        let functions = recording.facts.functions.iter();
        Sampler {
            pid,
            offsets: functions.map(|function| (function.id, function.offset)).collect(),
            stacks: FxHashMap::default(),
            numbers: FxHashMap::default(),
            notes: Vec::new(),
        }
    }

    /// A sample of the thread's stack at this time; adds a note for a new stack.
    fn sample(&mut self, time_ns: u64, tid: u32, header: Header) -> Record {
        let stack = self.stacks.get(&tid).map_or(&[][..], Vec::as_slice);
        let frame = |(index, function): (usize, &FunctionId)| {
            let offset = self.offsets.get(function).copied().unwrap_or(0);
            // In a caller's frame, the return address follows the call by one byte.
            BASE + offset + INSIDE + u64::from(index > 0)
        };
        let frames: Vec<u64> = stack.iter().rev().enumerate().map(frame).collect();
        let (pid, next) = (self.pid, self.numbers.len() as u32 + 1);
        let number = *self.numbers.entry(frames.clone()).or_insert_with(|| {
            let kind = NoteKind::Stack { id: next, pid, frames, cut: false };
            self.notes.push(Note { time_ns, kind });
            next
        });
        Record::Sample(Sample {
            header: Header { time_ns, kind: Kind::Sample as u8, tid, pid, ..header },
            stack: number,
            reason: SampleReason::Tick as u8,
            flags: 0,
            reserved: 0,
        })
    }

    /// Updates the stacks by a record of a call or return.
    fn follow(&mut self, record: &Record) {
        let stack = self.stacks.entry(record.header().tid).or_default();
        match record {
            Record::FunctionEnter(enter) => stack.push(enter.function),
            Record::FunctionExit(_) => drop(stack.pop()),
            _ => {}
        }
    }
}

/// Adds a sampled recording's facts about the binary and the sampling.
fn add_facts(
    recording: &mut Recording,
    pid: u32,
    probed: impl Fn(FunctionId) -> bool,
    rate_hz: u32,
    taken: u64,
) {
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
}

fn is_running(life: &Truth, time_ns: u64) -> bool {
    let by_then = life.changes.partition_point(|(from, _)| *from <= time_ns);
    by_then
        .checked_sub(1)
        .and_then(|last| life.changes.get(last))
        .is_some_and(|(_, doing)| *doing == Doing::Running)
}
