//! Stacks that wait for an answer of the reader threads. They are reported when the answer has come.

use super::process::{Kept, On, Waiting, of};
use super::reader::{Reader, ReaderAnswer};
use super::sampler::{Followed, Sampler, sane};
use super::unwinding::Unwound;
use engine::event::{CallGraph, MOST_FRAMES, Note, NoteKind};
use std::time::{Duration, Instant};

/// Largest number of stacks that wait for an answer, and largest number of their bytes: ten seconds of a program that
/// is sampled a thousand times per second.
pub(super) const MOST_WAITING: usize = 1 << 14;
const MOST_WAITING_BYTES: usize = 128 << 20;

impl Sampler {
    pub(super) fn has_room_for(&self, stack: &Kept) -> bool {
        self.waiting < MOST_WAITING && self.waiting_bytes.saturating_add(stack.bytes()) <= MOST_WAITING_BYTES
    }

    pub(super) fn wait(&mut self, waiting: Waiting) {
        self.waiting += 1;
        self.waiting_bytes += waiting.stack.bytes();
        match of(&mut self.spaces, &mut self.past, waiting.pid, waiting.since_ns) {
            Some(process) => process.waiting.push(waiting),
            None => self.ready.push_back(waiting),
        }
    }

    /// Takes the readers' answers, and reports the stacks that have waited for them, until `enough` is true.
    pub fn go_on(&mut self, enough: &mut dyn FnMut() -> bool) {
        loop {
            match self.reader.as_ref().map(Reader::next) {
                None | Some(Ok(None)) => break,
                Some(Ok(Some(told))) => self.hear(told),
                Some(Err(_)) => {
                    log::warn!("unwind tables are not read any more: stacks may be cut off");
                    self.give_up();
                }
            }
        }
        while !self.ready.is_empty() && !enough() {
            if let Some(waiting) = self.ready.pop_front() {
                self.waiting -= 1;
                self.waiting_bytes -= waiting.stack.bytes();
                self.tell(waiting);
            }
        }
        if self.ready.is_empty() && !self.past.is_empty() {
            self.past.retain(|(_, process)| !process.waiting.is_empty());
        }
    }

    /// Waits for the pending answers, but no longer than this. Afterwards every stack has been reported as far as
    /// it is known.
    pub fn finish_all(&mut self, patience: Duration) {
        let until = Instant::now() + patience;
        self.go_on(&mut || false);
        while self.waiting > 0
            && let Some(reader) = &self.reader
            && let Ok(Some(told)) = reader.wait(until.saturating_duration_since(Instant::now()))
        {
            self.hear(told);
            self.go_on(&mut || false);
        }
        self.give_up();
        self.go_on(&mut || false);
    }

    /// Stops waiting: there will be no more answers.
    fn give_up(&mut self) {
        self.reader = None;
        let past = self.past.iter_mut().map(|(_, process)| process);
        for process in self.spaces.values_mut().chain(past) {
            process.looking = false;
            process.unwinding.give_up();
            self.ready.extend(process.waiting.drain(..));
        }
    }

    fn hear(&mut self, told: ReaderAnswer) {
        match told {
            ReaderAnswer::Code { pid, since_ns, seen } => {
                let Some(process) = of(&mut self.spaces, &mut self.past, pid, since_ns) else { return };
                process.looking = false;
                let looked = process.served(On::Look);
                self.ready.extend(looked.map(|waiting| Waiting { looked: true, ..waiting }));
                if !process.space.looked(&seen, self.hears_of_mappings) {
                    return;
                }
                if self.how != CallGraph::Fp {
                    process.unwinding.know(&process.space.code);
                    let code = process.code();
                    self.tell_code((pid, since_ns), code);
                }
                self.mappings_told = self.mappings_told.saturating_add(seen.new.len());
                self.mappings.extend(seen.new);
            }
            ReaderAnswer::Tables { pid, since_ns, code, binary } => {
                let Some(process) = of(&mut self.spaces, &mut self.past, pid, since_ns) else { return };
                self.ready.extend(process.served(On::Tables(code.start)));
                let kept = process.unwinding.keeping.len();
                process.unwinding.answer(&code, binary);
                if process.unwinding.keeping.len() != kept {
                    let code = process.code();
                    self.tell_code((pid, since_ns), code);
                }
            }
        }
    }

