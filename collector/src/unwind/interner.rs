//! Numbers for stacks: the same stack comes again and again.

use engine::event::STACKS_AT_ONCE;
use rustc_hash::FxHashMap;

/// Memory of a stack beside its frames when a recording is read, in bytes.
const EACH: u64 = 64;

/// A stack of a process that runs a program since some time.
type Key = (u32, u64, Box<[u64]>);

/// See the module.
#[derive(Debug)]
pub struct Interner {
    known: FxHashMap<Key, u32>,
    next: u32,
    /// Bytes that new stacks may still take; `None`: without end.
    room: Option<u64>,
}

/// What became of a stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interned {
    /// It has this number and is known.
    Known(u32),
    /// It has this number, which has to be told.
    New(u32),
    /// There is no room for it.
    Full,
}

impl Interner {
    /// Numbers from 1 on, for stacks that take so many bytes in all.
    pub fn new(room: Option<u64>) -> Interner {
        Interner { known: FxHashMap::default(), next: 1, room }
    }

    /// From now on without end: whoever listens forgets old ones.
    pub fn without_end(&mut self) {
        self.room = None;
    }

    /// The number of a stack.
    pub fn number(&mut self, pid: u32, since_ns: u64, frames: &[u64]) -> Interned {
        let key = (pid, since_ns, Box::from(frames));
        if let Some(&number) = self.known.get(&key) {
            return Interned::Known(number);
        }
        let takes = EACH.saturating_add(8 * frames.len() as u64);
        let left = match self.room {
            Some(room) if room < takes => return Interned::Full,
            Some(room) => Some(room - takes),
            None => None,
        };
        if self.next == u32::MAX {
            return Interned::Full;
        }
        if self.known.len() >= STACKS_AT_ONCE as usize {
            self.known.clear();
        }
        let number = self.next;
        (self.next, self.room) = (number + 1, left);
        self.known.insert(key, number);
        Interned::New(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stack_has_one_number_until_there_are_too_many() {
        let mut interner = Interner::new(None);
        assert_eq!(interner.number(7, 0, &[1, 2]), Interned::New(1));
        assert_eq!(interner.number(7, 0, &[1, 2]), Interned::Known(1));
        assert_eq!(interner.number(8, 0, &[1, 2]), Interned::New(2));
        assert_eq!(interner.number(7, 9, &[1, 2]), Interned::New(3), "another program in the same process");
        for leaf in 4..=u64::from(STACKS_AT_ONCE) {
            assert_eq!(interner.number(9, 0, &[leaf]), Interned::New(leaf as u32));
        }
        assert_eq!(interner.number(7, 0, &[1, 2]), Interned::Known(1));
        assert_eq!(interner.number(9, 0, &[1]), Interned::New(STACKS_AT_ONCE + 1));
        // Begun anew: only numbers that lie less than so many below are used again.
        assert_eq!(interner.number(7, 0, &[1, 2]), Interned::New(STACKS_AT_ONCE + 2));
    }

    #[test]
    fn a_recording_has_room_for_so_much() {
        let mut interner = Interner::new(Some(EACH * 2 + 8 * 3));
        assert_eq!(interner.number(7, 0, &[1, 2]), Interned::New(1));
        assert_eq!(interner.number(7, 0, &[3, 4]), Interned::Full);
        assert_eq!(interner.number(7, 0, &[5]), Interned::New(2));
        assert_eq!(interner.number(7, 0, &[1, 2]), Interned::Known(1));
        interner.without_end();
        assert_eq!(interner.number(7, 0, &[3, 4]), Interned::New(3));
    }
}
