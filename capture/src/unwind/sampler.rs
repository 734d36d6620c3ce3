//! Makes samples from raw samples of the kernel programs, with the notes and facts that describe their stacks.
//!
//! The ring reader calls this module, so nothing here waits: other threads find out where a process has its code, and
//! read unwind tables ([`super::reader`]). A stack that needs an answer gets its number at once, so that its sample can
//! be passed on; the stack itself is reported when the answer is there.

use super::changed_words::ChangedWords;
use super::interner::{Interned, Interner};
use super::leaf::Leaf;
use super::process::{Kept, On, SampledProcess, Waiting, ask_look, of};
use super::reader::{Ask, Reader};
use super::unwinding::{Copied, Unwound};
use crate::probe::NewMapping;
use engine::event::{CallGraph, MOST_FRAMES, MappingFact, Note, NoteKind, SampleCounts};
use probe_abi::{
    Exec, Exit, Fork, Header, Kind, RAW_COPY_KIND, RAW_STACK_KIND, RawCopy, RawStack, Record, Sample,
    SampleFlags, SampledCode,
};
use recording::FileLimits;
use rustc_hash::FxHashMap;
use std::collections::VecDeque;
use std::mem::offset_of;
use symbols::Parsers;
use zerocopy::FromBytes as _;

/// Largest number of bytes of memory that a recording's stacks take when it is read: half of the room in a file.
const ROOM: u64 = FileLimits::FILE.bytes / 2;
/// Largest number of processes whose code is known at once.
const MOST_PROCESSES: usize = 4096;
/// Largest number of mappings in a recording, since a program may map without end.
const MOST_MAPPINGS: usize = 1 << 16;
/// User-space addresses are below this (x86-64).
const USER_END: u64 = 1 << 47;

/// Makes samples of raw samples.
pub struct Sampler {
    pub(super) how: CallGraph,
    /// The process at the gate, which has not begun the command yet.
    at_gate: Option<u32>,
    pub(super) interner: Interner,
    pub(super) spaces: FxHashMap<u32, SampledProcess>,
    /// Processes as they were before they ran another program or were forgotten; kept while their stacks wait.
    pub(super) past: Vec<(u32, SampledProcess)>,
    /// Finds answers; `None`: stacks are reported as far as they are known.
    pub(super) reader: Option<Reader>,
    /// Number and bytes of stacks that wait, including those in `ready`.
    pub(super) waiting: usize,
    pub(super) waiting_bytes: usize,
    /// Stacks whose answer has come.
    pub(super) ready: VecDeque<Waiting>,
    pub(super) codes: Vec<(u32, Option<SampledCode>)>,
    pub(super) notes: Vec<Note>,
    pub(super) mappings: Vec<MappingFact>,
    pub(super) mappings_told: usize,
    most_mappings: usize,
    /// The caller reports mappings that processes make later.
    pub(super) hears_of_mappings: bool,
    pub(super) counts: SampleCounts,
    undecodable: u64,
    changed_words: ChangedWords,
}

/// The result of unwinding a copied stack.
pub(super) enum Followed {
    To(Unwound),
    /// An answer is needed first.
    Waits(On),
}

impl Sampler {
    /// A sampler without a reader: nothing is found out about processes.
    pub fn new(how: CallGraph) -> Sampler {
        Sampler {
            how,
            at_gate: None,
            interner: Interner::new(Some(ROOM)),
            spaces: FxHashMap::default(),
            past: Vec::new(),
            reader: None,
            waiting: 0,
            waiting_bytes: 0,
            ready: VecDeque::new(),
            codes: Vec::new(),
            notes: Vec::new(),
            mappings: Vec::new(),
            mappings_told: 0,
            most_mappings: MOST_MAPPINGS,
            hears_of_mappings: false,
            counts: SampleCounts::default(),
            undecodable: 0,
            changed_words: ChangedWords::default(),
        }
    }

    /// Starts threads that find where processes have code, and that read the code's unwind tables.
    #[must_use]
    pub fn reading_with(self, parsers: Parsers) -> Sampler {
        let reader = Reader::start(parsers)
            .inspect_err(|error| log::warn!("stacks are only followed by frame pointers: {error}"));
        Sampler { reader: reader.ok(), ..self }
    }

    /// Removes the limits, for a stream without end whose consumer forgets old stacks.
    pub fn without_end(&mut self) {
        self.interner.without_end();
        self.most_mappings = usize::MAX;
    }

