//! Numbers for stacks, since the same stack comes again and again.

use super::leaf::Leaf;
use engine::event::STACKS_AT_ONCE;
use recording::stack_bytes;
use rustc_hash::FxHashMap;

/// The key of a stack: process, since when its addresses mean the same code, and its frames, followed by the leaf's word if
/// there is one.
type Key = (u32, u64, Box<[u64]>);

/// Gives numbers to stacks.
#[derive(Debug)]
pub struct Interner {
    known: FxHashMap<Key, u32>,
    next: u32,
    /// The smallest number of a known stack.
    floor: u32,
    /// Bytes that new stacks may still take; `None`: without limit.
    room: Option<u64>,
}

/// The result for a stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interned {
    /// The stack already has this number.
    Known(u32),
    /// The stack is new and gets this number.
    New(u32),
    /// There is no room for the stack.
    Full,
}

impl Interner {
    /// Numbers from 1 on, for stacks that take at most `room` bytes in all.
    pub fn new(room: Option<u64>) -> Interner {
        Interner { known: FxHashMap::default(), next: 1, floor: 1, room }
    }

    /// Removes the limit, for a consumer that forgets old stacks.
    pub fn without_end(&mut self) {
        self.room = None;
    }

    /// Takes the next number for a stack whose frames are not known yet ([`Interner::fill`]). `None`: there are no more.
    pub fn reserve(&mut self) -> Option<u32> {
        self.forget_some();
        let number = self.next;
        self.next = number.checked_add(1)?;
        Some(number)
    }

    /// Sets the frames of a stack that has a number already. `false`: there is no room for it.
    pub fn fill(&mut self, number: u32, pid: u32, since_ns: u64, frames: &[u64], leaf: Leaf) -> bool {
        let Some(room) = self.room_after(frames) else { return false };
        self.room = room;
        if number >= self.floor {
            self.known.entry(key(pid, since_ns, frames, leaf)).or_insert(number);
        }
        true
    }

    /// Forgets known stacks when numbers get too far apart, so that old numbers are not used again.
    fn forget_some(&mut self) {
        if self.next.saturating_sub(self.floor) >= STACKS_AT_ONCE {
            self.known.clear();
            self.floor = self.next;
        }
    }

    /// The room that remains after one more stack; `None`: there is not enough room.
    fn room_after(&self, frames: &[u64]) -> Option<Option<u64>> {
        match self.room {
            Some(room) => room.checked_sub(stack_bytes(frames.len())).map(Some),
            None => Some(None),
        }
    }

    /// The number of a stack.
    pub fn number(&mut self, pid: u32, since_ns: u64, frames: &[u64], leaf: Leaf) -> Interned {
        let key = key(pid, since_ns, frames, leaf);
        if let Some(&number) = self.known.get(&key) {
            return Interned::Known(number);
        }
        let Some(left) = self.room_after(frames) else { return Interned::Full };
        let Some(number) = self.reserve() else { return Interned::Full };
        self.room = left;
        self.known.insert(key, number);
        Interned::New(number)
    }
}

fn key(pid: u32, since_ns: u64, frames: &[u64], leaf: Leaf) -> Key {
    (pid, since_ns, frames.iter().copied().chain(leaf.key()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::event::Access;

    #[test]
    fn a_stack_has_one_number_until_there_are_too_many() {
        let mut interner = Interner::new(None);
        assert_eq!(interner.number(7, 0, &[1, 2], Leaf::Code), Interned::New(1));
        assert_eq!(interner.number(7, 0, &[1, 2], Leaf::Code), Interned::Known(1));
        assert_eq!(interner.number(8, 0, &[1, 2], Leaf::Code), Interned::New(2));
        assert_eq!(
            interner.number(7, 9, &[1, 2], Leaf::Code),
            Interned::New(3),
            "another program in the same process"
        );
        for leaf in 4..=u64::from(STACKS_AT_ONCE) {
            assert_eq!(interner.number(9, 0, &[leaf], Leaf::Code), Interned::New(leaf as u32));
        }
        assert_eq!(interner.number(7, 0, &[1, 2], Leaf::Code), Interned::Known(1));
        assert_eq!(interner.number(9, 0, &[1], Leaf::Code), Interned::New(STACKS_AT_ONCE + 1));
        // Numbering has begun again: only numbers less than [`STACKS_AT_ONCE`] lower are used again.
        assert_eq!(interner.number(7, 0, &[1, 2], Leaf::Code), Interned::New(STACKS_AT_ONCE + 2));
    }

    #[test]
    fn stacks_beyond_the_recording_s_room_get_no_number() {
        let mut interner = Interner::new(Some(stack_bytes(1) + stack_bytes(2)));
        assert_eq!(interner.number(7, 0, &[1, 2], Leaf::Code), Interned::New(1));
        assert_eq!(interner.number(7, 0, &[3, 4], Leaf::Code), Interned::Full);
        assert_eq!(interner.number(7, 0, &[5], Leaf::Code), Interned::New(2));
        assert_eq!(interner.number(7, 0, &[1, 2], Leaf::Code), Interned::Known(1));
        interner.without_end();
        assert_eq!(interner.number(7, 0, &[3, 4], Leaf::Code), Interned::New(3));
    }

    #[test]
    fn a_number_reserved_for_a_stack_is_used_when_it_is_read() {
        let mut interner = Interner::new(Some(3 * stack_bytes(1)));
        let first = interner.reserve().expect("a number");
        assert_eq!(interner.number(7, 0, &[1], Leaf::Code), Interned::New(first + 1));
        assert!(interner.fill(first, 7, 0, &[2], Leaf::Code));
        assert_eq!(interner.number(7, 0, &[2], Leaf::Code), Interned::Known(first));
        let again = interner.reserve().expect("a number");
        assert!(interner.fill(again, 7, 0, &[1], Leaf::Code), "told twice, since a sample names it");
        assert_eq!(interner.number(7, 0, &[1], Leaf::Code), Interned::Known(first + 1));
        assert!(!interner.fill(again + 1, 7, 0, &[3], Leaf::Code), "there is no room any more");
    }

    #[test]
    fn the_same_stack_at_another_changed_word_has_another_number() {
        let mut interner = Interner::new(None);
        assert_eq!(interner.number(7, 0, &[1], Leaf::Code), Interned::New(1));
        assert_eq!(interner.number(7, 0, &[1], Leaf::Changed(0x40, Access::Atomic)), Interned::New(2));
        assert_eq!(interner.number(7, 0, &[1, 0x40], Leaf::Code), Interned::New(3));
        assert_eq!(interner.number(7, 0, &[1], Leaf::Changed(0x40, Access::Atomic)), Interned::Known(2));
    }
}
