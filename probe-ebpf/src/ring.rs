//! The only writer of records.
//!
//! Every attempt takes the CPU's next number, so that a record that does not fit leaves a hole that the reader sees.
//! Readers come on a timer; only a ring that fills faster than that wakes its reader.

use core::mem::offset_of;

use aya_ebpf::{
    bindings::{BPF_F_MMAPABLE, BPF_RB_AVAIL_DATA, BPF_RB_FORCE_WAKEUP, BPF_RB_NO_WAKEUP},
    btf_maps::{ArrayOfMaps, RingBuf},
    helpers::generated::{bpf_get_smp_processor_id, bpf_ktime_get_ns, bpf_ringbuf_query},
    macros::{btf_map, map},
    maps::Array,
};
use probe_abi::{Context, CpuCounters, Header, Kind};
use zerocopy::{Immutable, IntoBytes};

use crate::{memory, settings::setting};

/// The smallest possible ring. It only declares what kind of map a ring is.
pub const PLACEHOLDER: usize = 4096;

/// One ring for each CPU. User space creates the rings before anything is attached, and sets their number.
#[btf_map]
static RINGS: ArrayOfMaps<RingBuf<u64, PLACEHOLDER>, 1> = ArrayOfMaps::new();

/// Counters of each CPU. The user side sets their number.
#[map]
static CPUS: Array<CpuCounters> = Array::with_max_entries(1, BPF_F_MMAPABLE);

/// A ring's fill is checked once in this many records of a CPU (a power of two).
const LOOK_EVERY: u64 = 64;

/// Adds 1 to this CPU's counter `field`.
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

/// The counters of this CPU. They always exist, but the verifier cannot know that.
#[inline(always)]
pub fn this_cpu() -> Option<*mut CpuCounters> {
    CPUS.get_ptr_mut(cpu())
}

/// The number of this CPU. The programs do not migrate between CPUs.
#[inline(always)]
fn cpu() -> u32 {
    // SAFETY: the helper has no arguments.
    unsafe { bpf_get_smp_processor_id() }
}

/// The time now: `CLOCK_MONOTONIC`, nanoseconds.
#[inline(always)]
pub fn now_ns() -> u64 {
    // SAFETY: the helper has no arguments.
    unsafe { bpf_ktime_get_ns() }
}

/// Writes one record of `kind` about thread `tid` of process `pid`, or counts it as dropped.
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
    if !output(cpu, sequence, &record) {
        // SAFETY: a counter in a map value.
        unsafe { memory::add(memory::word(counters, offset_of!(CpuCounters, dropped)), 1) };
    }
}

/// Puts a record into the CPU's ring; `false`: there is no room.
#[inline(always)]
fn output<T: IntoBytes + Immutable>(cpu: u32, sequence: u64, record: &T) -> bool {
    let Some(ring) = RINGS.get(place(cpu)) else { return false };
    let mut flags = BPF_RB_NO_WAKEUP;
    if sequence & (LOOK_EVERY - 1) == 0 && filled(ring) > u64::from(setting!(ring_wake_bytes)) {
        flags = BPF_RB_FORCE_WAKEUP;
    }
    ring.output_untyped(record, u64::from(flags)).is_ok()
}

/// Unread bytes in a ring.
#[inline(always)]
fn filled(ring: &RingBuf<u64, PLACEHOLDER>) -> u64 {
    let map = core::ptr::from_ref(ring).cast_mut().cast();
    // SAFETY: the helper takes a ring, which this is.
    unsafe { bpf_ringbuf_query(map, u64::from(BPF_RB_AVAIL_DATA)) }
}

/// The ring to which a CPU writes.
#[inline(always)]
pub fn place(cpu: u32) -> u32 {
    cpu.checked_rem(setting!(rings)).unwrap_or(0)
}
