//! A running capture; `start` begins it.

use std::{
    sync::{
        Arc, MutexGuard,
        atomic::{AtomicU64, Ordering},
        mpsc,
    },
    thread::JoinHandle,
};

use engine::event::{
    AwaitedFact, GapReason, HitCosts, KernelLocks, LossCounts, Note, NoteKind, Overhead, PendingOperation,
    Requests,
};

use super::overhead::controller::{Common, Probes};
use crate::probe::breakpoints::{Attacher, LinkKeeper, Programs, open_calls};
use crate::probe::error::ProbeError;
use crate::probe::kernel::{Link, close_together};
use crate::probe::sources::{
    Mappings, RequestCounter, Rings, awaited, counters, kernel_locks, now_ns, requests,
};

/// How often longpole asks for each program's runs that the kernel skipped, ns; that takes some thirty system calls.
const MISSED_EVERY_NS: u64 = 1_000_000_000;

/// Programs in the kernel and probes in the target. They are removed when this is dropped, or when the process
/// ends in any way.
pub struct Capture {
    pub(super) rings: Rings,
    pub(super) sample_rings: Rings,
    pub(super) common: Arc<Common>,
    pub(super) kernel_links: Vec<Link>,
    pub(super) keeper: Arc<LinkKeeper>,
    pub(super) controller: Option<(mpsc::Sender<()>, JoinHandle<()>)>,
    pub(super) own_notes: Vec<Note>,
    pub(super) hit_costs: Option<HitCosts>,
    pub(super) idle_asks_by_chance: bool,
    pub(super) ring_bytes: usize,
    pub(super) mappings: Option<Mappings>,
    /// Runs of kernel programs that the kernel had skipped when longpole last asked.
    pub(super) missed: AtomicU64,
    /// Time at which longpole last asked, ns.
    pub(super) looked_ns: AtomicU64,
    pub(super) unprobed: Vec<(u32, ProbeError)>,
    pub(super) without_libc: Vec<(u32, ProbeError)>,
    pub(super) start_ns: u64,
    /// Recording has ended; records may still be in the rings.
    pub(super) ended: bool,
}

/// Results that are known when a capture has ended.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StopSummary {
    /// Losses by kind.
    pub loss: LossCounts,
    /// Notes that [`Capture::take_notes`] has not returned yet.
    pub notes: Vec<Note>,
    /// Calls without a record: their function was called too often, and its probes were not removed yet.
    pub calls_cut: u64,
    /// Records that the programs wrote, including lost ones.
    pub records: u64,
}

impl Capture {
    /// Largest number of records of one ring in one [`Capture::drain`]. If all rings together give fewer, every ring
    /// was emptied.
    pub const RING_TURN: usize = super::sources::BATCH;

    /// Time from which on records are complete (`CLOCK_MONOTONIC` nanoseconds).
    pub fn start_ns(&self) -> u64 {
        self.start_ns
    }

    /// Number of rings: [`Capture::drain`] numbers them from 0.
    pub fn ring_count(&self) -> usize {
        self.rings.count()
    }

    /// Size of each ring in bytes, as asked for.
    pub fn ring_bytes(&self) -> usize {
        self.ring_bytes
    }

    /// Passes the records in the rings to `sink`, with the number of their ring, and returns the number of records.
    /// Never waits, and stops after some 10,000 records per ring; 0 means that all rings were empty. Within a ring that
    /// serves one CPU, records are nearly in time order.
    pub fn drain(&mut self, sink: &mut dyn FnMut(usize, &[u8])) -> usize {
        let Capture { rings, common, .. } = self;
        let records = rings.drain(&mut |ring, bytes| {
            if Programs::are_told_of_in(bytes) {
                common.programs().see(bytes);
            }
            sink(ring, bytes);
        });
        // Probes of replaced programs go before any are chosen for the new programs. While another thread works on the
        // probes, this waits for the next turn.
        if common.programs().has_news()
            && let Some(mut probes) = common.try_lock()
        {
            common.drop_replaced_programs(&mut probes);
        }
        records
    }

    /// A handle that attaches and removes probes, for a thread that may wait.
    pub fn attacher(&self) -> Attacher {
        Attacher::new(self.common.clone())
    }

