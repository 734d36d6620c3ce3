//! The one place that writes records.
//!
//! Every try takes the CPU's next number, so that a record that does not fit leaves a hole that the reader sees.
//! Readers come by on a timer; only a ring that fills up faster than that wakes its reader.

use core::mem::offset_of;

use aya_ebpf::{
    bindings::{BPF_F_MMAPABLE, BPF_RB_AVAIL_DATA, BPF_RB_FORCE_WAKEUP, BPF_RB_NO_WAKEUP},
    helpers::generated::{bpf_get_smp_processor_id, bpf_ktime_get_ns},
    macros::map,
    maps::{Array, RingBuf},
};
use aya_log_ebpf::warn;
use probe_abi::{Context, CpuCounters, Header, Kind};
use zerocopy::{Immutable, IntoBytes};

use crate::{memory, settings::setting};

/// The smallest ring there is; the user side sets the sizes before loading, and gives rings that no CPU uses none.
const PLACEHOLDER: u32 = 4096;

#[map]
static RING_0: RingBuf = RingBuf::with_byte_size(PLACEHOLDER, 0);
#[map]
static RING_1: RingBuf = RingBuf::with_byte_size(PLACEHOLDER, 0);
#[map]
static RING_2: RingBuf = RingBuf::with_byte_size(PLACEHOLDER, 0);
#[map]
static RING_3: RingBuf = RingBuf::with_byte_size(PLACEHOLDER, 0);
#[map]
static RING_4: RingBuf = RingBuf::with_byte_size(PLACEHOLDER, 0);
#[map]
static RING_5: RingBuf = RingBuf::with_byte_size(PLACEHOLDER, 0);
#[map]
static RING_6: RingBuf = RingBuf::with_byte_size(PLACEHOLDER, 0);
#[map]
static RING_7: RingBuf = RingBuf::with_byte_size(PLACEHOLDER, 0);

/// Counters of each CPU. The user side sets their number.
#[map]
static CPUS: Array<CpuCounters> = Array::with_max_entries(1, BPF_F_MMAPABLE);

/// How often a ring's fill is looked at: every so many records of a CPU (a power of two).
const LOOK_EVERY: u64 = 64;

/// Counts `1` for this CPU in the counter that `field` picks.
macro_rules! count {
    ($field:ident) => {
        if let Some(counters) = $crate::ring::this_cpu() {
            let counter =
                $crate::memory::word(counters, core::mem::offset_of!(probe_abi::CpuCounters, $field));
            // SAFETY: a counter in a map value.
            unsafe { $crate::memory::add(counter, 1) };
        }
    };
}
pub(crate) use count;

/// This CPU's counters. There always are some; the verifier cannot know.
#[inline(always)]
pub fn this_cpu() -> Option<*mut CpuCounters> {
    CPUS.get_ptr_mut(cpu())
}

/// The number of this CPU. The programs do not migrate.
#[inline(always)]
fn cpu() -> u32 {
    // SAFETY: the helper has no arguments.
    unsafe { bpf_get_smp_processor_id() }
}

/// `CLOCK_MONOTONIC` nanoseconds.
#[inline(always)]
pub fn now_ns() -> u64 {
    // SAFETY: the helper has no arguments.
    unsafe { bpf_ktime_get_ns() }
}

/// Writes one record of `kind` about `tid` of `pid`, or counts that it could not.
#[inline(always)]
pub fn write<T: IntoBytes + Immutable>(
    kind: Kind,
    context: Context,
    time_ns: u64,
    tid: u32,
    pid: u32,
    record: impl FnOnce(Header) -> T,
) {
    let cpu = cpu();
    let Some(counters) = CPUS.get_ptr_mut(cpu) else { return };
    // SAFETY: a counter in a map value.
    let sequence = unsafe { memory::add(memory::word(counters, offset_of!(CpuCounters, sequence)), 1) };
    let header = Header {
        time_ns,
        sequence: sequence as u32,
        cpu: cpu as u16,
        kind: kind as u8,
        context: context as u8,
        tid,
        pid,
    };
    let record = record(header);
    let ring = ring_of(cpu);
    let mut flags = BPF_RB_NO_WAKEUP;
    if sequence & (LOOK_EVERY - 1) == 0
        && ring.query(u64::from(BPF_RB_AVAIL_DATA)) > u64::from(setting!(ring_wake_bytes))
    {
        flags = BPF_RB_FORCE_WAKEUP;
    }
    if ring.output(&record, u64::from(flags)).is_err() {
        // SAFETY: a counter in a map value.
        let before = unsafe { memory::add(memory::word(counters, offset_of!(CpuCounters, dropped)), 1) };
        if before == 0 {
            warn!(&(), "the ring of CPU {} is full: records get lost", cpu);
        }
    }
}

#[inline(always)]
fn ring_of(cpu: u32) -> &'static RingBuf {
    match cpu & setting!(ring_mask) & 7 {
        0 => &RING_0,
        1 => &RING_1,
        2 => &RING_2,
        3 => &RING_3,
        4 => &RING_4,
        5 => &RING_5,
        6 => &RING_6,
        _ => &RING_7,
    }
}
