//! Samples of threads: their user stacks at ticks of the CPU's clock, when they go to sleep, and when they wake other
//! threads. The latter two are taken only now and then for each thread, since a stack costs ten times as much as a
//! record.
//!
//! A stack is taken by frame pointers, which is cheap, or as bytes, which user space unwinds by unwind tables. For a
//! process that was born a moment ago only the instruction pointer is taken, and at ticks only: processes of `make` and
//! shells end before their tables could be read, and would each have stacks taken for their first sleep and first
//! wake-up.

use core::{ffi::c_void, hint::black_box, mem::offset_of};

use aya_ebpf::{
    EbpfContext as _,
    bindings::{BPF_F_NO_PREALLOC, BPF_F_USER_STACK, BPF_RB_NO_WAKEUP},
    helpers::generated::{bpf_get_smp_processor_id, bpf_get_stack, bpf_probe_read_user},
    macros::{btf_tracepoint, map, perf_event},
    maps::{Array, HashMap, ProgramArray, ring_buf::RingBufEntry},
    programs::{BtfTracePointContext, PerfEventContext},
};
use probe_abi::{
    CODE_BYTES, COPY_PIECE, COPY_PIECES, Context, CpuCounters, Header, LastInstruction, MAX_KEEPING,
    MAX_ROOTS, NEXT_CODE_BYTES, RAW_COPY_KIND, RAW_FRAMES, RAW_STACK_KIND, REGISTERS, RawCopy, RawStack,
    SampleFlags, SampleReason, SampledCode, Sampling,
};

use crate::{
    filter,
    kernel::Task,
    memory, ring, sample_ring,
    settings::setting,
    thread_context,
    verifier::{GO_ON, STOP, forget, times},
};

/// Facts about the code of each process, written by the user side.
#[map]
static SAMPLED_CODE: HashMap<u32, SampledCode> = HashMap::with_max_entries(4_096, BPF_F_NO_PREALLOC);

/// Two numbers that the user side writes: one of 2^first ticks is taken (the user side slows the clock), and
/// samples at sleeps and wake-ups are 2^second times as far apart. They keep the cost of recording within its
/// budget.
#[map]
static SAMPLE_SKIP_SHIFT: Array<u64> = Array::with_max_entries(2, 0);
const OF_TICKS: u32 = 0;
const OF_EVENTS: u32 = 1;
/// Largest shift for skipped ticks: with a larger one, ticks would be more than a second apart, which is of no use.
const MOST_SKIP_SHIFT: u64 = 8;

/// Time at which a stack of a thread was last taken when the thread slept or woke another. Threads that share a place
/// take turns.
#[map]
static LAST_TAKEN: Array<u64> = Array::with_max_entries(PLACES, 0);
const PLACES: u32 = 1 << 16;

/// A process is young for this long, as for probes (`live::new_process_delay`).
const YOUNG_NS: u64 = 200_000_000;

/// The bits of the privilege ring in the code segment: the kernel runs in ring 0, programs in ring 3.
const RING: u64 = 3;

/// Fills in a field of a reserved record.
macro_rules! put {
    ($room:ident, $field:ident, $value:expr) => {
        // SAFETY: a field of the reserved room.
        let place = unsafe { &raw mut (*$room).$field };
        // SAFETY: a field of the reserved room.
        unsafe { place.write($value) };
    };
}

/// Values for every kind of sample.
#[derive(Clone, Copy)]
struct Taken {
    context: *mut c_void,
    task: Task,
    time_ns: u64,
    tid: u32,
    pid: u32,
    reason: SampleReason,
    flags: u8,
    /// See [`RawCopy::call`].
    call: u16,
}

