//! A trace for Perfetto (`ui.perfetto.dev`, `trace_processor`). Each process has its threads, each thread the calls of
//! probed functions and a track of its states; arrows go from wakers to wakees. "Locks" has a track for each lock and
//! thread that used it. "Critical path" has a track for each CPU count, in the time of the predicted run, which begins
//! where the recording does. Times are those of `CLOCK_MONOTONIC`. A trace that would be too large for a browser has a level
//! of detail ([`super::detail`]).

mod measured;
mod messages;
mod packets;
mod path;

use super::Model;
use super::detail::LeftOut;
use crate::cell::duration;
use messages::TrackDescriptor;
use packets::{Event, Packets, Value};
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
    Detail,
}

/// Writes the trace with a level of detail that fits into `most` bytes. Returns the quantum, nanoseconds: shorter items
/// are joined or omitted; 0: all items are written.
pub fn write(model: &Model<'_>, most: Option<u64>, out: &mut dyn Write) -> io::Result<u64> {
    // Reserves room for the last event. A third of all others is for critical paths.
    let most = most.map(|most| most.saturating_sub(1_000));
    let of_path = most.map(|most| most / 3 / model.cpus.len().max(1) as u64);
    let mut packets = Packets::new(out);
    let mut quantum = path::write(model, of_path, &mut packets)?;
    if let Some(measured) = &model.measured {
        let most = most.map(|most| most.saturating_sub(packets.written));
        quantum = quantum.max(measured::write(measured, most, &mut packets)?);
    }
    if quantum > 0 {
        level_of_detail(model, quantum, &mut packets)?;
    }
    Ok(quantum)
}

/// Writes an event that says how long omitted items are, and how many there are.
fn level_of_detail(model: &Model<'_>, quantum: u64, packets: &mut Packets<'_>) -> io::Result<()> {
    let track = uuid(Kind::Detail, 0);
    packets.track(TrackDescriptor {
        uuid: Some(track),
        name: Some("Level of detail".to_owned()),
        sibling_order_rank: Some(-3),
        ..TrackDescriptor::default()
    })?;
    let LeftOut { calls, wake_ups, path_stretches } = packets.left_out;
    let number = |number: u64| Value::Number(number as f64);
    let values = [
        ("quantum_ns", number(quantum)),
        ("calls left out", number(calls)),
        ("wake-ups left out", number(wake_ups)),
        ("path stretches left out", number(path_stretches)),
    ];
    let start_ns = model.measured.as_ref().map_or(0, |measured| measured.window().0.0);
    let name = format!("shorter than {}: joined or left out", duration(quantum as f64));
    packets.instant(&Event { values: &values, ..Event::new(track, start_ns, &name) })
}

#[cfg(test)]
mod tests {
    use super::messages::TracePacket;
    use super::*;
    use crate::export::About;
    use crate::input::{Input, Parts};
    use crate::plan::InputPlan;
    use engine::report::Cpus;
    use prost::Message;
    use prost::bytes::Buf;
    use std::collections::BTreeMap;

    /// A kept recording.
    fn kept(name: &str) -> Parts {
        let path = format!("{}/../tests/data/recordings/{name}.lp", env!("CARGO_MANIFEST_DIR"));
        Input::open(&InputPlan::whole(path.into())).expect("a recording").into_parts()
    }

    fn trace(parts: &Parts, most: Option<u64>) -> (Vec<u8>, u64) {
        let cpus = Cpus::parse_list("1,4,inf").expect("a list");
        let model = Model::new(parts.timeline.as_ref(), &parts.program, cpus, About::default());
        let mut bytes = Vec::new();
        let quantum = write(&model.expect("a valid program"), most, &mut bytes).expect("written");
        (bytes, quantum)
    }

