//! Encodes sampled stacks. Most stacks have the same callers as the stack before.
//!
//! ```text
//! payload = stack*
//! stack   = time:near id:near pid:near shared:varint more:varint address:near[more]
//! ```
//!
//! `near` is the zigzag difference to the same value of the previous stack; for an address, to the previous address.
//! The `shared` outermost frames are the same as in the previous stack. The other frames follow, outermost first.
//!
//! A stack is cut if it has more frames beyond its outermost one. A separate chunk lists the cut stacks of the
//! preceding chunk. For each cut stack, that chunk has the number of stacks between it and the previous cut one (a
//! varint).

use super::varint::{put, take, unzigzag, zigzag};
use engine::event::{MOST_FRAMES, Note, NoteKind};

/// Why a payload of stacks cannot be decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoStacks {
    /// No encoder makes these bytes.
    Malformed,
    /// There is not enough room for the memory of the stacks.
    TooLarge,
}

/// Memory of a stack in addition to its frames, in bytes.
const EACH: u64 = 64;

/// Memory of a stack with this number of frames, in bytes.
pub fn memory(frames: usize) -> u64 {
    EACH + 8 * frames.min(MOST_FRAMES) as u64
}

/// The values of the last stack, from which the values of the next one are predicted.
#[derive(Default)]
struct Last {
    time_ns: u64,
    id: u64,
    pid: u64,
    /// The frames, outermost first.
    frames: Vec<u64>,
}

/// Encodes the stacks of one chunk.
#[derive(Default)]
pub struct Encoder {
    last: Last,
    payload: Vec<u8>,
    stacks: u32,
    cut: Cut,
    times: Option<(u64, u64)>,
}

/// The stacks of a chunk that are cut.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cut {
    /// Number of cut stacks.
    pub stacks: u32,
    /// Index of the stack after the last cut one.
    behind: u32,
    /// The payload of the chunk that lists the cut stacks; see the module's documentation.
    pub payload: Vec<u8>,
}

/// The encoded stacks of one chunk.
#[derive(Debug, PartialEq, Eq)]
pub struct Packed {
    /// Number of stacks.
    pub stacks: u32,
    /// Time of the earliest and of the latest stack.
    pub times: (u64, u64),
    /// The payload; see the module's documentation.
    pub payload: Vec<u8>,
    /// The stacks that are cut.
    pub cut: Cut,
}

impl Encoder {
    /// Adds a stack with its innermost frames, at most [`MOST_FRAMES`].
    pub fn push(&mut self, time_ns: u64, (id, pid): (u32, u32), frames: &[u64], is_cut: bool) {
        let near = |payload: &mut Vec<u8>, last: u64, value: u64| {
            put(payload, zigzag(value.wrapping_sub(last)));
            value
        };
        let (payload, last) = (&mut self.payload, &mut self.last);
        last.time_ns = near(payload, last.time_ns, time_ns);
        last.id = near(payload, last.id, u64::from(id));
        last.pid = near(payload, last.pid, u64::from(pid));
        let outward: Vec<u64> = frames.iter().take(MOST_FRAMES).rev().copied().collect();
        let shared = outward.iter().zip(&last.frames).take_while(|(a, b)| a == b).count();
        put(payload, shared as u64);
        put(payload, (outward.len() - shared) as u64);
        let mut before = shared.checked_sub(1).and_then(|at| outward.get(at)).copied().unwrap_or(0);
        for &frame in outward.iter().skip(shared) {
            before = near(payload, before, frame);
        }
        last.frames = outward;
        if is_cut {
            put(&mut self.cut.payload, u64::from(self.stacks.saturating_sub(self.cut.behind)));
            self.cut.behind = self.stacks.saturating_add(1);
            self.cut.stacks = self.cut.stacks.saturating_add(1);
        }
        self.stacks = self.stacks.saturating_add(1);
        let (first, latest) = self.times.unwrap_or((time_ns, time_ns));
        self.times = Some((first.min(time_ns), latest.max(time_ns)));
    }

    /// Number of bytes so far.
    pub fn bytes(&self) -> usize {
        self.payload.len()
    }

    /// Number of stacks so far.
    pub fn stacks(&self) -> u32 {
        self.stacks
    }

    /// A copy of the stacks so far, if there are any.
    pub fn draft(&self) -> Option<Packed> {
        let (stacks, times) = (self.stacks, self.times?);
        Some(Packed { stacks, times, payload: self.payload.clone(), cut: self.cut.clone() })
    }

    /// Returns the stacks so far and empties the encoder. `None` if there are no stacks.
    pub fn finish(&mut self) -> Option<Packed> {
        let Encoder { payload, stacks, cut, times, .. } = std::mem::take(self);
        Some(Packed { stacks, times: times?, payload, cut })
    }
}

/// Marks the stacks that a payload lists as cut. Returns their number, or `None` if the payload is invalid.
pub fn mark_cut(mut payload: &[u8], stacks: &mut [Note]) -> Option<u32> {
    let (mut rest, mut marked) = (stacks.iter_mut(), 0u32);
    while !payload.is_empty() {
        let between = usize::try_from(take(&mut payload)?).ok()?;
        let NoteKind::Stack { cut, .. } = &mut rest.nth(between)?.kind else { return None };
        *cut = true;
        marked = marked.saturating_add(1);
    }
    Some(marked)
}

