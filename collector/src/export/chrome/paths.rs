//! The critical path of each CPU count, in the time of the predicted run.

use super::trace::{Arguments, Event, Trace, joined};
use crate::export::Model;
use crate::export::detail::{self, fitting};
use crate::export::weights::Weight;
use crate::present::text::delays;
use engine::time::Ticks;
use engine::view::{PathView, StretchKind};
use std::borrow::Cow;
use std::io;

/// Number of the process that stands for critical paths; no real process has it.
const PATHS: u64 = 0;

/// Writes each path in at most `most` bytes. Returns the quantum, nanoseconds: shorter stretches are joined or omitted.
pub fn write(model: &Model<'_>, most: Option<u64>, trace: &mut Trace<'_>) -> io::Result<u64> {
    trace.name("process_name", (PATHS, 0), "critical path, predicted")?;
    let start_ns = model.measured.as_ref().map_or(0, |measured| measured.window().0.0);
    let (mut first, mut coarsest) = (1, 0);
    for cpus in &model.cpus {
        let path = model.path(*cpus);
        trace.name("thread_name", (PATHS, first), &Weight::on(*cpus))?;
        let writer = Writer { model, path: &path, first, start_ns };
        let quantum = fitting(most, |quantum, out| writer.write(quantum, &mut Trace::new(out)).map(drop));
        first = writer.write(quantum, trace)? + 1;
        coarsest = coarsest.max(quantum);
    }
    Ok(coarsest)
}

struct Writer<'m, 'a> {
    model: &'m Model<'a>,
    path: &'m PathView,
    /// Number of the path's first track.
    first: u64,
    start_ns: u64,
}

impl Writer<'_, '_> {
    /// Writes the path. Returns the number of its last track.
    fn write(&self, quantum: u64, trace: &mut Trace<'_>) -> io::Result<u64> {
        let mut last = self.first;
        let left_out = detail::path(self.path, quantum, |shown| {
            let start = self.start_ns as f64 + shown.start.as_ns_f64();
            let mut event = self.event(shown.kind);
            event.ts = Some(start / 1_000.0);
            event.dur = Some(Ticks(shown.end.0 - shown.start.0).as_ns_f64() / 1_000.0);
            if let StretchKind::Computes { thread, .. } = *shown.kind
                && !self.path.is_one_path
            {
                // Several threads are on the path at once: each has a track.
                event.tid = self.first + 1 + u64::from(thread);
                event.args.get_or_insert_default().weight = Some(shown.weight);
                last = last.max(event.tid);
            }
            event.args.get_or_insert_default().joined = joined(shown.joined);
            trace.put(&event)
        })?;
        trace.left_out.path_stretches += left_out;
        Ok(last)
    }

    fn event<'e>(&'e self, kind: &StretchKind) -> Event<'e> {
        let mut args = Arguments::default();
        let name = match kind {
            StretchKind::Computes { thread, function } => {
                args.thread = Some(self.model.thread(*thread));
                Cow::Borrowed(self.model.function(*function))
            }
            StretchKind::Passes(kind) => Cow::Owned(delays::words(kind)),
        };
        let (name, args) = (Some(name), Some(args));
        Event { ph: "X", pid: PATHS, tid: self.first, name, args, ..Event::default() }
    }
}
