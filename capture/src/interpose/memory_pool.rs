//! The memory pool that all rings share, and how its size is chosen.

use super::shared::Shared;
use crate::target::machine::memory;
use probe_abi::interpose::SharedWord;
use std::sync::atomic::Ordering;

/// The rings get this fraction of the available memory, an eighth. Records that were taken from them and wait for their
/// place in time order may use as much again, and those still in the rings then come on top.
const PART: u64 = 8;
/// Least size of the pool, bytes: with less, hardly anything could be recorded, even of a few threads.
const LEAST_BYTES: u64 = 1 << 20;
/// More is of no use: it could not be emptied before it is full again. But there is at least room for
/// [`MOST_FULL_RINGS`] rings of any size.
const MOST_BYTES: u64 = 256 << 20;
const MOST_FULL_RINGS: u64 = 32;

/// Bytes for all rings of this size. As many are reserved for records that wait for their order. `available`: bytes
/// that are free, including those of rings.
pub(super) fn bytes_of(available: u64, ring_bytes: u64) -> u64 {
    let most = MOST_BYTES.max(MOST_FULL_RINGS.saturating_mul(ring_bytes));
    (available / PART).clamp(LEAST_BYTES, most)
}

/// [`bytes_of`] for the machine's present state. The available memory is what both longpole and `pid` may still use,
/// plus `used`, the bytes that rings already have.
pub(super) fn bytes_now(pid: Option<u32>, used: u64, ring_bytes: u64) -> u64 {
    let pids = [std::process::id()].into_iter().chain(pid);
    let available = pids.filter_map(memory::available_bytes).min();
    // If the kernel does not report the available memory, memory is assumed to suffice.
    bytes_of(available.map_or(u64::MAX, |available| available.saturating_add(used)), ring_bytes)
}

/// The pool's size. The free part is a word of the shared memory.
#[derive(Clone, Copy, Debug)]
pub(super) struct MemoryPool {
    pieces: i64,
}

impl MemoryPool {
    /// A pool in which every ring can be full.
    pub fn of_all(shared: &Shared) -> MemoryPool {
        let mut pool = MemoryPool { pieces: 0 };
        pool.becomes(shared, u64::MAX);
        pool
    }

    /// Changes the pool's size to this many bytes.
    pub fn becomes(&mut self, shared: &Shared, bytes: u64) {
        let layout = shared.layout();
        let most = (layout.rings * layout.pieces()) as u64;
        let pieces = (bytes / layout.piece_bytes()).clamp(1, most) as i64;
        let more = pieces - std::mem::replace(&mut self.pieces, pieces);
        shared.word(SharedWord::FREE).fetch_add(more as u64, Ordering::AcqRel);
    }

    fn free(self, shared: &Shared) -> i64 {
        shared.word(SharedWord::FREE).load(Ordering::Relaxed) as i64
    }

    /// Bytes that rings have taken. The target may write anything into the free count.
    pub fn used_bytes(self, shared: &Shared) -> u64 {
        let used = self.pieces.saturating_sub(self.free(shared)).max(0);
        (used as u64).saturating_mul(shared.layout().piece_bytes())
    }

    /// Whether the memory of records that have been read must be returned at once, because any ring may need it.
    pub fn is_short(self, shared: &Shared) -> bool {
        self.free(shared) < self.pieces / 2
    }

    /// Whether idle memory of rings must be returned, too.
    pub fn is_nearly_empty(self, shared: &Shared) -> bool {
        self.free(shared) < self.pieces / 4
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use probe_abi::interpose::{SharedLayout, is_short, may_take};

    /// The rings of 600 threads must not need 1.2 GB in a container with 512 MB; but one busy thread may fill its ring.
    #[test]
    fn all_rings_together_get_a_bounded_part_of_the_memory() {
        let ring = 2 << 20;
        assert_eq!(bytes_of(400 << 20, ring), 50 << 20);
        assert_eq!(bytes_of(1 << 40, ring), MOST_BYTES);
        assert_eq!(bytes_of(1 << 40, 64 << 20), 2 << 30, "who asks for large rings gets some");
        assert_eq!(bytes_of(0, ring), LEAST_BYTES);
        assert_eq!(bytes_of(u64::MAX, u64::MAX), u64::MAX / PART);
    }

    /// Lets `threads` threads take pieces in turn, up to `of_ring` each. Returns each thread's pieces and the pieces that
    /// remain.
    fn shared_out(pieces: i64, threads: usize, of_ring: u64) -> (Vec<u64>, i64) {
        let (mut each, mut free) = (vec![0u64; threads], pieces);
        while let Some(taker) = each.iter_mut().filter(|own| **own < of_ring && may_take(**own, free)).min() {
            (*taker, free) = (*taker + 1, free - 1);
        }
        (each, free)
    }

    #[test]
    fn a_ring_may_take_memory_while_as_much_is_left_for_others() {
        // 50 MiB by the page.
        let (all, of_ring) = (12_800, 512);
        assert_eq!(shared_out(all, 1, of_ring), (vec![512], 12_288), "one alone fills its ring");
        assert_eq!(shared_out(all, 20, of_ring).0, [512; 20]);
        let (each, free) = shared_out(all, 600, of_ring);
        assert!(each.iter().all(|own| (21..=22).contains(own)) && free >= 21, "{free}: {each:?}");
        let (each, free) = shared_out(100, 16_384, of_ring);
        assert!(free >= 0 && each.iter().sum::<u64>() + free as u64 == 100);
        // Even if threads take all the memory that they can, some remains for later threads.
        let (mut greedy, mut free) = (0, all);
        while may_take(greedy, free) {
            (greedy, free) = (greedy + 1, free - 1);
        }
        assert!(may_take(0, free) && free >= all / 2 - 1);
        assert!(!may_take(0, 0) && !may_take(0, -5) && !may_take(u64::MAX, i64::MAX));
        assert!(is_short(5, 10) && !is_short(4, 10) && is_short(0, 0));
    }

    #[test]
    fn the_memory_pool_can_become_smaller_than_what_is_in_use() {
        let shared = Shared::new(SharedLayout::new(8, 1024).expect("layout")).expect("memory");
        let mut pool = MemoryPool::of_all(&shared);
        let free = || shared.word(SharedWord::FREE).load(Ordering::Relaxed) as i64;
        assert_eq!((free(), pool.used_bytes(&shared)), (8 * 16, 0));
        // The target takes a hundred.
        shared.word(SharedWord::FREE).fetch_sub(100, Ordering::Relaxed);
        assert!(pool.is_nearly_empty(&shared));
        pool.becomes(&shared, 50 * 4096);
        assert_eq!((free(), pool.used_bytes(&shared)), (-50, 100 * 4096));
        pool.becomes(&shared, u64::MAX);
        assert_eq!(free(), 28);
        shared.word(SharedWord::FREE).store(u64::MAX / 2, Ordering::Relaxed);
        assert_eq!(pool.used_bytes(&shared), 0, "nonsense is no number");
        assert!(!pool.is_short(&shared));
    }
}
