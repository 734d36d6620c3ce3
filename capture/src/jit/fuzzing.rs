//! The readers of code that programs make, for the crate `fuzz`.

use std::collections::BTreeSet;

use super::{JitHistory, jit_dump as dump, perf_map as map};

/// Addresses asked about: files in `fuzz/corpus` name code there.
const ASKED: [u64; 3] = [0x1000, 0x7f00_0000_1010, 0xffff_ffff_ffff_ff00];

/// Reads a perf map.
pub fn perf_map(bytes: &[u8]) {
    read(|history| map::read(bytes, &|place| place, history));
}

/// Reads a jitdump.
pub fn jit_dump(bytes: &[u8]) {
    read(|history| {
        dump::read(bytes, history);
    });
}

fn read(into: impl FnOnce(&mut JitHistory<'_>)) {
    let wanted = BTreeSet::from(ASKED);
    let mut history = JitHistory::of(&wanted);
    into(&mut history);
    for address in wanted.iter().copied() {
        for (_, code) in history.at(address) {
            code.frame(address);
        }
    }
}
