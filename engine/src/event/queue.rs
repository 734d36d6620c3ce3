//! The records of one ring that wait for release, in order. Records are stored in blocks from a pool that all rings
//! share. So memory depends on the records that wait now, not on each ring's maximum, and a reused block is still in
//! the caches.

use super::merge::Key;
use probe_abi::Record;
use std::collections::VecDeque;

/// Records in a block: some kilobytes.
const BLOCK: usize = 64;
/// Largest number of empty blocks that are kept for reuse.
const KEPT: usize = 256;

/// A record and its number, unwrapped to 64 bits. The other parts of its sort key are read from the record. The entry
/// is kept small, since tens of thousands of them take cache space from the recorded program.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waiting {
    pub number: i64,
    pub record: Record,
}

impl Waiting {
    #[inline]
    pub fn key(&self) -> Key {
        let header = self.record.header();
        (header.time_ns, header.cpu, self.number)
    }
}

impl PartialEq for Waiting {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}
impl Eq for Waiting {}
impl PartialOrd for Waiting {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Waiting {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.key().cmp(&other.key())
    }
}

/// The empty blocks, and the number of blocks in use.
#[derive(Clone, Debug, Default)]
pub(super) struct Blocks {
    free: Vec<Vec<Waiting>>,
    used: usize,
}

impl Blocks {
    /// Bytes of all blocks.
    pub fn bytes(&self) -> u64 {
        ((self.used + self.free.len()) * BLOCK * size_of::<Waiting>()) as u64
    }

    fn take(&mut self) -> Vec<Waiting> {
        self.used += 1;
        self.free.pop().unwrap_or_else(|| Vec::with_capacity(BLOCK))
    }

    fn put(&mut self, mut block: Vec<Waiting>) {
        self.used = self.used.saturating_sub(1);
        if self.free.len() < KEPT {
            block.clear();
            self.free.push(block);
        }
    }
}

/// First in, first out. All blocks but the last one are full; the first records of the first block may be released already.
#[derive(Clone, Debug, Default)]
pub(super) struct Queue {
    blocks: VecDeque<Vec<Waiting>>,
    /// Number of released records in the first block: less than its length.
    left: usize,
}

impl Queue {
    #[inline]
    pub fn front(&self) -> Option<&Waiting> {
        self.blocks.front()?.get(self.left)
    }

    #[inline]
    pub fn back(&self) -> Option<&Waiting> {
        self.blocks.back()?.last()
    }

    #[inline]
    pub fn push_back(&mut self, waiting: Waiting, blocks: &mut Blocks) {
        match self.blocks.back_mut() {
            Some(last) if last.len() < BLOCK => last.push(waiting),
            _ => {
                let mut block = blocks.take();
                block.push(waiting);
                self.blocks.push_back(block);
            }
        }
    }

    #[inline]
    pub fn pop_front(&mut self, blocks: &mut Blocks) -> Option<Waiting> {
        let first = self.blocks.front()?;
        let waiting = *first.get(self.left)?;
        self.left += 1;
        if self.left == first.len() {
            self.left = 0;
            let block = self.blocks.pop_front();
            block.into_iter().for_each(|block| blocks.put(block));
        }
        Some(waiting)
    }

    /// Inserts a record in order if its place is at most `near` places before the end; otherwise returns the record.
    pub fn insert_near_end(
        &mut self,
        waiting: Waiting,
        near: usize,
        blocks: &mut Blocks,
    ) -> Result<(), Waiting> {
        let (key, end) = (waiting.key(), self.end());
        let mut place = end;
        while place > self.left && self.at(place - 1).is_some_and(|before| before.key() > key) {
            place -= 1;
            if end - place > near {
                return Err(waiting);
            }
        }
        self.push_back(waiting, blocks);
        for behind in (place..end).rev() {
            if let Some(moved) = self.at(behind).copied() {
                self.put(behind + 1, moved);
            }
        }
        self.put(place, waiting);
        Ok(())
    }

    /// One more than the last occupied place, counted from the beginning of the first block.
    fn end(&self) -> usize {
        self.blocks.back().map_or(0, |last| (self.blocks.len() - 1) * BLOCK + last.len())
    }

    fn at(&self, place: usize) -> Option<&Waiting> {
        self.blocks.get(place / BLOCK)?.get(place % BLOCK)
    }

    fn put(&mut self, place: usize, waiting: Waiting) {
        let place = self.blocks.get_mut(place / BLOCK).and_then(|block| block.get_mut(place % BLOCK));
        place.into_iter().for_each(|place| *place = waiting);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use probe_abi::{Exit, Header, Kind};
    use proptest::prelude::*;

    fn waiting(time_ns: u64, number: i64) -> Waiting {
        let kind = Kind::Exit as u8;
        let header = Header { time_ns, sequence: 0, cpu: 0, kind, context: 0, tid: 1, pid: 1 };
        Waiting { number, record: Record::Exit(Exit { header, last_of_process: 0, placement: 0 }) }
    }

    /// Memory must not stay as large as after a burst.
    #[test]
    fn a_queue_s_memory_shrinks_after_a_burst() {
        let (mut queues, mut blocks) = (vec![Queue::default(); 100], Blocks::default());
        let each = size_of::<Waiting>() as u64;
        for queue in &mut queues {
            (0..10_000).for_each(|time| queue.push_back(waiting(time, 0), &mut blocks));
            let bytes = blocks.bytes();
            assert!(bytes >= 10_000 * each && bytes <= (10_000 + (KEPT + 100) as u64 * BLOCK as u64) * each);
            while queue.pop_front(&mut blocks).is_some() {}
            assert!(queue.front().is_none() && queue.back().is_none());
        }
        assert!(blocks.bytes() <= KEPT as u64 * BLOCK as u64 * each);
    }

    proptest! {
        /// Compares with a sorted list, wherever blocks begin.
        #[test]
        fn a_queue_stays_in_order_within_the_allowed_disorder(steps in prop::collection::vec((any::<bool>(), 0u64..12), 0..800)) {
            let (mut queue, mut blocks, mut list) = (Queue::default(), Blocks::default(), Vec::new());
            let mut now = 100;
            for (number, (takes, disorder)) in steps.into_iter().enumerate() {
                if takes && number % 3 == 0 {
                    let expected = (!list.is_empty()).then(|| list.remove(0));
                    prop_assert_eq!(queue.pop_front(&mut blocks).map(|waiting| waiting.key()), expected);
                    continue;
                }
                now += 1;
                let new = waiting(now - disorder, number as i64);
                let after = list.iter().filter(|key| **key > new.key()).count();
                let put = queue.insert_near_end(new, 5, &mut blocks);
                prop_assert_eq!(put.is_ok(), after <= 5);
                if put.is_ok() {
                    list.insert(list.len() - after, new.key());
                }
                prop_assert_eq!(queue.front().map(Waiting::key), list.first().copied());
                prop_assert_eq!(queue.back().map(Waiting::key), list.last().copied());
            }
        }
    }
}
