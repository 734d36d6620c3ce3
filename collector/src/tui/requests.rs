//! The single requests of a stretch, as `report --per` shows those of a recording.

use crate::present::style::{Paint, Style};
use crate::present::table;
use crate::present::text::requests::{About, RequestKind, write};
use engine::requests::RequestSummary;
use std::io::{self, Write};

/// The single requests of a stretch.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Requests {
    /// What counts as a request.
    pub what: String,
    /// Names of the functions whose calls are requests, or of the sockets.
    pub names: Vec<String>,
    /// Their kind.
    pub kind: RequestKind,
    /// Latencies and causes; `None`: no function with this name is recorded yet.
    pub summary: Option<RequestSummary>,
}

impl Requests {
    /// The summary of a stretch with requests.
    pub fn found(&self) -> Option<&RequestSummary> {
        self.summary.as_ref().filter(|summary| summary.count > 0)
    }

    /// Writes latencies and causes, or that there are no requests.
    pub fn write(&self, style: &Style, out: &mut dyn Write) -> io::Result<()> {
        let Some(summary) = self.found() else {
            let why = match (&self.summary, self.kind) {
                (None, _) => "is not recorded yet",
                (_, RequestKind::Messages) => "no message to the program was answered in this stretch",
                (_, RequestKind::Calls) => "no call began and ended in this stretch",
                (_, RequestKind::Traces) => {
                    "no thread was seen to begin and end work for a trace in this stretch"
                }
            };
            let mut out = out;
            let text = style.text(&format!("{}: {why}.", self.what));
            return table::wrap(&mut out, style, Paint::Plain, "", &text, "  ");
        };
        let about = About { what: &self.what, kind: self.kind };
        write(summary, &about, None, &[], style, out)
    }
}
