//! Entries and exits of functions of the target: one program for every probe, which are distinguished by their cookies.
//!
//! Each thread has a list of its open frames, outermost first, one per function. Calls of a function below
//! its first open frame are counted but not recorded ("folded"), so recursion counts once. A frame may end in
//! any way: exception, longjmp, a jump out of it without a probe. It has ended as soon as the thread enters or
//! leaves a function at or above its stack address on the same stack. It has also ended if its return address
//! has been overwritten when a call below it is about to be folded.

use core::{ffi::c_void, hint::black_box, mem::offset_of};

use aya_ebpf::{
    EbpfContext,
    bindings::{BPF_ANY, BPF_F_MMAPABLE, BPF_F_NO_PREALLOC},
    helpers::{bpf_get_current_pid_tgid, bpf_probe_read_user, generated::bpf_get_attach_cookie},
    macros::{map, uprobe},
    maps::{Array, HashMap},
    programs::ProbeContext,
};
use aya_log_ebpf::warn;
use probe_abi::{
    CROWDED_CALLS, CROWDED_SHIFT, Context, Cookie, CpuCounters, FunctionCounters, FunctionEnter,
    FunctionExit, Kind, MAX_GROUPS, MAX_OPEN_FRAMES, NO_FRAME, RATE_WINDOW_SHIFT, SILENT_AT_ONCE,
};

use crate::{
    filter, memory,
    ring::{self, count},
    settings::setting,
    verifier::{GO_ON, STOP, forget, times},
};

/// An open frame.
#[repr(C)]
#[derive(Clone, Copy)]
struct Frame {
    /// Stack pointer at the function's first instruction.
    stack_pointer: u64,
    /// The original word there: the return address. 0 if it could not be read.
    return_address: u64,
    function: u64,
}

/// A thread's open frames, outermost first.
#[repr(C)]
struct Frames {
    depth: u64,
    /// Result of [`scan`]: 1 + the index of the innermost frame of the function it looked for, 0 if there is none.
    found: u64,
    /// Hits since the last record.
    silent: u64,
    frames: [Frame; MAX_OPEN_FRAMES],
}

/// A stack pointer further above a frame than this is on another stack (of a signal, of a coroutine) and shows nothing about
/// the frame. It is the usual limit of a main thread's stack.
pub const OTHER_STACK_BYTES: u64 = 8 << 20;

const MASK: usize = MAX_OPEN_FRAMES - 1;
const _: () = assert!(MAX_OPEN_FRAMES.is_power_of_two());

static NO_FRAMES: Frames = Frames {
    depth: 0,
    found: 0,
    silent: 0,
    frames: [Frame { stack_pointer: 0, return_address: 0, function: 0 }; MAX_OPEN_FRAMES],
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
        count!(exits);
        if cookie.frameless {
            end_stretch(time_ns, tid, pid, cookie.function);
        } else {
            exit(time_ns, tid, pid, cookie.function, stack_pointer);
        }
    } else if cookie.frameless {
        count!(entries);
        begin_stretch(time_ns, tid, pid, cookie.function);
    } else {
        count!(entries);
        enter(time_ns, tid, pid, cookie.function, stack_pointer);
    }
    0
}

/// A stretch begins at a place that is not a function's start: it has no frame.
#[inline(always)]
fn begin_stretch(time_ns: u64, tid: u32, pid: u32, function: u32) {
    if count_call(function, time_ns) {
        record_enter(time_ns, tid, pid, function, NO_FRAME, 0);
    } else {
        count!(cut);
    }
}

/// A stretch ends, unless none is open: the reader knows that.
#[inline(always)]
fn end_stretch(time_ns: u64, tid: u32, pid: u32, function: u32) {
    if is_on(function) {
        record_exit(time_ns, tid, pid, function, NO_FRAME, 0);
    }
}

