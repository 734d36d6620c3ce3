//! A report as JSON: schema `longpole-report/1`.
//!
//! Fields may be added; readers ignore those they do not know. Times are nanoseconds, whole ones without a
//! fraction.

use super::finding_json::Findings;
use super::limit_json::LimitsJson;
use engine::attribution::Grouping;
use engine::event::Overhead;
use engine::limit::Limits;
use engine::program::{RecordedObject, RecordedWait};
use engine::report::{
    CpuResult, Cpus, FunctionRow, LockRow, Report, SampleFacts, SegmentRow, Trust, WaitRow,
};
use serde::{Serialize, Serializer};
use std::io::{self, Write};

/// The schema's name and version.
pub const SCHEMA: &str = "longpole-report/1";

/// What is written in addition to the functions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// `segments` in every result.
    pub segments: bool,
    /// The kind of the rows in `functions`.
    pub by: Grouping,
    /// Of a program that is watched: which stretch this is.
    pub live: Option<Stretch>,
}

/// The field `stretch`: what a report of a program that is watched is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Stretch {
    /// When it ended, milliseconds since 1970.
    pub end_unix_ms: u64,
    /// How long it is, nanoseconds.
    pub length_ns: u64,
    /// Threads in it.
    pub threads: usize,
    /// It is shorter than asked for: analysing more would have taken too much CPU time.
    pub is_shortened: bool,
}

/// Writes the report as one line.
pub fn write(report: &Report, limits: &Limits, options: Options, mut out: impl Write) -> io::Result<()> {
    let json = ReportJson {
        schema: SCHEMA,
        by: match options.by {
            Grouping::Function => None,
            Grouping::Line => Some("line"),
            Grouping::File => Some("file"),
            Grouping::Module => Some("module"),
        },
        stretch: options.live,
        limit: (!limits.at.is_empty()).then(|| LimitsJson::new(limits)),
        results: Each(&report.results, |result| ResultJson::new(result, &report.locks, options)),
        locks: Each(&report.locks, LockJson::new),
        objects: &report.recorded.objects,
        waits: &report.recorded.waits,
        trust: report.trust,
        samples: report.samples,
        overhead: report.overhead.map(OverheadJson::new),
        findings: Findings(&report.findings),
    };
    engine::program::json::write_value(&json, &mut out)?;
    out.write_all(b"\n")
}

#[derive(Serialize)]
struct ReportJson<'a, F> {
    schema: &'static str,
    /// What rows in `functions` are, if they are not functions.
    #[serde(skip_serializing_if = "Option::is_none")]
    by: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stretch: Option<Stretch>,
    /// What limits, and what to change.
    #[serde(skip_serializing_if = "Option::is_none")]
    limit: Option<LimitsJson<'a>>,
    results: F,
    #[serde(skip_serializing_if = "Each::is_empty")]
    locks: Each<'a, LockRow, LockJson<'a>>,
    /// Synchronization objects and the threads that waited for them, as recorded.
    #[serde(skip_serializing_if = "<[RecordedObject]>::is_empty")]
    objects: &'a [RecordedObject],
    /// What threads slept for, as recorded.
    #[serde(skip_serializing_if = "<[RecordedWait]>::is_empty")]
    waits: &'a [RecordedWait],
    trust: Trust,
    #[serde(skip_serializing_if = "Option::is_none")]
    samples: Option<SampleFacts>,
    #[serde(skip_serializing_if = "Option::is_none")]
    overhead: Option<OverheadJson>,
    findings: Findings<'a>,
}

/// What the recording cost.
#[derive(Serialize)]
pub(super) struct OverheadJson {
    /// Of the target's own CPU time.
    share: Option<f64>,
    budget: Option<f64>,
    #[serde(flatten)]
    sums: Overhead,
}

impl OverheadJson {
    pub(super) fn new(cost: Overhead) -> OverheadJson {
        OverheadJson { share: cost.share(), budget: cost.budget(), sums: cost }
    }
}

#[derive(Serialize)]
struct ResultJson<'a> {
    #[serde(serialize_with = "cpus")]
    cpus: Cpus,
    #[serde(serialize_with = "number")]
    time_ns: f64,
    #[serde(serialize_with = "number")]
    speedup: f64,
    functions: Each<'a, FunctionRow, FunctionJson<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    locks: Vec<LockShareJson<'a>>,
    /// What passes without being computed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    waits: Vec<WaitJson<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    segments: Option<Each<'a, SegmentRow, SegmentJson<'a>>>,
}

