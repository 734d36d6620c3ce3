//! Merges the rings into one stream in time order. **The release rule**:
//!
//! 1. Every ring has a *bound*: the latest time seen in it, less the disorder allowed in a ring. The caller can also
//!    declare a ring drained up to a time (after reading the clock and then emptying the ring).
//! 2. A record older than its own ring's bound on arrival is *late*: it is counted and dropped.
//! 3. A record leaves once it is older than the bounds of all rings; records leave in order of time, then CPU, then
//!    number, then ring.
//!
//! By rule 2, no accepted record is older than one that rule 3 has released. Whether a record is late depends on its
//! own ring alone. So the stream depends neither on the interleaving of the rings nor on how often it is read. In a
//! ring, neighbours may be swapped (nested interrupts, several CPUs in a ring): this needs the allowed disorder.
//!
//! A ring has one kind of writer: one CPU or a few in the kernel, or one thread of the target in user space. Missing
//! numbers in the sequence of a CPU (of a thread, if `cpu` is [`Header::NO_CPU`]) are lost records. Each hole becomes a
//! [`NoteKind::Gap`] between its neighbours once no record in time can fill it. Missing numbers before a CPU's first
//! record are lost records, too, if the start is known ([`Merger::numbered_from`]). Samples have numbers of their own,
//! which are ignored here: the code that takes samples counts lost ones.

use super::queue::{Blocks, Queue, Waiting};
use super::sequence::Sequence;
use super::{GapReason, Note, NoteKind};
use probe_abi::{Header, Record};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Default disorder allowed in a ring. A record's time is read before its place in the ring is reserved. In between, a
/// virtual CPU may be delayed, or a thread in a function probe pre-empted until its next turn.
pub const DISORDER_NS: u64 = 100_000_000;

/// Records out of order for which a ring keeps memory; it is rarely needed.
const MUCH_SWAPPED: usize = 1024;

/// Counts of records that the merger did not release, or that never reached it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OrderCounts {
    /// Records released so far.
    pub released: u64,
    /// Records not released because newer ones might have been released already.
    pub late: u64,
    /// Records not released because their number had already come.
    pub duplicates: u64,
    /// Numbers whose records never came in time, `late` records included. This is an independent count of
    /// [`super::LossCounts::dropped`], not to be added to it.
    pub missing: u64,
}

/// Merges streams of rings by time, by the rule in the module's documentation. Reads no clock.
#[derive(Clone, Debug)]
pub struct Merger {
    rings: Vec<Ring>,
    blocks: Blocks,
    disorder_ns: u64,
    first_number: Option<u32>,
    counts: OrderCounts,
    notes: Vec<Note>,
}

/// Order of release: time, CPU, unwrapped number.
pub(super) type Key = (u64, u16, i64);

#[derive(Clone, Debug, Default)]
struct Ring {
    /// Records in order; those slightly out of order were inserted at their place.
    ordered: Queue,
    /// Records whose place in `ordered` is too far from the end of `ordered` to be inserted.
    swapped: BinaryHeap<Reverse<Waiting>>,
    bound_ns: u64,
    cpus: Cpus,
}

/// Numbers seen so far, by CPU. Most rings have one CPU, or the same CPU as before.
#[derive(Clone, Debug, Default)]
struct Cpus {
    /// For each CPU, ascending: the numbers seen.
    sequences: Vec<(u16, Sequence)>,
    /// Index of the entry that was used last.
    last: usize,
}

impl Cpus {
    #[inline]
    fn of(&mut self, cpu: u16, first: Option<u32>) -> &mut Sequence {
        if self.sequences.get(self.last).is_none_or(|(last, _)| *last != cpu) {
            self.last = self.sequences.binary_search_by_key(&cpu, |(cpu, _)| *cpu).unwrap_or_else(|place| {
                self.sequences.insert(place, (cpu, Sequence::starting_at(first)));
                place
            });
        }
        &mut self.sequences[self.last].1
    }
}

