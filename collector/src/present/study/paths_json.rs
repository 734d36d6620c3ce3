//! `longpole paths` as JSON: `longpole-paths/1`.

use super::json::Findings;
use engine::graph::{BenefitRow, PathRow, PathsReport, SegmentPaths, ShownPath};
use engine::json::Number;
use engine::report::Trust;
use serde::{Serialize, Serializer};
use std::io::{self, Write};

/// Writes the complete report as JSON; segments only if asked for.
pub fn json(report: &PathsReport, with_segments: bool, out: &mut dyn Write) -> io::Result<()> {
    let document = Document {
        schema: "longpole-paths/1",
        length_ns: Number(report.length_ns),
        path_count: Count(report.counts.all),
        critical_path_count: Count(report.counts.critical),
        paths: &report.paths,
        more: report.more,
        benefit: &report.benefit,
        shown: report.shown.as_ref(),
        segments: with_segments.then_some(report.segments.as_slice()),
        trust: report.trust,
        findings: Findings(&report.findings),
    };
    super::json::write(&document, out)
}

#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    length_ns: Number,
    path_count: Count,
    critical_path_count: Count,
    paths: &'a [PathRow],
    more: bool,
    benefit: &'a [BenefitRow],
    #[serde(skip_serializing_if = "Option::is_none")]
    shown: Option<&'a ShownPath>,
    #[serde(skip_serializing_if = "Option::is_none")]
    segments: Option<&'a [SegmentPaths]>,
    trust: Trust,
    findings: Findings<'a>,
}

/// A count; as a double if it is larger than JSON readers can hold as an integer (2^53).
struct Count(u128);

impl Serialize for Count {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match u64::try_from(self.0) {
            Ok(count) if count < 1 << 53 => serializer.serialize_u64(count),
            _ => serializer.serialize_f64(self.0 as f64),
        }
    }
}
