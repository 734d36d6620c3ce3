//! Cost of each export format for a recording of a million operations: time, memory, size.

use std::fmt::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use longpole_tests::workload;

use super::{Scratch, Watched, example, watched};
use crate::command;
use crate::sample::digits;
use crate::view;
use crate::workspace::Workspace;

/// Formats, and whether each is written as a folder.
const FORMATS: [(&str, bool); 12] = [
    ("program", false),
    ("perfetto", false),
    ("firefox", false),
    ("pprof", false),
    ("speedscope", false),
    ("folded", false),
    ("svg", false),
    ("chrome", false),
    ("dot", false),
    ("csv", true),
    ("ndjson", true),
    ("parquet", true),
];

/// Arguments: threads, rows of each, registries, work in a row.
const STORE: [&str; 5] = ["4", "65000", "8", "200", "200"];

/// Operations and threads of the generated recording.
const LARGE: [&str; 2] = ["6000000", "32"];

/// A command that takes longer fails.
const LIMIT: Duration = Duration::from_secs(3600);

/// Records once, and exports once in each format.
///
/// # Errors
/// The program or longpole cannot be run.
pub fn measure(workspace: &Workspace, longpole: &Path) -> Result<String> {
    let store = workload::build("store.c")?;
    let scratch = Scratch::new(workspace, "exports")?;
    let recording = scratch.0.join("store.lp");
    let mut record = Command::new(longpole);
    record.args(["record", "-o"]).arg(&recording).arg("--").arg(&store).args(STORE);
    command::must(record.stdout(Stdio::null()).stderr(Stdio::null()), "recording")?;
    let report = measured(Command::new(longpole).arg("report").arg(&recording).arg("--json"))?;
    let size = std::fs::metadata(&recording)?.len();
    let mut text = format!(
        "## Exports\n\nA recording of `store {}` of {} MB. Once each; wall time on two cores, the largest resident memory, and \
         what was written.\nFor comparison: `longpole report --json`, which reads and simulates the same.\n\n\
         | format | seconds | memory, MB | written, MB |\n|---|---|---|---|\n",
        STORE.join(" "),
        digits(size as f64 / 1e6)
    );
    writeln!(text, "| `report --json` | {} | {} | – |", digits(report.0), digits(report.1))?;
    for (format, is_folder) in FORMATS {
        let out = scratch.0.join(format);
        let taken = measured(
            Command::new(longpole).arg("export").arg(&recording).args(["-f", format, "-o"]).arg(&out),
        )?;
        let files =
            if is_folder { std::fs::read_dir(&out)?.collect::<Result<Vec<_>, _>>()? } else { Vec::new() };
        let mut bytes = if is_folder { 0 } else { std::fs::metadata(&out)?.len() };
        for file in files {
            bytes += file.metadata()?.len();
        }
        let written = digits(bytes as f64 / 1e6);
        writeln!(text, "| `{format}` | {} | {} | {written} |", digits(taken.0), digits(taken.1))?;
    }
    text.push_str(&page(workspace, longpole, &recording, &scratch)?);
    text.push_str(&large_page(workspace, longpole, &scratch)?);
    text.push('\n');
    Ok(text)
}

/// Row of the table for this recording's page, and the speed of a browser that shows the page.
fn page(workspace: &Workspace, longpole: &Path, recording: &Path, scratch: &Scratch) -> Result<String> {
    let page = scratch.0.join("page.html");
    let taken = measured(Command::new(longpole).arg("report").arg(recording).arg("--html").arg(&page))?;
    let written = digits(std::fs::metadata(&page)?.len() as f64 / 1e6);
    let mut text = format!("| `report --html` | {} | {} | {written} |\n", digits(taken.0), digits(taken.1));
    if let Some(shown) = view::speed(workspace, &page)? {
        writeln!(
            text,
            "\nThat page in headless Chromium: ready after {} ms; drawing it again while it is moved takes {} ms (median; \
             the worst of 90 times {} ms).",
            digits(shown.ready_ms),
            digits(shown.median_ms),
            digits(shown.worst_ms)
        )?;
    }
    Ok(text)
}

/// Like `page`, for a generated recording with 3 million segments.
fn large_page(workspace: &Workspace, longpole: &Path, scratch: &Scratch) -> Result<String> {
    let generator = example(workspace, "generated_session", &["--package", "recording"])?;
    let recording = scratch.0.join("large.lp");
    let mut generate = Command::new(generator);
    command::must(generate.arg(&recording).args(LARGE), "generating")?;
    let rows = page(workspace, longpole, &recording, scratch)?;
    Ok(format!(
        "\nA generated recording of {} operations, half of them segments, on {} threads:\n\n\
         | format | seconds | memory, MB | written, MB |\n|---|---|---|---|\n{rows}",
        LARGE[0], LARGE[1]
    ))
}

/// Seconds, and the largest memory in megabytes.
fn measured(command: &mut Command) -> Result<(f64, f64)> {
    let Watched { status, seconds, peak_kib } = watched(command, LIMIT).context("longpole")?;
    ensure!(status.is_some_and(|status| status.success()), "{command:?}: {status:?}");
    Ok((seconds, peak_kib as f64 * 1024.0 / 1e6))
}
