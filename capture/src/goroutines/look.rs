//! One look at all goroutines of a program.

use super::memory::{Memory, word_at};
use engine::event::GoroutineState;
use rustc_hash::FxHashMap;
use std::sync::Arc;
use symbols::GoRuntime;

/// Largest number of goroutines that are read at one look. Of more, every n-th is read, and counts n times.
const MOST: usize = 2_048;
/// Largest length of the runtime's list that is believed.
const MOST_LISTED: u64 = 4 << 20;
/// Bytes of a waiting goroutine's stack that are read: waits for the network lie below a dozen functions of Go's.
const STACK_BYTES: u64 = 4_096;
/// Most frames of a stack.
const MOST_FRAMES: usize = 24;
/// Longest reason of a wait, bytes.
const MOST_REASON: u64 = 64;
/// Stacks that are remembered. Beyond that all are read again.
const MOST_KNOWN: usize = 1 << 16;

/// What one goroutine did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Seen {
    /// Address of the function that it was started with.
    pub start: u64,
    /// Its state.
    pub state: GoroutineState,
    /// What it waits for; `None` unless it waits.
    pub wait: Option<Arc<Wait>>,
    /// The number of goroutines that it stands for.
    pub weight: u64,
}

/// What a goroutine waits for.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Wait {
    /// The reason, in the runtime's words.
    pub reason: Arc<str>,
    /// Addresses on its stack, the innermost first.
    pub frames: Vec<u64>,
    /// The number of values that its channel can hold, if it waits for one.
    pub capacity: Option<u64>,
}

/// Looks at one program.
#[derive(Debug)]
pub(super) struct Looker {
    /// Go's runtime, with addresses of this process.
    runtime: GoRuntime,
    reasons: FxHashMap<u8, Arc<str>>,
    /// Waits by goroutine, with what was seen of it when the stack was read: if that is the same, so is the stack.
    known: FxHashMap<u64, ([u64; 4], Arc<Wait>)>,
    /// Number of looks, which decides which goroutines of many are read.
    looks: usize,
}

/// A goroutine's members.
struct Goroutine {
    state: GoroutineState,
    reason: u8,
    start: u64,
    waiting: u64,
    stack_pointer: u64,
    instruction: u64,
    frame_pointer: u64,
    stack_end: u64,
}

impl Looker {
    /// `bias`: what is added to linked addresses.
    pub fn new(runtime: GoRuntime, bias: u64) -> Looker {
        let runtime = GoRuntime {
            goroutines: runtime.goroutines.wrapping_add(bias),
            reasons: runtime.reasons.wrapping_add(bias),
            ..runtime
        };
        Looker { runtime, reasons: FxHashMap::default(), known: FxHashMap::default(), looks: 0 }
    }

    /// What the goroutines do; `None`: their list cannot be read.
    pub fn look(&mut self, memory: &impl Memory) -> Option<Vec<Seen>> {
        let [list, listed] = [0, 8].map(|at| memory.word(self.runtime.goroutines.wrapping_add(at)));
        let (list, listed) = (list?, listed?);
        if listed > MOST_LISTED {
            return None;
        }
        let mut addresses = vec![0; usize::try_from(listed).ok()?.saturating_mul(8)];
        memory.read(list, &mut addresses)?;
        let (addresses, _) = addresses.as_chunks::<8>();
        let step = addresses.len().div_ceil(MOST).max(1);
        self.looks = self.looks.wrapping_add(1);
        if self.known.len() >= MOST_KNOWN {
            self.known.clear();
        }
        let read = addresses.iter().skip(self.looks % step).step_by(step);
        let seen = read.filter_map(|at| self.goroutine(memory, u64::from_le_bytes(*at), step as u64));
        Some(seen.collect())
    }

    /// `None`: there is none, or it cannot be read.
    fn goroutine(&mut self, memory: &impl Memory, address: u64, weight: u64) -> Option<Seen> {
        let found = self.members(memory, address)?;
        let (start, state) = (found.start, found.state);
        let wait = match state {
            GoroutineState::Waiting => Some(self.wait(memory, address, &found)?),
            _ => None,
        };
        Some(Seen { start, state, wait, weight })
    }

    fn members(&self, memory: &impl Memory, address: u64) -> Option<Goroutine> {
        let at = &self.runtime.goroutine;
        let mut bytes = vec![0; at.bytes()];
        memory.read(address, &mut bytes)?;
        let word = |place: u32| word_at(&bytes, place as usize);
        Some(Goroutine {
            state: state(word(at.status)? as u32)?,
            reason: *bytes.get(at.reason as usize)?,
            start: word(at.start)?,
            waiting: word(at.waiting)?,
            stack_pointer: word(at.stack_pointer)?,
            instruction: word(at.instruction)?,
            frame_pointer: word(at.frame_pointer)?,
            stack_end: word(at.stack.saturating_add(8))?,
        })
    }

