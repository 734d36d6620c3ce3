//! A trace for Perfetto (`ui.perfetto.dev`, `trace_processor`). Each process has its threads, each thread the calls of
//! probed functions and a track of its states; arrows go from wakers to wakees. "Locks" has a track for each lock and
//! thread that used it. "Critical path" has a track for each CPU count, in the time of the predicted run, which begins
//! where the recording does. Times are those of `CLOCK_MONOTONIC`.

mod measured;
mod messages;
mod packets;
mod path;

use super::Model;
use packets::Packets;
use std::io::{self, Write};

/// Id of a track, from its kind and its number within that kind.
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
