//! The critical path of each CPU count.

use super::messages::TrackDescriptor;
use super::packets::{Event, Packets, Value, joined};
use super::{Kind, uuid};
use crate::cell::duration;
use crate::cpu_words::on;
use crate::export::Model;
use crate::export::detail::{self, ShownStretch, fitting};
use crate::present::text::delays;
use engine::time::Ticks;
use engine::view::{PathView, StretchKind};
use std::borrow::Cow;
use std::collections::HashSet;
use std::io;

const GROUP: &str = "Critical path, predicted";

/// Writes each path in at most `most` bytes. Returns the quantum, nanoseconds: shorter stretches are joined or omitted.
pub(super) fn write(model: &Model<'_>, most: Option<u64>, packets: &mut Packets<'_>) -> io::Result<u64> {
    let group = uuid(Kind::Paths, 0);
    packets.track(TrackDescriptor {
        uuid: Some(group),
        name: Some(GROUP.to_owned()),
        child_ordering: Some(3),
        sibling_order_rank: Some(-2),
        ..TrackDescriptor::default()
    })?;
    let mut coarsest = 0;
    let start_ns = model.measured.as_ref().map_or(0, |measured| measured.window().0.0);
    for (place, cpus) in model.cpus.iter().enumerate() {
        let path = model.path(*cpus);
        let track = uuid(Kind::Path, place as u64);
        let end = path.stretches.last().filter(|_| path.is_one_path).map(|last| last.end.as_ns_f64());
        let time = duration(end.unwrap_or_else(|| model.time_ns(*cpus)));
        let name = format!("{}: {time}", on(*cpus));
        packets.track(TrackDescriptor {
            uuid: Some(track),
            parent_uuid: Some(group),
            name: Some(name),
            sibling_order_rank: i32::try_from(place).ok(),
            sibling_merge_behavior: Some(2),
            ..TrackDescriptor::default()
        })?;
        let writer = Writer { model, start_ns, track, place };
        let quantum = fitting(most, |quantum, out| writer.path(&path, quantum, &mut Packets::new(out)));
        writer.path(&path, quantum, packets)?;
        coarsest = coarsest.max(quantum);
    }
    Ok(coarsest)
}

struct Writer<'m, 'a> {
    model: &'m Model<'a>,
    start_ns: u64,
    track: u64,
    place: usize,
}

impl Writer<'_, '_> {
    fn path(&self, path: &PathView, quantum: u64, packets: &mut Packets<'_>) -> io::Result<()> {
        let mut tracks: HashSet<u32> = HashSet::new();
        let left_out = detail::path(path, quantum, |shown| {
            let track = match *shown.kind {
                StretchKind::Computes { thread, .. } if !path.is_one_path => {
                    let track = uuid(Kind::PathOfThread, (self.place as u64) << 32 | u64::from(thread));
                    if tracks.insert(thread) {
                        packets.track(TrackDescriptor {
                            uuid: Some(track),
                            parent_uuid: Some(self.track),
                            name: Some(self.model.thread(thread).to_owned()),
                            ..TrackDescriptor::default()
                        })?;
                    }
                    track
                }
                _ => self.track,
            };
            self.stretch(shown, track, path.is_one_path, packets)
        })?;
        packets.left_out.path_stretches += left_out;
        Ok(())
    }

    fn stretch(
        &self,
        stretch: &ShownStretch<'_>,
        track: u64,
        is_one_path: bool,
        packets: &mut Packets<'_>,
    ) -> io::Result<()> {
        let (from, to) = (self.at(stretch.start), self.at(stretch.end));
        let mut values = Vec::new();
        let name = match stretch.kind {
            StretchKind::Computes { thread, function } => {
                values.push(("thread", Value::Text(self.model.thread(*thread))));
                if !is_one_path {
                    values.push(("weight", Value::Number(stretch.weight)));
                }
                Cow::Borrowed(self.model.function(*function))
            }
            StretchKind::Passes(kind) => Cow::Owned(delays::words(kind)),
        };
        values.extend(joined(stretch.joined));
        packets.begin(&Event { values: &values, ..Event::new(track, from, &name) })?;
        packets.end(track, to)
    }

    /// A time of the trace. Rounding keeps stretches that touch each other touching.
    fn at(&self, time: Ticks) -> u64 {
        self.start_ns.saturating_add(time.nearest_ns())
    }
}
