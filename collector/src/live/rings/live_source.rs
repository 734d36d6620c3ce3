//! The rings of the kernel and those of the preloaded library as one source.

use super::poll_backoff::PollBackoff;
use super::source::Attach;
use super::source::Late;
use super::source::{Drained, EventSource, Probed};
use crate::live::main_loop::Unprobed;
use capture::interpose::{Doorbell, Interposed};
use capture::probe::{
    Attacher, Capture, LibcProbes, NewMapping, ProbeError, ProbeErrorKind, ProbeFunction, Since, now_ns,
};
use capture::unwind::Sampler;
use engine::event::{
    AwaitedFact, KernelLocks, LossCounts, MappingFact, Note, Overhead, PendingOperation, Requests,
    SampleCounts,
};
use probe_abi::{ContextPlace, Header, Kind, Record};
use std::mem::offset_of;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use zerocopy::IntoBytes as _;

/// Longest time spent on samples in a turn, since the other rings fill up at that time.
const SAMPLES_TURN: Duration = Duration::from_millis(10);

/// A capture that is running.
pub struct LiveSource {
    capture: Capture,
    /// The preloaded library's records of a launched command; its rings are numbered after the kernel's.
    interposed: Option<Interposed>,
    launched: Option<(u32, PathBuf)>,
    /// The recorded processes, if contexts of threads are wanted.
    publishing: Option<Vec<u32>>,
    /// Operations that threads had begun and not finished at the end, as far as probes recorded them.
    pending: Vec<PendingOperation>,
    kernel_locks: Option<KernelLocks>,
    requests: Option<Requests>,
    /// Unwinds the sampled stacks, if stacks are sampled.
    sampler: Option<Sampler>,
    /// New mappings that were passed to the sampler and not yet to `EventSource::take_loaded`.
    loaded: Vec<NewMapping>,
    /// A thread waits for the command's doorbell.
    has_bell: bool,
    backoff: PollBackoff,
    /// Bytes of records in the merger that wait until their place in time is certain.
    held_bytes: u64,
}

fn unprobed(error: ProbeError) -> Unprobed {
    match error.kind {
        ProbeErrorKind::Target => Unprobed::Ended,
        _ => Unprobed::Refused(error.message),
    }
}

impl LiveSource {
    /// Takes over a capture.
    pub fn new(capture: Capture, interposed: Option<Interposed>) -> LiveSource {
        let backoff = PollBackoff::beginning(Instant::now(), capture.ring_bytes());
        LiveSource {
            capture,
            interposed,
            launched: None,
            publishing: None,
            pending: Vec::new(),
            kernel_locks: None,
            requests: None,
            sampler: None,
            loaded: Vec::new(),
            has_bell: false,
            backoff,
            held_bytes: 0,
        }
    }

    /// Adds a sampler of stacks.
    pub fn sampled(self, sampler: Option<Sampler>) -> LiveSource {
        let told = self.capture.tells_of_mappings();
        LiveSource { sampler: sampler.map(|sampler| sampler.hearing_of_mappings(told)), ..self }
    }

    /// Sets that the stream has no end: the sampler then sends stacks again, since the consumer forgets old ones. The consumer
    /// analyses all of its window, so recording locks does not pause.
    #[must_use]
    pub fn without_end(mut self) -> LiveSource {
        self.interposed.iter_mut().for_each(Interposed::without_pauses);
        self.sampler.iter_mut().for_each(Sampler::without_end);
        self
    }

    /// Sets the processes whose threads' contexts are wanted.
    pub fn publishing(self, publishing: Option<Vec<u32>>) -> LiveSource {
        LiveSource { publishing, ..self }
    }

    fn hear_of_mappings(&mut self) {
        let loaded = self.capture.take_loaded();
        if !loaded.is_empty() {
            self.backoff.stir(Instant::now());
        }
        if let Some(sampler) = &mut self.sampler {
            loaded.iter().for_each(|mapping| sampler.mapped(mapping));
        }
        self.loaded.extend(loaded);
    }

    /// Turns copied stacks into samples, for `SAMPLES_TURN` at most. Returns whether the rings are empty.
    fn drain_samples(&mut self, records: &mut usize, sink: &mut dyn FnMut(usize, &[u8])) -> bool {
        // The mappings of a sample must be known before the sample.
        self.hear_of_mappings();
        let LiveSource { capture, sampler, interposed, .. } = self;
        let Some(sampler) = sampler else { return true };
        let first = capture.ring_count() + interposed.as_ref().map_or(0, Interposed::ring_count);
        let began = Instant::now();
        let emptied = capture.drain_samples(
            &mut |ring, bytes| {
                if let Some(sample) = sampler.sample(bytes) {
                    *records += 1;
                    sink(first + ring, sample.as_bytes());
                }
            },
            &mut || began.elapsed() >= SAMPLES_TURN,
        );
        // The remaining time of the turn is for samples that waited for unwind tables.
        sampler.go_on(&mut || began.elapsed() >= SAMPLES_TURN);
        let codes = sampler.take_codes();
        if !codes.is_empty() && !capture.tell_code(&codes) {
            sampler.give_back_codes(codes);
        }
        emptied
    }