/// Decodes the stacks of a payload as notes. Also returns their memory in bytes. Stacks that need more than `room`
/// bytes are an error.
pub fn decode(mut payload: &[u8], room: u64) -> Result<(Vec<Note>, u64), NoStacks> {
    let rest = &mut payload;
    let mut last = Last::default();
    let mut notes = Vec::new();
    let mut used = 0u64;
    while !rest.is_empty() {
        let mut number = || take(rest).ok_or(NoStacks::Malformed);
        last.time_ns = last.time_ns.wrapping_add(unzigzag(number()?));
        last.id = last.id.wrapping_add(unzigzag(number()?));
        last.pid = last.pid.wrapping_add(unzigzag(number()?));
        let count = |value: u64| usize::try_from(value).map_err(|_| NoStacks::Malformed);
        let (shared, more) = (count(number()?)?, count(number()?)?);
        if shared > last.frames.len() || shared.checked_add(more).is_none_or(|all| all > MOST_FRAMES) {
            return Err(NoStacks::Malformed);
        }
        used = used.saturating_add(memory(shared + more));
        if used > room {
            return Err(NoStacks::TooLarge);
        }
        last.frames.truncate(shared);
        let mut before = last.frames.last().copied().unwrap_or(0);
        for _ in 0..more {
            before = before.wrapping_add(unzigzag(number()?));
            last.frames.push(before);
        }
        let whole = |value: u64| u32::try_from(value).map_err(|_| NoStacks::Malformed);
        let frames = last.frames.iter().rev().copied().collect();
        let kind = NoteKind::Stack { id: whole(last.id)?, pid: whole(last.pid)?, frames, cut: false };
        notes.push(Note { time_ns: last.time_ns, kind });
    }
    Ok((notes, used))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn encoded(stacks: &[(u64, u32, u32, Vec<u64>)]) -> Vec<u8> {
        let mut encoder = Encoder::default();
        for (time_ns, id, pid, frames) in stacks {
            encoder.push(*time_ns, (*id, *pid), frames, false);
        }
        encoder.finish().map(|packed| packed.payload).unwrap_or_default()
    }

    proptest! {
        #[test]
        fn any_stacks_are_read_back_as_written(stacks in proptest::collection::vec(
            (any::<u64>(), any::<u32>(), any::<u32>(),
             proptest::collection::vec(prop_oneof![0u64..5, any::<u64>()], 0..12)), 0..40)) {
            let (notes, _) = decode(&encoded(&stacks), u64::MAX).expect("decoded");
            let back: Vec<_> = notes.into_iter().map(|note| match note.kind {
                NoteKind::Stack { id, pid, frames, cut: false } => (note.time_ns, id, pid, frames),
                other => panic!("{other:?}"),
            }).collect();
            prop_assert_eq!(back, stacks);
        }

        #[test]
        fn stacks_that_are_cut_off_are_read_back_as_such(cut in proptest::collection::vec(any::<bool>(), 0..60)) {
            let mut encoder = Encoder::default();
            for (id, &is_cut) in (1..).zip(&cut) {
                encoder.push(7, (id, 7), &[u64::from(id)], is_cut);
            }
            let Some(packed) = encoder.finish() else { return Ok(()) };
            let (mut notes, _) = decode(&packed.payload, u64::MAX).expect("decoded");
            prop_assert_eq!(mark_cut(&packed.cut.payload, &mut notes), Some(packed.cut.stacks));
            let back: Vec<bool> = notes
                .iter()
                .map(|note| matches!(note.kind, NoteKind::Stack { cut: true, .. }))
                .collect();
            prop_assert_eq!(back, cut);
        }

        #[test]
        fn any_bytes_as_marks_of_cut_stacks_are_bounded_or_refused(bytes in proptest::collection::vec(0u8..200, 0..9)) {
            let kind = NoteKind::Stack { id: 1, pid: 7, frames: vec![], cut: false };
            let mut notes = vec![Note { time_ns: 1, kind }; 5];
            prop_assert!(mark_cut(&bytes, &mut notes).is_none_or(|marked| marked <= 5));
        }

        #[test]
        fn any_bytes_as_stacks_are_bounded_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            if let Ok((notes, used)) = decode(&bytes, 4096) {
                prop_assert!(used <= 4096 && notes.len() as u64 * EACH <= used);
            }
        }
    }

    #[test]
    fn stacks_with_common_callers_take_few_bytes() {
        let frames = |leaf: u64| -> Vec<u64> {
            (0..100).map(|i| leaf + 0x7000_0000_0000 * u64::from(i != 0) + i).collect()
        };
        let stacks: Vec<_> = (0..1000)
            .map(|i| {
                (i, i as u32 + 1, 7, {
                    let mut frames = frames(0);
                    frames[0] = 0x40_0000 + i;
                    frames
                })
            })
            .collect();
        let bytes = encoded(&stacks).len();
        assert!(bytes < 1000 * 16 + 400, "{bytes} bytes");
    }

    #[test]
    fn a_few_bytes_of_stacks_cannot_claim_much_memory() {
        let deep: Vec<u64> = (0..MOST_FRAMES as u64).collect();
        let stacks: Vec<_> = (0..10_000).map(|i| (0, i, 7, deep.clone())).collect();
        let bytes = encoded(&stacks);
        assert!(bytes.len() < 100_000);
        assert_eq!(decode(&bytes, 1_000_000), Err(NoStacks::TooLarge));
    }
}
