//! `longpole paths` for programs: `longpole-paths/1`.

use super::json::{DoingJson, Findings, Number};
use engine::graph::{BenefitRow, PathRow, PathsReport, SegmentPaths, ShownEdge, ShownPath, Stay};
use engine::report::Trust;
use serde::{Serialize, Serializer};
use std::io::{self, Write};

/// Writes the whole report; `segments` only if they were asked for.
pub fn json(report: &PathsReport, with_segments: bool, out: &mut dyn Write) -> io::Result<()> {
    let document = Document {
        schema: "longpole-paths/1",
        length_ns: Number(report.length_ns),
        path_count: Count(report.counts.all),
        critical_path_count: Count(report.counts.critical),
        paths: report.paths.iter().map(PathJson::new).collect(),
        more: report.more,
        benefit: report.benefit.iter().map(BenefitJson::new).collect(),
        shown: report.shown.as_ref().map(ShownJson::new),
        segments: with_segments.then(|| report.segments.iter().map(SegmentJson::new).collect()),
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
    paths: Vec<PathJson<'a>>,
    more: bool,
    benefit: Vec<BenefitJson<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    shown: Option<ShownJson<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    segments: Option<Vec<SegmentJson<'a>>>,
    trust: Trust,
    findings: Findings<'a>,
}

/// A count that may be beyond what readers of JSON hold: a double then.
struct Count(u128);

impl Serialize for Count {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match u64::try_from(self.0) {
            Ok(count) if count < 1 << 53 => serializer.serialize_u64(count),
            _ => serializer.serialize_f64(self.0 as f64),
        }
    }
}

#[derive(Serialize)]
struct PathJson<'a> {
    rank: usize,
    length_ns: Number,
    nearness: Number,
    #[serde(skip_serializing_if = "Option::is_none")]
    route: Option<Vec<StayJson<'a>>>,
}

impl<'a> PathJson<'a> {
    fn new(row: &'a PathRow) -> PathJson<'a> {
        PathJson {
            rank: row.rank,
            length_ns: Number(row.length_ns),
            // As in the paper: 1.0 for a critical path.
            nearness: Number(row.nearness),
            route: row.route.as_ref().map(|stays| stays.iter().map(StayJson::new).collect()),
        }
    }
}

#[derive(Serialize)]
struct StayJson<'a> {
    thread: &'a str,
    by: &'a str,
    parts: Vec<PartJson<'a>>,
}

#[derive(Serialize)]
struct PartJson<'a> {
    #[serde(flatten)]
    what: DoingJson<'a>,
    length_ns: Number,
    times: u64,
}

impl<'a> StayJson<'a> {
    fn new(stay: &'a Stay) -> StayJson<'a> {
        let part = |part: &'a engine::graph::Part| PartJson {
            what: DoingJson::new(&part.what),
            length_ns: Number(part.length_ns),
            times: part.times,
        };
        StayJson { thread: &stay.thread, by: &stay.by, parts: stay.parts.iter().map(part).collect() }
    }
}

#[derive(Serialize)]
struct BenefitJson<'a> {
    kind: &'static str,
    name: &'a str,
    critical_path_ns: Number,
    maximum_benefit_ns: Number,
    #[serde(skip_serializing_if = "Option::is_none")]
    simulated_ns: Option<Number>,
    settled: bool,
    critical_paths: usize,
    near_paths: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    location: Option<&'a str>,
}

impl<'a> BenefitJson<'a> {
    fn new(row: &'a BenefitRow) -> BenefitJson<'a> {
        BenefitJson {
            kind: row.kind,
            name: &row.name,
            critical_path_ns: Number(row.critical_path_ns),
            maximum_benefit_ns: Number(row.maximum_benefit_ns),
            simulated_ns: row.simulated_ns.map(Number),
            settled: row.settled,
            critical_paths: row.critical_paths,
            near_paths: row.near_paths,
            location: row.location.as_deref(),
        }
    }
}

#[derive(Serialize)]
struct ShownJson<'a> {
    rank: usize,
    length_ns: Number,
    edges: Vec<EdgeJson<'a>>,
}

#[derive(Serialize)]
struct EdgeJson<'a> {
    thread: &'a str,
    op: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    by: Option<&'a str>,
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    what: Option<DoingJson<'a>>,
    start_ns: Number,
    length_ns: Number,
}

impl<'a> ShownJson<'a> {
    fn new(path: &'a ShownPath) -> ShownJson<'a> {
        let edge = |edge: &'a ShownEdge| EdgeJson {
            thread: &edge.thread,
            op: edge.operation,
            by: edge.by.as_deref(),
            what: edge.what.as_ref().map(DoingJson::new),
            start_ns: Number(edge.start_ns),
            length_ns: Number(edge.length_ns),
        };
        ShownJson {
            rank: path.rank,
            length_ns: Number(path.length_ns),
            edges: path.edges.iter().map(edge).collect(),
        }
    }
}

#[derive(Serialize)]
struct SegmentJson<'a> {
    thread: &'a str,
    op: usize,
    #[serde(flatten)]
    what: DoingJson<'a>,
    length_ns: Number,
    critical_paths: u32,
    near_paths: u32,
}

impl<'a> SegmentJson<'a> {
    fn new(row: &'a SegmentPaths) -> SegmentJson<'a> {
        SegmentJson {
            thread: &row.thread,
            op: row.operation,
            what: DoingJson::new(&row.what),
            length_ns: Number(row.length_ns),
            critical_paths: row.critical_paths,
            near_paths: row.near_paths,
        }
    }
}