#[inline(always)]
fn enter(time_ns: u64, tid: u32, pid: u32, function: u32, stack_pointer: u64) {
    let on = forget(u64::from(count_call(function, time_ns)), time_ns) != 0;
    let frames = match THREADS.get_ptr_mut(&tid) {
        Some(frames) => frames,
        None => {
            // This fails only without memory or with too many threads; the look-up below shows that.
            let _ = THREADS.insert(&tid, &NO_FRAMES, u64::from(BPF_ANY));
            match THREADS.get_ptr_mut(&tid) {
                Some(frames) => frames,
                None => {
                    warn!(&(), "no memory for the open frames of thread {}", tid);
                    count!(unfolded);
                    if on {
                        record_enter(time_ns, tid, pid, function, stack_pointer, 0);
                    }
                    return;
                }
            }
        }
    };
    // Frames at or below the new one have ended, so the new frame takes their place.
    let (mut depth, found) = scan(frames, stack_pointer, function, true);
    if let Some(index) = found {
        // SAFETY: the index is below the array's length, in a map value that only this thread uses.
        let outer = unsafe { (*frames).frames[index & MASK] };
        let returns_to = read_return_address(outer.stack_pointer);
        if outer.return_address == 0 || returns_to == 0 || outer.return_address == returns_to {
            count!(folded);
            pass_silently(frames, time_ns, tid, pid, function, stack_pointer);
            return;
        }
        // That frame, and all frames below it, were left without an exit.
        depth = index as u64;
        set_depth(frames, depth);
    }
    if !on {
        count!(cut);
        pass_silently(frames, time_ns, tid, pid, function, stack_pointer);
        return;
    }
    if is_too_deep(depth) {
        // The call is beyond the depth limit, so it counts for its caller at the limit.
        pass_silently(frames, time_ns, tid, pid, function, stack_pointer);
        return;
    }
    if (depth as usize) < MAX_OPEN_FRAMES {
        let return_address = read_return_address(stack_pointer);
        let frame = Frame { stack_pointer, return_address, function: u64::from(function) };
        // SAFETY: the index is below the array's length, in a map value that only this thread uses.
        unsafe { (*frames).frames[depth as usize & MASK] = frame };
        set_depth(frames, depth + 1);
    } else {
        count!(unfolded);
    }
    let silent = take_silent(frames);
    record_enter(time_ns, tid, pid, function, stack_pointer, silent);
}

#[inline(always)]
fn exit(time_ns: u64, tid: u32, pid: u32, function: u32, stack_pointer: u64) {
    let mut silent = 0;
    if let Some(frames) = THREADS.get_ptr_mut(&tid) {
        let (depth, found) = scan(frames, stack_pointer, function, false);
        let top = depth.wrapping_sub(1) as usize & MASK;
        // SAFETY: the index is below the array's length, in a map value that only this thread uses.
        let top = unsafe { (*frames).frames[top] };
        if depth > 0 && top.function == u64::from(function) && top.stack_pointer == stack_pointer {
            set_depth(frames, depth - 1);
        } else if found.is_some() || !is_on(function) || is_too_deep(depth) {
            // The end of a call that was folded, cut or beyond the depth limit. It is no call that was open before the
            // probes came: all frames here were below such a call's frame, so none would remain.
            pass_silently(frames, time_ns, tid, pid, function, stack_pointer);
            return;
        }
        silent = take_silent(frames);
    }
    // Recorded with or without an entry in this map: a function that was open before the probes came ends as well.
    record_exit(time_ns, tid, pid, function, stack_pointer, silent);
}

/// Counts a hit that gets no record of its own: its cost in the thread's time must not count as the program's.
#[inline(always)]
fn pass_silently(frames: *mut Frames, time_ns: u64, tid: u32, pid: u32, function: u32, stack_pointer: u64) {
    let silent = memory::word(frames, offset_of!(Frames, silent));
    // SAFETY: a word of a map value that only this thread uses.
    if unsafe { memory::add(silent, 1) } + 1 >= u64::from(SILENT_AT_ONCE) {
        let silent = take_silent(frames);
        record_enter(time_ns, tid, pid, function, stack_pointer, silent);
    }
}

/// Returns and clears the number of hits since the last record, which the present record reports.
#[inline(always)]
fn take_silent(frames: *mut Frames) -> u32 {
    let silent = memory::word(frames, offset_of!(Frames, silent));
    // SAFETY: a word of a map value that only this thread uses.
    let count = unsafe { memory::load(silent) };
    // SAFETY: a word of a map value that only this thread uses.
    unsafe { memory::store(silent, 0) };
    count as u32
}

/// Whether as many calls are open as may be recorded.
#[inline(always)]
fn is_too_deep(depth: u64) -> bool {
    let limit = u64::from(setting!(max_depth));
    limit != 0 && depth >= limit
}

/// Drops the frames that have ended when a function starts (`inclusive`) or ends at `stack_pointer`. Returns the number
/// of the remaining frames, and the index of the innermost frame of `function` among them.
///
/// Results go through the map's memory: the verifier would follow every value in a register to the end of the program.
#[inline(always)]
fn scan(frames: *mut Frames, stack_pointer: u64, function: u32, inclusive: bool) -> (u64, Option<usize>) {
    let depth = memory::word(frames, offset_of!(Frames, depth));
    let found = memory::word(frames, offset_of!(Frames, found));
    // SAFETY: a word of a map value.
    let open = unsafe { memory::load(depth) };
    // SAFETY: a word of a map value.
    unsafe { memory::store(found, 0) };
    let mut scan = Scan { frames, open, stack_pointer, function: u64::from(function), inclusive };
    times(open.min(MAX_OPEN_FRAMES as u64) as u32, is_looked_for, &mut scan);
    // SAFETY: a word of a map value.
    let depth = unsafe { memory::load(depth) };
    // SAFETY: a word of a map value.
    let found = unsafe { memory::load(found) };
    (depth, if found == 0 { None } else { Some(found as usize - 1) })
}

