//! The trace event format of Chrome (`chrome://tracing`, and every tool that reads its JSON): as `perfetto`, for tools that
//! do not read that. Its text is some thousand times as long as the recording, and browsers do not open it beyond some ten
//! megabytes. So there is a level of detail: what is too short for it is joined with its neighbours ([`summed`]), which keeps
//! the sums of each thread and state; calls and arrows that are too short are left out, and counted.
//!
//! [`summed`]: crate::level_of_detail::summed

mod measured;
mod paths;
mod trace;

use super::Model;
use std::io::{self, Write};
use trace::{LeftOut, Trace};

/// What tells how coarse it is, where viewers show such things.
#[derive(serde::Serialize)]
struct LevelOfDetail {
    quantum_ns: u64,
    left_out: LeftOut,
}

/// Writes the trace, with a level of detail for which so many bytes are enough. What is shorter than that is joined or left
/// out, nanoseconds; 0: nothing is.
pub fn write(model: &Model<'_>, most: Option<u64>, out: &mut dyn Write) -> io::Result<u64> {
    write!(out, "{{\"displayTimeUnit\":\"ns\",\"traceEvents\":[")?;
    // A third is for the critical paths.
    let of_path = most.map(|most| most / 3 / model.cpus.len().max(1) as u64);
    let mut trace = Trace::new(out);
    let mut quantum = paths::write(model, of_path, &mut trace)?;
    if let Some(measured) = &model.measured {
        let most = most.map(|most| most.saturating_sub(trace.written));
        quantum = quantum.max(measured::write(measured, most, &mut trace)?);
    }
    let left_out = trace.left_out;
    write!(out, "\n]")?;
    if quantum > 0 {
        write!(out, ",\"otherData\":")?;
        serde_json::to_writer(&mut *out, &LevelOfDetail { quantum_ns: quantum, left_out })?;
    }
    writeln!(out, "}}")?;
    Ok(quantum)
}
