//! Writes a recording that is in memory.

use super::Writer;
use super::v1::Disk;
use engine::event::Recording;
use std::io;

/// Writes all of a recording, and its end.
///
/// # Errors
/// Those of the disk.
pub fn write_recording<D: Disk>(mut writer: Writer<D>, recording: &Recording) -> io::Result<()> {
    let mut facts = recording.facts.clone();
    let end = facts.end.take().unwrap_or_default();
    writer.facts(&facts)?;
    recording.notes.iter().try_for_each(|note| writer.note(note))?;
    recording.events.iter().try_for_each(|record| writer.push(record))?;
    writer.finish(end).map(drop)
}