    /// What a trace shows: nanoseconds of each state, lock and stretch of a path by track and name; numbers of calls and of
    /// wake-ups; and the numbers of those that are left out.
    #[derive(Debug, Default)]
    struct Shown {
        sums: BTreeMap<(u64, String), u64>,
        calls: f64,
        wake_ups: f64,
        left_out: BTreeMap<String, f64>,
    }

    fn shown(bytes: &[u8]) -> Shown {
        let mut shown = Shown::default();
        let (mut names, mut keys, mut open) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        let mut rest = bytes;
        while rest.has_remaining() {
            assert_eq!(rest.get_u8(), 10, "a packet");
            let packet = TracePacket::decode_length_delimited(&mut rest).expect("a packet");
            let fresh = packet.interned_data.unwrap_or_default();
            names.extend(fresh.event_names.into_iter().map(|name| (name.iid, name.name)));
            keys.extend(fresh.debug_annotation_names.into_iter().map(|name| (name.iid, name.name)));
            let (Some(event), Some(time)) = (packet.track_event, packet.timestamp) else { continue };
            let track = event.track_uuid.expect("a track");
            let kind = track >> 48;
            let name = || names[&event.name_iid.expect("a name")].clone();
            match event.kind.expect("a kind") {
                1 if kind == Kind::Thread as u64 => shown.calls += 1.0,
                1 => assert_eq!(open.insert(track, (time, name())), None, "slices do not overlap"),
                2 if kind == Kind::Thread as u64 => {}
                2 => {
                    let (from, name) = open.remove(&track).expect("a begin");
                    *shown.sums.entry((track, name)).or_default() += time - from;
                }
                3 if kind == Kind::States as u64 => shown.wake_ups += 1.0,
                3 if kind == Kind::Detail as u64 => {
                    let values = event.debug_annotations.iter();
                    let value =
                        |key: &str| values.clone().find(|value| keys[&value.name_iid.unwrap()] == key);
                    for key in ["calls left out", "wake-ups left out"] {
                        let number = value(key).and_then(|value| value.double_value).expect("a number");
                        shown.left_out.insert(key.to_owned(), number);
                    }
                }
                _ => {}
            }
        }
        // Slices of length zero are missing in a coarse trace.
        shown.sums.retain(|_, ns| *ns != 0);
        shown
    }

    #[test]
    fn a_coarse_trace_fits_and_keeps_the_sums_of_each_track_and_name() {
        for name in ["store", "attached", "pipeline"] {
            let parts = kept(name);
            let (bytes, quantum) = trace(&parts, None);
            let all = shown(&bytes);
            assert!(quantum == 0 && all.left_out.is_empty(), "{name}");
            let same = trace(&parts, Some(3 * bytes.len() as u64 + 3_000));
            assert!(same.0 == bytes && same.1 == 0, "{name}: what fits is written as it is");
            for part in [4, 20] {
                let most = bytes.len() as u64 / part;
                let (bytes, quantum) = trace(&parts, Some(most));
                assert!(bytes.len() as u64 <= most && quantum > 0, "{name}: {} of {most}", bytes.len());
                let coarse = shown(&bytes);
                // Tracks of locks are numbered in another order, so they are compared by name alone.
                let by = |shown: &Shown, is_lock: bool| {
                    let mut sums: BTreeMap<(u64, String), u64> = BTreeMap::new();
                    for ((track, name), ns) in &shown.sums {
                        if (track >> 48 == Kind::LockOfThread as u64) == is_lock {
                            let track = if is_lock { 0 } else { *track };
                            *sums.entry((track, name.clone())).or_default() += ns;
                        }
                    }
                    sums
                };
                assert_eq!(by(&coarse, true), by(&all, true), "{name}: locks");
                assert_eq!(by(&coarse, false), by(&all, false), "{name}");
                let calls = coarse.calls + coarse.left_out["calls left out"];
                let wake_ups = coarse.wake_ups + coarse.left_out["wake-ups left out"];
                assert_eq!((calls, wake_ups), (all.calls, all.wake_ups), "{name}");
            }
        }
    }
}
