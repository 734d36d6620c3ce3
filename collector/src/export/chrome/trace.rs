//! Writes events of the trace format.

use crate::export::detail::LeftOut;
use serde::Serialize;
use std::borrow::Cow;
use std::io::{self, Write};

/// An event; its fields have the format's names.
#[derive(Debug, Default, Serialize)]
pub struct Event<'a> {
    pub ph: &'static str,
    pub pid: u64,
    pub tid: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ts: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dur: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cat: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<u64>,
    /// Set to `e`: the arrow ends at the slice around it, not at the next one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bp: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub args: Option<Arguments<'a>>,
}

#[derive(Debug, Default, Serialize)]
pub struct Arguments<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<&'a str>,
    /// An integer, or a mean.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub threads: Option<serde_json::Number>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thread: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub weight: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_by: Option<&'a str>,
    /// Number of slices that this one joins; its length is the sum of their lengths.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub joined: Option<u32>,
    /// Number of shorter calls inside this one that are omitted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub calls_left_out: Option<u64>,
}

/// Microseconds, the unit of the format; exact to the nanosecond for up to some hundred days.
pub fn us(ns: u64) -> Option<f64> {
    Some(ns as f64 / 1_000.0)
}

/// Value of `joined` for a slice that joins this many; `None` for 0.
pub fn joined(count: u32) -> Option<u32> {
    Some(count).filter(|count| *count > 0)
}

/// A trace that is being written.
pub struct Trace<'w> {
    out: &'w mut dyn Write,
    /// Bytes written so far.
    pub written: u64,
    pub left_out: LeftOut,
}

impl<'w> Trace<'w> {
    pub fn new(out: &'w mut dyn Write) -> Trace<'w> {
        Trace { out, written: 0, left_out: LeftOut::default() }
    }

    pub fn put(&mut self, event: &Event<'_>) -> io::Result<()> {
        let mut bytes = if self.written > 0 { b",\n".to_vec() } else { b"\n".to_vec() };
        serde_json::to_writer(&mut bytes, event)?;
        self.written += bytes.len() as u64;
        self.out.write_all(&bytes)
    }

    pub fn name(&mut self, of: &'static str, (pid, tid): (u64, u64), name: &str) -> io::Result<()> {
        let args = Some(Arguments { name: Some(name), ..Arguments::default() });
        self.put(&Event { ph: "M", pid, tid, name: Some(of.into()), args, ..Event::default() })
    }
}
