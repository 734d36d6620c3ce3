//! A trace for Perfetto (`ui.perfetto.dev`, `trace_processor`): each process has its threads, with the calls
//! of probed functions and a track of their states, joined by arrows where one woke another. "Locks" has a
//! track for each lock and thread that used it. "Critical path" has one for each CPU count, in the time of
//! the predicted run, which begins where the recording does. Times are those of `CLOCK_MONOTONIC`.

mod measured;
mod messages;
mod packets;
mod path;

use super::Model;
use packets::Packets;
use std::io::{self, Write};

/// Numbers of tracks by what they are: kind and number.
fn uuid(kind: Kind, number: u64) -> u64 {
    (kind as u64) << 48 | number
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    Process = 1,
    Thread,
    States,
    Locks,
    Lock,
    LockOfThread,
    Counter,
    Paths,
    Path,
    PathOfThread,
}

/// Writes the trace.
pub fn write(model: &Model<'_>, out: &mut dyn Write) -> io::Result<()> {
    let mut packets = Packets::new(out);
    path::write(model, &mut packets)?;
    if let Some(measured) = &model.measured {
        measured::write(measured, &mut packets)?;
    }
    Ok(())
}
