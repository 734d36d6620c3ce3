//! Raw samples in, samples out; what they need beside them is told by notes and facts.

use super::binaries::Binaries;
use super::copies::{Unwinding, Unwound};
use super::depth::Depth;
use super::interner::{Interned, Interner};
use super::space::Space;
use engine::event::{CallGraph, MOST_FRAMES, MappingFact, Note, NoteKind, SampleCounts};
use probe_abi::{
    Exec, Exit, Fork, Header, Kind, MAX_KEEPING, MAX_ROOTS, RAW_COPY_KIND, RAW_STACK_KIND, RawCopy, RawStack,
    Record, Sample, SampleFlags, SampledCode,
};
use rustc_hash::FxHashMap;
use std::mem::offset_of;
use zerocopy::FromBytes as _;

/// Bytes of memory that the stacks of a recording take at most when it is read: half of what a reader takes.
const ROOM: u64 = 128 << 20;
/// Most processes remembered at once.
const MOST_PROCESSES: usize = 4096;
/// Most mappings told: a program may map without end.
const MOST_MAPPINGS: usize = 1 << 16;
/// User-space addresses are below this (x86-64).
const USER_END: u64 = 1 << 47;

/// A process.
#[derive(Default)]
struct Sampled {
    space: Space,
    unwinding: Unwinding,
    /// What the outermost functions that keep frame pointers return to, and what lies above that.
    roots: Vec<Vec<u64>>,
    depth: Depth,
}

impl Sampled {
    fn new(since_ns: u64) -> Sampled {
        Sampled { space: Space::new(since_ns), ..Sampled::default() }
    }

    fn keeps(&self, address: u64) -> bool {
        self.unwinding.keeping.iter().any(|[start, length]| address.wrapping_sub(*start) < *length)
    }

    /// Where a whole stack leaves the code that keeps frame pointers for good is a root; whether it is a new one.
    fn learn_root(&mut self, frames: &[u64]) -> bool {
        let Some(at) = frames.iter().position(|&frame| !self.keeps(frame)).filter(|&at| at > 0) else {
            return false;
        };
        let above = frames.get(at..).unwrap_or_default();
        // The very first function of a program is its own again.
        let for_good =
            above.split_last().is_some_and(|(_, rest)| rest.iter().all(|&frame| !self.keeps(frame)));
        let known = self.roots.iter().any(|root| root.first() == above.first());
        if !for_good || known || self.roots.len() >= MAX_ROOTS {
            return false;
        }
        self.roots.push(above.to_vec());
        true
    }

    fn code(&self) -> SampledCode {
        let mut code = SampledCode::default();
        for (to, from) in code.keeping.iter_mut().zip(self.unwinding.keeping.iter().take(MAX_KEEPING)) {
            *to = *from;
        }
        for (to, from) in code.roots.iter_mut().zip(&self.roots) {
            *to = from.first().copied().unwrap_or(0);
        }
        code.copy_pieces = self.depth.pieces();
        code
    }
}

/// See the module.
pub struct Sampler {
    how: CallGraph,
    /// A process that has not begun the command that is recorded.
    at_gate: Option<u32>,
    interner: Interner,
    spaces: FxHashMap<u32, Sampled>,
    binaries: Binaries,
    codes: Vec<(u32, Option<SampledCode>)>,
    notes: Vec<Note>,
    mappings: Vec<MappingFact>,
    mappings_told: usize,
    /// The kernel tells what processes map later.
    hears_of_mappings: bool,
    counts: SampleCounts,
    undecodable: u64,
}

impl Sampler {
    /// For stacks that are read like this.
    pub fn new(how: CallGraph) -> Sampler {
        Sampler {
            how,
            at_gate: None,
            interner: Interner::new(Some(ROOM)),
            spaces: FxHashMap::default(),
            binaries: Binaries::default(),
            codes: Vec::new(),
            notes: Vec::new(),
            mappings: Vec::new(),
            mappings_told: 0,
            hears_of_mappings: false,
            counts: SampleCounts::default(),
            undecodable: 0,
        }
    }

    /// For a stream without end, whose listener forgets what is old.
    pub fn without_end(&mut self) {
        self.interner.without_end();
    }

    /// Whoever drives it says what processes map later ([`Sampler::mapped`]): they are looked at less often.
    #[must_use]
    pub fn hearing_of_mappings(self, hears_of_mappings: bool) -> Sampler {
        Sampler { hears_of_mappings, ..self }
    }