    /// `true` if the caller reports later mappings of processes ([`Sampler::mapped`]), so that the mappings are read
    /// less often.
    #[must_use]
    pub fn hearing_of_mappings(self, hears_of_mappings: bool) -> Sampler {
        Sampler { hears_of_mappings, ..self }
    }

    /// Notes an executable mapping that a process has made; process 0: any process may have made one.
    pub fn mapped(&mut self, mapping: &NewMapping) {
        let all = self.spaces.iter_mut().filter(|(pid, _)| mapping.pid == 0 || **pid == mapping.pid);
        all.for_each(|(_, process)| process.space.mapped(mapping));
    }

    /// Ignores samples of this process until it runs another program, since until then it is longpole at the gate.
    #[must_use]
    pub fn launching(self, pid: u32) -> Sampler {
        Sampler { at_gate: Some(pid), ..self }
    }

    /// Handles a record that is not a sample, since it may start a program or end a process.
    pub fn record(&mut self, bytes: &[u8]) {
        let kind = bytes.get(offset_of!(Header, kind)).copied().unwrap_or(0);
        if ![Kind::Exec as u8, Kind::Fork as u8, Kind::Exit as u8].contains(&kind) {
            return;
        }
        match Record::decode(bytes) {
            Ok(Record::Exec(Exec { header, .. })) => {
                self.at_gate.take_if(|pid| *pid == header.pid);
                self.begin(header.pid, header.time_ns);
            }
            Ok(Record::Fork(Fork { header, child_pid, .. })) if child_pid != header.pid => {
                self.begin(child_pid, header.time_ns);
            }
            // The process is forgotten only when its PID runs another program, since its last samples may still come.
            Ok(Record::Exit(Exit { header, last_of_process, .. })) if last_of_process != 0 => {
                self.codes.push((header.pid, None));
            }
            _ => {}
        }
    }

    fn begin(&mut self, pid: u32, since_ns: u64) {
        // Stacks of the process are copied until its code is known.
        if let Some(before) = self.spaces.insert(pid, SampledProcess::new(since_ns)) {
            self.codes.push((pid, None));
            self.keep_past(pid, before);
        }
    }

    fn keep_past(&mut self, pid: u32, before: SampledProcess) {
        if !before.waiting.is_empty() || !self.ready.is_empty() {
            self.past.push((pid, before));
        }
    }

    /// The sample for a raw sample; `None` if the bytes are not a sample, or it is of longpole at the gate.
    pub fn sample(&mut self, bytes: &[u8]) -> Option<Sample> {
        if let Some(pid) = self.at_gate
            && Header::read_from_prefix(bytes).is_ok_and(|(header, _)| header.pid == pid)
        {
            return None;
        }
        let sample = self.read(bytes);
        self.undecodable += u64::from(sample.is_none());
        sample
    }

    fn read(&mut self, bytes: &[u8]) -> Option<Sample> {
        match bytes.get(offset_of!(Header, kind)).copied()? {
            RAW_STACK_KIND => {
                let (raw, _) = RawStack::read_from_prefix(bytes).ok()?;
                let frames = raw.frames.get(..usize::from(raw.count))?;
                let mut frames = sane(frames).to_vec();
                let process = self.spaces.get(&raw.header.pid);
                let root = process
                    .filter(|_| raw.at_root != 0)
                    .and_then(|process| process.roots.iter().find(|root| root.first() == frames.last()));
                frames.extend(root.into_iter().flatten().skip(1));
                if let (Some(process), Some(&innermost)) = (process, frames.first())
                    && let Some(caller) = process.unwinding.passed_over(innermost, raw.top)
                {
                    frames.insert(1, caller);
                }
                let how = (raw.reason, raw.flags, raw.call);
                let leaf = frames.first().map_or(Leaf::Code, |innermost| {
                    self.changed_words.leaf(&raw.header, *innermost, &raw.last, how)
                });
                Some(self.finish(&raw.header, (raw.reason, raw.flags), &frames, leaf))
            }
            RAW_COPY_KIND => {
                let (raw, _) = RawCopy::ref_from_prefix(bytes).ok()?;
                let (pid, time_ns) = (raw.header.pid, raw.header.time_ns);
                let since_ns = self.process(pid).space.since_ns;
                if time_ns < since_ns {
                    // The sample is of the program before the exec, whose code is no longer mapped.
                    let flags = raw.flags | SampleFlags::TRUNCATED;
                    return Some(self.finish(&raw.header, (raw.reason, flags), &[], Leaf::Code));
                }
                let how = (raw.reason, raw.flags, raw.call);
                let leaf = self.changed_words.leaf(&raw.header, raw.instruction_pointer, &raw.last, how);
                Some(match self.unwind((pid, since_ns), time_ns, &Copied::of(raw), true) {
                    Followed::To(Unwound { frames, whole, .. }) => {
                        let cut = if whole { 0 } else { SampleFlags::TRUNCATED };
                        self.finish(&raw.header, (raw.reason, raw.flags | cut), sane(&frames), leaf)
                    }
                    Followed::Waits(on) => self.keep(raw, since_ns, on, leaf),
                })
            }
            _ => None,
        }
    }

