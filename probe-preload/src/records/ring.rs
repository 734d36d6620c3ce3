//! Begins and ends an operation: fills the words that describe it, and writes its record into the thread's ring.
//! [`probe_abi::interpose`] describes the protocol.

use crate::operations::mutex;
use crate::process::{self, Shared};
use crate::records::burst;
use crate::records::word::{add_one, count};
use crate::tls::{Tls, tls};
use crate::watched::{restricted, seccomp};
use crate::{clock, memory, system};
use core::arch::asm;
use core::hint::black_box;
use core::sync::atomic::{AtomicU64, Ordering, compiler_fence, fence};
use probe_abi::interpose::{
    self, MOST_COST_NS, MOST_LEFT_OUT_PS, Phase, RECORD_WORDS, RingWord, SharedWord, is_recording,
};
use probe_abi::{Kind, SyncOperation};

/// Number of operations of a thread without a ring before it searches for a ring again.
const PATIENCE: u32 = 1024;

/// One operation in this number is measured for its cost, which longpole reports. The measured operation reads the
/// clock two more times than others.
const MEASURED: u32 = 64;

/// Number of words from [`RingWord::BEGAN`] to [`RingWord::FRAME`].
const SLOT_WORDS: usize = RingWord::FRAME - RingWord::BEGAN + 1;

/// An operation that has begun and not ended.
pub struct Begun {
    /// Time at which the function was called, if its cost will be measured; otherwise 0.
    called_ns: u64,
    began_ns: u64,
    object: usize,
    second: u64,
    caller: usize,
    operation: SyncOperation,
    /// Phase and words of the operation that this one interrupts, because it runs in a signal handler or in the routine
    /// of `pthread_once`. 0 if there is no such operation.
    outer_phase: u64,
    outer: [u64; SLOT_WORDS],
    recorded: bool,
}

impl Begun {
    /// Whether the operation will have a record.
    #[inline(always)]
    pub fn is_recorded(&self) -> bool {
        self.recorded
    }

    /// Sets the object, for operations whose object is known only after the call.
    #[inline(always)]
    pub fn object_is(&mut self, object: usize) {
        self.object = object;
    }
}

/// The ring of a thread.
#[derive(Clone, Copy)]
pub struct Own {
    control: *const AtomicU64,
    ring: *const AtomicU64,
    pub tls: &'static Tls,
    pub shared: Shared,
}

impl Own {
    /// A word of the thread's control block.
    #[inline(always)]
    pub fn word(&self, index: usize) -> &'static AtomicU64 {
        // SAFETY: a control block's mapping is never removed, and indices are those of `RingWord`.
        let word = unsafe { self.control.add(index) };
        // SAFETY: aligned, as the mapping is.
        unsafe { &*word }
    }

    /// A word of a place in the thread's ring.
    #[inline(always)]
    pub fn place(&self, number: u64, index: usize) -> &'static AtomicU64 {
        let mask = self.shared.layout.ring_records - 1;
        // SAFETY: the address is inside the ring, whose size is a power of two.
        let word = unsafe { self.ring.add((number as usize & mask) * RECORD_WORDS + index) };
        // SAFETY: aligned, as the mapping is.
        unsafe { &*word }
    }
}

/// The ring of this thread, if the thread already has one and is recorded now.
#[inline(always)]
pub fn own_at_hand() -> Option<Own> {
    let own = own_of_thread()?;
    let recording = own.shared.recording();
    if !is_recording(recording) {
        return None;
    }
    if own.word(RingWord::RECORDING_SEEN).load(Ordering::Relaxed) != recording {
        sees(&own, recording);
    }
    Some(own)
}

/// The ring of this thread, if the thread already has one. Works during a pause, too.
#[inline(always)]
fn own_of_thread() -> Option<Own> {
    let tls = tls();
    let epoch = process::epoch();
    if tls.epoch.get() == epoch
        && process::is_recorded(epoch)
        && let Some(shared) = process::shared()
    {
        let control = tls.control.get() as *const AtomicU64;
        return Some(Own { control, ring: tls.ring.get() as *const AtomicU64, tls, shared });
    }
    None
}

