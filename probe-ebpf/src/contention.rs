//! Waits for locks of the kernel. They are counted here, not recorded one by one, since there may be a million waits
//! for one lock in a second. No program runs without contention.
//!
//! A thread sleeps for one lock at a time, and may spin for one more at the same time: the lock of the queue in which
//! it waits. An interrupt's spinning is not counted for the thread that it interrupts. A mutex reports a new beginning
//! whenever its thread changes from spinning to sleeping, or back.

use core::mem::offset_of;

use aya_ebpf::{
    bindings::BPF_F_NO_PREALLOC,
    macros::{btf_tracepoint, map},
    maps::{Array, PerCpuArray, PerCpuHashMap},
    programs::BtfTracePointContext,
};
use probe_abi::{
    ContentionCounts, ContentionFlags, ContentionKey, Context, MAX_CONTENTION_KEYS, OPEN_CONTENTIONS,
    OpenContention,
};

use crate::{context::context, filter, kernel::Task, memory, ring};

/// Sums by process, system call and kind of lock.
#[map]
static CONTENTIONS: PerCpuHashMap<ContentionKey, ContentionCounts> =
    PerCpuHashMap::with_max_entries(MAX_CONTENTION_KEYS, BPF_F_NO_PREALLOC);

/// Open waits of threads that may sleep.
#[map]
static OPEN_WAITS: Array<OpenContention> = Array::with_max_entries(OPEN_CONTENTIONS, 0);

/// The open wait of the thread that spins on this CPU. While it spins it cannot leave the CPU.
#[map]
static OPEN_SPINS: PerCpuArray<OpenContention> = PerCpuArray::with_max_entries(1, 0);

/// Waits that were not counted, because another thread had the same place, or there was no room for a sum.
#[map]
static CONTENTIONS_LOST: PerCpuArray<u64> = PerCpuArray::with_max_entries(1, 0);

/// Reads a word of an open wait.
macro_rules! get {
    ($open:ident, $field:ident) => {
        // SAFETY: a word of a map value.
        unsafe { memory::load(memory::word($open, offset_of!(OpenContention, $field))) }
    };
}

/// Writes a word of an open wait.
macro_rules! set {
    ($open:ident, $field:ident, $value:expr) => {
        // SAFETY: a word of a map value.
        unsafe { memory::store(memory::word($open, offset_of!(OpenContention, $field)), $value) }
    };
}

/// Adds to a word of a sum.
macro_rules! add {
    ($counts:ident, $field:ident, $value:expr) => {
        // SAFETY: a word of a map value.
        unsafe { memory::add(memory::word($counts, offset_of!(ContentionCounts, $field)), $value) }
    };
}

/// A thread begins to wait for a lock. Arguments: the lock's address, `unsigned flags`.
#[btf_tracepoint(function = "contention_begin")]
pub fn contention_begin(arguments: BtfTracePointContext) -> i32 {
    let task = Task::current();
    if !filter::is_tracked(task.pid()) {
        return 0;
    }
    let lock: u64 = arguments.arg(0);
    let flags = arguments.arg::<u64>(1) as u32;
    let tid = task.tid();
    let spins = flags & (ContentionFlags::SPIN | ContentionFlags::MUTEX) == ContentionFlags::SPIN;
    if spins && matches!(context(task, tid), Context::HardIrq | Context::SoftIrq | Context::Nmi) {
        return 0;
    }
    let open =
        if spins { OPEN_SPINS.get_ptr_mut(0) } else { OPEN_WAITS.get_ptr_mut(tid & (OPEN_CONTENTIONS - 1)) };
    let Some(open) = open else { return 0 };
    let now_ns = ring::now_ns();
    if is_of(open, lock, tid) {
        set!(open, spun_ns, spun_until(open, now_ns));
    } else {
        if get!(open, lock) != 0 {
            lost();
        }
        set!(open, tid, u64::from(tid));
        set!(open, lock, lock);
        set!(open, began_ns, now_ns);
        set!(open, spun_ns, 0);
    }
    set!(open, since_ns, now_ns);
    set!(open, flags, u64::from(flags));
    0
}

/// A thread has got a lock for which it waited, or has given up waiting. Arguments: the lock's address, `int ret`.
#[btf_tracepoint(function = "contention_end")]
pub fn contention_end(arguments: BtfTracePointContext) -> i32 {
    let task = Task::current();
    let pid = task.pid();
    if !filter::is_tracked(pid) {
        return 0;
    }
    let lock: u64 = arguments.arg(0);
    let tid = task.tid();
    let Some(spin) = OPEN_SPINS.get_ptr_mut(0) else { return 0 };
    if is_of(spin, lock, tid) {
        count(spin, task, pid);
        return 0;
    }
    let Some(wait) = OPEN_WAITS.get_ptr_mut(tid & (OPEN_CONTENTIONS - 1)) else { return 0 };
    if is_of(wait, lock, tid) {
        count(wait, task, pid);
    }
    0
}

/// Whether an open wait is of this thread and for this lock.
#[inline(always)]
fn is_of(open: *mut OpenContention, lock: u64, tid: u32) -> bool {
    get!(open, lock) == lock && get!(open, tid) == u64::from(tid)
}

/// Time for which a wait has spun until now, nanoseconds.
#[inline(always)]
fn spun_until(open: *mut OpenContention, now_ns: u64) -> u64 {
    let spins = get!(open, flags) as u32 & ContentionFlags::SPIN != 0;
    let spun_ns = if spins { now_ns.wrapping_sub(get!(open, since_ns)) } else { 0 };
    spun_ns.wrapping_add(get!(open, spun_ns))
}

/// Ends a wait, and adds it to the sum of its kind.
#[inline(always)]
fn count(open: *mut OpenContention, task: Task, pid: u32) {
    let now_ns = ring::now_ns();
    let spun_ns = spun_until(open, now_ns);
    let total_ns = now_ns.wrapping_sub(get!(open, began_ns));
    let mut flags = get!(open, flags) as u32;
    set!(open, lock, 0);
    if flags & ContentionFlags::MUTEX != 0 {
        flags &= !ContentionFlags::SPIN;
    }
    let key = ContentionKey { pid, call: task.call_number(), flags };
    let Some(counts) = CONTENTIONS.get_ptr_mut(&key) else {
        let first = ContentionCounts { count: 1, total_ns, spun_ns, longest_ns: total_ns };
        if CONTENTIONS.insert(&key, &first, 0).is_err() {
            lost();
        }
        return;
    };
    add!(counts, count, 1);
    add!(counts, total_ns, total_ns);
    add!(counts, spun_ns, spun_ns);
    let longest = memory::word(counts, offset_of!(ContentionCounts, longest_ns));
    // SAFETY: a word of a map value.
    let before = unsafe { memory::load(longest) };
    if before < total_ns {
        // SAFETY: a word of a map value.
        unsafe { memory::store(longest, total_ns) };
    }
}

/// Counts a wait that is lost.
#[inline(always)]
fn lost() {
    if let Some(lost) = CONTENTIONS_LOST.get_ptr_mut(0) {
        // SAFETY: a map value of 8 bytes.
        unsafe { memory::add(lost, 1) };
    }
}
