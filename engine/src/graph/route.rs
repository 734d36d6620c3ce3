//! A path as a route through the program: thread by thread, with what takes time there and how the path enters.

use super::activity::{ActivityGraph, ActivityId, ActivityKind};
use super::labels;
use crate::json::number;
use crate::program::Program;
use crate::time::Ticks;
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

/// A part of a path that stays in one thread.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Stay {
    /// The thread.
    pub thread: String,
    /// How the path entered the thread: `start`, `create`, `lock m`, `barrier b`, `end of T2` …
    pub by: String,
    /// What takes time during this stay, in order; neighbours of the same kind are one part.
    pub parts: Vec<StayPart>,
}

/// A part of a stay that takes time.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StayPart {
    /// What the thread does.
    #[serde(flatten)]
    pub what: NamedActivity,
    /// Length of the part, nanoseconds.
    #[serde(serialize_with = "number")]
    pub length_ns: f64,
    /// Number of operations that were joined in this part.
    pub times: u64,
}

/// What a thread does during a part of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NamedActivity {
    /// Computes in this function; `None`: in no function.
    Compute(Option<String>),
    /// Waits for this device.
    Io(String),
    /// Sleeps.
    Sleep,
    /// Has been woken and has yet to act.
    WakeUp,
}

/// Written as in `{"kind":"compute","name":"f"}`; the kinds are compute, io, sleep and wake_up.
impl Serialize for NamedActivity {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (kind, name) = match self {
            NamedActivity::Compute(function) => ("compute", function.as_deref()),
            NamedActivity::Io(device) => ("io", Some(device.as_str())),
            NamedActivity::Sleep => ("sleep", None),
            NamedActivity::WakeUp => ("wake_up", None),
        };
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("kind", kind)?;
        if let Some(name) = name {
            map.serialize_entry("name", name)?;
        }
        map.end()
    }
}

impl Stay {
    /// Time in this stay, nanoseconds.
    pub fn length_ns(&self) -> f64 {
        self.parts.iter().map(|part| part.length_ns).sum()
    }
}

/// The route of a path. Stays that take no time are omitted, except the last one.
pub(super) fn route(program: &Program, graph: &ActivityGraph, path: &[ActivityId]) -> Vec<Stay> {
    let mut stays: Vec<(u32, Stay)> = Vec::new();
    for edge in path {
        let activity = graph.activity(*edge);
        if matches!(activity.kind, ActivityKind::End) {
            continue;
        }
        let thread = activity.thread.0;
        if stays.last().is_none_or(|(last, _)| *last != thread) {
            if stays.last().is_some_and(|(_, stay)| stay.parts.is_empty()) {
                stays.pop();
            }
            let stay = Stay {
                thread: labels::thread_name(program, activity.thread),
                by: labels::by(program, graph, &activity),
                parts: Vec::new(),
            };
            // After an omitted stay elsewhere, the path may be back in the thread of the stay before.
            if stays.last().is_none_or(|(last, _)| *last != thread) {
                stays.push((thread, stay));
            }
        }
        if let Some((_, stay)) = stays.last_mut()
            && activity.length > Ticks(0)
        {
            add(&mut stay.parts, program, &activity);
        }
    }
    stays.into_iter().map(|(_, stay)| stay).collect()
}

/// What the thread does during an edge that takes time.
pub(super) fn doing(program: &Program, activity: &super::Activity) -> NamedActivity {
    match activity.kind {
        ActivityKind::Io => NamedActivity::Io(labels::device(program, activity).unwrap_or_default()),
        ActivityKind::Sleep => NamedActivity::Sleep,
        ActivityKind::Delay => NamedActivity::WakeUp,
        _ => {
            NamedActivity::Compute(activity.function.map(|function| labels::function_name(program, function)))
        }
    }
}

fn add(parts: &mut Vec<StayPart>, program: &Program, activity: &super::Activity) {
    let what = doing(program, activity);
    let length_ns = activity.length.as_ns_f64();
    match parts.last_mut() {
        Some(part) if part.what == what => {
            part.length_ns += length_ns;
            part.times += 1;
        }
        _ => parts.push(StayPart { what, length_ns, times: 1 }),
    }
}
