//! The context of a CPU: the thread's own work, or an interrupt that merely borrows the thread.
//!
//! The kernel keeps it in a per-CPU counter (`include/linux/preempt.h`: 8 bits of disabled pre-emption, 8
//! of soft interrupts, 4 of hard interrupts, 4 of non-maskable ones). C programs name the counter as an external variable,
//! which Rust cannot do, and which kernels without data symbols do not resolve. But a running thread points to its
//! CPU's run queue, another per-CPU variable, and the distance between the two is the same on every CPU.

use probe_abi::Context;

use crate::{kernel::Task, settings::setting};

/// A soft interrupt is being served. The other soft bits only mean that soft interrupts are disabled.
const SERVING_SOFT: u32 = 1 << 8;
const HARD: u32 = 0xf << 16;
const NMI: u32 = 0xf << 20;

/// The context of this CPU, whose thread is `current` with the id `tid`.
#[inline(always)]
pub fn context(current: Task, tid: u32) -> Context {
    if setting!(preempt_count_known) == 0 {
        return Context::Unknown;
    }
    let Some(count) = current.preempt_count() else { return Context::Unknown };
    if count & NMI != 0 {
        Context::Nmi
    } else if count & HARD != 0 {
        Context::HardIrq
    } else if count & SERVING_SOFT != 0 {
        Context::SoftIrq
    } else if tid == 0 {
        Context::Idle
    } else {
        Context::Task
    }
}