impl Ring {
    #[inline]
    fn head(&self) -> Option<Key> {
        let ordered = self.ordered.front().map(Waiting::key);
        if self.swapped.is_empty() {
            return ordered;
        }
        let swapped = self.swapped.peek().map(|Reverse(waiting)| waiting.key());
        match (ordered, swapped) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }

    fn insert(&mut self, number: i64, record: Record, blocks: &mut Blocks) {
        const NEAR: usize = 16;
        let waiting = Waiting { number, record };
        if self.ordered.back().is_none_or(|last| last.key() <= waiting.key()) {
            return self.ordered.push_back(waiting, blocks);
        }
        if let Err(waiting) = self.ordered.insert_near_end(waiting, NEAR, blocks) {
            self.swapped.push(Reverse(waiting));
        }
    }

    /// Passes records before `until` to the sink; returns their number.
    fn run(
        &mut self,
        index: usize,
        until: Option<(Key, usize)>,
        blocks: &mut Blocks,
        sink: &mut impl FnMut(&Record),
    ) -> u64 {
        let leaves = |key: Key| until.is_none_or(|until| (key, index) < until);
        let mut left = 0;
        while self.swapped.is_empty() {
            let Some(waiting) = self.ordered.front().filter(|waiting| leaves(waiting.key())) else {
                return left;
            };
            sink(&waiting.record);
            self.ordered.pop_front(blocks);
            left += 1;
        }
        while let Some(head) = self.head().filter(|head| leaves(*head)) {
            let is_ordered = self.ordered.front().is_some_and(|waiting| waiting.key() == head);
            let next = if is_ordered {
                self.ordered.pop_front(blocks)
            } else {
                self.swapped.pop().map(|Reverse(waiting)| waiting)
            };
            if let Some(waiting) = next {
                sink(&waiting.record);
                left += 1;
            }
        }
        if self.swapped.is_empty() && self.swapped.capacity() > MUCH_SWAPPED {
            self.swapped.shrink_to(MUCH_SWAPPED);
        }
        left
    }
}

impl Merger {
    /// A merger for this many rings, with [`DISORDER_NS`] of disorder allowed in each.
    pub fn new(rings: usize) -> Merger {
        Merger::with_disorder(rings, DISORDER_NS)
    }

    /// A merger with another disorder allowed in a ring.
    pub fn with_disorder(rings: usize, disorder_ns: u64) -> Merger {
        Merger {
            rings: vec![Ring::default(); rings],
            blocks: Blocks::default(),
            disorder_ns,
            first_number: None,
            counts: OrderCounts::default(),
            notes: Vec::new(),
        }
    }

    /// Sets the first number of every CPU. Threads that number their own records ([`Header::NO_CPU`]) may start anywhere,
    /// since a ring outlives its thread.
    #[must_use]
    pub fn numbered_from(mut self, first: Option<u32>) -> Merger {
        self.first_number = first;
        self
    }

    /// Takes the next record of a ring. Rings with a higher index than announced are added.
    #[inline]
    pub fn push(&mut self, ring: usize, record: Record) {
        if ring >= self.rings.len() {
            self.rings.resize_with(ring + 1, Ring::default);
        }
        let Some(ring) = self.rings.get_mut(ring) else { return };
        let header = *record.header();
        if header.time_ns < ring.bound_ns {
            self.counts.late += 1;
            return;
        }
        if let Record::Sample(_) = record {
            // Samples have separate numbers, and a lost sample leaves no gap: no other record is missing. Among records of
            // the same time they come first, since they show what the thread was doing then.
            const FIRST: i64 = i64::MIN;
            ring.insert(FIRST + i64::from(header.sequence), record, &mut self.blocks);
            return;
        }
        let first = self.first_number.filter(|_| header.cpu != Header::NO_CPU);
        let sequence = ring.cpus.of(header.cpu, first);
        let Some(number) = sequence.see(header.sequence, header.time_ns, ring.bound_ns) else {
            self.counts.duplicates += 1;
            return;
        };
        ring.bound_ns = ring.bound_ns.max(header.time_ns.saturating_sub(self.disorder_ns));
        ring.insert(number, record, &mut self.blocks);
    }

