//! Time, memory and size of each export format for a recording of a million operations.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use crate::command;
use crate::measure::{Measurement, Need, Outcome, Side, built, table, watched};
use crate::sample::digits;
use crate::view;

/// Names of the formats. The last three write folders.
const FORMATS: &str = "program perfetto firefox pprof speedscope folded svg chrome dot csv ndjson parquet";
/// Arguments of the workload: threads, rows of each thread, registries, and work for each row.
const STORE: &str = "4 65000 8 200 200";
/// Number of operations and of threads of the generated recording.
const LARGE: (&str, &str) = ("6000000", "32");
/// A command that takes longer than this fails.
const LIMIT: Duration = Duration::from_secs(3600);
const HEADS: &str = "format | seconds | memory, MB | written, MB";

pub const EXPORTS: Measurement = Measurement {
    name: "exports",
    about: "A recording of a million operations in each format",
    title: "Exports",
    needs: &[Need::Recorder],
    sides: |setting| {
        let recording = setting.file("store.lp");
        let mut record = setting.call("record -o");
        record.arg(&recording).arg("--").arg(built("store.c")?).args(STORE.split(' '));
        command::must(&mut record, "recording")?;
        let size = std::fs::metadata(&recording)?.len();
        let mut report = setting.call("report --json");
        report.arg(&recording);
        let mut sides = vec![Side::new("`report --json`", move |_| {
            let mut value = measured(&mut report, None)?;
            value["recording"] = size.into();
            Ok(value)
        })];
        for format in FORMATS.split(' ') {
            let out = setting.file(format);
            let mut export = setting.call("export -f");
            export.arg(format).arg(&recording).arg("-o").arg(&out);
            sides.push(Side::new(format!("`{format}`"), move |_| measured(&mut export, Some(&out))));
        }
        let page = move |recording: &Path| {
            let out = setting.file("page.html");
            let mut report = setting.call("report");
            let mut value = measured(report.arg(recording).arg("--html").arg(&out), Some(&out))?;
            if let Some(shown) = view::speed(&setting.workspace, &out)? {
                value["shown"] = json!([shown.ready_ms, shown.median_ms, shown.worst_ms]);
            }
            Ok(value)
        };
        sides.push(Side::new("`report --html`", move |_| page(&recording)));
        let generator = setting.example("generated_session", "--package recording")?;
        sides.push(
            Side::new("`report --html`", move |_| {
                let recording = setting.file("large.lp");
                let mut generate = Command::new(&generator);
                command::must(generate.arg(&recording).args([LARGE.0, LARGE.1]), "generating")?;
                page(&recording)
            })
            .unlisted(),
        );
        Ok(sides)
    },
    says: "A recording of `store 4 65000 8 200 200` of {size} MB. Once each; wall time on two cores, the largest \
           resident memory, and what was written.\nFor comparison: `longpole report --json`, which reads and \
           simulates the same.",
    fills: |results| Ok(vec![("size", results.at(0)?.middle("recording", 1e-6)?)]),
    heads: HEADS,
    rows: Some(|results| results.listed().map(row).collect()),
    ends: |results| {
        let [.., page, large] = &results.sides[..] else { anyhow::bail!("no pages") };
        let rows = table(HEADS, [row(large)?]);
        Ok(format!(
            "{}A generated recording of {} operations, half of them segments, on {} threads:\n\n{rows}\n{}",
            shown(page),
            LARGE.0,
            LARGE.1,
            shown(large)
        ))
    },
    ..Measurement::NEW
};

fn row(side: &Outcome) -> Result<String> {
    let written = side.middle("written", 1e-6).unwrap_or_else(|_| "–".into());
    Ok(format!(
        "{} | {} | {} | {written}",
        side.label,
        side.middle("seconds", 1.0)?,
        side.middle("memory", 1.0)?
    ))
}

/// The speed of a browser that shows the page.
fn shown(side: &Outcome) -> String {
    let times = side.last().and_then(|last| last["shown"].as_array());
    let Some(times) = times else { return String::new() };
    let times: Vec<String> = times.iter().map(|ms| digits(ms.as_f64().unwrap_or(f64::NAN))).collect();
    let [ready, median, worst] = &times[..] else { return String::new() };
    format!(
        "That page in headless Chromium: ready after {ready} ms; drawing it again while it is moved takes {median} ms \
         (median; the worst of 90 times {worst} ms).\n\n"
    )
}

/// Runs a command. Returns the seconds, the largest memory in megabytes, and the size in bytes of the file or folder
/// that it writes.
fn measured(command: &mut Command, out: Option<&Path>) -> Result<Value> {
    let taken = watched(command, LIMIT)?.well(command)?;
    let mut value = json!({ "seconds": taken.seconds, "memory": taken.peak_mb() });
    let Some(out) = out else { return Ok(value) };
    let mut bytes = 0;
    if out.is_dir() {
        for file in std::fs::read_dir(out)? {
            bytes += file?.metadata()?.len();
        }
    } else {
        bytes = std::fs::metadata(out).with_context(|| out.display().to_string())?.len();
    }
    value["written"] = bytes.into();
    Ok(value)
}