/// Runs at each tick of this CPU's clock.
#[perf_event]
pub fn sample_tick(context: PerfEventContext) -> u32 {
    let task = Task::current();
    let pid = task.pid();
    let Some(counters) = ring::this_cpu() else { return 0 };
    if !filter::is_tracked(pid) {
        // A tick on an idle CPU takes no thread's time.
        if pid != 0 {
            // SAFETY: a counter in a map value.
            unsafe { memory::add(memory::word(counters, offset_of!(CpuCounters, ticks_elsewhere)), 1) };
        }
        return 0;
    }
    // SAFETY: a counter in a map value.
    unsafe { memory::add(memory::word(counters, offset_of!(CpuCounters, ticks)), 1) };
    let left_out = (1 << skip_shift(OF_TICKS)) - 1;
    // SAFETY: a counter in a map value.
    unsafe { memory::add(memory::word(counters, offset_of!(CpuCounters, ticks_left_out)), left_out) };
    // SAFETY: the program's own context.
    let code_segment = unsafe { (*context.ctx).regs.cs };
    let in_kernel = code_segment & RING == 0;
    let (time_ns, tid) = (ring::now_ns(), task.tid());
    thread_context::look(task, time_ns, tid, pid);
    let flags = if in_kernel { SampleFlags::IN_KERNEL } else { 0 };
    take(Taken {
        context: context.as_ptr(),
        task,
        time_ns,
        tid,
        pid,
        reason: SampleReason::Tick,
        flags,
        // After faults and interrupts the number is -1.
        call: if in_kernel { (task.registers().call_number() as u16).wrapping_add(1) } else { 0 },
    });
    0
}

#[inline(always)]
fn skip_shift(of: u32) -> u64 {
    // SAFETY: a word in a map value.
    SAMPLE_SKIP_SHIFT.get_ptr_mut(of).map_or(0, |word| unsafe { memory::load(word) }).min(MOST_SKIP_SHIFT)
}

/// The programs that take the stack of a thread that goes to sleep, and of one that wakes another: [`sample_block`] and
/// [`sample_wake`]. The verifier checks each of these programs once, by itself. As a part of `sched_switch`, the same
/// code would be checked on every path that leads there, which would take most of the time for attaching. Until user
/// space has put the programs into these maps, no stack is taken. A map can hold programs of one tracepoint only.
#[map]
static BLOCK_SAMPLER: ProgramArray = ProgramArray::with_max_entries(1, 0);
#[map]
static WAKE_SAMPLER: ProgramArray = ProgramArray::with_max_entries(1, 0);

/// The current thread goes to sleep, or wakes another one; its stack explains that. If its stack is to be taken, this
/// function does not return, so it must be the last action of a program.
#[inline(always)]
pub fn at_event(
    context: &BtfTracePointContext,
    task: Task,
    time_ns: u64,
    tid: u32,
    pid: u32,
    reason: SampleReason,
) {
    if setting!(sampling) == Sampling::Off as u32 {
        return;
    }
    let Some(last) = LAST_TAKEN
        .get_ptr_mut((tid << 1 | u32::from(reason as u8 == SampleReason::Wake as u8)) & (PLACES - 1))
    else {
        return;
    };
    // SAFETY: a map value of 8 bytes.
    let before = unsafe { memory::load(last) };
    if time_ns.wrapping_sub(before) < u64::from(setting!(sample_period_ns)) << skip_shift(OF_EVENTS) {
        return;
    }
    // A thread's last switch is no sleep, and the thread has no stack any more.
    if task.has_no_memory() {
        return;
    }
    // SAFETY: a map value of 8 bytes.
    unsafe { memory::store(last, time_ns) };
    if filter::is_young(pid, time_ns, YOUNG_NS) {
        return;
    }
    let Some(counters) = ring::this_cpu() else { return };
    // SAFETY: a word of a map value. Interrupts are disabled from here to where it is read.
    unsafe { memory::store(memory::word(counters, offset_of!(CpuCounters, event_time)), time_ns) };
    let sampler = if reason as u8 == SampleReason::Wake as u8 { &WAKE_SAMPLER } else { &BLOCK_SAMPLER };
    // SAFETY: nothing here must be dropped.
    unsafe { sampler.tail_call(context, 0) };
}

/// Takes the stack of the thread that goes to sleep. Called at the end of `sched_switch`, with its arguments.
#[btf_tracepoint(function = "sched_switch")]
pub fn sample_block(arguments: BtfTracePointContext) -> i32 {
    take_at_event(&arguments, Task(arguments.arg(1)), SampleReason::Block);
    0
}

