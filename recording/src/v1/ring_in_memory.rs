//! Keeps the last stretch of a recording in memory, packed as in a file, until the stretch is saved as a file.
//!
//! The stretch can begin at any snapshot of the threads, just as a recording begins when longpole attaches. To save a
//! stretch that begins between two snapshots, longpole unpacks the records since the earlier snapshot and turns them
//! into facts.

use super::carried::Carried;
use super::chunk::{Packer, Unpacker};
use super::disk::Disk;
use super::event_chunk::{EventChunk, PackedEvents};
use super::{SessionSummary, Writer};
use engine::event::{Facts, Recording, WindowEnd};
use engine::timeline::facts_at;
use probe_abi::Record;
use std::collections::VecDeque;
use std::io;

/// If the ring is longer than its span by more than this time (ns), its start moves without waiting for a snapshot.
/// Reading /proc may fail, and then no snapshot comes.
const LONGEST_WITHOUT_SNAPSHOT_NS: u64 = 30_000_000_000;

/// Memory of a thread in a snapshot, in bytes.
const THREAD_BYTES: u64 = 256;

/// The last stretch of a recording in memory; see the module's documentation.
pub struct Ring {
    span_ns: u64,
    most_bytes: u64,
    carried: Carried,
    /// Snapshots at which the ring can begin, ordered by time. Never empty.
    beginnings: VecDeque<Beginning>,
    /// Chunks ordered by time. The first ones may contain records from before the first beginning.
    chunks: VecDeque<PackedEvents>,
    chunk_bytes: u64,
    /// Time of the latest record.
    latest_ns: u64,
    /// The time to which the start had to move because there was too little room; `None` if it never had to.
    cut_to_ns: Option<u64>,
    packer: Packer,
}

/// The processes and threads of an instant, and the number of the latest stack at that instant.
struct Beginning {
    seen: Facts,
    latest_stack: u32,
}

impl Ring {
    /// Creates a ring that begins with the facts. The ring keeps the last `span_ns`, in at most `most_bytes` of memory.
    pub fn new(facts: &Facts, span_ns: u64, most_bytes: u64) -> io::Result<Ring> {
        let mut ring = Ring {
            span_ns,
            most_bytes,
            carried: Carried::default(),
            beginnings: VecDeque::new(),
            chunks: VecDeque::new(),
            chunk_bytes: 0,
            latest_ns: facts.start_ns,
            cut_to_ns: None,
            packer: Packer::new()?,
        };
        ring.carried.facts(facts);
        ring.beginnings.push_back(Beginning { seen: seen_in(facts), latest_stack: 0 });
        Ok(ring)
    }

    /// Adds facts.
    pub fn facts(&mut self, facts: &Facts) {
        self.carried.facts(facts);
    }

    /// Adds a note.
    pub fn note(&mut self, note: &engine::event::Note) {
        self.carried.note(note);
    }

    /// Adds records, which must be later than all records before, and removes records that are too old.
    pub fn events(&mut self, chunk: EventChunk) -> io::Result<()> {
        self.latest_ns = self.latest_ns.max(chunk.last_ns);
        let chunk = chunk.pack(&mut self.packer)?;
        self.chunk_bytes = self.chunk_bytes.saturating_add(chunk.bytes());
        self.chunks.push_back(chunk);
        self.forget()
    }

    /// Adds a snapshot: the processes and threads of an instant, at which the ring may begin.
    pub fn snapshot(&mut self, seen: &Facts) {
        if self.beginnings.back().is_none_or(|last| last.seen.start_ns < seen.start_ns) {
            let latest_stack = self.carried.latest_stack();
            self.beginnings.push_back(Beginning { seen: seen_in(seen), latest_stack });
        }
    }

    /// The time at which the ring begins if it ends at `end_ns`.
    pub fn start_ns(&self, end_ns: u64) -> u64 {
        end_ns.saturating_sub(self.span_ns).max(self.first_ns())
    }

    /// Whether a ring that ends at `end_ns` is shorter than its span because there was too little room.
    pub fn is_cut(&self, end_ns: u64) -> bool {
        self.cut_to_ns.is_some_and(|cut_ns| cut_ns > end_ns.saturating_sub(self.span_ns))
    }

    /// Memory in use, in bytes.
    pub fn bytes(&self) -> u64 {
        let threads = self.beginnings.iter().map(|beginning| beginning.seen.threads.len() as u64);
        let threads = threads.fold(0, u64::saturating_add).saturating_mul(THREAD_BYTES);
        self.chunk_bytes.saturating_add(self.carried.bytes()).saturating_add(threads)
    }

