//! Reads records out of the rings that `cpu_rings` makes and the kernel programs write.

use aya::maps::{MapData, RingBuf};

/// Largest number of records of one ring in one turn, so that a busy CPU does not keep the reader from other work.
pub(crate) const BATCH: usize = 16_384;

/// All rings of a capture.
pub(crate) struct Rings {
    rings: Vec<RingBuf<MapData>>,
}

impl Rings {
    pub(crate) fn new(rings: Vec<RingBuf<MapData>>) -> Rings {
        Rings { rings }
    }

    /// Passes the records to `sink`, ring by ring, and returns how many there were. Never waits; 0 means
    /// that all rings were empty.
    pub(crate) fn drain(&mut self, sink: &mut dyn FnMut(usize, &[u8])) -> usize {
        let mut total = 0;
        for (number, ring) in self.rings.iter_mut().enumerate() {
            for _ in 0..BATCH {
                let Some(record) = ring.next() else { break };
                sink(number, &record);
                total += 1;
            }
        }
        total
    }

    /// Like [`Rings::drain`], but stops when `enough` is true, which is called before each record. Returns whether all
    /// rings are empty.
    pub(crate) fn drain_until(
        &mut self,
        sink: &mut dyn FnMut(usize, &[u8]),
        enough: &mut dyn FnMut() -> bool,
    ) -> bool {
        // Takes one record of each ring in turn, so that no ring waits for another.
        loop {
            let mut empty = true;
            for (number, ring) in self.rings.iter_mut().enumerate() {
                if enough() {
                    return false;
                }
                if let Some(record) = ring.next() {
                    sink(number, &record);
                    empty = false;
                }
            }
            if empty {
                return true;
            }
        }
    }

    pub(crate) fn count(&self) -> usize {
        self.rings.len()
    }
}
