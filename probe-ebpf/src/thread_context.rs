//! Thread contexts: for which trace a thread works (OpenTelemetry, OTEP 4947). A thread publishes it by plain stores to its own
//! memory, so it is looked at when the thread leaves its CPU, wakes another thread or is sampled. Other threads' memory cannot be
//! read, and a thread that sleeps changes nothing.

use core::{
    ffi::c_void,
    mem::{MaybeUninit, offset_of},
};

use aya_ebpf::{
    bindings::BPF_F_NO_PREALLOC,
    helpers::generated::bpf_probe_read_user,
    macros::map,
    maps::{Array, HashMap},
};
use probe_abi::{Context, ContextPlace, Kind, MAX_CONTEXT_PLACES, SEEN_CONTEXTS, SeenContext, ThreadContext};

use crate::{kernel::Task, libc_memory::read_word, memory, ring, settings::setting};

/// Where the threads of each process publish their contexts. The user side looks for that, and writes it here.
#[map]
static CONTEXT_PLACES: HashMap<u32, ContextPlace> =
    HashMap::with_max_entries(MAX_CONTEXT_PLACES, BPF_F_NO_PREALLOC);

/// The context with which each thread was last seen, by the low bits of its id. If contexts are not wanted, the user side makes
/// the map small.
#[map]
static SEEN: Array<SeenContext> = Array::with_max_entries(SEEN_CONTEXTS, 0);

/// The first bytes of a published record.
#[repr(C)]
#[derive(Clone, Copy)]
struct Published {
    trace: [u64; 2],
    span: u64,
    /// 1: the record is valid.
    valid: u8,
    flags: u8,
    attributes: u16,
    padding: u32,
}

/// The bytes of a record that are there if it has no attributes.
const PUBLISHED_BYTES: usize = 28;
const _: () = assert!(offset_of!(Published, padding) == PUBLISHED_BYTES);

/// A word of a thread's [`SeenContext`].
macro_rules! word {
    ($seen:ident, $field:ident) => {
        memory::word($seen, offset_of!(SeenContext, $field))
    };
}

/// Looks at the context of the current thread, and writes a record if it has changed.
#[inline(always)]
pub fn look(task: Task, time_ns: u64, tid: u32, pid: u32) {
    if setting!(thread_contexts) != 0 {
        let _ = look_at(task.0, time_ns, tid, pid);
    }
}

/// A function of its own, since three programs call it. The result means nothing: functions of kernel programs have one.
#[inline(never)]
fn look_at(task: *const u8, time_ns: u64, tid: u32, pid: u32) -> u64 {
    let task = Task(task);
    // SAFETY: user space replaces each value completely.
    let Some(&place) = (unsafe { CONTEXT_PLACES.get(&pid) }) else { return 0 };
    if place.after_exec != 0 {
        return 0;
    }
    // The memory of a thread that ends is gone. Its last context ended with it (`ends`).
    if task.has_no_memory() {
        return 0;
    }
    let trace = trace(task, place).unwrap_or(ThreadContext::NONE);
    see(trace, time_ns, tid, pid);
    1
}

/// A thread ends, or its process runs a new program: it works for no trace any more, and its id may become another thread's.
#[inline(always)]
pub fn ends(time_ns: u64, tid: u32, pid: u32) {
    if setting!(thread_contexts) == 0 {
        return;
    }
    let Some(seen) = SEEN.get_ptr_mut(tid & (SEEN_CONTEXTS - 1)) else { return };
    // SAFETY: a word of a map value.
    if unsafe { memory::load(word!(seen, thread)) } == number_of(tid, pid) {
        see(ThreadContext::NONE, time_ns, tid, pid);
        // SAFETY: a word of a map value.
        unsafe { memory::store(word!(seen, thread), 0) };
    }
}

/// A process has a child process, which has the same memory at first.
#[inline(always)]
pub fn inherit(parent: u32, child: u32) {
    if setting!(thread_contexts) == 0 {
        return;
    }
    // SAFETY: user space replaces each value completely.
    if let Some(&place) = unsafe { CONTEXT_PLACES.get(&parent) } {
        // Without room, the child's contexts are not read.
        let _ = CONTEXT_PLACES.insert(&child, &place, 0);
    }
}

