//! The messages of Perfetto's trace format that longpole writes, with the field numbers of `perfetto/trace/*.proto`.

use prost::Message;

/// One packet of a trace: `TracePacket`.
#[derive(Clone, PartialEq, Message)]
pub struct TracePacket {
    /// Time, nanoseconds.
    #[prost(uint64, optional, tag = "8")]
    pub timestamp: Option<u64>,
    /// Names that packets refer to by number from here on.
    #[prost(message, optional, tag = "12")]
    pub interned_data: Option<InternedData>,
    /// The sequence in which names are numbered.
    #[prost(uint32, optional, tag = "10")]
    pub trusted_packet_sequence_id: Option<u32>,
    /// 1: numbers start again; 2: numbers are used.
    #[prost(uint32, optional, tag = "13")]
    pub sequence_flags: Option<u32>,
    /// An event on a track.
    #[prost(message, optional, tag = "11")]
    pub track_event: Option<TrackEvent>,
    /// A track.
    #[prost(message, optional, tag = "60")]
    pub track_descriptor: Option<TrackDescriptor>,
}

/// See [`TracePacket::interned_data`].
#[derive(Clone, PartialEq, Message)]
pub struct InternedData {
    /// Names of events.
    #[prost(message, repeated, tag = "2")]
    pub event_names: Vec<Name>,
    /// Names of annotations.
    #[prost(message, repeated, tag = "3")]
    pub debug_annotation_names: Vec<Name>,
}

/// `EventName`, `DebugAnnotationName`.
#[derive(Clone, PartialEq, Message)]
pub struct Name {
    /// Its number, not 0.
    #[prost(uint64, tag = "1")]
    pub iid: u64,
    /// The name.
    #[prost(string, tag = "2")]
    pub name: String,
}

/// See [`TracePacket::track_event`].
#[derive(Clone, PartialEq, Message)]
pub struct TrackEvent {
    /// 1: a slice begins, 2: it ends, 3: an instant, 4: a counter's value.
    #[prost(int32, optional, tag = "9")]
    pub kind: Option<i32>,
    /// The track.
    #[prost(uint64, optional, tag = "11")]
    pub track_uuid: Option<u64>,
    /// Number of the event's name among the interned names.
    #[prost(uint64, optional, tag = "10")]
    pub name_iid: Option<u64>,
    /// Further information.
    #[prost(message, repeated, tag = "4")]
    pub debug_annotations: Vec<DebugAnnotation>,
    /// Arrows that begin here.
    #[prost(fixed64, repeated, packed = "false", tag = "47")]
    pub flow_ids: Vec<u64>,
    /// Arrows that end here.
    #[prost(fixed64, repeated, packed = "false", tag = "48")]
    pub terminating_flow_ids: Vec<u64>,
    /// Value of a counter.
    #[prost(int64, optional, tag = "30")]
    pub counter_value: Option<i64>,
    /// The same, if it is a mean.
    #[prost(double, optional, tag = "44")]
    pub double_counter_value: Option<f64>,
}

/// See [`TrackEvent::debug_annotations`].
#[derive(Clone, PartialEq, Message)]
pub struct DebugAnnotation {
    /// Number of the annotation's name among the interned names.
    #[prost(uint64, optional, tag = "1")]
    pub name_iid: Option<u64>,
    /// Yes or no; one of these three values is set.
    #[prost(bool, optional, tag = "2")]
    pub bool_value: Option<bool>,
    /// A number.
    #[prost(double, optional, tag = "5")]
    pub double_value: Option<f64>,
    /// A text.
    #[prost(string, optional, tag = "6")]
    pub string_value: Option<String>,
}

/// See [`TracePacket::track_descriptor`].
#[derive(Clone, PartialEq, Message)]
pub struct TrackDescriptor {
    /// Its number, not 0.
    #[prost(uint64, optional, tag = "1")]
    pub uuid: Option<u64>,
    /// Number of the parent track.
    #[prost(uint64, optional, tag = "5")]
    pub parent_uuid: Option<u64>,
    /// Its name.
    #[prost(string, optional, tag = "2")]
    pub name: Option<String>,
    /// Set for a process.
    #[prost(message, optional, tag = "3")]
    pub process: Option<ProcessDescriptor>,
    /// Set for a thread.
    #[prost(message, optional, tag = "4")]
    pub thread: Option<ThreadDescriptor>,
    /// Set for a counter.
    #[prost(message, optional, tag = "8")]
    pub counter: Option<CounterDescriptor>,
    /// 3: tracks below it are ordered by their ranks.
    #[prost(int32, optional, tag = "11")]
    pub child_ordering: Option<i32>,
    /// The track's rank, see `child_ordering`.
    #[prost(int32, optional, tag = "12")]
    pub sibling_order_rank: Option<i32>,
    /// 2: tracks of the same name are not merged.
    #[prost(int32, optional, tag = "15")]
    pub sibling_merge_behavior: Option<i32>,
}

/// See [`TrackDescriptor::process`].
#[derive(Clone, PartialEq, Message)]
pub struct ProcessDescriptor {
    /// Process id.
    #[prost(int32, optional, tag = "1")]
    pub pid: Option<i32>,
    /// Its name.
    #[prost(string, optional, tag = "6")]
    pub process_name: Option<String>,
}

/// See [`TrackDescriptor::thread`].
#[derive(Clone, PartialEq, Message)]
pub struct ThreadDescriptor {
    /// Process id.
    #[prost(int32, optional, tag = "1")]
    pub pid: Option<i32>,
    /// Thread id.
    #[prost(int64, optional, tag = "2")]
    pub tid: Option<i64>,
    /// Its name.
    #[prost(string, optional, tag = "5")]
    pub thread_name: Option<String>,
}

/// See [`TrackDescriptor::counter`].
#[derive(Clone, PartialEq, Message)]
pub struct CounterDescriptor {
    /// The unit that the counter counts.
    #[prost(string, optional, tag = "6")]
    pub unit_name: Option<String>,
}