/// Takes the stack of the thread that wakes another. Called at the end of `sched_waking`.
#[btf_tracepoint(function = "sched_waking")]
pub fn sample_wake(arguments: BtfTracePointContext) -> i32 {
    take_at_event(&arguments, Task::current(), SampleReason::Wake);
    0
}

#[inline(always)]
fn take_at_event(context: &BtfTracePointContext, task: Task, reason: SampleReason) {
    let Some(counters) = ring::this_cpu() else { return };
    // SAFETY: a word of a map value.
    let time_ns = unsafe { memory::load(memory::word(counters, offset_of!(CpuCounters, event_time))) };
    take(Taken {
        context: context.as_ptr(),
        task,
        time_ns,
        tid: task.tid(),
        pid: task.pid(),
        reason,
        flags: SampleFlags::IN_KERNEL,
        call: 0,
    });
}

#[inline(always)]
fn take(taken: Taken) {
    // SAFETY: the helper has no arguments.
    let cpu = unsafe { bpf_get_smp_processor_id() };
    let Some(counters) = ring::this_cpu() else { return };
    let number = memory::word(counters, offset_of!(CpuCounters, samples));
    // SAFETY: a counter in a map value.
    let sequence = unsafe { memory::add(number, 1) };
    let header = |kind: u8| Header {
        time_ns: taken.time_ns,
        sequence: sequence as u32,
        cpu: cpu as u16,
        kind,
        context: Context::Task as u8,
        tid: taken.tid,
        pid: taken.pid,
    };
    let sampling = setting!(sampling);
    // The kernel finds no frames of a thread that ends, which is right: a copy would be of another process's memory.
    let may_follow = sampling != Sampling::Copies as u32 || taken.task.has_no_memory();
    let only_innermost =
        sampling != Sampling::FramePointers as u32 && filter::is_young(taken.pid, taken.time_ns, YOUNG_NS);
    let done = if only_innermost {
        innermost(cpu, taken, header(RAW_STACK_KIND))
    } else {
        may_follow && follow(cpu, taken, header(RAW_STACK_KIND), sampling)
    };
    let done = done
        || (!only_innermost
            && sampling != Sampling::FramePointers as u32
            && copy(cpu, taken, header(RAW_COPY_KIND)));
    if !done {
        // SAFETY: a counter in a map value.
        unsafe { memory::add(memory::word(counters, offset_of!(CpuCounters, samples_lost)), 1) };
    }
    let took_ns = ring::now_ns().wrapping_sub(taken.time_ns);
    // SAFETY: a counter in a map value.
    unsafe { memory::add(memory::word(counters, offset_of!(CpuCounters, samples_ns)), took_ns) };
    if taken.reason as u8 != SampleReason::Tick as u8 {
        // SAFETY: a counter in a map value.
        unsafe { memory::add(memory::word(counters, offset_of!(CpuCounters, event_samples)), 1) };
        // SAFETY: a counter in a map value.
        unsafe { memory::add(memory::word(counters, offset_of!(CpuCounters, event_samples_ns)), took_ns) };
    }
}

/// Takes only the instruction pointer; `false` if there is no room.
#[inline(always)]
fn innermost(cpu: u32, taken: Taken, header: Header) -> bool {
    let Some(mut room) = sample_ring::reserve::<RawStack>(cpu) else { return false };
    let stack = room.as_mut_ptr();
    let frame = memory::word(stack, offset_of!(RawStack, frames));
    // SAFETY: the first of the frames, in the reserved room.
    unsafe { memory::store(frame, taken.task.registers().instruction_pointer()) };
    put!(stack, header, header);
    put!(stack, reason, taken.reason as u8);
    put!(stack, flags, taken.flags | SampleFlags::TRUNCATED);
    // A thread that ends is at no place in user space any more.
    put!(stack, count, u16::from(!taken.task.has_no_memory()));
    put!(stack, at_root, 0);
    put!(stack, call, taken.call);
    put!(stack, top, [0, 0]);
    last_instruction(memory::word(stack, offset_of!(RawStack, last)), taken);
    room.submit(u64::from(BPF_RB_NO_WAKEUP));
    true
}

