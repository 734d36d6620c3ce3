//! Separate rings for samples: a copied stack is 250 times as large as a record, and must not displace records.

use aya_ebpf::{
    btf_maps::{ArrayOfMaps, RingBuf},
    macros::btf_map,
    maps::ring_buf::RingBufEntry,
};

use crate::ring::{self, PLACEHOLDER};

/// One ring for each CPU, as for records; there are no rings if nothing is sampled.
#[btf_map]
static SAMPLE_RINGS: ArrayOfMaps<RingBuf<u64, PLACEHOLDER>, 1> = ArrayOfMaps::new();

/// Reserves room for a sample of this CPU, if there is any. The room must be submitted or discarded.
#[inline(always)]
pub fn reserve<T: 'static>(cpu: u32) -> Option<RingBufEntry<T>> {
    SAMPLE_RINGS.get(ring::place(cpu))?.reserve_untyped(0)
}