    /// A process has mapped something to execute; 0: any may have.
    pub fn mapped(&mut self, pid: u32) {
        let all = self.spaces.iter_mut().filter(|(of, _)| pid == 0 || **of == pid);
        all.for_each(|(_, process)| process.space.mapped());
    }

    /// What this process does until it runs another program is longpole's own.
    #[must_use]
    pub fn launching(self, pid: u32) -> Sampler {
        Sampler { at_gate: Some(pid), ..self }
    }

    /// Looks at a record that is no sample: processes may have changed.
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
            // What it was is forgotten with its next program: its last samples are still on the way.
            Ok(Record::Exit(Exit { header, last_of_process, .. })) if last_of_process != 0 => {
                self.codes.push((header.pid, None));
            }
            _ => {}
        }
    }

    fn begin(&mut self, pid: u32, since_ns: u64) {
        // Until its code is known its stacks are copied.
        if self.spaces.insert(pid, Sampled::new(since_ns)).is_some() {
            self.codes.push((pid, None));
        }
    }

    /// The sample that a raw one stands for; `None` if the bytes are none, or longpole's own.
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
                let process = self.spaces.get(&raw.header.pid).filter(|_| raw.at_root != 0);
                let root = process
                    .and_then(|process| process.roots.iter().find(|root| root.first() == frames.last()));
                frames.extend(root.into_iter().flatten().skip(1));
                Some(self.finish(&raw.header, raw.reason, raw.flags, &frames))
            }
            RAW_COPY_KIND => {
                let (raw, _) = RawCopy::ref_from_prefix(bytes).ok()?;
                let Unwound { frames, whole, .. } = self.unwind(raw);
                let cut = if whole { 0 } else { SampleFlags::TRUNCATED };
                Some(self.finish(&raw.header, raw.reason, raw.flags | cut, sane(&frames)))
            }
            _ => None,
        }
    }

    fn unwind(&mut self, raw: &RawCopy) -> Unwound {
        let (pid, time_ns) = (raw.header.pid, raw.header.time_ns);
        self.process(pid);
        let of_this_program = |process: &&mut Sampled| time_ns >= process.space.since_ns;
        let Some(process) = self.spaces.get_mut(&pid).filter(of_this_program) else {
            return Unwound::default();
        };
        let kept = process.unwinding.keeping.len();
        let mut unwound = process.unwinding.unwind(raw, &mut self.binaries);
        // A library that was loaded meanwhile, or the very first look.
        if !process.space.knows(&unwound.frames)
            && self.look(pid, time_ns)
            && let Some(process) = self.spaces.get_mut(&pid)
        {
            unwound = process.unwinding.unwind(raw, &mut self.binaries);
        }
        if let Some(process) = self.spaces.get_mut(&pid) {
            let new_depth = match unwound {
                Unwound { whole: true, reach, .. } => process.depth.whole(reach),
                Unwound { beyond: true, .. } => process.depth.cut(raw.count as usize),
                _ => false,
            };
            let new_root = unwound.whole && process.learn_root(&unwound.frames);
            if new_depth || new_root || process.unwinding.keeping.len() != kept {
                self.codes.push((pid, Some(process.code())));
            }
        }
        unwound
    }

    fn process(&mut self, pid: u32) -> &mut Sampled {
        if self.spaces.len() >= MOST_PROCESSES && !self.spaces.contains_key(&pid) {
            self.spaces.clear();
        }
        self.spaces.entry(pid).or_default()
    }

    /// Looks at a process whose code is not all known; whether there is more now.
    fn look(&mut self, pid: u32, now_ns: u64) -> bool {
        if self.mappings_told >= MOST_MAPPINGS {
            return false;
        }
        let Some(process) = self.spaces.get_mut(&pid) else { return false };
        let new = process.space.look(pid, now_ns, self.hears_of_mappings);
        if new.is_empty() {
            return false;
        }
        if self.how != CallGraph::Fp {
            process.unwinding.know(&process.space.code);
            self.codes.push((pid, Some(process.code())));
        }
        self.mappings_told = self.mappings_told.saturating_add(new.len());
        self.mappings.extend(new);
        true
    }

    /// Gives the stack a number, and tells what has to be told first.
    fn finish(&mut self, header: &Header, reason: u8, mut flags: u8, frames: &[u64]) -> Sample {
        let frames = match frames.get(..MOST_FRAMES) {
            Some(innermost) if frames.len() > MOST_FRAMES => {
                flags |= SampleFlags::TRUNCATED;
                innermost
            }
            _ => frames,
        };
        self.counts.taken += 1;
        self.counts.truncated += u64::from(flags & SampleFlags::TRUNCATED != 0);
        let stack = self.stack(header, frames);
        self.counts.without_stack += u64::from(stack == 0);
        let header = Header { kind: Kind::Sample as u8, ..*header };
        Sample { header, stack, reason, flags, reserved: 0 }
    }

    fn stack(&mut self, header: &Header, frames: &[u64]) -> u32 {
        if frames.is_empty() {
            return 0;
        }
        let (pid, time_ns) = (header.pid, header.time_ns);
        let space = &self.process(pid).space;
        let (since_ns, is_known) = (space.since_ns, space.knows(frames));
        if time_ns < since_ns {
            // Of the program before, whose code nobody can look at any more.
            return 0;
        }
        let (number, is_new) = match self.interner.number(pid, since_ns, frames) {
            Interned::Known(number) => (number, false),
            Interned::New(number) => (number, true),
            Interned::Full => return 0,
        };
        if is_new {
            if !is_known {
                self.look(pid, time_ns);
            }
            let kind = NoteKind::Stack { id: number, pid, frames: frames.to_vec() };
            self.notes.push(Note { time_ns, kind });
        }
        number
    }

    /// Stacks that are new since the last call.
    pub fn take_notes(&mut self) -> Vec<Note> {
        std::mem::take(&mut self.notes)
    }

    /// Mappings that are new since the last call.
    pub fn take_mappings(&mut self) -> Vec<MappingFact> {
        std::mem::take(&mut self.mappings)
    }

    /// What the kernel programs have to know of processes' code since the last call; `None`: nothing any more.
    pub fn take_codes(&mut self) -> Vec<(u32, Option<SampledCode>)> {
        std::mem::take(&mut self.codes)
    }

    /// These could not be told: later.
    pub fn give_back_codes(&mut self, mut codes: Vec<(u32, Option<SampledCode>)>) {
        codes.append(&mut self.codes);
        self.codes = codes;
    }

    /// What became of all samples; `lost` of them did not arrive.
    pub fn counts(&self, lost: u64) -> SampleCounts {
        SampleCounts { lost: lost.saturating_add(self.undecodable), ..self.counts }
    }
}