    /// Declares that all further records of this ring are newer than `up_to_ns`: the caller read the clock, then
    /// emptied it.
    ///
    /// Without this call, a ring without records would delay the records of all other rings.
    pub fn drained(&mut self, ring: usize, up_to_ns: u64) {
        if let Some(ring) = self.rings.get_mut(ring) {
            ring.bound_ns = ring.bound_ns.max(up_to_ns.saturating_sub(self.disorder_ns));
        }
    }

    /// Finds records lost after a CPU's last one, which leave no hole between two records.
    ///
    /// `count`: records that the CPU has tried to write by `time_ns`, from the kernel's counters, when the ring is drained
    /// last.
    pub fn written(&mut self, ring: usize, cpu: u16, count: u64, time_ns: u64) {
        let Some(ring) = self.rings.get_mut(ring) else { return };
        let sequence = ring.cpus.of(cpu, self.first_number);
        if let Some(missing) = sequence.missing_after_last(count as u32) {
            let from_ns = sequence.last_ns();
            self.counts.missing = self.counts.missing.saturating_add(missing);
            self.notes.push(gap(cpu, from_ns, time_ns.max(from_ns), missing));
        }
    }

    /// The records that can be released now, in order.
    pub fn release(&mut self) -> Vec<Record> {
        let mut records = Vec::new();
        self.release_to(&mut |record| records.push(*record));
        records
    }

    /// Passes the records that can be released now to the sink, in order.
    pub fn release_to(&mut self, sink: &mut impl FnMut(&Record)) {
        let watermark = self.watermark_ns();
        self.leave(Some(watermark), sink);
    }

    /// All records still held, in order. Records pushed later count as late.
    pub fn finish(&mut self) -> Vec<Record> {
        let mut records = Vec::new();
        self.finish_to(&mut |record| records.push(*record));
        records
    }

    /// Does what [`Merger::finish`] does, passing on one record at a time.
    pub fn finish_to(&mut self, sink: &mut impl FnMut(&Record)) {
        for ring in &mut self.rings {
            ring.bound_ns = u64::MAX;
        }
        self.leave(None, sink);
    }

    /// Events are complete up to this time: older records were released, or will be by the next [`Merger::release`].
    pub fn watermark_ns(&self) -> u64 {
        self.rings.iter().map(|ring| ring.bound_ns).min().unwrap_or(0)
    }

    /// The gaps found since the last call, in order of time. Complete for all records released so far.
    pub fn take_notes(&mut self) -> Vec<Note> {
        let mut notes = std::mem::take(&mut self.notes);
        notes.sort_by_key(|note| match note.kind {
            NoteKind::Gap { cpu, until_ns, lost, .. } => (note.time_ns, until_ns, cpu, lost),
            NoteKind::ProbesOff { .. }
            | NoteKind::ProbesOn { .. }
            | NoteKind::Stack { .. }
            | NoteKind::Changed { .. }
            | NoteKind::InKernel { .. }
            | NoteKind::EndedUnprobed { .. } => (note.time_ns, 0, None, 0),
        });
        notes
    }

    /// Bytes of memory for records still held.
    pub fn held_bytes(&self) -> u64 {
        let swapped = self.rings.iter().map(|ring| ring.swapped.capacity()).sum::<usize>();
        self.blocks.bytes().saturating_add((swapped * size_of::<Waiting>()) as u64)
    }

    /// Counts of records released, dropped or missing so far.
    pub fn counts(&self) -> OrderCounts {
        self.counts
    }