/// Notes the thread's first operation, or its first one after a pause. What the thread did during the pause is unknown,
/// so a number is skipped.
#[cold]
#[inline(never)]
fn sees(own: &Own, recording: u64) {
    // The word is set first, because the following steps are operations of this thread, too, and must not come here
    // again.
    let before = own.word(RingWord::RECORDING_SEEN).swap(recording, Ordering::Relaxed);
    if before != 0 {
        burst::settle(own);
        count(own.word(RingWord::STRETCHES));
        count(own.word(RingWord::ATTEMPTS));
    }
}

/// The ring of this thread, if the thread is recorded. A thread without a ring takes one.
#[inline(always)]
fn own() -> Option<Own> {
    own_at_hand().or_else(own_slowly)
}

/// The ring of this thread, for the end of an operation. Works during a pause, but not after the recording.
#[inline(always)]
fn own_to_the_end() -> Option<Own> {
    own_of_thread().or_else(own_slowly).filter(|own| own.shared.recording() != 0)
}

/// Whether recording is paused, as far as this process knows. During a pause, this check is all that an operation
/// costs.
#[inline(always)]
pub fn is_paused() -> bool {
    process::shared().is_some_and(|shared| interpose::is_paused(shared.recording()))
}

/// Takes a ring for this thread, if the thread is recorded, before the thread's first operation.
pub fn prepare() {
    let _ = own();
}

#[cold]
#[inline(never)]
fn own_slowly() -> Option<Own> {
    let tls = tls();
    if is_paused() && tls.epoch.get() == process::epoch() {
        return None;
    }
    if restricted::is_silent(tls) {
        restricted::count_one(tls);
        return None;
    }
    process::look();
    let epoch = process::epoch();
    if process::is_forbidden(epoch) {
        restricted::count_without_ring();
    }
    if !process::is_recorded(epoch) {
        return None;
    }
    let shared = process::shared().filter(|shared| shared.recording() != 0)?;
    if restricted::is_born_silent(tls) {
        restricted::falls_silent(tls);
        restricted::count_one(tls);
        return None;
    }
    if tls.epoch.get() != epoch && !claim(tls, epoch, shared) {
        shared.word(SharedWord::WITHOUT_RING).fetch_add(1, Ordering::Relaxed);
        return None;
    }
    own_at_hand()
}

/// Takes a free ring for this thread.
fn claim(tls: &Tls, epoch: u64, shared: Shared) -> bool {
    // This is a signal handler in the midst of this function. A mark inherited by a forked child has another epoch.
    if tls.claiming.get() == epoch {
        return false;
    }
    if tls.patience.get() > 0 {
        tls.patience.set(tls.patience.get() - 1);
        return false;
    }
    let Some(ids) = numbers(epoch) else { return false };
    tls.claiming.set(epoch);
    let next = shared.word(SharedWord::NEXT_RING);
    let few = memory::few();
    for turn in 0..shared.layout.rings {
        let ring = match few {
            None => next.fetch_add(1, Ordering::Relaxed) as usize % shared.layout.rings,
            Some(few) if few.is_left(turn) => turn,
            Some(_) => continue,
        };
        let control = shared.layout.control(ring);
        let owner = shared.word(control + RingWord::OWNER);
        if owner.load(Ordering::Relaxed) == 0
            && owner.compare_exchange(0, ids, Ordering::AcqRel, Ordering::Relaxed).is_ok()
        {
            tls.control.set(core::ptr::from_ref(shared.word(control)) as usize);
            tls.ring.set(core::ptr::from_ref(shared.word(shared.layout.ring(ring))) as usize);
            tls.ids.set(ids);
            shared.word(control + RingWord::RECORDING_SEEN).store(0, Ordering::Relaxed);
            compiler_fence(Ordering::SeqCst);
            tls.epoch.set(epoch);
            tls.claiming.set(0);
            return true;
        }
    }
    tls.patience.set(PATIENCE);
    tls.claiming.set(0);
    false
}