    /// Unwinds a stack of a process that has run its program since `since_ns`. `may_look`: the stack may wait until the
    /// process's mappings are read.
    pub(super) fn unwind(
        &mut self,
        (pid, since_ns): (u32, u64),
        time_ns: u64,
        copied: &Copied<'_>,
        may_look: bool,
    ) -> Followed {
        let looker = self.reader.as_ref().filter(|_| self.mappings_told < self.most_mappings);
        let Some(process) = of(&mut self.spaces, &mut self.past, pid, since_ns) else {
            return Followed::To(Unwound::default());
        };
        let unwound = loop {
            match (process.unwinding.follow(copied), &self.reader) {
                (Ok(unwound), _) => break unwound,
                (Err(_), None) => process.unwinding.give_up(),
                (Err(not_read), Some(reader)) => {
                    let (code, start) = process.unwinding.ask(not_read);
                    if let Some(code) = code {
                        reader.ask(Ask::Tables { pid, since_ns, code });
                    }
                    return Followed::Waits(On::Tables(start));
                }
            }
        };
        // Either a library was loaded in between, or the mappings were never read before.
        if !process.space.knows(&unwound.frames, time_ns)
            && ask_look(process, looker, pid, time_ns)
            && may_look
        {
            return Followed::Waits(On::Look);
        }
        if process.learn(&unwound, copied.bytes.len()) {
            let code = process.code();
            self.tell_code((pid, since_ns), code);
        }
        Followed::To(unwound)
    }

    /// Queues facts about a process's code for the kernel programs, if the process still runs this program.
    pub(super) fn tell_code(&mut self, (pid, since_ns): (u32, u64), code: SampledCode) {
        if self.spaces.get(&pid).is_some_and(|process| process.space.since_ns == since_ns) {
            self.codes.push((pid, Some(code)));
        }
    }

    fn process(&mut self, pid: u32) -> &mut SampledProcess {
        if self.spaces.len() >= MOST_PROCESSES && !self.spaces.contains_key(&pid) {
            for (pid, before) in std::mem::take(&mut self.spaces) {
                self.keep_past(pid, before);
            }
        }
        self.spaces.entry(pid).or_default()
    }

    /// Makes a sample whose stack is reported later, or never if there is no room for it.
    fn keep(&mut self, raw: &RawCopy, since_ns: u64, on: On, leaf: Leaf) -> Sample {
        self.counts.taken += 1;
        let stack = Kept::of(raw);
        let number = self.has_room_for(&stack).then(|| self.interner.reserve()).flatten();
        match number {
            Some(number) => {
                let (pid, time_ns) = (raw.header.pid, raw.header.time_ns);
                self.note_leaf(number, pid, time_ns, leaf);
                self.wait(Waiting { number, pid, time_ns, since_ns, stack, leaf, on, looked: false });
            }
            None => {
                self.counts.without_stack += 1;
                self.counts.unread += 1;
            }
        }
        let header = Header { kind: Kind::Sample as u8, ..raw.header };
        Sample { header, stack: number.unwrap_or(0), reason: raw.reason, flags: raw.flags, reserved: 0 }
    }

    /// Makes a sample with the number of its stack. A new stack is reported before it.
    fn finish(
        &mut self,
        header: &Header,
        (reason, mut flags): (u8, u8),
        frames: &[u64],
        leaf: Leaf,
    ) -> Sample {
        let frames = match frames.get(..MOST_FRAMES) {
            Some(innermost) if frames.len() > MOST_FRAMES => {
                flags |= SampleFlags::TRUNCATED;
                innermost
            }
            _ => frames,
        };
        self.counts.taken += 1;
        self.counts.truncated += u64::from(flags & SampleFlags::TRUNCATED != 0);
        let stack = self.stack(header, frames, leaf);
        self.counts.without_stack += u64::from(stack == 0);
        let header = Header { kind: Kind::Sample as u8, ..*header };
        Sample { header, stack, reason, flags, reserved: 0 }
    }