    /// Reports a stack that has waited, unless it needs one more answer.
    fn tell(&mut self, waiting: Waiting) {
        let Waiting { number, pid, time_ns, since_ns, .. } = waiting;
        // Its sample has been passed on already, so only the note can say that the stack is cut off.
        let (frames, cut) = match waiting.stack.copied() {
            None => match waiting.stack {
                Kept::Frames(frames) => (frames, false),
                Kept::Copy { .. } => return,
            },
            Some(copied) => match self.unwind((pid, since_ns), time_ns, &copied, !waiting.looked) {
                Followed::Waits(on) => return self.wait(Waiting { on, ..waiting }),
                Followed::To(Unwound { frames, whole, .. }) => {
                    let frames = sane(&frames);
                    let kept = frames.get(..MOST_FRAMES).unwrap_or(frames);
                    let cut = !whole || kept.len() < frames.len();
                    self.counts.truncated += u64::from(cut);
                    let process = of(&mut self.spaces, &mut self.past, pid, since_ns);
                    let same_since = process.map_or(since_ns, |process| process.space.same_since(time_ns));
                    if kept.is_empty() || !self.interner.fill(number, pid, same_since, kept, waiting.leaf) {
                        self.counts.without_stack += 1;
                        self.counts.no_room += u64::from(!kept.is_empty());
                        return;
                    }
                    (kept.to_vec(), cut)
                }
            },
        };
        self.notes.push(Note { time_ns, kind: NoteKind::Stack { id: number, pid, frames, cut } });
    }
}

#[cfg(test)]
mod tests {
    use super::super::address_space::CodeFound;
    use super::super::binaries::Binary;
    use super::super::interner::Interner;
    use super::super::reader::Ask;
    use super::*;
    use crate::target::Code;
    use engine::event::{MappingFact, SampleCounts};
    use probe_abi::{Exec, Header, Kind, RAW_COPY_KIND, RawCopy, SampleFlags};
    use std::sync::Arc;
    use std::sync::mpsc::{Receiver, Sender};
    use symbols::{FrameAt, Rule, Saved, UnwindRows};
    use zerocopy::{FromZeros as _, IntoBytes as _};

    const PID: u32 = 77;
    const CODE: u64 = 0x40_0000;

    fn header(time_ns: u64, kind: u8) -> Header {
        Header { time_ns, sequence: 4, cpu: 1, kind, context: 0, tid: 8, pid: PID }
    }

    fn played() -> (Sampler, Receiver<Ask>, Sender<ReaderAnswer>) {
        let (reader, asked, tell) = Reader::played();
        let mut sampler = Sampler::new(CallGraph::Dwarf);
        sampler.reader = Some(reader);
        (sampler, asked, tell)
    }

    /// A copied stack with one frame. Its caller is at `CODE + caller` and has no caller itself.
    fn copy(time_ns: u64, caller: u64) -> Box<RawCopy> {
        let mut raw = Box::new(RawCopy::new_zeroed());
        raw.header = header(time_ns, RAW_COPY_KIND);
        (raw.instruction_pointer, raw.stack_pointer, raw.from, raw.count) =
            (CODE, 0x7000_0000, 0x7000_0000, 64);
        raw.bytes[8..16].copy_from_slice(&(CODE + caller).to_le_bytes());
        raw
    }

    fn code() -> Code {
        let (start, end) = (CODE, CODE + 0x1000);
        let (path, open_path) = ("[vdso]".to_owned(), Default::default());
        Code { start, end, file_offset: 0, inode: 0, path, open_path }
    }

