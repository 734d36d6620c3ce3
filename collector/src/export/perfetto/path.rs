//! The critical path of each CPU count.

use super::messages::TrackDescriptor;
use super::packets::{Event, Packets, Value};
use super::{Kind, uuid};
use crate::cell::duration;
use crate::cpu_words::on;
use crate::export::Model;
use crate::present::text::delays;
use engine::time::Ticks;
use engine::view::{PathView, StretchKind, ViewStretch};
use std::collections::HashSet;
use std::io;

const GROUP: &str = "Critical path, predicted";

pub(super) fn write(model: &Model<'_>, packets: &mut Packets<'_>) -> io::Result<()> {
    let group = uuid(Kind::Paths, 0);
    packets.track(TrackDescriptor {
        uuid: Some(group),
        name: Some(GROUP.to_owned()),
        child_ordering: Some(3),
        sibling_order_rank: Some(-2),
        ..TrackDescriptor::default()
    })?;
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
        writer.path(&path, packets)?;
    }
    Ok(())
}

struct Writer<'m, 'a> {
    model: &'m Model<'a>,
    start_ns: u64,
    track: u64,
    place: usize,
}

impl Writer<'_, '_> {
    fn path(&self, path: &PathView, packets: &mut Packets<'_>) -> io::Result<()> {
        let mut tracks: HashSet<u32> = HashSet::new();
        for stretch in &path.stretches {
            let track = match stretch.kind {
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
            self.stretch(stretch, track, path.is_one_path, packets)?;
        }
        Ok(())
    }

    fn stretch(
        &self,
        stretch: &ViewStretch,
        track: u64,
        is_one_path: bool,
        packets: &mut Packets<'_>,
    ) -> io::Result<()> {
        let (from, to) = (self.at(stretch.start), self.at(stretch.end));
        match &stretch.kind {
            StretchKind::Computes { thread, function } => {
                let thread = ("thread", Value::Text(self.model.thread(*thread)));
                let weight = ("weight", Value::Number(stretch.weight));
                let values = [thread, weight];
                let values = if is_one_path { &values[..1] } else { &values[..] };
                let name = self.model.function(*function);
                packets.begin(&Event { values, ..Event::new(track, from, name) })?;
            }
            StretchKind::Passes(kind) => packets.begin(&Event::new(track, from, &delays::words(kind)))?,
        }
        packets.end(track, to)
    }

    /// A time of the trace. Rounding keeps stretches that touch each other touching.
    fn at(&self, time: Ticks) -> u64 {
        self.start_ns.saturating_add(time.nearest_ns())
    }
}
