//! Functions of the target being entered and left: one program for every probe, told apart by its cookie.
//!
//! Each thread has a list of its open frames, outermost first, one per function: calls of a function below its
//! first open frame are counted but not recorded ("folded"), so recursion counts once. A frame is gone, whatever
//! happened to it (exception, longjmp, a jump out of it that has no probe), as soon as the thread enters or leaves
//! a function at or above its stack address.

use core::mem::offset_of;

use aya_ebpf::{
    EbpfContext,
    bindings::{BPF_ANY, BPF_F_MMAPABLE, BPF_F_NO_PREALLOC},
    helpers::{bpf_get_current_pid_tgid, generated::bpf_get_attach_cookie},
    macros::{map, uprobe},
    maps::{Array, HashMap},
    programs::ProbeContext,
};
use aya_log_ebpf::warn;
use probe_abi::{
    Context, Cookie, FunctionCounters, FunctionEnter, FunctionExit, Kind, MAX_GROUPS, MAX_OPEN_FRAMES,
    RATE_WINDOW_SHIFT,
};

use crate::{
    filter, memory,
    ring::{self, count},
    settings::setting,
};

/// An open frame.
#[repr(C)]
#[derive(Clone, Copy)]
struct Frame {
    /// Stack pointer at the function's first instruction.
    stack_pointer: u64,
    function: u32,
    reserved: u32,
}

/// A thread's open frames, outermost first.
#[repr(C)]
struct Frames {
    depth: u64,
    /// Result of [`scan`]: whether the function it looked for is among the frames.
    found: u64,
    frames: [Frame; MAX_OPEN_FRAMES],
}

const MASK: usize = MAX_OPEN_FRAMES - 1;
const _: () = assert!(MAX_OPEN_FRAMES.is_power_of_two());

static NO_FRAMES: Frames = Frames {
    depth: 0,
    found: 0,
    frames: [Frame { stack_pointer: 0, function: 0, reserved: 0 }; MAX_OPEN_FRAMES],
};

/// Open frames by thread id.
#[map]
static THREADS: HashMap<u32, Frames> = HashMap::with_max_entries(65_536, BPF_F_NO_PREALLOC);

/// Counters by function number. The user side sets their number.
#[map]
static FUNCTIONS: Array<FunctionCounters> = Array::with_max_entries(1, BPF_F_MMAPABLE);

/// The valid generation of each link slot, written by the user side.
#[map]
static GENERATIONS: Array<u64> = Array::with_max_entries(MAX_GROUPS as u32, BPF_F_MMAPABLE);

/// A probe was hit.
#[uprobe(multi)]
pub fn function_probe(context: ProbeContext) -> u32 {
    let both = bpf_get_current_pid_tgid();
    let (tid, pid) = (both as u32, (both >> 32) as u32);
    if !filter::is_tracked(pid) {
        return 0;
    }
    // SAFETY: the helper takes this program's context.
    let cookie = Cookie::from_bits(unsafe { bpf_get_attach_cookie(context.as_ptr()) });
    match GENERATIONS.get_ptr(u32::from(cookie.group)) {
        // SAFETY: a map value of 8 bytes.
        Some(valid) if unsafe { memory::load(valid) } == u64::from(cookie.generation) => {}
        _ => {
            count!(stale);
            return 0;
        }
    }
    let time_ns = ring::now_ns();
    // SAFETY: the context of this program is the thread's user registers.
    let stack_pointer = unsafe { (*context.regs).rsp };
    if cookie.exit {
        exit(time_ns, tid, pid, cookie.function, stack_pointer);
    } else {
        enter(&context, time_ns, tid, pid, cookie.function, stack_pointer);
    }
    0
}

#[inline(always)]
fn enter(context: &ProbeContext, time_ns: u64, tid: u32, pid: u32, function: u32, stack_pointer: u64) {
    let on = count_call(function, time_ns);
    let frames = match THREADS.get_ptr_mut(&tid) {
        Some(frames) => frames,
        None if !on => {
            count!(cut);
            return;
        }
        None => {
            // Fails only without memory or with too many threads; the look-up below shows it.
            let _ = THREADS.insert(&tid, &NO_FRAMES, u64::from(BPF_ANY));
            match THREADS.get_ptr_mut(&tid) {
                Some(frames) => frames,
                None => {
                    warn!(context, "no memory for the open frames of thread {}", tid);
                    count!(unfolded);
                    record_enter(time_ns, tid, pid, function, stack_pointer);
                    return;
                }
            }
        }
    };
    // The place of frames at or below the new one is taken.
    let (depth, open) = scan(frames, stack_pointer, function, true);
    if open {
        count!(folded);
        return;
    }
    if !on {
        count!(cut);
        return;
    }
    if (depth as usize) < MAX_OPEN_FRAMES {
        let frame = Frame { stack_pointer, function, reserved: 0 };
        // SAFETY: the index is below the array's length, in a map value that only this thread uses.
        unsafe { (*frames).frames[depth as usize & MASK] = frame };
        set_depth(frames, depth + 1);
    } else {
        count!(unfolded);
    }
    record_enter(time_ns, tid, pid, function, stack_pointer);
}

