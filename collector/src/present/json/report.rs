//! Writes a report as JSON: schema `longpole-report/1`.
//!
//! Fields may be added; readers ignore fields that they do not know. Times are nanoseconds; integers have no fraction.

use super::finding::Findings;
use super::limit::LimitsJson;
use engine::attribution::Grouping;
use engine::event::Overhead;
use engine::json::{Number, number};
use engine::limit::Limits;
use engine::program::{GoroutineWork, RecordedObject, RecordedWait};
use engine::report::{
    CpuResult, Cpus, FunctionRow, LockRow, Report, SampleFacts, SegmentRow, Trust, WaitRow,
};
use serde::Serialize;
use std::io::{self, Write};

/// The schema's name and version.
pub const SCHEMA: &str = "longpole-report/1";

/// Choices of what is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Whether each result has `segments`.
    pub segments: bool,
    /// What each row in `functions` stands for.
    pub by: Grouping,
    /// Which stretch of a live program the report is about.
    pub live: Option<LiveStretch>,
}

/// The field `stretch`: the part of a live program's run that the report is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct LiveStretch {
    /// Its end, milliseconds since 1970.
    pub end_unix_ms: u64,
    /// Its length, nanoseconds.
    pub length_ns: u64,
    /// Number of threads in the stretch.
    pub threads: usize,
    /// Whether the stretch is shorter than asked for, because analysing more would have taken too much CPU time.
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
        results: report
            .results
            .iter()
            .map(|result| ResultJson::new(result, &report.locks, options))
            .collect(),
        locks: &report.locks,
        objects: &report.recorded.objects,
        waits: &report.recorded.waits,
        goroutines: &report.recorded.goroutine_work,
        trust: report.trust,
        samples: report.samples,
        overhead: report.overhead.map(OverheadJson::new),
        findings: Findings(&report.findings),
    };
    engine::program::json::write_value(&json, &mut out)?;
    out.write_all(b"\n")
}

#[derive(Serialize)]
struct ReportJson<'a> {
    schema: &'static str,
    /// What each row in `functions` stands for; absent for functions.
    #[serde(skip_serializing_if = "Option::is_none")]
    by: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stretch: Option<LiveStretch>,
    /// The limits, and the changes.
    #[serde(skip_serializing_if = "Option::is_none")]
    limit: Option<LimitsJson<'a>>,
    results: Vec<ResultJson<'a>>,
    /// Locks. Their values do not depend on the number of CPUs; unknown values are omitted.
    #[serde(skip_serializing_if = "<[LockRow]>::is_empty")]
    locks: &'a [LockRow],
    /// Synchronization objects and the threads that waited for them, as recorded.
    #[serde(skip_serializing_if = "<[RecordedObject]>::is_empty")]
    objects: &'a [RecordedObject],
    /// What threads slept for, as recorded.
    #[serde(skip_serializing_if = "<[RecordedWait]>::is_empty")]
    waits: &'a [RecordedWait],
    #[serde(skip_serializing_if = "<[GoroutineWork]>::is_empty")]
    goroutines: &'a [GoroutineWork],
    trust: Trust,
    #[serde(skip_serializing_if = "Option::is_none")]
    samples: Option<SampleFacts>,
    #[serde(skip_serializing_if = "Option::is_none")]
    overhead: Option<OverheadJson>,
    findings: Findings<'a>,
}

/// The cost of recording.
#[derive(Serialize)]
pub(super) struct OverheadJson {
    /// Cost of recording while the processes ran, as a share of the processes' own CPU time or of one CPU, whichever is
    /// larger.
    share: Option<f64>,
    budget: Option<f64>,
    #[serde(flatten)]
    sums: Overhead,
}

impl OverheadJson {
    pub(in crate::present) fn new(cost: Overhead) -> OverheadJson {
        OverheadJson { share: cost.share(), budget: cost.budget(), sums: cost }
    }
}

#[derive(Serialize)]
struct ResultJson<'a> {
    cpus: Cpus,
    #[serde(serialize_with = "number")]
    time_ns: f64,
    /// The shortest and the longest time that other costs of waiting would give; `null`: not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    may_be_ns: Option<[Number; 2]>,
    #[serde(serialize_with = "number")]
    speedup: f64,
    functions: &'a [FunctionRow],
    #[serde(skip_serializing_if = "Vec::is_empty")]
    locks: Vec<LockShareJson<'a>>,
    /// Waits and hand-overs on the critical path.
    #[serde(skip_serializing_if = "<[WaitRow]>::is_empty")]
    waits: &'a [WaitRow],
    #[serde(skip_serializing_if = "Option::is_none")]
    segments: Option<&'a [SegmentRow]>,
}

impl<'a> ResultJson<'a> {
    fn new(result: &'a CpuResult, locks: &'a [LockRow], options: Options) -> ResultJson<'a> {
        let shares = locks.iter().zip(&result.locks_held_ns);
        ResultJson {
            cpus: result.cpus,
            time_ns: result.time_ns,
            may_be_ns: result.may_be_ns.map(|(low, high)| [low, high].map(Number)),
            speedup: result.speedup,
            functions: &result.functions,
            locks: shares.map(|(row, &held_ns)| LockShareJson { lock: &row.lock, held_ns }).collect(),
            waits: &result.waits,
            segments: options.segments.then_some(result.segments.as_slice()),
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

#[cfg(test)]
mod tests {
    use super::*;

    fn report() -> Report {
        Report {
            used_by: Vec::new(),
            results: vec![CpuResult {
                cpus: Cpus::Infinite,
                time_ns: 12_000.0,
                may_be_ns: None,
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
    fn the_report_s_json_has_its_schema() {
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
    fn json_has_segments_only_on_request() {
        assert!(!text(Options::default()).contains("segments"));
        assert!(text(Options { segments: true, ..Options::default() }).contains(
            r#""segments":[{"thread":"T2","op":3,"function":null,"start_ns":2000,"end_ns":3000,"weight":0.5}]"#
        ));
    }
}