    fn seen(since_ns: u64) -> ReaderAnswer {
        let fact = MappingFact { pid: PID, start: CODE, end: CODE + 0x1000, ..MappingFact::default() };
        let seen = CodeFound { now: Arc::new(vec![code()]), new: vec![fact], ..CodeFound::default() };
        ReaderAnswer::Code { pid: PID, since_ns, seen }
    }

    /// Tables by which callers are 16 bytes higher, and a frame at 0x100 or later has no caller.
    fn tables(since_ns: u64) -> ReaderAnswer {
        let rule = |back| Rule { frame: FrameAt::Stack(16), pointer: Saved::Same, back, is_signal: false };
        let spans = vec![(0, 0x100, 0), (0x100, 0x1000, 1)];
        let rows = UnwindRows::flat(spans, vec![rule(Saved::Frame(-8)), rule(Saved::Lost)], false);
        let binary = Binary { rows: rows.expect("rows"), outline: Default::default() };
        ReaderAnswer::Tables { pid: PID, since_ns, code: code(), binary: Some(Arc::new(binary)) }
    }

    fn stacks(sampler: &mut Sampler) -> Vec<(u64, u32, Vec<u64>)> {
        let notes = sampler.take_notes().into_iter();
        let stack = |note: Note| match note.kind {
            NoteKind::Stack { id, frames, .. } => Some((note.time_ns, id, frames)),
            _ => None,
        };
        notes.filter_map(stack).collect()
    }

    /// The ring reader must not wait for a parser, which may take ten seconds for a binary.
    #[test]
    fn a_sample_does_not_wait_for_unwind_tables_and_its_stack_follows() {
        let (mut sampler, asked, tell) = played();
        let numbers: Vec<u32> = [(10, 0x120), (20, 0x130), (30, 0x120)]
            .map(|(at, caller)| sampler.sample(copy(at, caller).as_bytes()).expect("a sample").stack)
            .to_vec();
        assert_eq!(numbers, [1, 2, 3]);
        sampler.go_on(&mut || false);
        assert_eq!(stacks(&mut sampler), []);
        assert!(matches!(asked.try_iter().collect::<Vec<_>>()[..], [Ask::Look { pid: PID, .. }]), "once");
        tell.send(seen(0)).expect("it listens");
        sampler.go_on(&mut || false);
        assert_eq!((stacks(&mut sampler), sampler.take_mappings().len()), (vec![], 1));
        assert!(matches!(asked.try_iter().collect::<Vec<_>>()[..], [Ask::Tables { pid: PID, .. }]), "once");
        tell.send(tables(0)).expect("it listens");
        // In one turn, only as many stacks are reported as there is time for.
        let mut turns = 0;
        sampler.go_on(&mut || {
            turns += 1;
            turns > 2
        });
        let told = |at, number, caller| (at, number, vec![CODE, CODE + caller]);
        assert_eq!(stacks(&mut sampler), [told(10, 1, 0x120), told(20, 2, 0x130)]);
        sampler.go_on(&mut || false);
        assert_eq!(stacks(&mut sampler), [told(30, 3, 0x120)], "a sample names this number, too");
        // From now on the stack is known.
        let now = sampler.sample(copy(40, 0x130).as_bytes()).expect("a sample");
        assert_eq!((now.stack, now.flags, stacks(&mut sampler)), (2, 0, vec![]));
        assert_eq!(sampler.counts(0), SampleCounts { taken: 4, ..SampleCounts::default() });
        assert_eq!((sampler.waiting, sampler.waiting_bytes), (0, 0));
    }

