//! A recording as a source: plays a session file or a generated recording through the live pipeline.

use super::source::Late;
use super::source::{Drained, EventSource, Probed};
use engine::event::{Facts, GapReason, LossCounts, Note, NoteKind, Recording};
use probe_abi::{Header, Record};
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// Plays a recording, ring by ring.
#[derive(Debug)]
pub struct Replay {
    rings: Vec<Ring>,
    notes: Vec<Note>,
    next_note: usize,
    loss: LossCounts,
    first_number: Option<u32>,
    pace: Pace,
    started: Option<Instant>,
    first_ns: u64,
    end_ns: u64,
}

#[derive(Debug)]
struct Ring {
    records: Vec<Record>,
    next: usize,
}

/// How fast a recording is played.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pace {
    /// This number of records of each ring in each turn, regardless of the records' times.
    Batches(usize),
    /// Each record at its own time: 1.0 is as fast as recorded, 2.0 twice as fast.
    Times(f64),
}

impl Replay {
    /// Plays a recording, with a ring for each CPU and for each thread that wrote records itself.
    pub fn new(recording: Recording, pace: Pace) -> Replay {
        let mut rings = Vec::<Vec<Record>>::new();
        let mut numbers = HashMap::new();
        for event in recording.events {
            let header = event.header();
            let writer = (header.cpu, if header.cpu == Header::NO_CPU { header.tid } else { 0 });
            let number = *numbers.entry(writer).or_insert_with(|| {
                rings.push(Vec::new());
                rings.len() - 1
            });
            rings[number].push(event);
        }
        Replay::of(&recording.facts, rings, recording.notes, pace)
    }

    /// Plays the rings of a generated recording.
    #[cfg(test)]
    pub fn generated(generated: &engine::synth::Generated, pace: Pace) -> Replay {
        let first_number = generated.first_sequence;
        Replay { first_number, ..Replay::of(&generated.facts, generated.rings.clone(), Vec::new(), pace) }
    }

    fn of(facts: &Facts, rings: Vec<Vec<Record>>, mut notes: Vec<Note>, pace: Pace) -> Replay {
        let mut cpus = HashMap::<u16, (u64, u64)>::new();
        for header in rings.iter().flatten().map(Record::header) {
            let (first, last) = cpus.entry(header.cpu).or_insert((header.time_ns, header.time_ns));
            (*first, *last) = (header.time_ns.min(*first), header.time_ns.max(*last));
        }
        // Gaps between records are found again by holes in the numbers. Gaps before a CPU's first record or after its last one
        // are not, so their notes stay.
        notes.retain(|note| match note.kind {
            NoteKind::Gap { reason: GapReason::RingFull, cpu: Some(cpu), until_ns, .. } => {
                !cpus.get(&cpu).is_some_and(|(first, last)| *first <= note.time_ns && until_ns <= *last)
            }
            NoteKind::Gap { reason: GapReason::OperationsLost, .. } => false,
            _ => true,
        });
        let times = || rings.iter().flatten().map(|record| record.header().time_ns);
        let first_ns = times().min().unwrap_or(facts.start_ns);
        let last_ns = times().max().unwrap_or(facts.start_ns);
        Replay {
            notes,
            next_note: 0,
            loss: facts.end.as_ref().map(|end| end.loss).unwrap_or_default(),
            first_number: None,
            pace,
            started: None,
            first_ns,
            end_ns: facts.end.as_ref().map_or(last_ns, |end| end.end_ns.max(last_ns)),
            rings: rings.into_iter().map(|records| Ring { records, next: 0 }).collect(),
        }
    }

    /// The present time of the recording, if it is played at its own pace.
    fn clock_ns(&mut self) -> Option<u64> {
        let Pace::Times(speed) = self.pace else { return None };
        let passed_ns = self.started.get_or_insert_with(Instant::now).elapsed().as_nanos() as f64 * speed;
        Some(self.first_ns.saturating_add(passed_ns as u64))
    }

    /// The time up to which all records were passed on.
    fn now_ns(&self) -> u64 {
        let next = self.rings.iter().filter_map(|ring| ring.records.get(ring.next));
        next.map(|record| record.header().time_ns.saturating_sub(1)).min().unwrap_or(self.end_ns)
    }
}

impl EventSource for Replay {
    fn rings(&self) -> usize {
        self.rings.len()
    }

    fn first_number(&self) -> Option<u32> {
        self.first_number
    }

    fn drain(&mut self, sink: &mut dyn FnMut(usize, &[u8])) -> Drained {
        let clock_ns = self.clock_ns();
        let mut records = 0;
        for (number, ring) in self.rings.iter_mut().enumerate() {
            let rest = ring.records.get(ring.next..).unwrap_or_default();
            let count = match (self.pace, clock_ns) {
                (Pace::Batches(count), _) => count.max(1).min(rest.len()),
                (_, now_ns) => {
                    rest.iter().take_while(|record| Some(record.header().time_ns) <= now_ns).count()
                }
            };
            rest.iter().take(count).for_each(|record| sink(number, record.as_bytes()));
            ring.next += count;
            records += count;
        }
        let played = self.rings.iter().all(|ring| ring.next >= ring.records.len());
        let ended = played && clock_ns.is_none_or(|now_ns| now_ns >= self.end_ns);
        Drained { records, complete_to_ns: Some(self.now_ns()), more: clock_ns.is_none(), ended }
    }

    fn take_notes(&mut self) -> Vec<Note> {
        let now_ns = self.now_ns();
        let notes = self.notes.get(self.next_note..).unwrap_or_default();
        let count = notes.iter().take_while(|note| note.time_ns <= now_ns).count();
        self.next_note += count;
        notes.iter().take(count).cloned().collect()
    }

    fn loss(&mut self) -> LossCounts {
        self.loss
    }

    fn take_probed(&mut self) -> Probed {
        Probed::default()
    }

    fn end(&mut self) -> u64 {
        self.now_ns()
    }

    fn stop(self: Box<Self>, _: Duration) -> Late {
        Late::default()
    }
}