    /// Writes the ring as a complete recording that ends at [`WindowEnd::end_ns`]. `end` describes the time from
    /// [`Ring::start_ns`] on. `open` has the records that are not in a chunk yet. The ring does not change.
    pub fn save<D: Disk>(
        &self,
        mut writer: Writer<D>,
        open: Option<EventChunk>,
        end: WindowEnd,
    ) -> io::Result<SessionSummary> {
        let (start_ns, end_ns) = (self.start_ns(end.end_ns), end.end_ns);
        let open = open.map(|open| open.pack(&mut Packer::new()?)).transpose()?;
        let begin = self.beginning_at(start_ns, &open)?;
        writer.facts(&begin.facts)?;
        for note in self.carried.notes(end_ns) {
            writer.note(note)?;
        }
        let mut snapshots = self.beginnings.iter().map(|beginning| &beginning.seen).peekable();
        while snapshots.next_if(|seen| seen.start_ns <= start_ns).is_some() {}
        for record in &begin.records {
            writer.push(record)?;
        }
        for chunk in self.chunks.iter().chain(&open).skip(begin.chunks) {
            while let Some(seen) = snapshots.next_if(|seen| seen.start_ns <= chunk.last_ns) {
                writer.snapshot(seen)?;
            }
            writer.packed(chunk)?;
        }
        writer.finish(end)
    }

    /// The earliest time at which the ring can begin, in nanoseconds.
    fn first_ns(&self) -> u64 {
        self.beginnings.front().map_or(0, |beginning| beginning.seen.start_ns)
    }

    /// Removes data that is older than the span. If there is too little room, also removes the oldest part of the rest.
    fn forget(&mut self) -> io::Result<()> {
        let wanted_ns = self.latest_ns.saturating_sub(self.span_ns);
        while self.beginnings.get(1).is_some_and(|next| next.seen.start_ns <= wanted_ns) {
            self.move_to_next();
        }
        if wanted_ns.saturating_sub(self.first_ns()) > LONGEST_WITHOUT_SNAPSHOT_NS {
            self.move_to(wanted_ns)?;
        }
        while self.bytes() > self.most_bytes && self.chunks.len() > 1 {
            let before = (self.chunks.len(), self.beginnings.len());
            let middle_ns = self.chunks.get(self.chunks.len() / 2).map_or(0, |chunk| chunk.first_ns);
            match self.beginnings.get(1) {
                // A snapshot after the middle is not used, because less than half of the records would stay.
                Some(next) if next.seen.start_ns <= middle_ns => self.move_to_next(),
                _ => self.move_to(middle_ns.max(self.first_ns().saturating_add(1)))?,
            }
            self.cut_to_ns = Some(self.first_ns());
            if before == (self.chunks.len(), self.beginnings.len()) {
                break;
            }
        }
        Ok(())
    }

    fn move_to_next(&mut self) {
        self.beginnings.pop_front();
        self.forget_chunks();
    }

    /// Moves the start to an instant for which there is no snapshot.
    fn move_to(&mut self, start_ns: u64) -> io::Result<()> {
        let begin = self.beginning_at(start_ns, &None)?;
        let latest_stack = self.beginnings.front().map_or(0, |first| first.latest_stack);
        self.beginnings.retain(|beginning| beginning.seen.start_ns > start_ns);
        self.beginnings.push_front(Beginning { seen: seen_in(&begin.facts), latest_stack });
        self.forget_chunks();
        Ok(())
    }

    /// Removes chunks, notes and stacks from before the first beginning.
    fn forget_chunks(&mut self) {
        let Some(first) = self.beginnings.front() else { return };
        let (start_ns, latest_stack) = (first.seen.start_ns, first.latest_stack);
        while self.chunks.front().is_some_and(|chunk| chunk.last_ns < start_ns) {
            let gone = self.chunks.pop_front().map_or(0, |chunk| chunk.bytes());
            self.chunk_bytes = self.chunk_bytes.saturating_sub(gone);
        }
        self.carried.forget_before(start_ns, latest_stack);
    }

    /// The facts and records from an instant on, which must not be before the first beginning. The last beginning
    /// before the instant and the records since then give these facts.
    fn beginning_at(&self, start_ns: u64, open: &Option<PackedEvents>) -> io::Result<Begin> {
        let last = self.beginnings.iter().rfind(|beginning| beginning.seen.start_ns <= start_ns);
        let Some(last) = last.or(self.beginnings.front()) else { return Ok(Begin::default()) };
        let from_ns = last.seen.start_ns;
        let mut unpacker = Unpacker::new()?;
        let (mut records, mut chunks) = (Vec::new(), 0);
        for chunk in self.chunks.iter().chain(open).take_while(|chunk| chunk.first_ns < start_ns.max(from_ns))
        {
            chunks += 1;
            if chunk.last_ns >= from_ns {
                chunk.unpack(&mut unpacker, &mut records)?;
            }
        }
        records.retain(|record| record.header().time_ns >= from_ns);
        let facts = self.carried.beginning(&last.seen);
        let notes = self.carried.notes(start_ns).cloned().collect();
        let mut recording = Recording { facts, events: records, notes };
        let facts = facts_at(&recording, start_ns);
        recording.events.retain(|record| record.header().time_ns >= start_ns);
        Ok(Begin { facts, records: recording.events, chunks })
    }
}

/// The content with which a saved ring begins.
#[derive(Default)]
struct Begin {
    facts: Facts,
    /// Records from the start on that share a chunk with earlier records.
    records: Vec<Record>,
    /// Number of chunks at the front that cannot be copied to the file unchanged.
    chunks: usize,
}

/// The facts that change from instant to instant.
fn seen_in(facts: &Facts) -> Facts {
    Facts {
        start_ns: facts.start_ns,
        processes: facts.processes.clone(),
        threads: facts.threads.clone(),
        ..Facts::default()
    }
}
