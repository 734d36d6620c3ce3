//! Joins two files of one recording. Copies the chunks of both unchanged, except those that the second file repeats.

use super::chunk::{ChunkHeader, ChunkKind, Unpacker};
use super::copy::{Copy, changed, next_chunk};
use super::header::FileHeader;
use super::room::{FileLimits, Room};
use super::{cut, stacks};
use engine::event::{LeftOut, WindowEnd};
use std::io::{self, Read, Write};

/// The result of joining.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Joined {
    /// Size of the joined file, in bytes.
    pub bytes: u64,
    /// Records in the joined file.
    pub events: u64,
    /// Entries that had no room in the file.
    pub left_out: LeftOut,
}

/// Writes `older` and then `newer` to `to`. Both files are complete; `newer` comes without its file header and without
/// the content that repeats `older`, so it begins with a chunk. `end` describes the time of both files, and counts what
/// is missing in each.
pub fn join(
    older: impl Read,
    newer: impl Read,
    to: impl Write,
    mut end: WindowEnd,
    limits: FileLimits,
) -> io::Result<Joined> {
    let mut older = older;
    let mut head = [0u8; FileHeader::BYTES];
    older.read_exact(&mut head)?;
    let mut join = Join {
        copy: Copy::begin(to, &head)?,
        room: Room::of(limits),
        unpacker: Unpacker::new()?,
        joined: Joined { left_out: end.left_out, ..Joined::default() },
        skips_cut_stacks: false,
    };
    join.all_of(older)?;
    join.all_of(newer)?;
    let Join { mut copy, mut room, mut joined, .. } = join;
    let times = (end.end_ns, end.end_ns);
    end.left_out = LeftOut::default();
    let (mut end, left_out) =
        cut::end(end, &mut room, &mut |items, json| copy.new_chunk(ChunkKind::EndPart, items, times, json))?;
    joined.left_out.end = joined.left_out.end.saturating_add(left_out);
    end.left_out = joined.left_out;
    copy.new_chunk(ChunkKind::End, 1, times, serde_json::to_vec(&end)?)?;
    joined.bytes = copy.finish()?;
    Ok(joined)
}

struct Join<W> {
    copy: Copy<W>,
    room: Room,
    unpacker: Unpacker,
    joined: Joined,
    /// Whether the last chunk of stacks had no room. Then notes about these stacks are omitted, too.
    skips_cut_stacks: bool,
}

impl<W: Write> Join<W> {
    fn all_of(&mut self, mut from: impl Read) -> io::Result<()> {
        loop {
            let (header, payload) = next_chunk(&mut from)?;
            match ChunkKind::from_number(header.kind) {
                Some(ChunkKind::Index) => return Ok(()),
                Some(ChunkKind::End | ChunkKind::EndPart) => {}
                kind => {
                    if self.has_room(kind, &header, &payload)? {
                        self.copy.chunk(&header, &payload)?;
                    }
                }
            }
        }
    }

    /// Whether a chunk has room. Each file alone keeps within a reader's limits, but both together may exceed them.
    fn has_room(
        &mut self,
        kind: Option<ChunkKind>,
        header: &ChunkHeader,
        payload: &[u8],
    ) -> io::Result<bool> {
        let (items, bytes) = (header.items as usize, u64::from(header.raw_bytes));
        let (room, left_out) = (&mut self.room, &mut self.joined.left_out);
        let (has_room, counted) = match kind {
            Some(ChunkKind::Events) => {
                self.joined.events = self.joined.events.saturating_add(u64::from(header.items));
                return Ok(true);
            }
            Some(ChunkKind::Facts) => (room.take_facts(items, bytes), &mut left_out.facts),
            Some(ChunkKind::Notes) => (room.take_notes(items, bytes), &mut left_out.notes),
            Some(ChunkKind::Stacks) => {
                let raw = self.unpacker.unpack(header, payload.to_vec()).map_err(|_| changed())?;
                let (_, memory) = stacks::decode(&raw, u64::MAX).map_err(|_| changed())?;
                let has_room = room.take_notes(items, memory);
                self.skips_cut_stacks = !has_room;
                (has_room, &mut left_out.stacks)
            }
            Some(ChunkKind::CutStacks) => return Ok(!self.skips_cut_stacks),
            _ => return Ok(true),
        };
        if !has_room {
            *counted = counted.saturating_add(u64::from(header.items));
        }
        Ok(has_room)
    }
}
