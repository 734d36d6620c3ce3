//! Scheduler events: which thread runs, and which wakes which.

use core::mem::offset_of;

use aya_ebpf::{macros::btf_tracepoint, programs::BtfTracePointContext};
use probe_abi::{
    Call, Context, CpuCounters, FUTEX_CALL, FUTEX_WAITV_CALL, FUTEX_WAKE_CALL, Kind, Ran, SampleReason,
    Switch, SwitchFlags, Waking, WakingFlags, YIELD_CALL, futex_operation,
};

use crate::{
    context::context,
    descriptor::{Target, descriptor},
    filter, interrupt,
    kernel::{Task, first_word},
    memory, network, ring, sample, thread_context,
    verifier::forget,
};

/// A CPU switches from one thread to another. Arguments: `bool preempt`, `prev`, `next`, `unsigned prev_state`.
#[btf_tracepoint(function = "sched_switch")]
pub fn sched_switch(arguments: BtfTracePointContext) -> i32 {
    let previous = Task(arguments.arg(1));
    let next = Task(arguments.arg(2));
    let (previous_pid, next_pid) = (previous.pid(), next.pid());
    let previous_tracked = filter::is_tracked(previous_pid);
    let next_tracked = filter::is_tracked(next_pid);
    let tid = previous.tid();
    let came_with = ending_from();
    let came_unseen = check_chain(tid, previous_tracked, next.tid(), next_tracked);
    if !previous_tracked && !next_tracked {
        return 0;
    }
    let time_ns = ring::now_ns();
    if came_unseen
        && previous_tracked
        && let Some(ran_ns) = previous.ran_ns(came_with.checked_sub(1))
    {
        ring::write(Kind::Ran, Context::Task, time_ns, tid, previous_pid, |header| Ran { header, ran_ns });
    }
    // What the thread does next, it does for this context: the record precedes that of the switch.
    if previous_tracked {
        thread_context::look(previous, time_ns, tid, previous_pid);
    }
    let preempted = arguments.arg::<u64>(0) as u8 != 0;
    let state = arguments.arg::<u64>(3) as u32;
    let mut flags = 0;
    if preempted {
        flags |= SwitchFlags::PREEMPTED;
    }
    if previous_tracked {
        flags |= SwitchFlags::PREV_TRACKED;
    }
    if next_tracked {
        flags |= SwitchFlags::NEXT_TRACKED;
    }
    let blocks = previous_tracked && !preempted && state != 0;
    let (mut prev_user_sp, mut prev_call) = (0, Call::NONE);
    if blocks {
        prev_user_sp = previous.registers().stack_pointer();
        prev_call = previous.call();
        if prev_call.number == FUTEX_WAITV_CALL {
            if let Some(word) = first_word(prev_call.argument0) {
                prev_call.argument0 = word;
                flags |= SwitchFlags::FIRST_WORD;
            }
        } else {
            let Target { kind, number } = descriptor(previous, prev_call);
            flags |= (kind as u32) << SwitchFlags::DESCRIPTOR_SHIFT;
            if number != 0 {
                prev_call.argument1 = number;
                flags |= SwitchFlags::AWAITED;
            }
        }
    }
    if previous_tracked && !preempted && state == 0 && previous.call().number == YIELD_CALL {
        flags |= SwitchFlags::YIELDED;
    }
    let on_behalf_of = if tid == 0 { Context::Idle } else { Context::Task };
    ring::write(Kind::Switch, on_behalf_of, time_ns, tid, previous_pid, |header| Switch {
        header,
        next_tid: next.tid(),
        next_pid,
        prev_state: state,
        flags,
        prev_user_sp,
        prev_call,
    });
    if blocks {
        sample::at_event(&arguments, previous, time_ns, tid, previous_pid, SampleReason::Block);
    }
    0
}

/// Returns whether the thread that leaves a CPU is not the one that came last. Then the kernel did not run the program
/// for a switch, which none of the kernel's counters shows. Measured on a virtual machine: its first process, and one
/// of its idle threads, leave their CPU without any tracer being called. The switch is counted if one of the two
/// threads is recorded.
#[inline(always)]
fn check_chain(previous: u32, previous_tracked: bool, next: u32, next_tracked: bool) -> bool {
    let Some(counters) = ring::this_cpu() else { return false };
    let current = memory::word(counters, offset_of!(CpuCounters, current));
    // SAFETY: a word of a map value.
    let expected = unsafe { memory::load(current) };
    let known = expected & CURRENT_KNOWN != 0;
    let broken = known && expected as u32 != previous;
    if broken && (previous_tracked || expected & CURRENT_TRACKED != 0) {
        ring::count!(unseen_switches);
    }
    // SAFETY: a word of a map value.
    unsafe { memory::store(current, current_word(next, next_tracked)) };
    // A packet that the leaving thread has sent is not the next thread's.
    // SAFETY: a word of a map value.
    unsafe { memory::store(memory::word(counters, offset_of!(CpuCounters, sent_packet)), 0) };
    // If the last thread was ending, that says nothing about the next one.
    // SAFETY: a word of a map value.
    unsafe { memory::store(memory::word(counters, offset_of!(CpuCounters, ending_from)), 0) };
    broken
}

/// Notes that the current thread is ending. On its way out the kernel moves it to another group
/// (`sched_autogroup_exit_task`), which counts as coming to its CPU again: how long it has run since it
/// really came is known only from this note.
#[inline(always)]
pub fn current_ends(task: Task) {
    if let Some(counters) = ring::this_cpu()
        && let Some(before) = task.ran_before()
    {
        let ending = memory::word(counters, offset_of!(CpuCounters, ending_from));
        // SAFETY: a word of a map value.
        unsafe { memory::store(ending, before.wrapping_add(1)) };
    }
}

