//! Takes records out of the rings that `cpu_rings` makes and the kernel programs write.

use aya::maps::{MapData, RingBuf};

/// Records that one ring gives in one go, so that a busy CPU cannot keep the reader from everything else.
pub(crate) const BATCH: usize = 16_384;

/// All rings of a capture.
pub(crate) struct Rings {
    rings: Vec<RingBuf<MapData>>,
}

impl Rings {
    pub(crate) fn new(rings: Vec<RingBuf<MapData>>) -> Rings {
        Rings { rings }
    }

    /// Passes what is there to `sink`, ring by ring, and says how many records that was. Never waits; 0 means
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

    /// As [`Rings::drain`], but before each record of any ring `enough` is asked; whether all rings were emptied.
    pub(crate) fn drain_until(
        &mut self,
        sink: &mut dyn FnMut(usize, &[u8]),
        enough: &mut dyn FnMut() -> bool,
    ) -> bool {
        // One of each in turn: no ring waits for another.
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

    /// Descriptors that become readable when a ring fills faster than a timer would empty it.
    pub(crate) fn descriptors(&self) -> impl Iterator<Item = std::os::fd::BorrowedFd<'_>> {
        self.rings.iter().map(std::os::fd::AsFd::as_fd)
    }
}
