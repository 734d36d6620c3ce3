//! The interrupt that a CPU serves. It is noted at its start, for the wakings that it makes; nothing is recorded here.

use core::mem::offset_of;

use aya_ebpf::{macros::btf_tracepoint, programs::BtfTracePointContext};
use probe_abi::{Cause, Context, CpuCounters};

use crate::{memory, ring};

/// A device's handler starts. Arguments: `int irq`, `irqaction`.
#[btf_tracepoint(function = "irq_handler_entry")]
pub fn irq_handler_entry(_: BtfTracePointContext) -> i32 {
    note(offset_of!(CpuCounters, hard_cause), Cause::Device);
    0
}

/// A device's handler ends.
#[btf_tracepoint(function = "irq_handler_exit")]
pub fn irq_handler_exit(_: BtfTracePointContext) -> i32 {
    note(offset_of!(CpuCounters, hard_cause), Cause::None);
    0
}

/// A high-resolution timer's function starts.
#[btf_tracepoint(function = "hrtimer_expire_entry")]
pub fn hrtimer_expire_entry(_: BtfTracePointContext) -> i32 {
    note(offset_of!(CpuCounters, hard_cause), Cause::Timer);
    0
}

/// A high-resolution timer's function ends.
#[btf_tracepoint(function = "hrtimer_expire_exit")]
pub fn hrtimer_expire_exit(_: BtfTracePointContext) -> i32 {
    note(offset_of!(CpuCounters, hard_cause), Cause::None);
    0
}

/// A soft interrupt starts. Argument: `unsigned vec_nr`. Soft interrupts do not nest.
#[btf_tracepoint(function = "softirq_entry")]
pub fn softirq_entry(arguments: BtfTracePointContext) -> i32 {
    let cause = Cause::of_soft_interrupt(arguments.arg::<u64>(0) as u32);
    // On a busy server's CPU this runs 100,000 times per second. So the CPU's counters are looked up once, and only
    // this CPU adds to this counter.
    if let Some(counters) = ring::this_cpu() {
        let set = |offset, value: u64| {
            // SAFETY: a word of a map value.
            unsafe { memory::store(memory::word(counters, offset), value) };
        };
        set(offset_of!(CpuCounters, own_packet_of), 0);
        set(offset_of!(CpuCounters, soft_cause), cause as u64);
        if cause as u32 == Cause::Network as u32 {
            let offset = offset_of!(CpuCounters, network_interrupts);
            // SAFETY: a counter in a map value.
            let before = unsafe { memory::load(memory::word(counters, offset)) };
            set(offset, before.wrapping_add(1));
        }
    }
    0
}

/// The interrupt that this CPU serves, as a number for the record.
#[inline(always)]
pub fn cause(context: Context) -> u32 {
    let offset = match context {
        Context::HardIrq => offset_of!(CpuCounters, hard_cause),
        Context::SoftIrq => offset_of!(CpuCounters, soft_cause),
        _ => return Cause::None as u32,
    };
    let Some(counters) = ring::this_cpu() else { return Cause::None as u32 };
    // SAFETY: a word of a map value.
    unsafe { memory::load(memory::word(counters, offset)) as u32 }
}

#[inline(always)]
fn note(offset: usize, cause: Cause) {
    if let Some(counters) = ring::this_cpu() {
        // SAFETY: a word of a map value.
        unsafe { memory::store(memory::word(counters, offset), cause as u64) };
    }
}