    fn leave(&mut self, watermark_ns: Option<u64>, sink: &mut impl FnMut(&Record)) {
        let mut left = 0_u64;
        for ring in &mut self.rings {
            for (cpu, sequence) in &mut ring.cpus.sequences {
                let cpu = *cpu;
                sequence.settle(ring.bound_ns, |hole| {
                    self.counts.missing = self.counts.missing.saturating_add(hole.missing());
                    self.notes.push(gap(cpu, hole.from_ns, hole.until_ns, hole.missing()));
                });
            }
        }
        // The next record of each ring.
        let mut heads: BinaryHeap<_> = self
            .rings
            .iter()
            .enumerate()
            .filter_map(|(index, ring)| Some(Reverse((ring.head()?, index))))
            .collect();
        // A key less than every key from the watermark on.
        let end = watermark_ns.map(|time_ns| ((time_ns, 0, i64::MIN), 0));
        // Releases runs up to the first record of another ring: a thread's records come in long runs.
        while let Some(Reverse(first)) =
            heads.pop().filter(|Reverse(first)| end.is_none_or(|end| *first < end))
        {
            let (_, index) = first;
            let next = heads.peek().map(|Reverse(next)| *next);
            let until = [next, end].into_iter().flatten().min();
            let Some(ring) = self.rings.get_mut(index) else { break };
            left += ring.run(index, until, &mut self.blocks, sink);
            if let Some(head) = ring.head() {
                heads.push(Reverse((head, index)));
            }
        }
        self.counts.released = self.counts.released.saturating_add(left);
    }
}

fn gap(cpu: u16, time_ns: u64, until_ns: u64, lost: u64) -> Note {
    let kind = if cpu == Header::NO_CPU {
        // Only the library's operations have no CPU number; each of its rings numbers its own records.
        NoteKind::Gap { pid: 0, cpu: None, until_ns, lost, reason: GapReason::OperationsLost }
    } else {
        NoteKind::Gap { pid: 0, cpu: Some(cpu), until_ns, lost, reason: GapReason::RingFull }
    };
    Note { time_ns, kind }
}

#[cfg(test)]
mod tests {
    use super::*;
    use probe_abi::{Exit, Kind};
    use proptest::prelude::*;

    fn record(time_ns: u64, cpu: u16, sequence: u32) -> Record {
        let kind = Kind::Exit as u8;
        Record::Exit(Exit {
            header: Header { time_ns, sequence, cpu, kind, context: 0, tid: 1, pid: 1 },
            last_of_process: 0,
            placement: 0,
        })
    }

    fn times(records: Vec<Record>) -> Vec<u64> {
        records.iter().map(|record| record.header().time_ns).collect()
    }

    #[test]
    fn a_record_waits_for_the_slowest_ring() {
        let mut merger = Merger::with_disorder(2, 5);
        merger.push(0, record(100, 0, 0));
        merger.push(0, record(200, 0, 1));
        assert!(times(merger.release()).is_empty());
        merger.push(1, record(150, 1, 0));
        assert_eq!(times(merger.release()), [100]);
        merger.drained(1, 300);
        assert_eq!(times(merger.release()), [150]);
        assert_eq!(times(merger.finish()), [200]);
        assert_eq!(merger.counts(), OrderCounts { released: 3, ..OrderCounts::default() });
    }

    #[test]
    fn records_swapped_within_the_allowance_are_sorted_and_others_late() {
        let mut merger = Merger::with_disorder(1, 5);
        for (time, number) in [(100, 1), (97, 0), (110, 3), (104, 2)] {
            merger.push(0, record(time, 0, number));
        }
        assert_eq!(times(merger.release()), [97, 100]);
        merger.drained(0, 120);
        assert_eq!(times(merger.release()), [110]);
        assert_eq!(merger.counts().late, 1);
        // The late record is lost, so the hole that it would have filled stays.
        let notes = merger.take_notes();
        assert_eq!(notes.len(), 1);
        assert_eq!(notes[0].time_ns, 100);
        assert_eq!(merger.counts().missing, 1);
    }

    #[test]
    fn a_hole_in_the_numbers_becomes_a_gap_and_a_repeat_is_ignored() {
        let mut merger = Merger::with_disorder(1, 5);
        for (time, number) in [(100, u32::MAX), (110, 2), (110, 2), (120, 3)] {
            merger.push(0, record(time, 7, number));
        }
        assert_eq!(times(merger.finish()), [100, 110, 120]);
        let gap = NoteKind::Gap { pid: 0, cpu: Some(7), until_ns: 110, lost: 2, reason: GapReason::RingFull };
        assert_eq!(merger.take_notes(), [Note { time_ns: 100, kind: gap }]);
        assert_eq!(merger.counts(), OrderCounts { released: 3, late: 0, duplicates: 1, missing: 2 });
    }

