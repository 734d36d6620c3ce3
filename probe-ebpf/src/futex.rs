//! The futex system call, by the system call tracepoints: they exist wherever BPF tracing does.

use aya_ebpf::{helpers::bpf_get_current_pid_tgid, macros::btf_tracepoint, programs::BtfTracePointContext};
use probe_abi::{Context, FutexEnter, FutexExit, Kind, futex_operation};

use crate::{
    filter,
    kernel::{Registers, Task},
    ring,
    settings::setting,
};

/// Operations that use the second word: `FUTEX_REQUEUE`, `FUTEX_CMP_REQUEUE`, `FUTEX_WAKE_OP`,
/// `FUTEX_WAIT_REQUEUE_PI`, `FUTEX_CMP_REQUEUE_PI`.
const fn has_second_word(operation: u32) -> bool {
    matches!(futex_operation(operation), 3 | 4 | 5 | 11 | 12)
}

/// Any system call of any thread starts. Arguments: `pt_regs`, `long number`.
#[btf_tracepoint(function = "sys_enter")]
pub fn sys_enter(arguments: BtfTracePointContext) -> i32 {
    if arguments.arg::<u64>(1) as u32 != setting!(futex_number) {
        return 0;
    }
    let (tid, pid) = current();
    if !filter::is_tracked(pid) || Task::current().in_32_bit_call() {
        return 0;
    }
    let registers = Registers(arguments.arg(0));
    entered(
        tid,
        pid,
        registers.argument::<0>(),
        registers.argument::<1>() as u32,
        registers.argument::<2>() as u32,
        registers.argument::<4>(),
    );
    0
}

/// Any system call of any thread ends. Arguments: `pt_regs`, `long result`.
#[btf_tracepoint(function = "sys_exit")]
pub fn sys_exit(arguments: BtfTracePointContext) -> i32 {
    let registers = Registers(arguments.arg(0));
    if registers.call_number() != setting!(futex_number) {
        return 0;
    }
    let (tid, pid) = current();
    if filter::is_tracked(pid) && !Task::current().in_32_bit_call() {
        left(tid, pid, arguments.arg::<u64>(1) as i64);
    }
    0
}

#[inline(always)]
fn current() -> (u32, u32) {
    let both = bpf_get_current_pid_tgid();
    (both as u32, (both >> 32) as u32)
}

#[inline(always)]
fn entered(tid: u32, pid: u32, word: u64, operation: u32, value: u32, word2: u64) {
    let word2 = if has_second_word(operation) { word2 } else { 0 };
    ring::write(Kind::FutexEnter, Context::Task, ring::now_ns(), tid, pid, |header| FutexEnter {
        header,
        word,
        word2,
        operation,
        value,
    });
}

#[inline(always)]
fn left(tid: u32, pid: u32, result: i64) {
    ring::write(Kind::FutexExit, Context::Task, ring::now_ns(), tid, pid, |header| FutexExit {
        header,
        result,
    });
}
