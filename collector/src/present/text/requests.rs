//! Single requests as text: their latencies, and the causes of slow requests compared with fast ones.

use crate::cell::{counted, duration, ending, grouped, width};
use crate::present::frame::{clip, more};
use crate::present::style::{Paint, Style};
use crate::present::table;
use crate::present::words::cause::words;
use crate::present::words::excerpt;
use engine::report::Finding;
use engine::requests::{CauseKind, CauseRow, HolderDetail, RequestSummary, SlowGroup};
use std::io::{self, Write};

/// Rows of a table by default.
const ROWS: usize = 10;
/// For each lock and queue: number of lines that say what its holders, or the thread, did.
const DETAILS: usize = 3;
/// Least share of a row's time for which there is such a line.
const LEAST_DETAIL: f64 = 0.05;
/// Number of causes for which the 99th percentile without the cause is shown.
const WITHOUT: usize = 5;
/// Width of a number's column, in characters.
const CELL: usize = 11;
/// Width of the column of a ±, in characters.
const ERROR: usize = 9;

/// What requests are.
#[derive(Clone, Copy, Debug)]
pub struct About<'a> {
    /// The functions whose calls are requests, or the sockets.
    pub what: &'a str,
    /// Their kind.
    pub kind: RequestKind,
}

/// The kinds of requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RequestKind {
    /// Calls of functions, or stretches between probes.
    #[default]
    Calls,
    /// Messages at sockets.
    Messages,
    /// Traces for which threads work.
    Traces,
}

impl RequestKind {
    /// In which way a guess is part of such requests.
    fn guess(self) -> Option<&'static str> {
        match self {
            RequestKind::Calls => None,
            RequestKind::Messages => Some(
                "A request counts from its arrival in the socket until its answer begins; several sent at once count as one.",
            ),
            RequestKind::Traces => Some(
                "A request is a trace. Begin and end are guesses between switches and samples; a trace that none of them met is not counted.",
            ),
        }
    }
}

/// Writes the summary. `top`: number of rows asked for; `findings`: of the recording.
pub fn write(
    summary: &RequestSummary,
    about: &About<'_>,
    top: Option<usize>,
    findings: &[Finding],
    style: &Style,
    out: &mut dyn Write,
) -> io::Result<()> {
    head(summary, about, style, out)?;
    causes(summary, top.unwrap_or(ROWS), style, out)?;
    without(summary, style, out)?;
    remarks(summary, about, findings, style, out)
}

fn head(summary: &RequestSummary, about: &About<'_>, style: &Style, out: &mut dyn Write) -> io::Result<()> {
    let RequestSummary { count, latencies, .. } = summary;
    let seconds = summary.span_ns as f64 / 1e9;
    let rate =
        if seconds > 0.0 { format!(", {} a second", rate(*count as f64 / seconds)) } else { String::new() };
    let requests = format!("{} request{}", grouped(*count as u64), ending("request", *count));
    let what = clip(about.what, style.width, style);
    let line = format!("{what}: {requests} in {}{rate}", duration(summary.span_ns as f64));
    let mut out = out;
    table::wrap(&mut out, style, Paint::Bold, "", &style.text(&line), "  ")?;
    let [p50, p90, p99, longest] =
        [latencies.p50_ns, latencies.p90_ns, latencies.p99_ns, latencies.longest_ns]
            .map(|ns| duration(ns as f64));
    let line = format!("Latency: 50 % {p50}, 90 % {p90}, 99 % {p99}, longest {longest}");
    table::wrap(&mut out, style, Paint::Plain, "", &style.text(&line), "  ")?;
    if summary.unfinished > 0 {
        let open = summary.unfinished;
        let line = format!(
            "{} more {} open when the recording began or ended: up to at least {}.",
            grouped(open as u64),
            if open == 1 { "was" } else { "were" },
            duration(summary.unfinished_ns as f64)
        );
        table::wrap(&mut out, style, Paint::Plain, "", &style.text(&line), "  ")?;
    }
    if let Some(guess) = about.kind.guess() {
        table::wrap(&mut out, style, Paint::Dim, "", guess, "")?;
    }
    writeln!(out)
}

fn rate(rate: f64) -> String {
    if rate >= 99.5 { grouped(rate.round() as u64) } else { format!("{rate:.1}") }
}

/// The words for the slow requests.
fn slow_words(summary: &RequestSummary) -> String {
    match summary.slow_group {
        SlowGroup::Percent => "slowest 1 %".to_owned(),
        SlowGroup::Ten => "slowest 10".to_owned(),
        SlowGroup::Tenth => "slowest 10 %".to_owned(),
        SlowGroup::One => "slowest one".to_owned(),
    }
}

/// A line of the table.
struct Line<'a> {
    name: &'a str,
    fast: f64,
    slow: f64,
    error: f64,
}