    /// Remembers the process at the gate (held before its program starts), and the program that it will run.
    pub fn launching(self, pid: u32, program: Option<PathBuf>) -> LiveSource {
        LiveSource { launched: program.map(|program| (pid, program)), ..self }
    }
}

impl EventSource for LiveSource {
    fn rings(&self) -> usize {
        let interposed = self.interposed.as_ref().map_or(0, Interposed::ring_count);
        self.capture.ring_count() + interposed + self.capture.sample_ring_count()
    }

    fn is_live(&self) -> bool {
        true
    }

    fn launched(&self) -> Option<(u32, PathBuf)> {
        self.launched.clone()
    }

    fn publishing(&self) -> Option<Vec<u32>> {
        self.publishing.clone()
    }

    fn tell_contexts(&mut self, places: &[(u32, Option<ContextPlace>)]) -> bool {
        self.capture.tell_contexts(places)
    }

    fn first_number(&self) -> Option<u32> {
        // The counters of records are created with the capture, so numbers start at 0.
        Some(0)
    }

    fn written(&mut self) -> Vec<(usize, u16, u64)> {
        self.capture.written()
    }

    fn set_merge_backlog(&mut self, bytes: u64) {
        self.held_bytes = bytes;
    }

    fn drain(&mut self, sink: &mut dyn FnMut(usize, &[u8])) -> Drained {
        // All records from before this time are in the rings, so emptying the rings yields all of them.
        let before_ns = now_ns();
        let LiveSource { capture, interposed, sampler, .. } = self;
        let mut stirred = false;
        let mut records = capture.drain(&mut |ring, bytes| {
            let kind = bytes.get(offset_of!(Header, kind)).copied().and_then(Kind::from_byte);
            stirred |= kind.is_some_and(PollBackoff::stirs);
            if let Some(interposed) = interposed.as_mut()
                && kind == Some(Kind::Exit)
                && let Ok(record) = Record::decode(bytes)
            {
                interposed.thread_ended(record.header().pid, record.header().tid);
            }
            if let Some(sampler) = sampler {
                sampler.record(bytes);
            }
            sink(ring, bytes);
        });
        let mut complete_to_ns = (records < Capture::RING_TURN).then_some(before_ns);
        let mut is_throttled = false;
        if let Some(interposed) = &mut self.interposed {
            is_throttled = interposed.is_throttled(self.held_bytes);
        }
        if let Some(interposed) = self.interposed.as_mut().filter(|_| !is_throttled) {
            let first = self.capture.ring_count();
            let (more, to_ns) =
                interposed.drain(self.held_bytes, &mut |ring, bytes| sink(first + ring, bytes));
            self.capture.see_operations(&interposed.cost());
            records += more;
            complete_to_ns = complete_to_ns.zip(to_ns).map(|(a, b)| a.min(b));
        }
        let without_samples = records;
        if !self.drain_samples(&mut records, sink) {
            complete_to_ns = None;
        }
        self.backoff.turn(records, records.saturating_sub(without_samples));
        if stirred {
            self.backoff.stir(Instant::now());
        }
        let more = complete_to_ns.is_none();
        if is_throttled {
            complete_to_ns = None;
        }
        Drained { records, complete_to_ns, more, ended: false }
    }

    fn take_notes(&mut self) -> Vec<Note> {
        let mut notes = self.capture.take_notes();
        notes.extend(self.interposed.iter_mut().flat_map(Interposed::take_notes));
        notes.extend(self.sampler.iter_mut().flat_map(Sampler::take_notes));
        notes
    }

    fn take_mappings(&mut self) -> Vec<MappingFact> {
        self.sampler.as_mut().map(Sampler::take_mappings).unwrap_or_default()
    }

    fn samples(&mut self) -> Option<SampleCounts> {
        let (lost, left_out) = (self.capture.samples_lost(), self.capture.samples_left_out());
        self.sampler.as_ref().map(|sampler| SampleCounts { left_out, ..sampler.counts(lost) })
    }