impl<'a> ResultJson<'a> {
    fn new(result: &'a CpuResult, locks: &'a [LockRow], options: Options) -> ResultJson<'a> {
        let shares = locks.iter().zip(&result.locks_held_ns);
        ResultJson {
            cpus: result.cpus,
            time_ns: result.time_ns,
            speedup: result.speedup,
            functions: Each(&result.functions, FunctionJson::new),
            locks: shares.map(|(row, &held_ns)| LockShareJson { lock: &row.lock, held_ns }).collect(),
            waits: result.waits.iter().map(WaitJson::new).collect(),
            segments: options.segments.then_some(Each(&result.segments, SegmentJson::new)),
        }
    }
}

#[derive(Serialize)]
struct WaitJson<'a> {
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    object: Option<&'a str>,
    count: u64,
    #[serde(serialize_with = "number")]
    length_ns: f64,
    #[serde(serialize_with = "number")]
    weighted_ns: f64,
}

impl<'a> WaitJson<'a> {
    fn new(row: &'a WaitRow) -> WaitJson<'a> {
        WaitJson {
            kind: row.kind.name(),
            object: row.kind.object(),
            count: row.count,
            length_ns: row.length_ns,
            weighted_ns: row.weighted_ns,
        }
    }
}

#[derive(Serialize)]
struct FunctionJson<'a> {
    function: &'a str,
    calls: u64,
    #[serde(serialize_with = "number")]
    tet_ns: f64,
    #[serde(serialize_with = "number")]
    tetid_ns: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    location: Option<&'a str>,
    exact: bool,
    /// Half-widths of the 95 % intervals of what is not exact.
    #[serde(skip_serializing_if = "Option::is_none")]
    tet_error_ns: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tetid_error_ns: Option<f64>,
    /// Samples that saw it.
    #[serde(skip_serializing_if = "is_zero")]
    samples: u64,
    #[serde(rename = "folded")]
    probes_removed: bool,
    /// There were more calls: the function had its probes for a part of the time.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    calls_partial: bool,
    /// `calls` is not known.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    uncounted: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    partly_inlined: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde wants a reference")]
fn is_zero(value: &u64) -> bool {
    *value == 0
}

impl<'a> FunctionJson<'a> {
    fn new(row: &'a FunctionRow) -> FunctionJson<'a> {
        FunctionJson {
            function: &row.function,
            calls: row.calls,
            tet_ns: row.tet_ns,
            tetid_ns: row.tetid_ns,
            location: row.location.as_deref(),
            exact: row.exact,
            tet_error_ns: row.tet_error_ns,
            tetid_error_ns: row.tetid_error_ns,
            samples: row.samples,
            probes_removed: row.probes_removed,
            calls_partial: row.calls_partial,
            uncounted: row.uncounted,
            partly_inlined: row.partly_inlined,
        }
    }
}

/// Time on the critical path that is computed with a lock held.
#[derive(Serialize)]
struct LockShareJson<'a> {
    lock: &'a str,
    #[serde(serialize_with = "number")]
    held_ns: f64,
}

/// A lock, independent of the number of CPUs. Unknown values are left out.
#[derive(Serialize)]
struct LockJson<'a> {
    lock: &'a str,
    acquisitions: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    contended: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    wait_ns: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hold_ns: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    holder: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reading: Option<SideJson>,
}

/// The part of a read-write lock that only read.
#[derive(Serialize)]
struct SideJson {
    acquisitions: u64,
    contended: u64,
    wait_ns: f64,
    hold_ns: f64,
}

impl<'a> LockJson<'a> {
    fn new(row: &'a LockRow) -> LockJson<'a> {
        LockJson {
            lock: &row.lock,
            acquisitions: row.acquisitions,
            contended: row.contended,
            wait_ns: row.wait_ns,
            hold_ns: row.hold_ns,
            holder: row.holder.as_deref(),
            reading: row.reading.map(|side| SideJson {
                acquisitions: side.acquisitions,
                contended: side.contended,
                wait_ns: side.wait_ns,
                hold_ns: side.hold_ns,
            }),
        }
    }
}

#[derive(Serialize)]
struct SegmentJson<'a> {
    thread: &'a str,
    op: usize,
    function: Option<&'a str>,
    #[serde(serialize_with = "number")]
    start_ns: f64,
    #[serde(serialize_with = "number")]
    end_ns: f64,
    #[serde(serialize_with = "number")]
    weight: f64,
}

