//! Recordings with a known answer: a program is executed on P processors, and gives the records that the kernel would have
//! written, together with the answer that every later stage must find.

use super::execution::Execution;
use super::expected::{Doing, MODULE, Truth};
use super::machine::{GRAIN_NS, GenerateError, Machine};
use crate::event::{
    Facts, FunctionFact, Merger, Note, ProcessFact, Recording, ThreadFact, ThreadState, WindowEnd,
};
use crate::program::Program;
use probe_abi::Record;

/// A generated recording, and the program that must be made from it.
#[derive(Clone, Debug)]
pub struct Generated {
    /// Facts at the start and at the end.
    pub facts: Facts,
    /// Records of each ring, in the order in which the kernel wrote them.
    pub rings: Vec<Vec<Record>>,
    /// The program that [`crate::translation::from_timeline`] must make from the recording, apart from edge names,
    /// trust and findings.
    pub expected: Program,
    /// The threads' true states, in order of birth.
    pub truth: Vec<Truth>,
    /// First number of every CPU's sequence; `None`: the records do not start there.
    pub first_sequence: Option<u32>,
}

/// Executes and records a program. Lengths are rounded up to 64 ns. A semaphore count or an edge that is there before a
/// thread waits leaves no trace, as in real recordings: the expected program has an edge only where a thread slept.
///
/// # Errors
/// A program that fails [`Program::check`]; else the first operation that the generator does not execute.
pub fn generate(program: &Program, execution: &Execution) -> Result<Generated, GenerateError> {
    program.check()?;
    let mut machine = Machine::new(program, execution);
    let start_ns = machine.start_ns();
    machine.run()?;
    let lives = machine.expected_run.lives.clone();
    let last = lives.iter().filter_map(|life| life.changes.last()).map(|change| change.0).max();
    let end_ns = last.unwrap_or(start_ns).max(start_ns) + 2 * GRAIN_NS;
    let functions = (0u32..).zip(&program.functions).map(|(id, function)| FunctionFact {
        id,
        name: function.name.clone(),
        module: MODULE.to_owned(),
        offset: 0x1000 + 16 * u64::from(id),
        location: function.location.clone(),
        exits_probed: true,
        entry_stepped: false,
        exits_stepped: false,
    });
    let mut generated = Generated {
        facts: Facts {
            start_ns,
            processes: vec![ProcessFact { pid: execution.pid, ..ProcessFact::default() }],
            functions: functions.collect(),
            ..Facts::default()
        },
        rings: machine.emitter.rings.clone(),
        expected: machine.expected_run.program(),
        truth: lives,
        first_sequence: Some(execution.first_sequence),
    };
    if execution.noise {
        generated.rings.iter_mut().for_each(|ring| swap_neighbours(ring, execution.seed));
    }
    generated.facts.threads = generated.listed_at(start_ns);
    let threads = generated.listed_at(end_ns);
    generated.facts.end = Some(WindowEnd { end_ns, threads, ..WindowEnd::default() });
    Ok(generated)
}

impl Generated {
    /// The recording after decoding and merging.
    pub fn recording(&self) -> Recording {
        let mut merger = Merger::new(self.rings.len()).numbered_from(self.first_sequence);
        for (ring, records) in self.rings.iter().enumerate() {
            for record in records {
                if let Ok(record) = Record::decode(record.as_bytes()) {
                    merger.push(ring, record);
                }
            }
        }
        let events = merger.finish();
        let notes: Vec<Note> = merger.take_notes();
        Recording { facts: self.facts.clone(), events, notes }
    }

    /// The threads that /proc lists at this time.
    fn listed_at(&self, time_ns: u64) -> Vec<ThreadFact> {
        let pid = self.facts.processes.first().map_or(0, |process| process.pid);
        let facts = self.truth.iter().filter_map(|life| {
            let state = match doing_before(life, time_ns)? {
                Doing::Running | Doing::Runnable => ThreadState::Running,
                Doing::Blocked => ThreadState::Sleeping,
                Doing::Ended => return None,
            };
            Some(ThreadFact {
                tid: life.tid,
                pid,
                comm: life.name.clone(),
                state,
                seen_ns: time_ns,
                cpu_time_ns: Some(cpu_time_before(life, time_ns)),
                ..ThreadFact::default()
            })
        });
        facts.collect()
    }

    /// The recording without the lost records.
    #[must_use]
    pub fn lossy(mut self, mut is_lost: impl FnMut(&Record) -> bool) -> Generated {
        self.rings.iter_mut().for_each(|ring| ring.retain(|record| !is_lost(record)));
        self
    }

    /// The recording as if longpole had attached at this time: facts from /proc, and no earlier records.
    #[must_use]
    pub fn attached_at(mut self, time_ns: u64) -> Generated {
        self.rings.iter_mut().for_each(|ring| ring.retain(|record| record.header().time_ns >= time_ns));
        self.facts.threads = self.listed_at(time_ns);
        self.facts.start_ns = time_ns;
        self.first_sequence = None;
        self
    }
}

/// A thread's state just before this time; `None` if it was not born.
fn doing_before(life: &Truth, time_ns: u64) -> Option<Doing> {
    let there_at_start = life.changes.first().filter(|(born, _)| life.initial && *born == time_ns);
    let before = life.changes.iter().take_while(|(from, _)| *from < time_ns).last();
    before.or(there_at_start).map(|(_, doing)| *doing)
}

fn cpu_time_before(life: &Truth, time_ns: u64) -> u64 {
    let ends = life.changes.iter().skip(1).map(|(from, _)| *from).chain(std::iter::once(u64::MAX));
    let stretches = life.changes.iter().zip(ends);
    stretches
        .filter(|((_, doing), _)| *doing == Doing::Running)
        .map(|((from, _), until)| until.min(time_ns).saturating_sub(*from))
        .sum()
}

/// Swaps neighbouring records of one CPU, as an interrupt may do.
fn swap_neighbours(ring: &mut [Record], seed: u64) {
    let mut at = (seed % 3) as usize;
    while at + 1 < ring.len() {
        let close = ring[at + 1].header().time_ns.abs_diff(ring[at].header().time_ns) < 1_000_000;
        if close {
            ring.swap(at, at + 1);
        }
        at += 2 + (seed as usize).wrapping_add(at) % 3;
    }
}
