//! OpenMetrics 1.0: what `top` shows, as named numbers. Shares are of the predicted time of the analysed stretch.
//!
//! Only the largest rows have series, since each new name is another series in a database.

use super::board::Now;
use crate::present::words::{cause, traffic};
use crate::tui::{LiveCounts, Snapshot};
use engine::limit::{GoroutinesWait, Limit, LimitKind};
use engine::program::Endpoint;
use engine::report::{CpuResult, Report};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// Largest number of functions, locks and waits that have series: those with the largest share on any number of CPUs. Also
/// that of endpoints, those with the most requests, and of causes of an endpoint's requests.
const ROWS: usize = 20;

/// All metrics, with the end mark.
pub fn text(now: &Now) -> String {
    let mut text = Text::default();
    text.family("longpole", "info", "", "The watched program and the version of longpole.");
    text.sample("_info", &[("version", env!("CARGO_PKG_VERSION")), ("subject", &now.subject)], 1.0);
    counts(&now.counts, &mut text);
    if let Some((snapshot, stretch)) = &now.report {
        text.family(
            "longpole_stretch_end_seconds",
            "gauge",
            "seconds",
            "End of the analysed stretch, since 1970.",
        );
        text.sample("", &[], stretch.end_unix_ms as f64 / 1e3);
        text.family("longpole_stretch_seconds", "gauge", "seconds", "Length of the analysed stretch.");
        text.sample("", &[], seconds(stretch.length_ns as f64));
        text.family("longpole_threads", "gauge", "", "Threads in the analysed stretch.");
        text.sample("", &[], stretch.threads as f64);
        predicted(snapshot, &mut text);
        functions(&snapshot.report, &mut text);
        locks(&snapshot.report, &mut text);
        waits(&snapshot.report, &mut text);
        limits(snapshot, &mut text);
        requests(&snapshot.limits.traffic, &mut text);
        single_requests(snapshot, &mut text);
    }
    text.lines.push_str("# EOF\n");
    text.lines
}

fn counts(counts: &LiveCounts, text: &mut Text) {
    text.family("longpole_events", "counter", "", "Events read.");
    text.sample("_total", &[], counts.events as f64);
    text.family("longpole_lost_events", "counter", "", "Events that are missing, by reason.");
    let loss = &counts.loss;
    for (reason, lost) in [
        ("ring_full", loss.dropped),
        ("not_run", loss.missed),
        ("operations", loss.operations),
        ("late", loss.late),
        ("undecodable", loss.undecodable),
    ] {
        text.sample("_total", &[("reason", reason)], lost as f64);
    }
    text.family(
        "longpole_cost_ratio",
        "gauge",
        "ratio",
        "Recent cost of recording, as a share of the program's own CPU time.",
    );
    if let Some(share) = counts.recent_overhead.or(counts.overhead).and_then(|cost| cost.share()) {
        text.sample("", &[], share);
    }
}

fn predicted(snapshot: &Snapshot, text: &mut Text) {
    let results = &snapshot.report.results;
    text.family(
        "longpole_predicted_seconds",
        "gauge",
        "seconds",
        "Predicted time of the stretch on this number of CPUs.",
    );
    for result in results {
        text.sample("", &[("cpus", &result.cpus.to_string())], seconds(result.time_ns));
    }
    text.family(
        "longpole_speedup_ratio",
        "gauge",
        "ratio",
        "Predicted time on one CPU divided by that on this number of CPUs.",
    );
    for result in results {
        text.sample("", &[("cpus", &result.cpus.to_string())], result.speedup);
    }
}

fn functions(report: &Report, text: &mut Text) {
    text.family(
        "longpole_function_ratio",
        "gauge",
        "ratio",
        "Share of the predicted time that depends on a function's own computing.",
    );
    let shares = |result: &CpuResult| {
        let rows = result.functions.iter();
        rows.map(|row| (row.function.clone(), result.share(row.tet_ns))).collect::<Vec<_>>()
    };
    largest(report, shares, |cpus, function, share| {
        text.sample("", &[("cpus", cpus), ("function", function)], share);
    });
}