fn causes(summary: &RequestSummary, shown: usize, style: &Style, out: &mut dyn Write) -> io::Result<()> {
    let label = style.width.saturating_sub(3 * CELL + ERROR + 1).clamp(20, 60);
    let title = format!(
        "{:label$}{:>CELL$}{:>width$}{:>ERROR$}{:>CELL$}",
        "A REQUEST SPENDS ON",
        "fast half",
        slow_words(summary),
        style.text("±"),
        "difference",
        width = CELL + 1
    );
    writeln!(out, "{}", style.paint(Paint::Bold, &clip(&title, style.width, style)))?;
    for row in summary.rows.iter().take(shown) {
        let name = words(row.kind, &row.name);
        let line = Line { name: &name, fast: row.fast_ns, slow: row.slow_ns, error: row.slow_error_ns };
        put(&line, label, Paint::Plain, style, out)?;
        details(row, style, out)?;
    }
    let rest: Vec<&CauseRow> = summary.rows.iter().skip(shown).collect();
    if !rest.is_empty() {
        let name = counted(rest.len(), "other cause");
        let sum = |of: fn(&CauseRow) -> f64| rest.iter().map(|row| of(row)).sum();
        let line =
            Line { name: &name, fast: sum(|row| row.fast_ns), slow: sum(|row| row.slow_ns), error: 0.0 };
        put(&line, label, Paint::Dim, style, out)?;
    }
    let (fast, slow) = (summary.latencies.fast_mean_ns, summary.latencies.slow_mean_ns);
    put(&Line { name: "all: its mean latency", fast, slow, error: 0.0 }, label, Paint::Bold, style, out)?;
    more(out, rest.len(), "cause", &format!("--top {} shows all", summary.rows.len()), style)?;
    let requests = format!(
        "Means of {} and {} request{}; ±: half of the 95 % interval, where samples divide computing.",
        grouped(summary.fast as u64),
        grouped(summary.slow as u64),
        ending("request", summary.slow)
    );
    let mut out = out;
    table::wrap(&mut out, style, Paint::Dim, "", &style.text(&requests), "")
}

fn put(line: &Line<'_>, label: usize, paint: Paint, style: &Style, out: &mut dyn Write) -> io::Result<()> {
    let name = style.fit(line.name, label);
    let right = |text: String, columns: usize| {
        let text = style.text(&text);
        format!("{}{text}", " ".repeat(columns.saturating_sub(width(&text))))
    };
    let difference = line.slow - line.fast;
    let sign = if difference >= 0.5 { "+" } else { "" };
    let error = if line.error >= 0.5 { format!("±{}", duration(line.error)) } else { String::new() };
    let text = format!(
        "{name}{}{}{}{}{}",
        " ".repeat(label.saturating_sub(width(&name))),
        right(amount(line.fast), CELL),
        right(amount(line.slow), CELL + 1),
        right(error, ERROR),
        right(format!("{sign}{}", amount(difference)), CELL)
    );
    writeln!(out, "{}", style.paint(paint, text.trim_end()))
}

fn amount(ns: f64) -> String {
    if ns.abs() < 0.5 { "0".to_owned() } else { duration(ns) }
}

/// Lines that say what the lock's holders did, or the threads for which requests were queued.
fn details(row: &CauseRow, style: &Style, out: &mut dyn Write) -> io::Result<()> {
    let weighty = row.details.iter().filter(|detail| detail.slow_ns >= LEAST_DETAIL * row.slow_ns);
    for detail in weighty.take(DETAILS) {
        let relation = if row.kind == CauseKind::Queue { "meanwhile" } else { "held by" };
        let line = format!("  {relation} {}: {}", detail.by, doing(detail));
        writeln!(out, "{}", style.paint(Paint::Dim, &clip(&style.text(&line), style.width, style)))?;
    }
    Ok(())
}

fn doing(detail: &HolderDetail) -> String {
    let doing = match detail.kind {
        CauseKind::Queue => format!("waiting for {}", detail.name),
        kind => words(kind, &detail.name),
    };
    format!("{doing}, {}", duration(detail.slow_ns))
}

fn without(summary: &RequestSummary, style: &Style, out: &mut dyn Write) -> io::Result<()> {
    if summary.without.is_empty() {
        return Ok(());
    }
    writeln!(out)?;
    let now = duration(summary.latencies.p99_ns as f64);
    let title = format!("WITHOUT ITS OWN PART 99 % WOULD TAKE, instead of {now}");
    writeln!(out, "{}", style.paint(Paint::Bold, &style.text(&title)))?;
    for row in summary.without.iter().take(WITHOUT) {
        let line = format!("{:>9}  {}", duration(row.p99_ns as f64), words(row.kind, &row.name));
        writeln!(out, "{}", clip(&style.text(&line), style.width, style))?;
    }
    let mut out = out;
    let bound = "As if the function took no time there, and waits for locks and queues stayed as long: these may get shorter, too.";
    table::wrap(&mut out, style, Paint::Dim, "", bound, "")
}

