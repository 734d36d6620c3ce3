//! The critical path of each CPU count, in the time of the predicted run.

use super::trace::{Arguments, Event, Trace, fitting, joined, us};
use crate::export::Model;
use crate::export::weights::Weight;
use crate::level_of_detail::{Item, summed};
use crate::palette::Palette;
use crate::present::text::delays;
use engine::time::Ticks;
use engine::view::{PathView, StretchKind, ViewStretch};
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
        let quantum = fitting(most, |quantum, trace| writer.write(quantum, trace).map(drop));
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
        if quantum > 0 && self.path.is_one_path {
            return self.joined(quantum, trace).map(|()| self.first);
        }
        let mut last = self.first;
        for stretch in &self.path.stretches {
            let length = Ticks(stretch.end.0 - stretch.start.0).as_ns_f64();
            if length < quantum as f64 {
                trace.left_out.path_stretches += 1;
                continue;
            }
            let start = self.start_ns as f64 + stretch.start.as_ns_f64();
            let mut event = self.event(&stretch.kind);
            (event.ts, event.dur) = (Some(start / 1_000.0), Some(length / 1_000.0));
            if let StretchKind::Computes { thread, .. } = stretch.kind
                && !self.path.is_one_path
            {
                // Several threads are on the path at once: each has a track.
                event.tid = self.first + 1 + u64::from(thread);
                event.args.get_or_insert_default().weight = Some(stretch.weight);
                last = last.max(event.tid);
            }
            trace.put(&event)?;
        }
        Ok(last)
    }

    /// Writes a single path with its short stretches joined.
    fn joined(&self, quantum: u64, trace: &mut Trace<'_>) -> io::Result<()> {
        let mut kinds = Palette::default();
        let item = |stretch: &ViewStretch| Item {
            code: kinds.number(stretch.kind.clone()),
            ns: stretch.end.nearest_ns().saturating_sub(stretch.start.nearest_ns()),
            more: 0,
        };
        let mut items = Vec::with_capacity(self.path.stretches.len());
        items.extend(self.path.stretches.iter().map(item));
        let (mut at, mut result) = (self.start_ns, Ok(()));
        summed(items.into_iter(), quantum, |item, count| {
            let Some(kind) = kinds.get(item.code).filter(|_| result.is_ok()) else { return };
            let mut event = self.event(kind);
            (event.ts, event.dur) = (us(at), us(item.ns));
            event.args.get_or_insert_default().joined = joined(count);
            result = trace.put(&event);
            at = at.saturating_add(item.ns);
        });
        result
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