/// A process runs a new program.
#[inline(always)]
pub fn executes(pid: u32) {
    if setting!(thread_contexts) == 0 {
        return;
    }
    // SAFETY: user space replaces each value completely.
    match unsafe { CONTEXT_PLACES.get(&pid) } {
        Some(&place) if place.after_exec != 0 => {
            let _ = CONTEXT_PLACES.insert(&pid, &ContextPlace { after_exec: 0, ..place }, 0);
        }
        Some(_) => forget_process(pid),
        None => {}
    }
}

/// A process has ended.
#[inline(always)]
pub fn forget_process(pid: u32) {
    if setting!(thread_contexts) != 0 {
        let _ = CONTEXT_PLACES.remove(&pid);
    }
}

/// Notes with which context a thread was seen. If the thread had another one before, writes a record.
#[inline(always)]
fn see(trace: [u64; 2], time_ns: u64, tid: u32, pid: u32) {
    let Some(seen) = SEEN.get_ptr_mut(tid & (SEEN_CONTEXTS - 1)) else { return };
    let thread = number_of(tid, pid);
    let second = word!(seen, trace).wrapping_add(1);
    // SAFETY: words of a map value, here and below. Only the thread's own CPU uses them, unless threads share the entry.
    let is_known = unsafe { memory::load(word!(seen, thread)) } == thread;
    let (mut before_ns, mut number) = (0, 0);
    if is_known {
        // SAFETY: as before.
        before_ns = unsafe { memory::load(word!(seen, seen_ns)) };
        // SAFETY: as before.
        number = unsafe { memory::load(word!(seen, number)) };
        // SAFETY: as before.
        let same_first = unsafe { memory::load(word!(seen, trace)) } == trace[0];
        // SAFETY: as before.
        let same_second = unsafe { memory::load(second) } == trace[1];
        if same_first && same_second {
            // SAFETY: as before.
            unsafe { memory::store(word!(seen, seen_ns), time_ns) };
            return;
        }
        number += 1;
    }
    // SAFETY: as before.
    unsafe { memory::store(word!(seen, seen_ns), time_ns) };
    // SAFETY: as before.
    unsafe { memory::store(word!(seen, number), number) };
    // SAFETY: as before.
    unsafe { memory::store(word!(seen, trace), trace[0]) };
    // SAFETY: as before.
    unsafe { memory::store(second, trace[1]) };
    // SAFETY: as before.
    unsafe { memory::store(word!(seen, thread), thread) };
    // A first look at a thread without a context changes nothing.
    if is_known || trace[0] | trace[1] != 0 {
        ring::write(Kind::ThreadContext, Context::Task, time_ns, tid, pid, |header| ThreadContext {
            header,
            before_ns,
            number,
            trace,
        });
    }
}

#[inline(always)]
fn number_of(tid: u32, pid: u32) -> u64 {
    u64::from(pid) << 32 | u64::from(tid)
}

/// The trace that the current thread publishes; `None`: no context is attached, or the memory holds something else.
#[inline(always)]
fn trace(task: Task, place: ContextPlace) -> Option<[u64; 2]> {
    let base = task.thread_pointer()?;
    let block = if place.module == 0 { base } else { block(base, place.module)? };
    let record = read_word(block.wrapping_add(place.offset))?;
    if record == 0 {
        return None;
    }
    let mut published = MaybeUninit::<Published>::zeroed();
    // SAFETY: the helper checks the address itself, and writes that many bytes, for which there is room.
    let failed = unsafe {
        bpf_probe_read_user(
            published.as_mut_ptr().cast(),
            PUBLISHED_BYTES as u32,
            record as usize as *const c_void,
        )
    };
    // SAFETY: zeros are a valid value, and the helper has written integers.
    let Published { trace, valid, .. } = unsafe { published.assume_init() };
    (failed == 0 && valid == 1).then_some(trace)
}

/// A library's thread-local block, by glibc's table of them (`tcbhead_t.dtv` in sysdeps/x86_64/nptl/tls.h, `dtv_t` in
/// sysdeps/generic/dl-dtv.h): the entry before the first one has their number, each entry two words. `None`: the thread has none.
#[inline(always)]
fn block(base: u64, module: u32) -> Option<u64> {
    let module = u64::from(module);
    const TABLE: u64 = 8;
    const ENTRY: u64 = 16;
    const UNALLOCATED: u64 = u64::MAX;
    let table = read_word(base.wrapping_add(TABLE))?;
    let count = read_word(table.wrapping_sub(ENTRY))?;
    if module > count {
        return None;
    }
    let block = read_word(table.wrapping_add(module.wrapping_mul(ENTRY)))?;
    (block != 0 && block != UNALLOCATED).then_some(block)
}