fn locks(report: &Report, text: &mut Text) {
    text.family(
        "longpole_lock_ratio",
        "gauge",
        "ratio",
        "Share of the predicted time that is computed with a lock held.",
    );
    let shares = |result: &CpuResult| {
        let rows = report.locks.iter().zip(&result.locks_held_ns);
        rows.map(|(row, held_ns)| (row.lock.clone(), result.share(*held_ns))).collect::<Vec<_>>()
    };
    largest(report, shares, |cpus, lock, share| text.sample("", &[("cpus", cpus), ("lock", lock)], share));
    let rows = || report.locks.iter().take(ROWS);
    text.family("longpole_lock_acquisitions", "gauge", "", "How often a lock was taken in the stretch.");
    for row in rows() {
        text.sample("", &[("lock", &row.lock)], row.acquisitions as f64);
    }
    text.family(
        "longpole_lock_waited_seconds",
        "gauge",
        "seconds",
        "How long threads waited for a lock in the stretch, summed.",
    );
    for (row, ns) in rows().filter_map(|row| Some((row, row.wait_ns?))) {
        text.sample("", &[("lock", &row.lock)], seconds(ns));
    }
    text.family(
        "longpole_lock_held_seconds",
        "gauge",
        "seconds",
        "How long threads held a lock in the stretch, summed.",
    );
    for (row, ns) in rows().filter_map(|row| Some((row, row.hold_ns?))) {
        text.sample("", &[("lock", &row.lock)], seconds(ns));
    }
}

fn waits(report: &Report, text: &mut Text) {
    text.family(
        "longpole_wait_ratio",
        "gauge",
        "ratio",
        "Share of the predicted time in which nothing is computed.",
    );
    let shares = |result: &CpuResult| {
        let rows = result.waits.iter();
        let key = |row: &engine::report::WaitRow| {
            (row.kind.name(), row.kind.object().unwrap_or_default().to_owned())
        };
        rows.map(|row| (key(row), result.share(row.weighted_ns))).collect::<Vec<_>>()
    };
    largest(report, shares, |cpus, (wait, object), share| {
        text.sample("", &[("cpus", cpus), ("wait", wait), ("object", object)], share);
    });
}

fn limits(snapshot: &Snapshot, text: &mut Text) {
    text.family(
        "longpole_limit_ratio",
        "gauge",
        "ratio",
        "Share of the predicted time that is gained without the limit.",
    );
    for limit in &snapshot.limits.at {
        let cpus = limit.cpus.to_string();
        text.sample("", &[("cpus", &cpus), ("kind", limit.kind.name()), ("what", what(limit))], limit.gain());
    }
    text.family("longpole_fix_ratio", "gauge", "ratio", "Share of the predicted time that a change gains.");
    for fix in &snapshot.limits.fixes {
        let (lock, function) = (fix.lock.as_deref(), fix.function.as_deref());
        let labels = [
            ("change", fix.edit.name()),
            ("lock", lock.unwrap_or_default()),
            ("function", function.unwrap_or_default()),
        ];
        text.sample("", &labels, fix.gain);
    }
}