#[inline(always)]
fn exit(time_ns: u64, tid: u32, pid: u32, function: u32, stack_pointer: u64) {
    if let Some(frames) = THREADS.get_ptr_mut(&tid) {
        let (depth, open) = scan(frames, stack_pointer, function, false);
        let top = depth.wrapping_sub(1) as usize & MASK;
        // SAFETY: the index is below the array's length, in a map value that only this thread uses.
        let top = unsafe { (*frames).frames[top] };
        if depth > 0 && top.function == function && top.stack_pointer == stack_pointer {
            set_depth(frames, depth - 1);
        } else if open || !is_on(function) {
            // The end of a folded call, or of one that was cut.
            return;
        }
    }
    // With or without an entry of ours: a function that was open before the probes came ends as well.
    ring::write(Kind::FunctionExit, Context::Task, time_ns, tid, pid, |header| FunctionExit {
        header,
        function,
        reserved: 0,
        stack_pointer,
    });
}

/// Drops the frames that are gone when a function starts (`inclusive`) or ends at `stack_pointer`. Gives the number of
/// the others, and whether `function` is among them.
///
/// Results go through the map's memory: the verifier would follow every value of a register to the end of the program.
#[inline(always)]
fn scan(frames: *mut Frames, stack_pointer: u64, function: u32, inclusive: bool) -> (u64, bool) {
    let depth = memory::word(frames, offset_of!(Frames, depth));
    let found = memory::word(frames, offset_of!(Frames, found));
    // SAFETY: a word of a map value.
    let mut index = unsafe { memory::load(depth) };
    // SAFETY: a word of a map value.
    unsafe { memory::store(found, 0) };
    for _ in 0..MAX_OPEN_FRAMES {
        if index == 0 || index > MAX_OPEN_FRAMES as u64 {
            break;
        }
        index -= 1;
        // SAFETY: the index is below the array's length, in a map value that only this thread uses.
        let frame = unsafe { (*frames).frames[index as usize & MASK] };
        let gone = frame.stack_pointer < stack_pointer || (inclusive && frame.stack_pointer == stack_pointer);
        if gone {
            // SAFETY: a word of a map value.
            unsafe { memory::store(depth, index) };
        } else if frame.function == function {
            // SAFETY: a word of a map value.
            unsafe { memory::store(found, 1) };
            break;
        }
    }
    // SAFETY: a word of a map value.
    let depth = unsafe { memory::load(depth) };
    // SAFETY: a word of a map value.
    let found = unsafe { memory::load(found) };
    (depth, found != 0)
}

#[inline(always)]
fn set_depth(frames: *mut Frames, depth: u64) {
    // SAFETY: a word of a map value.
    unsafe { memory::store(memory::word(frames, offset_of!(Frames, depth)), depth) };
}

/// Counts a call and says whether the function may still be recorded.
#[inline(always)]
fn count_call(function: u32, time_ns: u64) -> bool {
    let Some(counters) = FUNCTIONS.get_ptr_mut(function) else { return true };
    let calls = memory::word(counters, offset_of!(FunctionCounters, calls));
    let cut_ns = memory::word(counters, offset_of!(FunctionCounters, cut_ns));
    let window = memory::word(counters, offset_of!(FunctionCounters, window));
    let window_calls = memory::word(counters, offset_of!(FunctionCounters, window_calls));
    // SAFETY: a counter in a map value.
    unsafe { memory::add(calls, 1) };
    let limit = u64::from(setting!(calls_per_window));
    if limit == 0 {
        return true;
    }
    // SAFETY: a word of a map value.
    if unsafe { memory::load(cut_ns) } != 0 {
        return false;
    }
    // Two CPUs may start a window at once: some calls are then counted into the wrong one, which a limit bears.
    let this_window = time_ns >> RATE_WINDOW_SHIFT;
    // SAFETY: a word of a map value.
    if unsafe { memory::load(window) } != this_window {
        // SAFETY: a word of a map value.
        unsafe { memory::store(window, this_window) };
        // SAFETY: a counter in a map value.
        unsafe { memory::store(window_calls, 0) };
    }
    // SAFETY: a counter in a map value.
    if unsafe { memory::add(window_calls, 1) } >= limit {
        // SAFETY: a word of a map value.
        unsafe { memory::store(cut_ns, time_ns) };
        return false;
    }
    true
}

#[inline(always)]
fn is_on(function: u32) -> bool {
    match FUNCTIONS.get_ptr_mut(function) {
        Some(counters) => {
            let cut_ns = memory::word(counters, offset_of!(FunctionCounters, cut_ns));
            // SAFETY: a word of a map value.
            let cut_ns = unsafe { memory::load(cut_ns) };
            cut_ns == 0
        }
        None => true,
    }
}

#[inline(always)]
fn record_enter(time_ns: u64, tid: u32, pid: u32, function: u32, stack_pointer: u64) {
    ring::write(Kind::FunctionEnter, Context::Task, time_ns, tid, pid, |header| FunctionEnter {
        header,
        function,
        reserved: 0,
        stack_pointer,
    });
}

/// Drops the frames of a thread that is gone or runs another program.
#[inline(always)]
pub fn forget_thread(tid: u32) {
    // Absent for most threads: nothing to do then.
    let _ = THREADS.remove(&tid);
}