/// `pid << 32 | tid` of this thread, if the epoch belongs to its process.
fn numbers(epoch: u64) -> Option<u64> {
    let process = process::process_of(epoch);
    let thread = if seccomp::is_filtered() {
        mutex::thread_number()?
    } else if system::pid() == process {
        system::tid()
    } else {
        // A child between vfork and exec must not store its ids here: the words belong to its parent's thread.
        return None;
    };
    Some(u64::from(process) << 32 | u64::from(thread))
}

/// Writes that this thread records nothing more, if the thread has recorded anything before. The locks that the thread
/// holds are unknown from then on.
pub fn says_silent() {
    let begun = begin(SyncOperation::ThreadSilent, 0, 0, 0);
    end_before(begun);
}

/// An address in the stack frame of the function into which this one is inlined.
#[inline(always)]
fn frame() -> u64 {
    let frame: u64;
    #[cfg(target_arch = "x86_64")]
    // SAFETY: copies a register.
    unsafe {
        asm!("mov {}, rsp", out(reg) frame, options(nomem, nostack, preserves_flags));
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: copies a register.
    unsafe {
        asm!("mov {}, sp", out(reg) frame, options(nomem, nostack, preserves_flags));
    }
    frame
}

/// The present time, if the cost of recording this operation will be measured; otherwise 0. Only for a thread that has
/// had a ring: reading the clock may be a forbidden system call.
#[inline(always)]
fn called_ns() -> u64 {
    let tls = tls();
    let operations = tls.operations.get().wrapping_add(1);
    tls.operations.set(operations);
    if operations.is_multiple_of(MEASURED) && tls.control.get() != 0 { clock::now_ns() } else { 0 }
}

/// Whether an operation on this mutex continues a stretch of operations that are not recorded on purpose. If so, the
/// operation has been counted, and the caller has nothing else to do. A program may do millions of such operations per
/// second, so only necessary conditions are checked here; [`begin`] decides about the first operation of each stretch.
#[inline(always)]
pub fn passes(mutex: usize) -> bool {
    if is_paused() {
        return true;
    }
    let left_out = is_passed_over(tls(), mutex);
    if let Some(word) = left_out {
        count(word);
    }
    left_out.is_some()
}

/// Like [`passes`], but does not count the operation. Returns the counter.
#[inline(always)]
fn is_passed_over(tls: &Tls, mutex: usize) -> Option<&'static AtomicU64> {
    let control = tls.control.get() as *const AtomicU64;
    // A forked child has its parent's words, but another epoch.
    if control.is_null() || tls.epoch.get() != process::epoch() {
        return None;
    }
    let word = |index: usize| -> &'static AtomicU64 {
        // SAFETY: a control block's mapping is never removed, and indices are those of `RingWord`.
        let word = unsafe { control.add(index) };
        // SAFETY: aligned, as the mapping is.
        unsafe { &*word }
    };
    let here = word(RingWord::HEAD).load(Ordering::Relaxed) + 1;
    if word(RingWord::LEAVE_OUT).load(Ordering::Relaxed) == 0
        || word(RingWord::LEFT_AT).load(Ordering::Relaxed) != here
        || !process::has_one_thread()
        || !mutex::is_private(mutex)
    {
        return None;
    }
    Some(word(RingWord::LEFT_OUT))
}