    fn stack(&mut self, header: &Header, frames: &[u64], leaf: Leaf) -> u32 {
        if frames.is_empty() {
            return 0;
        }
        let (pid, time_ns) = (header.pid, header.time_ns);
        let space = &self.process(pid).space;
        let (since_ns, is_known) = (space.since_ns, space.knows(frames, time_ns));
        let same_since = space.same_since(time_ns);
        if time_ns < since_ns {
            // The sample is of the program before the exec, whose code is no longer mapped.
            return 0;
        }
        let number = match self.interner.number(pid, same_since, frames, leaf) {
            Interned::Known(number) => return number,
            Interned::New(number) => number,
            Interned::Full => {
                self.counts.no_room += 1;
                return 0;
            }
        };
        self.note_leaf(number, pid, time_ns, leaf);
        let looker = self.reader.as_ref().filter(|_| self.mappings_told < self.most_mappings);
        let process = self.spaces.get_mut(&pid).filter(|_| !is_known);
        let looking = process.is_some_and(|process| ask_look(process, looker, pid, time_ns));
        let stack = Kept::Frames(frames.to_vec());
        if looking && self.has_room_for(&stack) {
            // The mappings of the stack's code must be reported before the stack, since the namer examines each stack
            // only once.
            let on = On::Look;
            self.wait(Waiting { number, pid, time_ns, since_ns, stack, leaf, on, looked: false });
        } else {
            // If the stack is cut off, the sample itself has the mark.
            let kind = NoteKind::Stack { id: number, pid, frames: frames.to_vec(), cut: false };
            self.notes.push(Note { time_ns, kind });
        }
        number
    }

    /// Reports what is known about the innermost place of a stack.
    fn note_leaf(&mut self, stack: u32, pid: u32, time_ns: u64, leaf: Leaf) {
        self.notes.extend(leaf.note(stack, pid).map(|kind| Note { time_ns, kind }));
    }

    /// New stacks since the last call.
    pub fn take_notes(&mut self) -> Vec<Note> {
        std::mem::take(&mut self.notes)
    }

    /// New mappings since the last call.
    pub fn take_mappings(&mut self) -> Vec<MappingFact> {
        std::mem::take(&mut self.mappings)
    }

    /// New facts about processes' code for the kernel programs since the last call; `None`: the facts are to be removed.
    pub fn take_codes(&mut self) -> Vec<(u32, Option<SampledCode>)> {
        std::mem::take(&mut self.codes)
    }

    /// Puts facts back that could not be passed on now.
    pub fn give_back_codes(&mut self, mut codes: Vec<(u32, Option<SampledCode>)>) {
        codes.append(&mut self.codes);
        self.codes = codes;
    }

    /// Counts of all samples by result; `lost` samples did not arrive.
    pub fn counts(&self, lost: u64) -> SampleCounts {
        SampleCounts { lost: lost.saturating_add(self.undecodable), ..self.counts }
    }
}

