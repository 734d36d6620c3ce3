//! What a CPU is doing: the thread's own work, or an interrupt that merely borrows it.
//!
//! The kernel keeps the answer in a per-CPU counter (`include/linux/preempt.h`: 8 bits of disabled pre-emption, 8
//! of soft interrupts, 4 of hard interrupts, 4 of non-maskable ones). C programs name it as an external per-CPU
//! variable; here the instruction that loads its address holds [`PREEMPT_COUNT_MARK`], and the user side puts the
//! variable's type id from the running kernel in its place.

use aya_ebpf::helpers::generated::bpf_this_cpu_ptr;
use probe_abi::{Context, PREEMPT_COUNT_MARK};

use crate::settings::setting;

/// A soft interrupt is being served. Its other bits only say that they are switched off.
const SERVING_SOFT: u32 = 1 << 8;
const HARD: u32 = 0xf << 16;
const NMI: u32 = 0xf << 20;

/// The context of this CPU while `current_tid` is its thread.
#[inline(always)]
pub fn context(current_tid: u32) -> Context {
    if setting!(preempt_count_known) == 0 {
        return Context::Unknown;
    }
    let variable: *const u8;
    // SAFETY: one instruction that loads a constant; the user side has put the variable's id into it, or else
    // this path is dead.
    unsafe {
        core::arch::asm!("{address} = {mark} ll", address = out(reg) variable, mark = const PREEMPT_COUNT_MARK,
            options(pure, nomem, nostack, preserves_flags));
    }
    // SAFETY: the helper takes the address of a per-CPU variable, which the verifier checks.
    let here = unsafe { bpf_this_cpu_ptr(variable.cast()) };
    let counter = here.cast::<u8>().wrapping_add(setting!(preempt_count) as usize).cast::<u32>();
    // SAFETY: inside the per-CPU variable, which the verifier checks.
    let count = unsafe { core::ptr::read_volatile(counter) };
    if count & NMI != 0 {
        Context::Nmi
    } else if count & HARD != 0 {
        Context::HardIrq
    } else if count & SERVING_SOFT != 0 {
        Context::SoftIrq
    } else if current_tid == 0 {
        Context::Idle
    } else {
        Context::Task
    }
}