fn requests(ends: &[Endpoint], text: &mut Text) {
    type Value = fn(&Endpoint) -> f64;
    // Those that the program answers come first.
    let ends: Vec<&Endpoint> = ends.iter().filter(|end| end.count >= Endpoint::FEWEST).take(ROWS).collect();
    let gauges: [(&'static str, &str, &str, Value); 4] = [
        ("longpole_requests_per_second", "", "Requests over sockets, by endpoint.", |end| end.per_second),
        ("longpole_requests_open", "", "Requests that are open at a time, on average.", |end| end.open),
        (
            "longpole_request_mean_seconds",
            "seconds",
            "Mean time from a request until its answer begins.",
            |end| seconds(end.mean_ns),
        ),
        (
            "longpole_request_p99_seconds",
            "seconds",
            "Time within which the answers to 99 % of the requests begin.",
            |end| seconds(end.p99_ns as f64),
        ),
    ];
    for (name, unit, help, value) in gauges {
        text.family(name, "gauge", unit, help);
        ends.iter().for_each(|end| text.sample("", &endpoint(end), value(end)));
    }
    text.family(
        "longpole_request_spent_ratio",
        "gauge",
        "ratio",
        "Share of the time of the requests that they spend on a cause.",
    );
    for end in &ends {
        let mut causes: BTreeMap<String, f64> = BTreeMap::new();
        for part in &end.spent {
            *causes.entry(traffic::cause(part)).or_default() += part.share;
        }
        let mut causes: Vec<(String, f64)> = causes.into_iter().collect();
        causes.sort_by(|a, b| b.1.total_cmp(&a.1));
        let [direction, name] = endpoint(end);
        for (cause, share) in causes.iter().take(ROWS) {
            text.sample("", &[direction, name, ("cause", cause)], *share);
        }
    }
}

/// The requests of `--per`.
fn single_requests(snapshot: &Snapshot, text: &mut Text) {
    let Some(requests) = &snapshot.requests else { return };
    let per = [("per", &requests.what[..])];
    let found = requests.found();
    text.family("longpole_per_requests_per_second", "gauge", "", "Requests of --per in a second.");
    let length = |ns: u64| seconds(ns as f64);
    let rate = found.map_or(0.0, |found| found.count as f64 / length(found.span_ns.max(1)));
    text.sample("", &per, rate);
    let latencies = found.map(|found| found.latencies);
    let percentiles = [
        ("longpole_per_request_p50_seconds", "Half of the requests", latencies.map(|of| of.p50_ns)),
        ("longpole_per_request_p90_seconds", "90 % of the requests", latencies.map(|of| of.p90_ns)),
        ("longpole_per_request_p99_seconds", "99 % of the requests", latencies.map(|of| of.p99_ns)),
    ];
    for (name, share, latency) in percentiles {
        text.family(name, "gauge", "seconds", &format!("{share} of --per take at most this long."));
        if let Some(latency) = latency {
            text.sample("", &per, length(latency));
        }
    }
    text.family(
        "longpole_per_request_spent_seconds",
        "gauge",
        "seconds",
        "Mean time of a request of --per for a cause, in the fast half and in the slowest.",
    );
    for row in found.iter().flat_map(|found| &found.rows).take(ROWS) {
        let cause = cause::words(row.kind, &row.name);
        for (group, ns) in [("fast", row.fast_ns), ("slow", row.slow_ns)] {
            text.sample("", &[per[0], ("group", group), ("cause", &cause)], seconds(ns));
        }
    }
}

fn endpoint(end: &Endpoint) -> [(&str, &str); 2] {
    [("direction", if end.served { "answered" } else { "sent" }), ("endpoint", &end.name)]
}

/// Name of the limiting lock, function, thread or device, if there is one.
fn what(limit: &Limit) -> &str {
    match &limit.kind {
        LimitKind::Lock { lock, .. } | LimitKind::StarvedWriter { lock, .. } => lock,
        LimitKind::HandOver { object } => object.as_deref().unwrap_or_default(),
        LimitKind::Serial { thread, .. }
        | LimitKind::BusyThread { thread, .. }
        | LimitKind::Stage { thread, .. } => thread,
        LimitKind::Device { device, .. } => device,
        LimitKind::CacheLine { line, .. } => line,
        LimitKind::CostsMore { function, .. } => function.as_deref().unwrap_or_default(),
        LimitKind::SupportWork { calls, .. } => calls,
        LimitKind::Permits { semaphore, .. } => semaphore,
        LimitKind::Connections { server, .. } => server,
        LimitKind::OtherRequests { wait, .. } => wait,
        LimitKind::AnsweringThreads { port, .. } => port,
        LimitKind::WokenForNothing { object, .. } => object,
        LimitKind::LocksNotRecorded { word, .. } => word,
        LimitKind::GoroutinesWait(GoroutinesWait::Lock { lock, .. }) => lock,
        LimitKind::GoroutinesWait(GoroutinesWait::Stage { function, .. }) => function,
        LimitKind::GoroutinesWait(GoroutinesWait::Channel { function, .. })
        | LimitKind::Threads { function, .. }
        | LimitKind::TooManyThreads { function, .. }
        | LimitKind::Sleepers { function, .. }
        | LimitKind::Polling { function, .. }
        | LimitKind::SmallTasks { function, .. }
        | LimitKind::Timers { function }
        | LimitKind::Imbalance { function, .. } => function.as_deref().unwrap_or_default(),
        LimitKind::Cpus { .. }
        | LimitKind::Quota { .. }
        | LimitKind::Turns { .. }
        | LimitKind::SpunWaits { .. }
        | LimitKind::Spinning
        | LimitKind::Idle { .. }
        | LimitKind::OpenRequests { .. }
        | LimitKind::Backlog { .. }
        | LimitKind::Goroutines { .. }
        | LimitKind::GoroutinesWait(GoroutinesWait::Several { .. })
        | LimitKind::Work { .. }
        | LimitKind::Deadlock { .. }
        | LimitKind::NotKnown { .. }
        | LimitKind::Unexplained { .. }
        | LimitKind::Nothing => "",
    }
}

/// Calls `tell` with the shares of the rows that have the largest share on any number of CPUs.
fn largest<K: Ord + Clone>(
    report: &Report,
    shares: impl Fn(&CpuResult) -> Vec<(K, f64)>,
    mut tell: impl FnMut(&str, &K, f64),
) {
    let mut best: BTreeMap<K, f64> = BTreeMap::new();
    for (row, share) in report.results.iter().flat_map(&shares) {
        let most = best.entry(row).or_insert(f64::NEG_INFINITY);
        *most = most.max(share);
    }
    let mut order: Vec<(K, f64)> = best.into_iter().collect();
    order.sort_by(|a, b| b.1.total_cmp(&a.1));
    let chosen: BTreeSet<K> = order.into_iter().take(ROWS).map(|(row, _)| row).collect();
    for result in &report.results {
        let cpus = result.cpus.to_string();
        for (row, share) in shares(result).into_iter().filter(|(row, _)| chosen.contains(row)) {
            tell(&cpus, &row, share);
        }
    }
}

fn seconds(ns: f64) -> f64 {
    ns / 1e9
}

/// Writes metric families one after the other.
#[derive(Default)]
struct Text {
    lines: String,
    family: &'static str,
    /// Labels of the family's samples so far: two samples with the same labels would make the complete text invalid.
    told: BTreeSet<String>,
}

impl Text {
    fn family(&mut self, name: &'static str, kind: &str, unit: &str, help: &str) {
        let unit = if unit.is_empty() { String::new() } else { format!("# UNIT {name} {unit}\n") };
        // Writing to a string cannot fail.
        let _ = write!(self.lines, "# TYPE {name} {kind}\n{unit}# HELP {name} {help}\n");
        self.family = name;
        self.told.clear();
    }

    /// Writes a sample of the family, with `end` after the family's name; nothing if the value is not finite.
    fn sample(&mut self, end: &str, labels: &[(&str, &str)], value: f64) {
        let labels: Vec<String> =
            labels.iter().map(|(name, value)| format!("{name}=\"{}\"", escaped(value))).collect();
        let labels = labels.join(",");
        if !value.is_finite() || !self.told.insert(labels.clone()) {
            return;
        }
        let labels = if labels.is_empty() { labels } else { format!("{{{labels}}}") };
        let _ = writeln!(self.lines, "{}{end}{labels} {value}", self.family);
    }
}

/// A label's value, escaped.
fn escaped(name: &str) -> String {
    name.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}