    /// A stack that is unwound later and is cut off must be counted and marked as cut off.
    #[test]
    fn a_pending_stack_that_is_cut_off_is_marked_and_counted() {
        let (mut sampler, _asked, tell) = played();
        // The caller of the second stack's frame lies beyond the copied bytes.
        let mut beyond = copy(20, 0x20);
        beyond.count = 16;
        for raw in [copy(10, 0x120), beyond] {
            assert_eq!(sampler.sample(raw.as_bytes()).map(|sample| sample.flags), Some(0), "not yet known");
        }
        for told in [seen(0), tables(0)] {
            tell.send(told).expect("it listens");
            sampler.go_on(&mut || false);
        }
        let cut = |note: &Note| matches!(note.kind, NoteKind::Stack { cut: true, .. });
        assert_eq!(sampler.take_notes().iter().map(cut).collect::<Vec<_>>(), [false, true]);
        let counts = SampleCounts { taken: 2, truncated: 1, ..SampleCounts::default() };
        assert_eq!(sampler.counts(0), counts);
        // A stack that is unwound at once is marked in its sample.
        let mut beyond = copy(30, 0x20);
        beyond.count = 16;
        let now = sampler.sample(beyond.as_bytes()).expect("a sample");
        assert_eq!((now.stack, now.flags), (2, SampleFlags::TRUNCATED));
    }

    #[test]
    fn pending_stacks_of_a_replaced_program_are_unwound_by_its_tables() {
        let (mut sampler, _asked, tell) = played();
        sampler.sample(copy(10, 0x120).as_bytes());
        let header = header(20, Kind::Exec as u8);
        sampler.record(Exec { header, ..Exec::new_zeroed() }.as_bytes());
        tell.send(seen(0)).expect("it listens");
        sampler.go_on(&mut || false);
        sampler.sample(copy(30, 0x130).as_bytes());
        tell.send(tables(0)).expect("it listens");
        sampler.take_codes();
        sampler.go_on(&mut || false);
        assert_eq!(stacks(&mut sampler), [(10, 1, vec![CODE, CODE + 0x120])]);
        assert_eq!(
            (sampler.take_codes(), sampler.past.len()),
            (vec![], 0),
            "the programs hear of the new one only"
        );
        tell.send(seen(20)).expect("it listens");
        sampler.go_on(&mut || false);
        assert_eq!(stacks(&mut sampler), [], "its tables are to be read first");
        tell.send(tables(20)).expect("it listens");
        sampler.go_on(&mut || false);
        assert_eq!(stacks(&mut sampler), [(30, 2, vec![CODE, CODE + 0x130])]);
    }

    #[test]
    fn pending_stacks_beyond_the_limit_are_counted_and_the_end_does_not_wait() {
        let (mut sampler, _asked, tell) = played();
        let raw = copy(10, 0x120);
        let all = MOST_WAITING as u64 + 5;
        let named = (0..all).filter(|_| sampler.sample(raw.as_bytes()).expect("a sample").stack != 0).count();
        assert_eq!(named, MOST_WAITING);
        let counts = SampleCounts { taken: all, without_stack: 5, unread: 5, ..SampleCounts::default() };
        assert_eq!(sampler.counts(0), counts);
        drop(tell);
        sampler.finish_all(Duration::from_secs(600));
        // Stacks are followed by frame pointers, but there is none, so only the innermost frame is known.
        let told = stacks(&mut sampler);
        assert_eq!((told.len(), &told[0]), (MOST_WAITING, &(10, 1, vec![CODE])));
        assert_eq!((sampler.waiting, sampler.waiting_bytes, sampler.past.len()), (0, 0, 0));
    }

    /// A stack for which there is no room when it is reported late is counted as such, too.
    #[test]
    fn a_pending_stack_without_room_is_counted() {
        let (mut late, _asked, tell) = played();
        late.interner = Interner::new(Some(64));
        late.sample(copy(10, 0x120).as_bytes());
        tell.send(seen(0)).expect("it listens");
        late.go_on(&mut || false);
        tell.send(tables(0)).expect("it listens");
        late.go_on(&mut || false);
        let counts = SampleCounts { taken: 1, without_stack: 1, no_room: 1, ..SampleCounts::default() };
        assert_eq!((late.counts(0), stacks(&mut late)), (counts, vec![]));
    }
}