/// Frames up to the first that cannot be one.
fn sane(frames: &[u64]) -> &[u64] {
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
        RawStack { header, reason: 1, flags: 2, count: frames.len() as u16, at_root: 0, frames: all }
    }

    #[test]
    fn a_stack_is_told_once_and_before_its_samples() {
        let mut sampler = Sampler::new(CallGraph::Fp);
        let first = sampler.sample(raw(10, &[0x1000, 0x2000]).as_bytes()).expect("a sample");
        assert_eq!((first.stack, first.reason, first.flags), (1, 1, 2));
        assert_eq!((first.header.kind, first.header.time_ns, first.header.tid), (Kind::Sample as u8, 10, 8));
        let kind = NoteKind::Stack { id: 1, pid: u32::MAX, frames: vec![0x1000, 0x2000] };
        assert_eq!(sampler.take_notes(), [Note { time_ns: 10, kind }]);
        assert_eq!(sampler.sample(raw(20, &[0x1000, 0x2000]).as_bytes()).map(|s| s.stack), Some(1));
        assert_eq!(sampler.take_notes(), []);
        assert_eq!(sampler.counts(3), SampleCounts { taken: 2, lost: 3, ..SampleCounts::default() });
    }

    /// The gate of a launched command has a `main`, too.
    #[test]
    fn samples_before_the_command_are_longpoles_own() {
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
    fn what_cannot_be_a_frame_ends_the_stack() {
        assert_eq!(sane(&[1, 2, 0, 3]), [1, 2]);
        assert_eq!(sane(&[1, 0xffff_ffff_8000_0000, 3]), [1]);
        let mut sampler = Sampler::new(CallGraph::Fp);
        let none = sampler.sample(raw(10, &[0]).as_bytes()).expect("a sample");
        assert_eq!(none.stack, 0);
        assert_eq!(sampler.counts(0).without_stack, 1);
    }

    #[test]
    fn other_bytes_are_counted() {
        let mut sampler = Sampler::new(CallGraph::Fp);
        assert_eq!(sampler.sample(&[]), None);
        assert_eq!(sampler.sample(&[0; 2000]), None);
        let whole = raw(1, &[5]);
        assert_eq!(sampler.sample(&whole.as_bytes()[..100]), None);
        let lie = RawStack { count: 128, ..whole };
        assert_eq!(sampler.sample(lie.as_bytes()), None);
        assert_eq!(sampler.counts(0).lost, 4);
    }
}