impl<'a> SegmentJson<'a> {
    fn new(row: &'a SegmentRow) -> SegmentJson<'a> {
        SegmentJson {
            thread: &row.thread,
            op: row.operation,
            function: row.function.as_deref(),
            start_ns: row.start_ns,
            end_ns: row.end_ns,
            weight: row.weight,
        }
    }
}

/// A list that becomes JSON entry by entry: reports may have millions of segments.
struct Each<'a, T, J, F = fn(&'a T) -> J>(&'a [T], F)
where
    F: Fn(&'a T) -> J;

impl<'a, T, J, F: Fn(&'a T) -> J> Each<'a, T, J, F> {
    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl<'a, T, J: Serialize, F: Fn(&'a T) -> J> Serialize for Each<'a, T, J, F> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(|entry| (self.1)(entry)))
    }
}

/// The number, or `"inf"`.
pub(super) fn cpus<S: Serializer>(cpus: &Cpus, serializer: S) -> Result<S::Ok, S::Error> {
    match cpus {
        Cpus::Count(count) => serializer.serialize_u32(count.get()),
        Cpus::Infinite => serializer.serialize_str("inf"),
    }
}

/// Whole numbers that a double holds exactly go out as integers, the others with all their digits. Anything
/// that is not a number is `null`.
pub(super) fn number<S: Serializer>(value: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if value.fract() == 0.0 && value.abs() <= EXACT {
        serializer.serialize_i64(*value as i64)
    } else {
        serializer.serialize_f64(*value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report() -> Report {
        Report {
            used_by: Vec::new(),
            results: vec![CpuResult {
                cpus: Cpus::Infinite,
                time_ns: 12_000.0,
                speedup: 20.0 / 12.0,
                locks_held_ns: vec![250.0],
                waits: Vec::new(),
                functions: vec![FunctionRow {
                    function: "g \"quoted\"\u{1b}\u{9b}".into(),
                    location: Some("g.c:3".into()),
                    calls: 2,
                    tet_ns: 1_500.5,
                    tetid_ns: -3.0,
                    exact: true,
                    ..FunctionRow::default()
                }],
                segments: vec![SegmentRow {
                    thread: "T2".into(),
                    operation: 3,
                    function: None,
                    start_ns: 2_000.0,
                    end_ns: 3_000.0,
                    weight: 0.5,
                }],
            }],
            locks: vec![LockRow {
                lock: "mutex 0x40".into(),
                acquisitions: 9,
                contended: Some(2),
                wait_ns: Some(30.0),
                hold_ns: None,
                holder: None,
                reading: None,
            }],
            recorded: engine::program::Recorded::default(),
            trust: Trust { events: 7, ..Trust::default() },
            findings: vec![engine::report::Finding::Loss { records: 7 }],
            recorded_cpus: None,
            overhead: None,
            samples: None,
        }
    }

    fn text(options: Options) -> String {
        let mut out = Vec::new();
        write(&report(), &Limits::default(), options, &mut out).expect("written");
        String::from_utf8(out).expect("text")
    }

    #[test]
    fn the_schema_to_the_letter() {
        assert_eq!(
            text(Options::default()),
            concat!(
                r#"{"schema":"longpole-report/1","results":[{"cpus":"inf","time_ns":12000,"speedup":1.6666666666666667,"#,
                r#""functions":[{"function":"g \"quoted\"\u001b\u009b","calls":2,"tet_ns":1500.5,"tetid_ns":-3,"#,
                r#""location":"g.c:3","exact":true,"folded":false}],"locks":[{"lock":"mutex 0x40","held_ns":250}]}],"#,
                r#""locks":[{"lock":"mutex 0x40","acquisitions":9,"contended":2,"wait_ns":30.0}],"#,
                r#""trust":{"events":7,"wakes":0,"lost":0,"unmatched":0,"unknown_ns":0,"censored":0},"#,
                r#""findings":[{"kind":"loss","records":7,"severity":"may_be_off","text":"7 records were lost"}]}"#,
                "\n"
            )
        );
    }

    #[test]
    fn segments_only_when_asked_for() {
        assert!(!text(Options::default()).contains("segments"));
        assert!(text(Options { segments: true, ..Options::default() }).contains(
            r#""segments":[{"thread":"T2","op":3,"function":null,"start_ns":2000,"end_ns":3000,"weight":0.5}]"#
        ));
    }

    #[test]
    fn numbers_that_are_none_are_null_and_huge_ones_stay_exact() {
        let json = |value: f64| {
            let mut out = Vec::new();
            number(&value, &mut serde_json::Serializer::new(&mut out)).expect("written");
            String::from_utf8(out).expect("text")
        };
        assert_eq!(json(f64::NAN), "null");
        assert_eq!(json(f64::INFINITY), "null");
        assert_eq!(json(-0.0), "0");
        assert_eq!(json(1e300).parse::<f64>().expect("number"), 1e300);
        assert_eq!(json(0.1), "0.1");
    }
}