/// The frames before the first one that cannot be an address of user space.
pub(super) fn sane(frames: &[u64]) -> &[u64] {
    let sane = frames.iter().take_while(|&&frame| frame != 0 && frame < USER_END).count();
    frames.get(..sane).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use zerocopy::{FromZeros as _, IntoBytes as _};

    fn raw(time_ns: u64, frames: &[u64]) -> RawStack {
        let header =
            Header { time_ns, sequence: 4, cpu: 1, kind: RAW_STACK_KIND, context: 0, tid: 8, pid: u32::MAX };
        let mut all = [0xdead_0000_0000_0000; probe_abi::RAW_FRAMES];
        all[..frames.len()].copy_from_slice(frames);
        let count = frames.len() as u16;
        RawStack { header, reason: 1, flags: 2, count, at_root: 0, frames: all, ..RawStack::new_zeroed() }
    }

    #[test]
    fn a_stack_is_noted_once_and_before_its_samples() {
        let mut sampler = Sampler::new(CallGraph::Fp);
        let first = sampler.sample(raw(10, &[0x1000, 0x2000]).as_bytes()).expect("a sample");
        assert_eq!((first.stack, first.reason, first.flags), (1, 1, 2));
        assert_eq!((first.header.kind, first.header.time_ns, first.header.tid), (Kind::Sample as u8, 10, 8));
        let kind = NoteKind::Stack { id: 1, pid: u32::MAX, frames: vec![0x1000, 0x2000], cut: false };
        assert_eq!(sampler.take_notes(), [Note { time_ns: 10, kind }]);
        assert_eq!(sampler.sample(raw(20, &[0x1000, 0x2000]).as_bytes()).map(|s| s.stack), Some(1));
        assert_eq!(sampler.take_notes(), []);
        assert_eq!(sampler.counts(3), SampleCounts { taken: 2, lost: 3, ..SampleCounts::default() });
    }

    /// If two libraries are mapped at one address, one after the other, their stacks must not share the first library's
    /// names.
    #[test]
    fn a_stack_through_code_in_the_place_of_other_code_has_its_own_number() {
        let mut sampler = Sampler::new(CallGraph::Fp);
        let number = |sampler: &mut Sampler, time_ns| {
            sampler.sample(raw(time_ns, &[0x1000, 0x2000]).as_bytes()).map(|sample| sample.stack)
        };
        let mapping = |time_ns, inode| {
            let (start, end) = (0x1000, 0x1800);
            NewMapping { pid: u32::MAX, time_ns, start, end, inode, ..NewMapping::default() }
        };
        assert_eq!(number(&mut sampler, 10), Some(1));
        sampler.mapped(&mapping(20, 5));
        assert_eq!(number(&mut sampler, 30), Some(1), "what was there before is not known");
        sampler.mapped(&mapping(40, 6));
        assert_eq!([35, 45, 50].map(|time| number(&mut sampler, time)), [Some(1), Some(2), Some(2)]);
    }

    /// The gate of a launched command has a `main`, too.
    #[test]
    fn samples_before_the_launched_command_are_left_out() {
        let mut sampler = Sampler::new(CallGraph::Fp).launching(u32::MAX);
        let mut other = raw(10, &[0x1000]);
        other.header.pid = 1;
        assert_eq!(sampler.sample(raw(10, &[0x1000]).as_bytes()), None);
        assert!(sampler.sample(other.as_bytes()).is_some());
        let header = Header { kind: Kind::Exec as u8, ..raw(20, &[]).header };
        let exec = Exec { header, ..Exec::new_zeroed() };
        sampler.record(exec.as_bytes());
        assert!(sampler.sample(raw(30, &[0x1000]).as_bytes()).is_some());
        assert_eq!(sampler.counts(0), SampleCounts { taken: 2, ..SampleCounts::default() });
    }

    #[test]
    fn an_impossible_frame_ends_the_stack() {
        assert_eq!(sane(&[1, 2, 0, 3]), [1, 2]);
        assert_eq!(sane(&[1, 0xffff_ffff_8000_0000, 3]), [1]);
        let mut sampler = Sampler::new(CallGraph::Fp);
        let none = sampler.sample(raw(10, &[0]).as_bytes()).expect("a sample");
        assert_eq!(none.stack, 0);
        assert_eq!(sampler.counts(0).without_stack, 1);
    }

    #[test]
    fn bytes_that_are_no_sample_are_counted_as_lost() {
        let mut sampler = Sampler::new(CallGraph::Fp);
        assert_eq!(sampler.sample(&[]), None);
        assert_eq!(sampler.sample(&[0; 2000]), None);
        let whole = raw(1, &[5]);
        assert_eq!(sampler.sample(&whole.as_bytes()[..100]), None);
        let lie = RawStack { count: 128, ..whole };
        assert_eq!(sampler.sample(lie.as_bytes()), None);
        assert_eq!(sampler.counts(0).lost, 4);
    }

    /// Samples without a stack, because the 128 MiB for stacks are full, must be counted.
    #[test]
    fn samples_whose_stacks_have_no_room_are_counted() {
        let mut sampler = Sampler::new(CallGraph::Fp);
        sampler.interner = Interner::new(Some(64 + 8));
        assert_eq!(
            [[1], [2], [1]].map(|frames| sampler.sample(raw(10, &frames).as_bytes()).map(|s| s.stack)),
            [Some(1), Some(0), Some(1)]
        );
        let counts = SampleCounts { taken: 3, without_stack: 1, no_room: 1, ..SampleCounts::default() };
        assert_eq!(sampler.counts(0), counts);
    }
}