    /// The probes; `None` while another thread changes them, which may take some hundred milliseconds: the ring reader
    /// never waits. After [`Capture::end`] there are no rings to empty, so this waits.
    fn probes_now(&self) -> Option<MutexGuard<'_, Probes>> {
        if self.ended { Some(self.common.lock()) } else { self.common.try_lock() }
    }

    /// Notes since the last call, in time order; those of work in progress come with a later call. A note may be older
    /// than records that were drained before it: a function's records stop some ten milliseconds before its probes are
    /// removed.
    pub fn take_notes(&mut self) -> Vec<Note> {
        let mut notes = std::mem::take(&mut self.own_notes);
        notes.append(&mut self.common.take_notes());
        if let Some(mut probes) = self.probes_now() {
            notes.append(&mut probes.notes);
        }
        notes.sort_by_key(|note| note.time_ns);
        notes
    }

    /// Losses so far that are counted in the kernel. The count of program runs that the kernel skipped is up to a
    /// second old until [`Capture::end`].
    pub fn loss(&self) -> LossCounts {
        let due = now_ns().saturating_sub(self.looked_ns.load(Ordering::Relaxed)) >= MISSED_EVERY_NS;
        if due && let Some(probes) = self.common.try_lock() {
            self.look_for_missed(&probes);
        }
        self.common.shared.loss(self.missed.load(Ordering::Relaxed))
    }

    /// CPUs that lost records because their ring was full: ring, CPU, and number of records that the CPU has tried to
    /// write so far. Each CPU numbers its records from 0.
    pub fn written(&self) -> Vec<(usize, u16, u64)> {
        let rings = self.rings.count().max(1);
        self.common
            .shared
            .lossy_cpus()
            .map(|(cpu, written)| (usize::from(cpu) % rings, cpu, written))
            .collect()
    }

    /// The cost of a hit of a function probe, if it could be measured.
    pub fn hit_costs(&self) -> Option<HitCosts> {
        self.hit_costs
    }

    /// Whether idle CPUs of this kernel search only sometimes for threads that wait on other CPUs.
    pub fn idle_asks_by_chance(&self) -> bool {
        self.idle_asks_by_chance
    }

    /// The cost of recording so far; some tenths of a second old until [`Capture::end`].
    pub fn overhead(&self) -> Overhead {
        self.common.overhead()
    }

    /// Functions that got probes since the last call, once for every process.
    pub fn take_probed(&mut self) -> Vec<u32> {
        self.probes_now().map(|mut probes| probes.functions.take_probed()).unwrap_or_default()
    }

    /// Functions that the kernel has refused to probe since the last call.
    pub fn take_refused(&mut self) -> Vec<u32> {
        self.probes_now().map(|mut probes| probes.functions.take_refused()).unwrap_or_default()
    }

    /// Whether the kernel has refused to probe a function since [`Capture::take_refused`] was called.
    pub fn has_refused(&self, function: u32) -> bool {
        self.common.lock().functions.has_refused(function)
    }

    /// Processes of [`CaptureOptions::optional_pids`] without function probes, and why.
    pub fn unprobed(&self) -> &[(u32, ProbeError)] {
        &self.unprobed
    }

    /// Processes of [`CaptureOptions::libc`] without probes on their C library, each with the reason.
    pub fn without_libc(&self) -> &[(u32, ProbeError)] {
        &self.without_libc
    }

    /// Processes whose C library has got probes since the last call.
    pub fn take_libc_probed(&mut self) -> Vec<u32> {
        self.probes_now().map(|mut probes| probes.operations.take_probed()).unwrap_or_default()
    }

    /// Notes that a process's operations are missing from the start, until [`Attacher::add_libc`] decides about its
    /// library.
    pub fn decide_libc_later(&mut self, pid: u32) {
        self.common.lock().operations.wait_for_trial(pid, self.start_ns);
    }

    /// Synchronization operations that threads have begun and not finished, if probes on C libraries recorded their
    /// beginning.
    pub fn pending(&self) -> Vec<PendingOperation> {
        open_calls::pending(&self.common.lock().ebpf)
    }

    /// Time for which threads have waited for locks of the kernel so far; `None`: this kernel offers no way to count
    /// it.
    pub fn kernel_locks(&self) -> Option<KernelLocks> {
        let probes = self.common.lock();
        if probes.contention.is_empty() {
            return None;
        }
        let missed = counters::missed(&probes.ebpf, kernel_locks::counts_only);
        kernel_locks::counted(&probes.ebpf, missed)
    }

    /// Requests that were answered and sent so far; `None`: this kernel offers no way to count them.
    pub fn requests(&self) -> Option<Requests> {
        let mut probes = self.common.lock();
        let Probes { requests, ebpf, .. } = &mut *probes;
        requests.as_mut()?.counted(ebpf)
    }

    /// Files and other ends of sockets for which threads have slept so far.
    pub fn awaited(&self) -> Vec<AwaitedFact> {
        awaited::awaited(&self.common.lock().ebpf)
    }

    /// Notes that a process has no function probes from `since_ns` on.
    pub fn leave_unprobed(&mut self, pid: u32, since_ns: u64) {
        let kind =
            NoteKind::Gap { pid, cpu: None, until_ns: u64::MAX, lost: 0, reason: GapReason::NotProbed };
        self.own_notes.push(Note { time_ns: since_ns, kind });
    }

    /// Number of calls of a function so far, including calls that were folded or cut; `None` for an unknown number.
    pub fn calls(&self, function: u32) -> Option<u64> {
        self.common.shared.function(function).map(|counters| counters.calls)
    }

    /// Removes the probes of some functions, and notes it.
    ///
    /// # Errors
    ///
    /// If the kernel refuses; the probes then stay.
    pub fn remove_probes(&mut self, functions: &[u32]) -> Result<(), ProbeError> {
        {
            let probes = &mut *self.common.lock();
            probes.functions.remove_probes(&mut probes.ebpf, &|number| functions.contains(&number))?;
        }
        self.own_notes.push(Note {
            time_ns: now_ns(),
            kind: NoteKind::ProbesOff { functions: functions.to_vec(), rates: vec![0; functions.len()] },
        });
        Ok(())
    }

    /// Starts recording a process whose birth the kernel programs did not see.
    pub fn record_process(&mut self, pid: u32) {
        self.track(pid);
    }

    /// Ends recording and returns the time of the end (`CLOCK_MONOTONIC` nanoseconds). Records written before can still
    /// be drained.
    pub fn end(&mut self) -> u64 {
        self.common.shared.untrack_all();
        let end_ns = now_ns();
        self.ended = true;
        // What the overhead controller is doing now belongs to the recording, so its notes are waited for here.
        let mut probes = self.common.lock();
        probes.note_packets(end_ns, self.common.shared.cpu_totals().possible_own_packets);
        self.own_notes.append(&mut probes.notes);
        let reason = GapReason::LibcNotYetProbed;
        let undecided = probes.operations.take_undecided().into_iter().map(|(pid, time_ns)| {
            let kind = NoteKind::Gap { pid, cpu: None, until_ns: end_ns, lost: 0, reason };
            Note { time_ns, kind }
        });
        self.own_notes.extend(undecided);
        self.look_for_missed(&probes);
        self.common.look(&mut probes);
        end_ns
    }

    fn look_for_missed(&self, probes: &Probes) {
        let missed = counters::missed(&probes.ebpf, |program| {
            !kernel_locks::counts_only(program) && !requests::counts_only(program)
        });
        self.missed.store(missed, Ordering::Relaxed);
        self.looked_ns.store(now_ns(), Ordering::Relaxed);
    }

    /// Removes all probes and kernel programs.
    pub fn stop(mut self) -> StopSummary {
        self.end();
        self.common.lock().warn(&self.common.shared);
        let total = self.common.shared.cpu_totals();
        StopSummary {
            loss: self.loss(),
            notes: self.take_notes(),
            calls_cut: total.cut,
            records: total.sequence,
        }
    }

    pub(super) fn track(&self, pid: u32) {
        self.common.shared.track_another(pid);
    }
}

impl Drop for Capture {
    fn drop(&mut self) {
        if let Some((stop, thread)) = self.controller.take() {
            drop(stop);
            let _ = thread.join();
        }
        let mut threads = close_together(std::mem::take(&mut self.kernel_links));
        {
            let probes = &mut *self.common.lock();
            threads.extend(probes.clock.iter_mut().flat_map(|clock| clock.stop()));
            threads.extend(close_together(std::mem::take(&mut probes.network)));
            threads.extend(close_together(std::mem::take(&mut probes.contention)));
            threads.extend(probes.requests.iter_mut().flat_map(RequestCounter::end));
            probes.functions.remove_processes(&|_| true);
            drop(probes.operations.silence(&|_| true));
        }
        self.keeper.finish();
        for thread in threads {
            let _ = thread.join();
        }
    }
}