/// If the current thread is ending, one more than its CPU time when it came to this CPU, nanoseconds; otherwise 0. The
/// result is not an `Option`: for `None` the compiler may copy the uninitialized number, which the verifier refuses.
#[inline(always)]
fn ending_from() -> u64 {
    let Some(counters) = ring::this_cpu() else { return 0 };
    // SAFETY: a word of a map value.
    unsafe { memory::load(memory::word(counters, offset_of!(CpuCounters, ending_from))) }
}

/// Notes that the current thread has another id from now on.
#[inline(always)]
pub fn current_is(tid: u32) {
    if let Some(counters) = ring::this_cpu() {
        let current = memory::word(counters, offset_of!(CpuCounters, current));
        // SAFETY: a word of a map value.
        unsafe { memory::store(current, current_word(tid, true)) };
    }
}

const CURRENT_KNOWN: u64 = 1 << 32;
const CURRENT_TRACKED: u64 = 1 << 33;

#[inline(always)]
fn current_word(tid: u32, tracked: bool) -> u64 {
    u64::from(tid) | CURRENT_KNOWN | if tracked { CURRENT_TRACKED } else { 0 }
}

/// The current thread, or an interrupt in its context, is about to make a thread runnable. Argument: the thread.
#[btf_tracepoint(function = "sched_waking")]
pub fn sched_waking(arguments: BtfTracePointContext) -> i32 {
    let wakee = Task(arguments.arg(0));
    let wakee_pid = wakee.pid();
    if filter::is_tracked(wakee_pid) {
        waking(&arguments, wakee, wakee_pid, wakee.state(), 0);
    }
    0
}

/// A new thread becomes runnable for the first time. Argument: the thread.
#[btf_tracepoint(function = "sched_wakeup_new")]
pub fn sched_wakeup_new(arguments: BtfTracePointContext) -> i32 {
    let wakee = Task(arguments.arg(0));
    let wakee_pid = wakee.pid();
    if filter::is_tracked(wakee_pid) {
        waking(&arguments, wakee, wakee_pid, 0, WakingFlags::NEW);
    }
    0
}

/// Whether this call of the waker wakes only waiters of the futex word in its first argument.
#[inline(always)]
fn wakes_its_word(waker: Task, number: u32) -> bool {
    // Wake, requeue, compare and requeue, unlock PI, wake bitset, compare and requeue PI; not "wake op", which has two words.
    const COMMANDS: u32 = 1 << 1 | 1 << 3 | 1 << 4 | 1 << 7 | 1 << 10 | 1 << 12;
    match number {
        FUTEX_CALL => COMMANDS >> (futex_operation(waker.second_argument()) & 31) & 1 != 0,
        FUTEX_WAKE_CALL => true,
        _ => false,
    }
}

/// Whether the first argument of this call is a futex word, or a list of words, for which the call waits.
#[inline(always)]
fn waits_for_futex(number: u32) -> bool {
    number == FUTEX_CALL || number == FUTEX_WAITV_CALL
}

#[inline(always)]
fn waking(arguments: &BtfTracePointContext, wakee: Task, wakee_pid: u32, wakee_state: u32, mut flags: u32) {
    let time_ns = ring::now_ns();
    let waker = Task::current();
    let (tid, pid) = (waker.tid(), waker.pid());
    if filter::is_tracked(pid) {
        flags |= WakingFlags::WAKER_TRACKED;
    }
    let mut wakee_call = Call::NONE;
    if wakee_state != 0 {
        wakee_call = wakee.call();
        if wakee.has_signal() {
            flags |= WakingFlags::SIGNAL;
        }
    }
    let context = context(waker, tid);
    let mut waker_call = Call::NONE.number;
    if context as u8 == Context::Task as u8 {
        waker_call = waker.call_number();
        if pid == wakee_pid && wakes_its_word(waker, waker_call) && waits_for_futex(wakee_call.number) {
            let word = waker.first_argument();
            if word != wakee_call.argument0 {
                wakee_call.argument0 = word;
                flags |= WakingFlags::OTHER_WORD;
            }
        }
    } else if context as u8 == Context::SoftIrq as u8 && flags & WakingFlags::WAKER_TRACKED != 0 {
        ring::count!(possible_own_packets);
        if network::takes_in_own_packet(tid) {
            ring::count!(own_packets);
            waker_call = waker.call_number();
            flags |= WakingFlags::OWN_PACKET;
        }
    }
    let by_thread = context as u8 == Context::Task as u8 && flags & WakingFlags::WAKER_TRACKED != 0;
    if by_thread {
        thread_context::look(waker, time_ns, tid, pid);
    }
    let explained = forget(u64::from(by_thread && wakee_state != 0), time_ns);
    let flags = forget(u64::from(flags), time_ns) as u32;
    let waker_call = forget(u64::from(waker_call), time_ns) as u32;
    let cause = forget(u64::from(interrupt::cause(context)), time_ns) as u32;
    let wakee_call = Call {
        number: forget(u64::from(wakee_call.number), time_ns) as u32,
        argument1: forget(u64::from(wakee_call.argument1), time_ns) as u32,
        argument0: forget(wakee_call.argument0, time_ns),
    };
    ring::write(Kind::Waking, context, time_ns, tid, pid, |header| Waking {
        header,
        wakee_tid: wakee.tid(),
        wakee_pid,
        flags,
        wakee_state,
        waker_call,
        cause,
        wakee_call,
    });
    if explained != 0 {
        sample::at_event(arguments, waker, time_ns, tid, pid, SampleReason::Wake);
    }
}