    fn loss(&mut self) -> LossCounts {
        let mut loss = self.capture.loss();
        if let Some(interposed) = &self.interposed {
            let (dropped, undecodable) = interposed.loss();
            loss.operations = loss.operations.saturating_add(dropped);
            loss.operations_short = interposed.short();
            loss.operations_left_out = interposed.left_out();
            loss.operations_counted = interposed.counted();
            loss.operations_forbidden = interposed.forbidden();
            loss.undecodable = loss.undecodable.saturating_add(undecodable);
        }
        loss
    }

    fn overhead(&mut self) -> Option<Overhead> {
        Some(self.capture.overhead())
    }

    fn take_probed(&mut self) -> Probed {
        Probed {
            on: self.capture.take_probed(),
            refused: self.capture.take_refused(),
            libc: self.capture.take_libc_probed(),
        }
    }

    fn attacher(&mut self) -> Option<Box<dyn Attach>> {
        Some(Box::new(self.capture.attacher()))
    }

    fn meter(&mut self) -> Option<Box<dyn Fn() + Send>> {
        let attacher = self.capture.attacher();
        Some(Box::new(move || attacher.begin()))
    }

    fn take_loaded(&mut self) -> Vec<NewMapping> {
        self.hear_of_mappings();
        std::mem::take(&mut self.loaded)
    }

    fn end(&mut self) -> u64 {
        if let Some(interposed) = &mut self.interposed {
            interposed.end();
        }
        let end_ns = self.capture.end();
        self.pending = self.capture.pending();
        self.kernel_locks = self.capture.kernel_locks();
        self.requests = self.capture.requests();
        end_ns
    }

    fn bell(&mut self) -> Option<Doorbell> {
        let bell = self.interposed.as_ref()?.bell();
        self.has_bell = bell.is_ok();
        bell.inspect_err(|error| log::warn!("longpole has to poll the command's rings: {error}")).ok()
    }

    fn longest_pause(&self) -> Duration {
        // A thread that only locks and unlocks fills its ring in some 8 ms. It signals the doorbell when the ring is
        // half full; if it cannot, the ring must be read before it is full.
        let unheard =
            self.interposed.as_ref().is_some_and(|interposed| !self.has_bell || interposed.is_silent());
        if unheard { Duration::from_millis(5) } else { self.backoff.longest_pause(Instant::now()) }
    }

    fn take_pending(&mut self) -> Vec<PendingOperation> {
        let mut pending = std::mem::take(&mut self.pending);
        pending.extend(self.interposed.iter_mut().flat_map(Interposed::take_pending));
        pending
    }

    fn take_kernel_locks(&mut self) -> Option<KernelLocks> {
        self.kernel_locks.take()
    }

    fn awaited(&mut self) -> Vec<AwaitedFact> {
        self.capture.awaited()
    }

    fn requests(&mut self) -> Option<Requests> {
        self.capture.requests()
    }

    fn take_requests(&mut self) -> Option<Requests> {
        self.requests.take()
    }

    fn stop(self: Box<Self>, patience: Duration) -> Late {
        for sentence in self.interposed.iter().flat_map(Interposed::shortcomings) {
            log::warn!("{sentence}");
        }
        let (lost, left_out) = (self.capture.samples_lost(), self.capture.samples_left_out());
        let LiveSource { capture, sampler, .. } = *self;
        // Notes and losses were taken after the end. Probes go first: the program must not wait until stacks are
        // unwound.
        let _ = capture.stop();
        let Some(mut sampler) = sampler else { return Late::default() };
        sampler.finish_all(patience);
        Late {
            notes: sampler.take_notes(),
            mappings: sampler.take_mappings(),
            samples: Some(SampleCounts { left_out, ..sampler.counts(lost) }),
        }
    }
}

impl Attach for Attacher {
    fn now_ns(&self) -> u64 {
        now_ns()
    }

    fn add_process(&mut self, pid: u32, since: Since, functions: &[ProbeFunction]) -> Result<(), Unprobed> {
        Attacher::add_process(self, pid, since, functions).map_err(unprobed)
    }

    fn add_functions(
        &mut self,
        pid: u32,
        since: Since,
        wanted: bool,
        functions: &[ProbeFunction],
    ) -> Result<(), Unprobed> {
        Attacher::add_functions(self, pid, since, wanted, functions).map_err(unprobed)
    }

    fn rest_functions(&mut self, functions: &[u32]) -> Result<(), Unprobed> {
        Attacher::rest_functions(self, functions).map_err(unprobed)
    }

    fn add_libc(
        &mut self,
        probes: &LibcProbes,
        since_ns: u64,
        executed: Option<bool>,
    ) -> Result<(), Unprobed> {
        Attacher::add_libc(self, probes, since_ns, executed).map_err(unprobed)
    }
}