    #[test]
    fn a_hole_in_a_thread_s_own_numbers_loses_operations_only() {
        let mut merger = Merger::with_disorder(2, 5);
        for (ring, time, number) in [(0, 100, 5), (1, 105, 900), (0, 120, 8)] {
            merger.push(ring, record(time, Header::NO_CPU, number));
        }
        assert_eq!(times(merger.finish()), [100, 105, 120]);
        let reason = GapReason::OperationsLost;
        let gap = NoteKind::Gap { pid: 0, cpu: None, until_ns: 120, lost: 2, reason };
        assert_eq!(merger.take_notes(), [Note { time_ns: 100, kind: gap }]);
    }

    /// If a ring is full from the start, records before its first one are lost.
    #[test]
    fn records_lost_before_the_first_one_are_a_gap_if_the_start_is_known() {
        let mut merger = Merger::with_disorder(2, 5).numbered_from(Some(40));
        for (time, cpu, number) in [(100, 3, 41), (102, 3, 42), (101, 4, 40), (103, Header::NO_CPU, 60)] {
            merger.push(0, record(time, cpu, number));
        }
        assert_eq!(times(merger.finish()), [100, 101, 102, 103]);
        assert_eq!(merger.take_notes(), [gap(3, 0, 100, 1)]);
        merger.written(1, 6, 42, 200);
        assert_eq!(merger.take_notes(), [gap(6, 0, 200, 2)]);
        assert_eq!(merger.counts(), OrderCounts { released: 4, missing: 3, ..OrderCounts::default() });
    }

    #[test]
    fn records_lost_after_the_last_one_are_a_gap() {
        let mut merger = Merger::with_disorder(1, 5);
        merger.push(0, record(100, 3, 41));
        merger.written(0, 3, 42, 200);
        merger.written(0, 4, 0, 200);
        assert_eq!(merger.take_notes(), []);
        merger.written(0, 3, 45, 200);
        merger.written(0, 5, 2, 200);
        assert_eq!(merger.take_notes(), [gap(5, 0, 200, 2), gap(3, 100, 200, 3)]);
        assert_eq!(merger.counts().missing, 5);
    }

    proptest! {
        /// Stream, gaps and counts do not depend on interleaving of the rings or on how often records are taken; the stream
        /// is in order of time.
        #[test]
        fn merged_records_do_not_depend_on_interleaving_or_batches(
            rings in prop::collection::vec(prop::collection::vec((0u64..40, 0u16..2, 0u32..60), 0..60), 1..4),
            schedule in prop::collection::vec((0usize..4, any::<bool>()), 0..200),
        ) {
            let mut reference = Merger::with_disorder(rings.len(), 8);
            for (ring, records) in rings.iter().enumerate() {
                for &(time, cpu, number) in records {
                    reference.push(ring, record(time, cpu + 10 * ring as u16, number));
                }
            }
            let expected = reference.finish();
            prop_assert!(expected.windows(2).all(|w| w[0].header().time_ns <= w[1].header().time_ns));

            let mut merger = Merger::with_disorder(rings.len(), 8);
            let mut got = Vec::new();
            let mut notes = Vec::new();
            let mut next = vec![0; rings.len()];
            let rest = (0..rings.len()).flat_map(|ring| (0..60).map(move |_| (ring, false)));
            for (ring, ask) in schedule.into_iter().chain(rest) {
                let ring = ring % rings.len();
                if let Some(&(time, cpu, number)) = rings[ring].get(next[ring]) {
                    next[ring] += 1;
                    merger.push(ring, record(time, cpu + 10 * ring as u16, number));
                }
                if ask {
                    got.extend(merger.release());
                    notes.extend(merger.take_notes());
                }
            }
            got.extend(merger.finish());
            notes.extend(merger.take_notes());
            prop_assert_eq!(got, expected);
            prop_assert_eq!(merger.counts(), reference.counts());
            let sorted = |mut notes: Vec<Note>| { notes.sort_by_key(|n| format!("{n:?}")); notes };
            prop_assert_eq!(sorted(notes), sorted(reference.take_notes()));
        }
    }
}
