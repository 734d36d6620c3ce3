//! Rings of their own for samples: a copied stack is 250 times as large as a record, and must not push any out.

use aya_ebpf::{
    macros::map,
    maps::{RingBuf, ring_buf::RingBufEntry},
};

use crate::settings::setting;

/// The smallest ring there is; the user side sets the sizes before loading, and gives rings that no CPU uses none.
const PLACEHOLDER: u32 = 4096;

#[map]
static SAMPLES_0: RingBuf = RingBuf::with_byte_size(PLACEHOLDER, 0);
#[map]
static SAMPLES_1: RingBuf = RingBuf::with_byte_size(PLACEHOLDER, 0);
#[map]
static SAMPLES_2: RingBuf = RingBuf::with_byte_size(PLACEHOLDER, 0);
#[map]
static SAMPLES_3: RingBuf = RingBuf::with_byte_size(PLACEHOLDER, 0);
#[map]
static SAMPLES_4: RingBuf = RingBuf::with_byte_size(PLACEHOLDER, 0);
#[map]
static SAMPLES_5: RingBuf = RingBuf::with_byte_size(PLACEHOLDER, 0);
#[map]
static SAMPLES_6: RingBuf = RingBuf::with_byte_size(PLACEHOLDER, 0);
#[map]
static SAMPLES_7: RingBuf = RingBuf::with_byte_size(PLACEHOLDER, 0);

/// Room for a sample of this CPU, if there is any. It has to be given back.
#[inline(always)]
pub fn reserve<T: 'static>(cpu: u32) -> Option<RingBufEntry<T>> {
    let ring = match cpu & setting!(ring_mask) & 7 {
        0 => &SAMPLES_0,
        1 => &SAMPLES_1,
        2 => &SAMPLES_2,
        3 => &SAMPLES_3,
        4 => &SAMPLES_4,
        5 => &SAMPLES_5,
        6 => &SAMPLES_6,
        _ => &SAMPLES_7,
    };
    ring.reserve(0)
}
