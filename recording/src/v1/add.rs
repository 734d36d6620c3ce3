//! Adds facts to a finished session. Writes all chunks unchanged, then the new facts and a new index.

use super::chunk::{ChunkKind, Unpacker};
use super::copy::{Copy, changed, next_chunk};
use super::header::FileHeader;
use super::room::{FileLimits, Room};
use super::{cut, stacks};
use engine::event::Facts;
use std::io::{self, Read, Write};

/// Copies a complete session from `from` to `to`, and adds the facts for which there is room. Returns the number of
/// facts that were not added. The caller has read the session before, so any damage is an error.
pub fn add_facts(mut from: impl Read, to: impl Write, facts: &Facts, limits: FileLimits) -> io::Result<u64> {
    let mut head = [0u8; FileHeader::BYTES];
    from.read_exact(&mut head)?;
    let mut copy = Copy::begin(to, &head)?;
    let (mut room, mut unpacker) = (Room::of(limits), Unpacker::new()?);
    loop {
        let (header, payload) = next_chunk(&mut from)?;
        if header.kind == ChunkKind::Index as u16 {
            break;
        }
        copy.chunk(&header, &payload)?;
        let (items, bytes) = (header.items as usize, u64::from(header.raw_bytes));
        // The existing facts stay, even if they take more room than the limits allow.
        match ChunkKind::from_number(header.kind) {
            Some(ChunkKind::Facts) => room.count_facts(items, bytes),
            Some(ChunkKind::Notes) => room.count_notes(items, bytes),
            Some(ChunkKind::Stacks) => {
                let payload = unpacker.unpack(&header, payload).map_err(|_| changed())?;
                let (_, memory) = stacks::decode(&payload, u64::MAX).map_err(|_| changed())?;
                room.count_notes(items, memory);
            }
            _ => {}
        }
    }
    let left_out = cut::facts(facts, &mut room, &mut |items, json| {
        copy.new_chunk(ChunkKind::Facts, items, (0, 0), json)
    })?;
    copy.finish()?;
    Ok(left_out)
}