/// Takes a stack by its frame pointers. `false`: there is no room, or the frame pointers lead nowhere.
#[inline(always)]
fn follow(cpu: u32, taken: Taken, header: Header, sampling: u32) -> bool {
    let Some(mut room) = sample_ring::reserve::<RawStack>(cpu) else { return false };
    let stack = room.as_mut_ptr();
    let frames = memory::word(stack, offset_of!(RawStack, frames));
    let size = (RAW_FRAMES * 8) as u32;
    // SAFETY: the helper takes this program's context and writes at most `size` bytes, for which there is room.
    let bytes = unsafe { bpf_get_stack(taken.context, frames.cast(), size, u64::from(BPF_F_USER_STACK)) };
    if bytes < 0 {
        // A kernel thread's helper, or a thread whose memory is being removed.
        room.discard(u64::from(BPF_RB_NO_WAKEUP));
        return false;
    }
    let mut count = forget((bytes as u64 / 8).min(RAW_FRAMES as u64), taken.time_ns) as usize;
    let mut flags = taken.flags;
    let mut at_root = 0;
    if sampling == Sampling::Chosen as u32 {
        match reach(taken.pid, frames, count, taken.time_ns) {
            Reach::Root(frames) => (count, at_root) = (frames, 1),
            Reach::End => {}
            Reach::Lost => {
                room.discard(u64::from(BPF_RB_NO_WAKEUP));
                return false;
            }
        }
    }
    if count == RAW_FRAMES {
        flags |= SampleFlags::TRUNCATED;
    }
    put!(stack, header, header);
    put!(stack, reason, taken.reason as u8);
    put!(stack, flags, flags);
    put!(stack, count, count as u16);
    put!(stack, at_root, at_root);
    put!(stack, call, taken.call);
    let top = memory::word(stack, offset_of!(RawStack, top));
    let source = taken.task.registers().stack_pointer() as usize as *mut c_void;
    // SAFETY: the helper checks the address itself, and writes 16 bytes, for which there is room: zeros if it cannot read them.
    unsafe { bpf_probe_read_user(top.cast(), 16, source) };
    last_instruction(memory::word(stack, offset_of!(RawStack, last)), taken);
    room.submit(u64::from(BPF_RB_NO_WAKEUP));
    true
}

/// Fills in a [`LastInstruction`] of a record. The registers are always filled in, since copied stacks are unwound with them.
#[inline(always)]
fn last_instruction(to: *mut u64, taken: Taken) {
    let registers = taken.task.registers();
    let general = to.wrapping_add(offset_of!(LastInstruction, registers) / 8);
    for number in 0..REGISTERS.len() {
        // SAFETY: a word of the reserved room.
        unsafe { memory::store(general.wrapping_add(number), registers.general(number)) };
    }
    if taken.reason as u8 == SampleReason::Tick as u8 {
        let next = registers.instruction_pointer();
        let before = next.wrapping_sub(CODE_BYTES as u64);
        // SAFETY: the helper checks the address itself, and writes bytes for which there is room: zeros if it cannot read.
        unsafe { bpf_probe_read_user(to.cast(), CODE_BYTES as u32, before as usize as *mut c_void) };
        let next_code = to.wrapping_add(offset_of!(LastInstruction, next_code) / 8);
        // SAFETY: as before.
        unsafe {
            bpf_probe_read_user(next_code.cast(), NEXT_CODE_BYTES as u32, next as usize as *mut c_void)
        };
    }
}

/// Where the frame pointers of a stack lead.
enum Reach {
    /// To a root, after this many frames.
    Root(usize),
    /// To their end, through code that keeps frame pointers everywhere.
    End,
    /// Into code that does not keep frame pointers.
    Lost,
}

