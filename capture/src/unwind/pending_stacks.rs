//! Stacks that wait for an answer of another thread, and are reported when it is there.

use super::copies::Unwound;
use super::process::{Kept, On, Waiting};
use super::reader::{Reader, ReaderAnswer};
use super::sampler::{Followed, Sampler, of, sane};
use engine::event::{CallGraph, MOST_FRAMES, Note, NoteKind};
use std::time::{Duration, Instant};

/// Most stacks that wait for an answer, and most bytes of them: ten seconds of a program that is sampled a thousand times a
/// second.
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

    /// Hears what was found out, and tells the stacks that have waited for it, until `enough` says so.
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

    /// Waits for the pending answers, but no longer than this; afterwards every stack has been reported as
    /// far as it is known.
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

    /// There will be no more answers.
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

    /// Tells a stack that has waited, unless it needs one more answer.
    fn tell(&mut self, waiting: Waiting) {
        let Waiting { number, pid, time_ns, since_ns, .. } = waiting;
        // Its sample is on its way, and cannot say any more that the stack is cut off.
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
                    if kept.is_empty() || !self.interner.fill(number, pid, since_ns, kept) {
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