fn remarks(
    summary: &RequestSummary,
    about: &About<'_>,
    findings: &[Finding],
    style: &Style,
    out: &mut dyn Write,
) -> io::Result<()> {
    let mut remarks: Vec<String> = Vec::new();
    if summary.entries_only {
        remarks.push(
            "the ends of these calls are known only from later events: latencies are too long".to_owned(),
        );
    }
    if summary.partly {
        let more = match about.kind {
            RequestKind::Messages => {
                "requests were recorded for a part of the time: `record --per socket` records all"
            }
            RequestKind::Calls | RequestKind::Traces => {
                "the function had its probes for a part of the recording: there were more calls. `record --overhead none` keeps them"
            }
        };
        remarks.push(more.to_owned());
    }
    if summary.not_followed > 0 {
        let count = grouped(summary.not_followed as u64);
        remarks.push(format!(
            "{count} {} too many waits to be followed from end to start",
            if summary.not_followed == 1 { "request has" } else { "requests have" }
        ));
    }
    remarks.extend(findings.iter().filter_map(excerpt::sentence));
    let mut out = out;
    for remark in remarks {
        table::wrap(&mut out, style, Paint::Warning, "", &style.text(&format!("! {remark}")), "  ")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::requests::{Latencies, WithoutRow};

    fn text(summary: &RequestSummary, top: Option<usize>) -> String {
        let style = Style { colour: false, unicode: true, width: 80 };
        let mut out = Vec::new();
        let about = About { what: "serve", kind: RequestKind::Calls };
        write(summary, &about, top, &[], &style, &mut out).expect("written");
        String::from_utf8(out).expect("text")
    }

    fn row(kind: CauseKind, name: &str, fast_ns: f64, slow_ns: f64) -> CauseRow {
        CauseRow { kind, name: name.to_owned(), fast_ns, slow_ns, ..CauseRow::default() }
    }

    #[test]
    fn request_columns_add_up_and_the_main_cause_is_in_the_first_lines() {
        let by = HolderDetail {
            by: "keeper".to_owned(),
            kind: CauseKind::Computing,
            name: "rebuild".to_owned(),
            slow_ns: 9e6,
        };
        let summary = RequestSummary {
            count: 2_310,
            unfinished: 2,
            unfinished_ns: 3_200_000,
            span_ns: 20_000_000_000,
            latencies: Latencies {
                p50_ns: 1_020_000,
                p90_ns: 1_300_000,
                p99_ns: 12_100_000,
                longest_ns: 24_000_000,
                fast_mean_ns: 820_000.0,
                slow_mean_ns: 10_850_000.0,
            },
            fast: 1_155,
            slow: 23,
            slow_group: SlowGroup::Percent,
            rows: vec![
                CauseRow { details: vec![by], ..row(CauseKind::Lock, "mutex table", 20_000.0, 10_000_000.0) },
                CauseRow {
                    slow_error_ns: 40_000.0,
                    ..row(CauseKind::Computing, "render(int)", 700_000.0, 750_000.0)
                },
                row(CauseKind::Woken, "", 100_000.0, 100_000.0),
            ],
            without: vec![WithoutRow {
                kind: CauseKind::Lock,
                name: "mutex table".to_owned(),
                p99_ns: 1_900_000,
            }],
            ..RequestSummary::default()
        };
        let expected = "\
serve: 2,310 requests in 20.0 s, 116 a second
Latency: 50 % 1.02 ms, 90 % 1.30 ms, 99 % 12.1 ms, longest 24.0 ms
2 more were open when the recording began or ended: up to at least 3.20 ms.

A REQUEST SPENDS ON                    fast half slowest 1 %        ± difference
mutex table                              20.0 µs     10.0 ms            +9.98 ms
  held by keeper: computing rebuild, 9.00 ms
computing render                          700 µs      750 µs ±40.0 µs   +50.0 µs
1 other cause                             100 µs      100 µs                   0
all: its mean latency                     820 µs     10.8 ms            +10.0 ms
(1 more cause: --top 3 shows all)
Means of 1,155 and 23 requests; ±: half of the 95 % interval, where samples
divide computing.

WITHOUT ITS OWN PART 99 % WOULD TAKE, instead of 12.1 ms
  1.90 ms  mutex table
As if the function took no time there, and waits for locks and queues stayed as
long: these may get shorter, too.
";
        assert_eq!(text(&summary, Some(2)), expected);
    }

    #[test]
    fn a_requests_summary_without_requests_is_printed() {
        let text = text(
            &RequestSummary {
                entries_only: true,
                partly: true,
                not_followed: 1,
                ..RequestSummary::default()
            },
            None,
        );
        assert!(text.contains("serve: 0 requests"), "{text}");
        assert!(text.contains("! 1 request has too many waits"), "{text}");
    }
}
