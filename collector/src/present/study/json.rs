//! What their JSON documents have in common: numbers, CPU counts, findings.

pub(super) use crate::present::finding_json::Findings;
use engine::graph::Doing;
use engine::report::Cpus;
use serde::{Serialize, Serializer};
use std::io::{self, Write};

/// A number; a whole one that a double holds exactly goes out without a fraction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Number(pub(super) f64);

impl Serialize for Number {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        const EXACT: f64 = 9_007_199_254_740_992.0;
        if self.0.fract() == 0.0 && self.0.abs() <= EXACT {
            serializer.serialize_i64(self.0 as i64)
        } else {
            serializer.serialize_f64(self.0)
        }
    }
}

/// A CPU count: the number, or `"inf"`.
#[derive(Clone, Copy, Debug)]
pub(super) struct CpuCount(pub(super) Cpus);

impl Serialize for CpuCount {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Cpus::Count(count) => serializer.serialize_u32(count.get()),
            Cpus::Infinite => serializer.serialize_str("inf"),
        }
    }
}

/// What a thread does: `{"kind":"compute","name":"f"}`; kinds are compute, io and sleep.
#[derive(Debug, Serialize)]
pub(super) struct DoingJson<'a> {
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
}

impl<'a> DoingJson<'a> {
    pub(super) fn new(what: &'a Doing) -> DoingJson<'a> {
        match what {
            Doing::Compute(function) => DoingJson { kind: "compute", name: function.as_deref() },
            Doing::Io(device) => DoingJson { kind: "io", name: Some(device) },
            Doing::Sleep => DoingJson { kind: "sleep", name: None },
            Doing::WakeUp => DoingJson { kind: "wake_up", name: None },
        }
    }
}

/// Writes a document as one line.
pub(super) fn write(document: &impl Serialize, out: &mut dyn Write) -> io::Result<()> {
    engine::program::json::write_value(document, &mut *out)?;
    out.write_all(b"\n")
}