/// Notes the operation that this thread begins. There is only one copy of this function for all operations, and one of
/// [`end`]. In a program that uses the caches itself, the copy is still in the cache from the last operation. Copies in
/// each function would have to be fetched again.
#[inline(never)]
pub fn begin(operation: SyncOperation, object: usize, second: u64, caller: usize) -> Begun {
    let mut begun = Begun {
        called_ns: called_ns(),
        began_ns: 0,
        object,
        second,
        caller,
        operation,
        outer_phase: 0,
        outer: [0; SLOT_WORDS],
        recorded: false,
    };
    let Some(own) = own() else { return begun };
    if own.word(RingWord::LEAVE_OUT).load(Ordering::Relaxed) != 0
        && matches!(
            operation,
            SyncOperation::MutexLock
                | SyncOperation::MutexTryLock
                | SyncOperation::MutexTimedLock
                | SyncOperation::MutexUnlock
        )
        && leaves_out(&own, object)
    {
        return begun;
    }
    burst::settle(&own);
    let frame = frame();
    let phase = own.word(RingWord::PHASE);
    let before = phase.load(Ordering::Relaxed);
    if before as u8 != Phase::Idle as u8 {
        save(&own, before, frame, &mut begun);
    }
    let number = (before & !0xff).wrapping_add(0x100);
    phase.store(number | Phase::Filling as u64, Ordering::Relaxed);
    // From here on, the words are valid: a signal handler that uses them restores them.
    fence(Ordering::Release);
    own.word(RingWord::OBJECT).store(object as u64, Ordering::Relaxed);
    own.word(RingWord::SECOND).store(second, Ordering::Relaxed);
    own.word(RingWord::CALLER).store(caller as u64, Ordering::Relaxed);
    own.word(RingWord::OPERATION).store(operation as u64, Ordering::Relaxed);
    own.word(RingWord::FRAME).store(frame, Ordering::Relaxed);
    begun.began_ns = clock::now_ns();
    own.word(RingWord::BEGAN).store(begun.began_ns, Ordering::Relaxed);
    phase.store(number | Phase::Inside as u64, Ordering::Release);
    begun.recorded = true;
    begun
}

/// Counts an operation that is not recorded on purpose. `false`: the operation must be recorded.
#[inline(never)]
fn leaves_out(own: &Own, mutex: usize) -> bool {
    if !process::has_one_thread() || !mutex::is_private(mutex) {
        return false;
    }
    let (left_at, here) = (own.word(RingWord::LEFT_AT), own.word(RingWord::HEAD).load(Ordering::Relaxed) + 1);
    if left_at.load(Ordering::Relaxed) != here {
        burst::settle(own);
        let here = own.word(RingWord::HEAD).load(Ordering::Relaxed) + 1;
        left_at.store(here, Ordering::Relaxed);
        count(own.word(RingWord::STRETCHES));
        // The missing number shows that it is unknown from here on which locks the thread holds.
        count(own.word(RingWord::ATTEMPTS));
    }
    count(own.word(RingWord::LEFT_OUT));
    if own.word(RingWord::LEFT_OUT_PS).load(Ordering::Relaxed) == 0 {
        measure_left_out(own, mutex);
    }
    true
}

/// Measures the cost of [`passes`] for many calls, because one call is shorter than reading the clock. So everything is
/// in the caches, as in a program that makes millions of calls per second.
#[cold]
#[inline(never)]
fn measure_left_out(own: &Own, mutex: usize) {
    const TIMES: u64 = 512;
    let counted = AtomicU64::new(0);
    let before_ns = clock::now_ns();
    for _ in 0..TIMES {
        if is_passed_over(black_box(own.tls), black_box(mutex)).is_some() {
            count(black_box(&counted));
        }
    }
    let took_ns = clock::now_ns().saturating_sub(before_ns);
    let each_ps = (took_ns.saturating_mul(1_000) / TIMES).clamp(1, MOST_LEFT_OUT_PS);
    own.word(RingWord::LEFT_OUT_PS).store(each_ps, Ordering::Relaxed);
}

