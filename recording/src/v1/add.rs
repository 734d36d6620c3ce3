//! Adding facts to a finished session: every chunk unchanged, the facts, a new index.

use super::chunk::{ChunkHeader, ChunkKind, Packed, Packer, Unpacker};
use super::header::FileHeader;
use super::index::{self, Entry};
use super::room::{Limits, Room};
use super::{cut, stacks};
use engine::event::Facts;
use std::io::{self, Read, Write};

/// Copies a whole session from `from` to `to`, with more facts at its end, as many as there is room for. The
/// session has been read before, so any damage is an error here. Returns how many entries there was no room
/// for.
pub fn add_facts(mut from: impl Read, mut to: impl Write, facts: &Facts, limits: Limits) -> io::Result<u64> {
    let bad = || io::Error::new(io::ErrorKind::InvalidData, "the session has changed while it was read");
    let mut head = [0u8; FileHeader::BYTES];
    from.read_exact(&mut head)?;
    to.write_all(&head)?;
    let mut at = FileHeader::BYTES as u64;
    let mut entries: Vec<Entry> = Vec::new();
    let mut put = |to: &mut dyn Write, header: &ChunkHeader, payload: &[u8]| -> io::Result<()> {
        to.write_all(&header.encode())?;
        to.write_all(payload)?;
        if header.kind == ChunkKind::IndexPart as u16 {
            // It lists what comes before it.
            entries.clear();
        }
        entries.push(Entry::new(at, header));
        at = at.saturating_add((ChunkHeader::BYTES + payload.len()) as u64);
        Ok(())
    };
    let (mut room, mut unpacker) = (Room::of(limits), Unpacker::new()?);
    loop {
        let mut bytes = [0u8; ChunkHeader::BYTES];
        from.read_exact(&mut bytes)?;
        let header = ChunkHeader::decode(&bytes).map_err(|_| bad())?;
        let mut payload = Vec::new();
        from.by_ref().take(u64::from(header.stored_bytes)).read_to_end(&mut payload)?;
        if payload.len() != header.stored_bytes as usize {
            return Err(bad());
        }
        if header.kind == ChunkKind::Index as u16 {
            break;
        }
        put(&mut to, &header, &payload)?;
        let (items, bytes) = (header.items as usize, u64::from(header.raw_bytes));
        // The existing facts stay, however much room they take.
        match ChunkKind::from_number(header.kind) {
            Some(ChunkKind::Facts) => room.count_facts(items, bytes),
            Some(ChunkKind::Notes) => room.count_notes(items, bytes),
            Some(ChunkKind::Stacks) => {
                let payload = unpacker.unpack(&header, payload).map_err(|_| bad())?;
                let (_, memory) = stacks::decode(&payload, u64::MAX).map_err(|_| bad())?;
                room.count_notes(items, memory);
            }
            _ => {}
        }
    }
    let mut packer = Packer::new()?;
    let left_out = cut::facts(facts, &mut room, &mut |items, json| {
        let packed = packer.pack(json)?;
        let sizes = (packed.flags, packed.raw_bytes);
        let header = ChunkHeader::of(ChunkKind::Facts, items, (0, 0), sizes, &packed.bytes)?;
        put(&mut to, &header, &packed.bytes)
    })?;
    let packed = Packed::plain(index::encode(ChunkKind::Index, &entries, at));
    let items = u32::try_from(entries.len()).unwrap_or(u32::MAX);
    let header =
        ChunkHeader::of(ChunkKind::Index, items, (0, 0), (packed.flags, packed.raw_bytes), &packed.bytes)?;
    to.write_all(&header.encode())?;
    to.write_all(&packed.bytes)?;
    to.flush()?;
    Ok(left_out)
}
