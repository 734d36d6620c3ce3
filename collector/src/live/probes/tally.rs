//! A tally of samples while a recording is written: which threads run, and where. Samples are counted as they come; no
//! names are read, and nothing is analysed.

use engine::event::{Note, NoteKind};
use probe_abi::{Record, SampleReason};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Times to the first tally (soon: nothing has probes before), to the next ones, and to later ones: decisions are final.
const FIRST: Duration = Duration::from_millis(300);
const EVERY: Duration = Duration::from_secs(1);
const LATER: Duration = Duration::from_secs(5);
/// Number of tallies after which tallies become rarer.
const MANY: u32 = 20;
/// Largest number of stacks that are kept: samples with further stacks count only for their threads.
const MOST_STACKS: usize = 16_384;

/// Samples since the last tally, by process. A process without samples is not in it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tally(pub BTreeMap<u32, Vec<SampledPlace>>);

/// A place in a thread.
#[derive(Clone, Debug, PartialEq)]
pub struct SampledPlace {
    /// The thread.
    pub thread: u32,
    /// Its frames, innermost first; empty if they are not known.
    pub frames: Arc<[u64]>,
    /// Number of samples.
    pub count: u32,
}

/// Counts samples.
#[derive(Debug)]
pub struct Tallying {
    /// Stacks by number; `None`: stacks are not wanted.
    stacks: Option<FxHashMap<u32, Arc<[u64]>>>,
    counts: FxHashMap<(u32, u32, u32), u32>,
    due: Instant,
    taken: u32,
}

impl Tallying {
    /// Counts from now on.
    pub fn new(now: Instant, with_stacks: bool) -> Tallying {
        Tallying {
            stacks: with_stacks.then(FxHashMap::default),
            counts: FxHashMap::default(),
            due: now + FIRST,
            taken: 0,
        }
    }

    /// Counts a record if it is a sample of a running thread.
    pub fn record(&mut self, record: &Record) {
        if let Record::Sample(sample) = record
            && sample.reason == SampleReason::Tick as u8
        {
            let stack = if self.stacks.is_some() { sample.stack } else { 0 };
            *self.counts.entry((sample.header.pid, sample.header.tid, stack)).or_default() += 1;
        }
    }

    /// Remembers the stacks among these notes.
    pub fn notes(&mut self, notes: &[Note]) {
        let Some(stacks) = &mut self.stacks else { return };
        for note in notes {
            if let NoteKind::Stack { id, frames, .. } = &note.kind
                && stacks.len() < MOST_STACKS
            {
                stacks.insert(*id, Arc::from(&frames[..]));
            }
        }
    }

    /// The tally of everything since the last one, if it is due.
    pub fn take(&mut self, now: Instant) -> Option<Tally> {
        if now < self.due {
            return None;
        }
        self.taken += 1;
        self.due = now + if self.taken < MANY { EVERY } else { LATER };
        let mut tally = Tally::default();
        for ((pid, thread, stack), count) in self.counts.drain() {
            let frames = self.stacks.as_ref().and_then(|stacks| stacks.get(&stack));
            let frames = frames.map_or_else(|| Arc::from(&[][..]), Arc::clone);
            tally.0.entry(pid).or_default().push(SampledPlace { thread, frames, count });
        }
        for sampled in tally.0.values_mut() {
            sampled.sort_by(|a, b| (b.count, a.thread, &a.frames).cmp(&(a.count, b.thread, &b.frames)));
        }
        Some(tally)
    }
}

impl Tally {
    /// The threads of a process with the most samples, most samples first.
    pub fn busiest(&self, pid: u32) -> Vec<u32> {
        let mut threads: BTreeMap<u32, u32> = BTreeMap::new();
        for sampled in self.0.get(&pid).into_iter().flatten() {
            *threads.entry(sampled.thread).or_default() += sampled.count;
        }
        let mut threads: Vec<(u32, u32)> = threads.into_iter().collect();
        threads.sort_by_key(|&(thread, count)| (std::cmp::Reverse(count), thread));
        threads.into_iter().map(|(thread, _)| thread).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use probe_abi::{Header, Kind, Sample};

    fn sample(pid: u32, tid: u32, stack: u32, reason: SampleReason) -> Record {
        let header =
            Header { time_ns: 1, sequence: 0, cpu: 0, kind: Kind::Sample as u8, context: 0, tid, pid };
        Record::Sample(Sample { header, stack, reason: reason as u8, flags: 0, reserved: 0 })
    }

    #[test]
    fn ticks_are_tallied_by_thread_and_stack_at_intervals() {
        let now = Instant::now();
        let mut tallying = Tallying::new(now, true);
        let kind = NoteKind::Stack { id: 3, pid: 7, frames: vec![0x10, 0x20], cut: false };
        tallying.notes(&[Note { time_ns: 1, kind }]);
        for (tid, stack, reason) in [
            (8, 3, SampleReason::Tick),
            (9, 3, SampleReason::Tick),
            (9, 0, SampleReason::Tick),
            (8, 3, SampleReason::Block),
        ] {
            tallying.record(&sample(7, tid, stack, reason));
        }
        assert_eq!(tallying.take(now), None);
        let tally = tallying.take(now + FIRST).expect("it is time");
        assert_eq!(tally.busiest(7), [9, 8]);
        assert_eq!(tally.busiest(6), [0u32; 0]);
        let frames: Vec<&[u64]> = tally.0[&7].iter().map(|sampled| &sampled.frames[..]).collect();
        assert_eq!(frames, [&[0x10, 0x20][..], &[], &[0x10, 0x20]]);
        assert_eq!(tallying.take(now + FIRST), None);
        assert_eq!(tallying.take(now + FIRST + EVERY), Some(Tally::default()), "also if nothing ran");
    }
}