/// Saves the operation that this one interrupts. If that operation was left without an end (`longjmp`), its frame does
/// not exist any more, and nothing is saved.
#[cold]
#[inline(never)]
fn save(own: &Own, phase: u64, frame: u64, begun: &mut Begun) {
    for (i, word) in begun.outer.iter_mut().enumerate() {
        *word = own.word(RingWord::BEGAN + i).load(Ordering::Relaxed);
    }
    let filling = phase as u8 == Phase::Filling as u8;
    if filling || begun.outer[SLOT_WORDS - 1] > frame {
        begun.outer_phase = phase;
    }
}

/// Writes the record of an operation that has returned.
#[inline(never)]
pub fn end(begun: Begun, outcome: i32, flags: u16) {
    if !begun.recorded {
        return;
    }
    // The ring is looked up again: a signal handler may have forked, and this may be the child. A pause may have begun,
    // too.
    let Some(own) = own_to_the_end() else { return };
    let ended_ns = write(&own, &begun, outcome, flags, None);
    leave(&own, &begun);
    if begun.called_ns != 0 {
        tell_cost(&own, begun.began_ns.saturating_sub(begun.called_ns), ended_ns);
    }
}

/// Adds the cost of recording an operation: the time before the operation began and the time since it ended. Each of
/// the two includes one reading of the clock, as for all operations. If a signal handler adds in between, its addition
/// may get lost, which does not matter.
#[cold]
#[inline(never)]
fn tell_cost(own: &Own, before_ns: u64, ended_ns: Option<u64>) {
    let Some(ended_ns) = ended_ns else { return };
    let took_ns = clock::now_ns().saturating_sub(ended_ns).saturating_add(before_ns);
    if took_ns <= MOST_COST_NS {
        let sum = own.word(RingWord::COST_NS);
        sum.store(sum.load(Ordering::Relaxed).wrapping_add(took_ns), Ordering::Relaxed);
        count(own.word(RingWord::COSTS));
    }
}

/// Writes the record of an operation that will not return, before the call.
pub fn end_before(begun: Begun) {
    if begun.recorded
        && let Some(own) = own_to_the_end()
    {
        write(&own, &begun, 0, 0, Some(begun.began_ns));
        leave(&own, &begun);
    }
}

/// Writes the record. Returns the record's time, or `None` if there was no room.
#[inline(always)]
fn write(own: &Own, begun: &Begun, outcome: i32, flags: u16, at_ns: Option<u64>) -> Option<u64> {
    let number = add_one(own.word(RingWord::ATTEMPTS));
    let place = own.take_place()?;
    let ended_ns = at_ns.unwrap_or_else(clock::now_ns);
    let last = begun.operation as u64 | u64::from(flags) << 16 | u64::from(outcome as u32) << 32;
    let words = [begun.began_ns, begun.object as u64, begun.second, begun.caller as u64, last];
    own.fill(&place, Kind::Operation, number as u32, ended_ns, words);
    Some(ended_ns)
}

/// Restores the words of the control block as they were before the operation.
#[inline(always)]
fn leave(own: &Own, begun: &Begun) {
    let phase = own.word(RingWord::PHASE);
    if begun.outer_phase == 0 {
        let number = phase.load(Ordering::Relaxed) & !0xff;
        phase.store(number | Phase::Idle as u64, Ordering::Release);
    } else {
        put_back(own, begun);
    }
}

#[cold]
#[inline(never)]
fn put_back(own: &Own, begun: &Begun) {
    let phase = own.word(RingWord::PHASE);
    let number = (phase.load(Ordering::Relaxed) & !0xff).wrapping_add(0x100);
    phase.store(number | Phase::Filling as u64, Ordering::Relaxed);
    fence(Ordering::Release);
    for (i, word) in begun.outer.iter().enumerate() {
        own.word(RingWord::BEGAN + i).store(*word, Ordering::Relaxed);
    }
    phase.store(number | begun.outer_phase & 0xff, Ordering::Release);
}