#[inline(always)]
fn reach(pid: u32, frames: *const u64, count: usize, time_ns: u64) -> Reach {
    // SAFETY: user space replaces each value completely.
    let Some(code) = (unsafe { SAMPLED_CODE.get(&pid) }) else { return Reach::Lost };
    let mut search = Search { frames, code, outside: RAW_FRAMES as u64 };
    times(count as u32, is_outside, &mut search);
    let place = search.outside;
    let place = forget(place, time_ns) as usize;
    if place >= RAW_FRAMES {
        return Reach::End;
    }
    // SAFETY: within the frames.
    let frame = unsafe { memory::load(frames.wrapping_add(place)) };
    // The value is hidden from the compiler, which would otherwise make a comparison of it.
    let one = black_box(1);
    let mut root = 0;
    for root_place in 0..MAX_ROOTS {
        root |= sign_if_within(frame, code.roots[root_place], one);
    }
    if root >> 63 != 0 && place > 0 { Reach::Root(place + 1) } else { Reach::Lost }
}

/// Frames of a stack, and facts about their code, for a search of one frame.
struct Search {
    frames: *const u64,
    code: *const SampledCode,
    /// The first frame in code that does not keep frame pointers; [`RAW_FRAMES`]: there is none.
    outside: u64,
}

/// Checks one frame of a [`Search`].
unsafe extern "C" fn is_outside(index: u32, search: *mut c_void) -> i64 {
    let search = search.cast::<Search>();
    let index = index as usize;
    if index >= RAW_FRAMES {
        return STOP;
    }
    // SAFETY: `reach` passes a pointer to its `Search`.
    let Search { frames, code, .. } = unsafe { &*search };
    // SAFETY: within the frames.
    let frame = unsafe { memory::load(frames.wrapping_add(index)) };
    let mut inside = 0;
    for keeping in 0..MAX_KEEPING {
        // SAFETY: a map value.
        let [start, length] = unsafe { (**code).keeping[keeping] };
        inside |= sign_if_within(frame, start, length);
    }
    if inside >> 63 != 0 {
        return GO_ON;
    }
    // SAFETY: a map value.
    unsafe { (*search).outside = index as u64 };
    STOP
}

/// The highest bit is set if an address lies within a range. There is no branch: the verifier would follow both ways at each,
/// thousands of times. User-space addresses leave the highest bit free.
#[inline(always)]
fn sign_if_within(address: u64, start: u64, length: u64) -> u64 {
    let distance = address.wrapping_sub(start);
    !distance & distance.wrapping_sub(length)
}

/// Copies stack bytes and registers; `false` if there is no room.
#[inline(always)]
fn copy(cpu: u32, taken: Taken, header: Header) -> bool {
    let Some(mut room): Option<RingBufEntry<RawCopy>> = sample_ring::reserve(cpu) else { return false };
    let to = room.as_mut_ptr();
    let registers = taken.task.registers();
    let stack_pointer = registers.stack_pointer();
    let from = stack_pointer & !(COPY_PIECE as u64 - 1);
    let bytes = memory::word(to, offset_of!(RawCopy, bytes)).cast::<u8>();
    // SAFETY: user space replaces each value completely.
    let enough = unsafe { SAMPLED_CODE.get(&taken.pid) }.map_or(0, |code| code.copy_pieces) as usize;
    let most = if enough == 0 { setting!(copy_pieces) as usize } else { enough };
    let mut count = 0;
    for piece in 0..COPY_PIECES {
        if piece >= most {
            break;
        }
        let offset = piece * COPY_PIECE;
        let place = bytes.wrapping_add(offset);
        let source = from.wrapping_add(offset as u64) as usize as *const c_void;
        // SAFETY: the helper checks the address itself, and writes one piece, for which there is room.
        let failed = unsafe { bpf_probe_read_user(place.cast(), COPY_PIECE as u32, source.cast_mut()) };
        if failed != 0 {
            break;
        }
        count += COPY_PIECE as u32;
    }
    put!(to, header, header);
    put!(to, reason, taken.reason as u8);
    put!(to, flags, taken.flags);
    put!(to, call, taken.call);
    put!(to, count, count);
    put!(to, instruction_pointer, registers.instruction_pointer());
    put!(to, stack_pointer, stack_pointer);
    put!(to, frame_pointer, registers.frame_pointer());
    put!(to, from, from);
    last_instruction(memory::word(to, offset_of!(RawCopy, last)), taken);
    room.submit(u64::from(BPF_RB_NO_WAKEUP));
    true
}