    /// What a goroutine waits for; `None`: it went on in the meantime.
    fn wait(&mut self, memory: &impl Memory, address: u64, of: &Goroutine) -> Option<Arc<Wait>> {
        let mark = [of.stack_pointer, of.frame_pointer, of.instruction, u64::from(of.reason)];
        if let Some((_, wait)) = self.known.get(&address).filter(|(known, _)| *known == mark) {
            return Some(Arc::clone(wait));
        }
        let wait = Wait {
            reason: self.reason(memory, of.reason)?,
            frames: frames(memory, of),
            capacity: self.capacity(memory, of.waiting),
        };
        let again = self.members(memory, address)?;
        let is_same = again.state == of.state
            && [again.stack_pointer, again.frame_pointer, again.instruction, u64::from(again.reason)] == mark;
        is_same.then(|| {
            let wait = Arc::new(wait);
            self.known.insert(address, (mark, Arc::clone(&wait)));
            wait
        })
    }

    fn reason(&mut self, memory: &impl Memory, number: u8) -> Option<Arc<str>> {
        if let Some(known) = self.reasons.get(&number) {
            return Some(Arc::clone(known));
        }
        let string = self.runtime.reasons.wrapping_add(u64::from(number) * 16);
        let (text, length) = (memory.word(string)?, memory.word(string.wrapping_add(8))?);
        let mut bytes = vec![0; usize::try_from(length.min(MOST_REASON)).ok()?];
        memory.read(text, &mut bytes)?;
        let reason: Arc<str> = symbols::safe_bytes(&bytes).into();
        self.reasons.insert(number, Arc::clone(&reason));
        Some(reason)
    }

    /// The number of places of the channel that a `sudog` waits for. Waits for a lock, and for several channels, have none.
    fn capacity(&self, memory: &impl Memory, waiting: u64) -> Option<u64> {
        if waiting == 0 {
            return None;
        }
        let channel = memory.word(waiting.wrapping_add(self.runtime.channel.into()))?;
        memory.word(channel.wrapping_add(self.runtime.capacity.into()))
    }
}

/// The state for a number (Go, `runtime/runtime2.go`); `None`: the goroutine has ended or not begun.
fn state(number: u32) -> Option<GoroutineState> {
    /// Set while the garbage collector reads the stack.
    const SCAN: u32 = 0x1000;
    match number & !SCAN {
        1 | 9 => Some(GoroutineState::Runnable),
        2 | 8 => Some(GoroutineState::Running),
        3 => Some(GoroutineState::Call),
        4 => Some(GoroutineState::Waiting),
        _ => None,
    }
}