/// Parameters of a [`scan`], which goes from the innermost open frame outwards.
struct Scan {
    frames: *mut Frames,
    open: u64,
    stack_pointer: u64,
    function: u64,
    inclusive: bool,
}

/// Checks one frame of a [`Scan`].
unsafe extern "C" fn is_looked_for(turn: u32, scan: *mut c_void) -> i64 {
    // SAFETY: `scan` passes a pointer to its `Scan`.
    let &Scan { frames, open, stack_pointer, function, inclusive } = unsafe { &*scan.cast::<Scan>() };
    let index = open.wrapping_sub(u64::from(turn));
    // The index is hidden from the compiler, which would otherwise count down addresses from one that the verifier does
    // not follow.
    let place = black_box(index.wrapping_sub(1) as usize) & MASK;
    // SAFETY: the index is below the array's length, in a map value that only this thread uses.
    let frame = unsafe { (*frames).frames[place] };
    let above = stack_pointer.wrapping_sub(frame.stack_pointer);
    if above <= OTHER_STACK_BYTES && (inclusive || above != 0) {
        // SAFETY: a word of a map value.
        unsafe { memory::store(memory::word(frames, offset_of!(Frames, depth)), index.wrapping_sub(1)) };
        return GO_ON;
    }
    if frame.function != function {
        return GO_ON;
    }
    // SAFETY: a word of a map value.
    unsafe { memory::store(memory::word(frames, offset_of!(Frames, found)), index) };
    STOP
}

/// The return address of a frame; 0 if its memory cannot be read now.
#[inline(always)]
pub fn read_return_address(stack_pointer: u64) -> u64 {
    // SAFETY: the helper checks the address itself.
    unsafe { bpf_probe_read_user(stack_pointer as usize as *const u64) }.unwrap_or(0)
}

#[inline(always)]
fn set_depth(frames: *mut Frames, depth: u64) {
    // SAFETY: a word of a map value.
    unsafe { memory::store(memory::word(frames, offset_of!(Frames, depth)), depth) };
}

/// Counts a call. Returns whether the function may still be recorded.
#[inline(always)]
pub fn count_call(function: u32, time_ns: u64) -> bool {
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
    // Two CPUs may start a window at once. Then some calls count in the wrong one, which the limit tolerates.
    let this_window = time_ns >> RATE_WINDOW_SHIFT;
    // SAFETY: a word of a map value.
    if unsafe { memory::load(window) } != this_window {
        // SAFETY: a word of a map value.
        unsafe { memory::store(window, this_window) };
        // SAFETY: a counter in a map value.
        unsafe { memory::store(window_calls, 0) };
    }
    let limit = if is_crowded(this_window) { limit >> CROWDED_SHIFT } else { limit };
    // SAFETY: a counter in a map value.
    if unsafe { memory::add(window_calls, 1) } >= limit {
        // SAFETY: a word of a map value.
        unsafe { memory::store(cut_ns, time_ns) };
        return false;
    }
    true
}

/// Counts a call of any function on this CPU. Returns whether there are too many calls in this window.
#[inline(always)]
fn is_crowded(this_window: u64) -> bool {
    let Some(counters) = ring::this_cpu() else { return false };
    let window = memory::word(counters, offset_of!(CpuCounters, window));
    let calls = memory::word(counters, offset_of!(CpuCounters, window_calls));
    // SAFETY: a word of a map value.
    if unsafe { memory::load(window) } != this_window {
        // SAFETY: a word of a map value.
        unsafe { memory::store(window, this_window) };
        // SAFETY: a counter in a map value.
        unsafe { memory::store(calls, 0) };
    }
    // SAFETY: a counter in a map value.
    unsafe { memory::add(calls, 1) >= CROWDED_CALLS }
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
fn record_enter(time_ns: u64, tid: u32, pid: u32, function: u32, stack_pointer: u64, silent: u32) {
    ring::write(Kind::FunctionEnter, Context::Task, time_ns, tid, pid, |header| FunctionEnter {
        header,
        function,
        silent,
        stack_pointer,
    });
}

#[inline(always)]
fn record_exit(time_ns: u64, tid: u32, pid: u32, function: u32, stack_pointer: u64, silent: u32) {
    ring::write(Kind::FunctionExit, Context::Task, time_ns, tid, pid, |header| FunctionExit {
        header,
        function,
        silent,
        stack_pointer,
    });
}

/// Drops the frames of a thread that has ended or runs another program.
#[inline(always)]
pub fn forget_thread(tid: u32) {
    // Most threads have no entry; then nothing happens.
    let _ = THREADS.remove(&tid);
}
