//! Writes packets: tracks, slices, instants, counters.

use super::messages::{DebugAnnotation, InternedData, Name, TracePacket, TrackDescriptor, TrackEvent};
use crate::export::detail::LeftOut;
use prost::Message;
use std::collections::HashMap;
use std::io::{self, Write};

/// The only sequence of packets, in which names are numbered.
const SEQUENCE: u32 = 1;
/// Key of `Trace.packet`: field 1, with a length.
const PACKET: u8 = 1 << 3 | 2;

/// Further information about an event.
#[derive(Clone, Copy, Debug)]
pub enum Value<'a> {
    Text(&'a str),
    Flag(bool),
    Number(f64),
}

/// The number of slices that one joins; `None`: it is a single one.
pub fn joined(count: u32) -> Option<(&'static str, Value<'static>)> {
    (count > 0).then(|| ("joined", Value::Number(f64::from(count))))
}

/// Writes packets. Each name is written once, before the first packet that refers to it.
pub struct Packets<'w> {
    out: &'w mut dyn Write,
    buffer: Vec<u8>,
    names: HashMap<String, u64>,
    keys: HashMap<&'static str, u64>,
    fresh: InternedData,
    begun: bool,
    /// Bytes written so far.
    pub written: u64,
    pub left_out: LeftOut,
}

/// An event at a moment of a track.
#[derive(Clone, Copy, Debug)]
pub struct Event<'a> {
    pub track: u64,
    pub time_ns: u64,
    pub name: &'a str,
    pub values: &'a [(&'static str, Value<'a>)],
    /// Number of an arrow that begins at this event, and number of one that ends here.
    pub flow_from: Option<u64>,
    pub flow_to: Option<u64>,
}

impl<'a> Event<'a> {
    pub fn new(track: u64, time_ns: u64, name: &'a str) -> Event<'a> {
        Event { track, time_ns, name, values: &[], flow_from: None, flow_to: None }
    }
}

impl<'w> Packets<'w> {
    pub fn new(out: &'w mut dyn Write) -> Packets<'w> {
        Packets {
            out,
            buffer: Vec::new(),
            names: HashMap::new(),
            keys: HashMap::new(),
            fresh: InternedData::default(),
            begun: false,
            written: 0,
            left_out: LeftOut::default(),
        }
    }

    pub fn track(&mut self, track: TrackDescriptor) -> io::Result<()> {
        self.packet(TracePacket { track_descriptor: Some(track), ..TracePacket::default() })
    }

    pub fn begin(&mut self, event: &Event<'_>) -> io::Result<()> {
        self.event(1, event)
    }

    pub fn instant(&mut self, event: &Event<'_>) -> io::Result<()> {
        self.event(3, event)
    }

    pub fn end(&mut self, track: u64, time_ns: u64) -> io::Result<()> {
        let event = TrackEvent { kind: Some(2), track_uuid: Some(track), ..TrackEvent::default() };
        self.at(time_ns, event)
    }

    /// Ends a call inside of which this number of calls is omitted.
    pub fn end_with(&mut self, track: u64, time_ns: u64, left_out: u64) -> io::Result<()> {
        let annotation = |packets: &mut Self| DebugAnnotation {
            name_iid: Some(packets.key("calls left out")),
            double_value: Some(left_out as f64),
            ..DebugAnnotation::default()
        };
        let debug_annotations = (left_out > 0).then(|| annotation(self)).into_iter().collect();
        let event =
            TrackEvent { kind: Some(2), track_uuid: Some(track), debug_annotations, ..TrackEvent::default() };
        self.at(time_ns, event)
    }

    pub fn count(&mut self, track: u64, time_ns: u64, value: u32) -> io::Result<()> {
        let counter_value = Some(i64::from(value));
        self.counter(track, time_ns, TrackEvent { counter_value, ..TrackEvent::default() })
    }

    /// Writes a counter's mean over a stretch that begins here.
    pub fn mean(&mut self, track: u64, time_ns: u64, value: f64) -> io::Result<()> {
        let double_counter_value = Some(value);
        self.counter(track, time_ns, TrackEvent { double_counter_value, ..TrackEvent::default() })
    }

    fn counter(&mut self, track: u64, time_ns: u64, event: TrackEvent) -> io::Result<()> {
        self.at(time_ns, TrackEvent { kind: Some(4), track_uuid: Some(track), ..event })
    }

    fn event(&mut self, kind: i32, event: &Event<'_>) -> io::Result<()> {
        let values = event.values.iter().map(|(key, value)| {
            let mut annotation = DebugAnnotation { name_iid: Some(self.key(key)), ..Default::default() };
            match value {
                Value::Text(text) => annotation.string_value = Some((*text).to_owned()),
                Value::Flag(flag) => annotation.bool_value = Some(*flag),
                Value::Number(number) => annotation.double_value = Some(*number),
            }
            annotation
        });
        let debug_annotations = values.collect();
        let name_iid = Some(self.name(event.name));
        let event_ = TrackEvent {
            kind: Some(kind),
            track_uuid: Some(event.track),
            name_iid,
            debug_annotations,
            flow_ids: event.flow_from.into_iter().collect(),
            terminating_flow_ids: event.flow_to.into_iter().collect(),
            ..TrackEvent::default()
        };
        self.at(event.time_ns, event_)
    }

    fn name(&mut self, name: &str) -> u64 {
        if let Some(iid) = self.names.get(name) {
            return *iid;
        }
        let iid = self.names.len() as u64 + 1;
        self.names.insert(name.to_owned(), iid);
        self.fresh.event_names.push(Name { iid, name: name.to_owned() });
        iid
    }

    fn key(&mut self, key: &'static str) -> u64 {
        if let Some(iid) = self.keys.get(key) {
            return *iid;
        }
        let iid = self.keys.len() as u64 + 1;
        self.keys.insert(key, iid);
        self.fresh.debug_annotation_names.push(Name { iid, name: key.to_owned() });
        iid
    }

    fn at(&mut self, time_ns: u64, event: TrackEvent) -> io::Result<()> {
        let fresh = std::mem::take(&mut self.fresh);
        let is_fresh = !(fresh.event_names.is_empty() && fresh.debug_annotation_names.is_empty());
        self.packet(TracePacket {
            timestamp: Some(time_ns),
            interned_data: is_fresh.then_some(fresh),
            track_event: Some(event),
            ..TracePacket::default()
        })
    }

    fn packet(&mut self, mut packet: TracePacket) -> io::Result<()> {
        packet.trusted_packet_sequence_id = Some(SEQUENCE);
        packet.sequence_flags = Some(if std::mem::replace(&mut self.begun, true) { 2 } else { 1 | 2 });
        self.buffer.clear();
        self.buffer.push(PACKET);
        // Encoding fails only for lack of room, and this buffer grows.
        packet.encode_length_delimited(&mut self.buffer).map_err(io::Error::other)?;
        self.written += self.buffer.len() as u64;
        self.out.write_all(&self.buffer)
    }
}