/// The addresses on a waiting goroutine's stack: that in the runtime where it stopped, and the callers' by frame pointers.
fn frames(memory: &impl Memory, of: &Goroutine) -> Vec<u64> {
    let mut frames = vec![of.instruction];
    let length = of.stack_end.saturating_sub(of.stack_pointer).min(STACK_BYTES);
    let mut stack = vec![0; length as usize];
    if memory.read(of.stack_pointer, &mut stack).is_none() {
        return frames;
    }
    let mut frame = of.frame_pointer;
    while frames.len() < MOST_FRAMES {
        let place = frame.checked_sub(of.stack_pointer).and_then(|place| usize::try_from(place).ok());
        let Some((next, caller)) =
            place.and_then(|place| word_at(&stack, place).zip(word_at(&stack, place.saturating_add(8))))
        else {
            break;
        };
        frames.push(caller);
        // Callers' frames lie above.
        if next <= frame {
            break;
        }
        frame = next;
    }
    frames
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;
    use symbols::GoroutineMembers;

    /// Memory by words; what is not there cannot be read.
    #[derive(Default)]
    struct Words(BTreeMap<u64, u64>);

    impl Words {
        fn set(&mut self, address: u64, words: &[u64]) {
            self.0.extend((0..).zip(words).map(|(place, word)| (address + place * 8, *word)));
        }
    }

    impl Memory for Words {
        fn read(&self, address: u64, bytes: &mut [u8]) -> Option<()> {
            for (place, byte) in (address..).zip(bytes) {
                let word = self.0.get(&(place & !7))?.to_le_bytes();
                *byte = word[(place & 7) as usize];
            }
            Some(())
        }
    }

    const RUNTIME: GoRuntime = GoRuntime {
        goroutines: 0x100,
        reasons: 0x200,
        goroutine: GoroutineMembers {
            stack: 0,
            status: 16,
            reason: 24,
            start: 32,
            waiting: 40,
            stack_pointer: 48,
            instruction: 56,
            frame_pointer: 64,
        },
        channel: 8,
        capacity: 8,
    };

    fn memory(goroutines: &[u64]) -> Words {
        let mut words = Words::default();
        words.set(0x1100, &[0x1_0000, goroutines.len() as u64, 99]);
        words.set(0x1_0000, goroutines);
        words.set(0x1200, &[0, 0, 0x300, 9]);
        words.set(0x300, &[u64::from_le_bytes(*b"chan sen"), u64::from(b'd')]);
        words
    }

    /// A goroutine in state `state`, which waits with the stack pointer 0x8000, two callers, and a channel of 5 places.
    fn goroutine(words: &mut Words, address: u64, state: u64) {
        words.set(address, &[0x7000, 0x8040, state, 1, 0x4000, 0x500, 0x8000, 0x4444, 0x8010]);
        words.set(0x8000, &[0, 0, 0x8020, 0xaaaa, 0x10, 0xbbbb, 0, 0]);
        words.set(0x500, &[0, 0x600]);
        words.set(0x600, &[0, 5]);
    }

    #[test]
    fn a_waiting_goroutine_has_its_reason_its_callers_and_its_channel() {
        let mut words = memory(&[0x2_0000, 0x3_0000, 0x4_0000, 0x5_0000]);
        goroutine(&mut words, 0x2_0000, 4);
        goroutine(&mut words, 0x3_0000, 2 | 0x1000);
        goroutine(&mut words, 0x4_0000, 6);
        let mut looker = Looker::new(RUNTIME, 0x1000);
        let seen = looker.look(&words).expect("a list");
        let [first, second] = &seen[..] else { panic!("one has ended, one cannot be read: {seen:?}") };
        let wait = first.wait.as_ref().expect("it waits");
        assert_eq!((&*wait.reason, wait.capacity), ("chan send", Some(5)));
        assert_eq!(wait.frames, [0x4444, 0xaaaa, 0xbbbb]);
        assert_eq!((second.state, &second.wait, second.weight), (GoroutineState::Running, &None, 1));
        // The same wait is not read again.
        words.0.remove(&0x8000);
        assert_eq!(looker.look(&words).expect("a list")[0].wait.as_ref(), Some(wait));
    }

    #[test]
    fn hostile_memory_has_no_goroutines_and_no_endless_stacks() {
        let mut looker = Looker::new(RUNTIME, 0x1000);
        assert_eq!(looker.look(&Words::default()), None);
        let mut words = Words::default();
        words.set(0x1100, &[0x1_0000, u64::MAX, 0]);
        assert_eq!(looker.look(&words), None);
        let mut words = memory(&[0x2_0000]);
        goroutine(&mut words, 0x2_0000, 4);
        words.set(0x8010, &[0x8010]);
        words.set(0x2_0000, &[0, u64::MAX]);
        let seen = looker.look(&words).expect("a list");
        assert_eq!(seen[0].wait.as_ref().expect("it waits").frames, [0x4444], "the stack has no end");
        // An empty stack, and a frame as far from it as there are addresses.
        words.set(0x2_0000, &[0, 0, 4, 1, 0x4000, 0, 2, 0x4444, 1]);
        words.set(0x2_0040, &[u64::MAX]);
        let seen = Looker::new(RUNTIME, 0x1000).look(&words).expect("a list");
        assert_eq!(seen[0].wait.as_ref().expect("it waits").frames, [0x4444]);
        goroutine(&mut words, 0x2_0000, 4);
        words.set(0x8010, &[0x8010]);
        let seen = Looker::new(RUNTIME, 0x1000).look(&words).expect("a list");
        assert_eq!(
            seen[0].wait.as_ref().expect("it waits").frames,
            [0x4444, 0xaaaa],
            "a frame that is its own caller"
        );
    }

    #[test]
    fn of_very_many_goroutines_every_nth_is_read_and_counts_n_times() {
        let all: Vec<u64> = (0..MOST as u64 * 3).map(|number| 0x10_0000 + number * 0x100).collect();
        let mut words = memory(&all);
        all.iter().for_each(|at| goroutine(&mut words, *at, 1));
        let mut looker = Looker::new(RUNTIME, 0x1000);
        for _ in 0..2 {
            let seen = looker.look(&words).expect("a list");
            assert_eq!((seen.len(), seen[0].weight), (MOST, 3));
        }
    }
}
