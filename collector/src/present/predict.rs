//! A prediction as text for people: what it says, the times, the curve, what it was made with, findings.

use super::cell::{duration, grouped, width};
use super::plot::{self, Point};
use super::style::{Paint, Style};
use super::table;
use engine::predict::{
    Assumptions, CpuPrediction, Known, Limit, Prediction, Scheduler, limit_text, sentences,
};
use engine::report::Cpus;
use std::io::{self, Write};

/// Rows shown; the JSON has them all.
const ROWS: usize = 16;
/// Findings shown; the JSON has them all.
const FINDINGS: usize = 20;
/// Widths of the columns before the last one: CPUs, time, band, speed-up, efficiency.
const COLUMNS: [usize; 5] = [6, 10, 20, 10, 7];

/// Writes the prediction.
pub fn write(prediction: &Prediction, style: &Style, mut out: impl Write) -> io::Result<()> {
    let out = &mut out;
    for sentence in sentences(prediction) {
        table::wrap(out, style, Paint::Bold, "", &style.text(&sentence), "")?;
    }
    if !prediction.results.is_empty() {
        writeln!(out)?;
        rows(out, prediction, style)?;
        writeln!(out)?;
        curve(out, prediction, style)?;
        writeln!(out)?;
    }
    if let Some(assumptions) = &prediction.assumptions {
        table::wrap(out, style, Paint::Dim, "", &style.text(&made_with(prediction, assumptions)), "")?;
    }
    for finding in prediction.findings.iter().take(FINDINGS) {
        let text = format!("! {}", super::finding::sentence(finding));
        table::wrap(out, style, Paint::Warning, "", &style.text(&text), "  ")?;
    }
    match prediction.findings.len().saturating_sub(FINDINGS) {
        0 => Ok(()),
        more => writeln!(out, "! {} more findings: --json lists them all.", grouped(more as u64)),
    }
}

fn rows(out: &mut impl Write, prediction: &Prediction, style: &Style) -> io::Result<()> {
    let times = if style.unicode { "×" } else { "x" };
    let titles = ["CPUs", "time", "shortest - longest", "speed-up", "used", "what limits"];
    line(out, style, &titles.map(str::to_owned), Paint::Dim)?;
    let shown = shown(prediction);
    for result in &shown {
        let band = if result.low_ns < result.high_ns {
            format!("{} - {}", duration(result.low_ns), duration(result.high_ns))
        } else {
            "-".to_owned()
        };
        let or_none = |text: String| if result.complete { text } else { "-".to_owned() };
        let cells = [
            cpus(result.cpus, style),
            or_none(style.text(&duration(result.time_ns))),
            or_none(style.text(&band)),
            or_none(format!("{:.2}{times}", result.speedup)),
            or_none(format!("{:.0} %", result.efficiency * 100.0)),
            limit(&result.limit),
        ];
        line(out, style, &cells, Paint::Plain)?;
    }
    let rest = prediction.results.len() - shown.len();
    if rest > 0 {
        writeln!(out, "({} more CPU counts: --json has them all)", grouped(rest as u64))?;
    }
    Ok(())
}

/// What limits, in a column's width; the sentences on top say more.
fn limit(limit: &Limit) -> String {
    match limit {
        Limit::Lock(name, _) | Limit::Device(name, _) | Limit::Function(name, _) => name.clone(),
        Limit::Threads(threads) => format!("threads ({threads} at once)"),
        Limit::Waiting(_) => "waiting".to_owned(),
        other => limit_text(other),
    }
}

/// All, or those that tell most: powers of two, the first and the last, where more CPUs stop helping and where another
/// function comes first.
fn shown(prediction: &Prediction) -> Vec<&CpuPrediction> {
    let results: Vec<&CpuPrediction> = prediction.results.iter().collect();
    if results.len() <= ROWS {
        return results;
    }
    let telling = |result: &&CpuPrediction| {
        let power = matches!(result.cpus, Cpus::Count(count) if count.is_power_of_two());
        let turns = prediction.crossovers.iter().take(4).any(|crossover| crossover.cpus == result.cpus);
        let saturates =
            prediction.saturation.as_ref().is_some_and(|saturation| saturation.cpus == result.cpus);
        let ends = [results.first(), results.last()].iter().flatten().any(|end| end.cpus == result.cpus);
        power || turns || saturates || ends || result.cpus == Cpus::Infinite
    };
    results.iter().copied().filter(telling).collect()
}

/// Cells right-aligned in their columns; the last one takes what is left of the line.
fn line(out: &mut impl Write, style: &Style, cells: &[String; 6], paint: Paint) -> io::Result<()> {
    let mut line = String::new();
    let (last, others) = (cells.last().map_or("", String::as_str), cells.iter().zip(COLUMNS));
    for (cell, column) in others {
        line.extend(std::iter::repeat_n(' ', column.saturating_sub(width(cell)).max(1)));
        line.push_str(cell);
    }
    let room = style.width.saturating_sub(width(&line) + 2).max(12);
    line.push_str("  ");
    line.push_str(&style.fit(last, room));
    writeln!(out, "{}", style.paint(paint, line.trim_end()))
}

fn cpus(cpus: Cpus, style: &Style) -> String {
    match cpus {
        Cpus::Infinite => if style.unicode { "∞" } else { "inf" }.to_owned(),
        Cpus::Count(count) => count.to_string(),
    }
}

fn curve(out: &mut impl Write, prediction: &Prediction, style: &Style) -> io::Result<()> {
    let mut results: Vec<&CpuPrediction> =
        prediction.results.iter().filter(|result| result.complete).collect();
    results.sort_by_key(|result| result.cpus);
    let points: Vec<Point> = results
        .iter()
        .map(|result| {
            let at = |ns: f64| if ns > 0.0 { result.speedup * result.time_ns / ns } else { result.speedup };
            Point {
                label: cpus(result.cpus, style),
                value: result.speedup,
                low: at(result.high_ns),
                high: at(result.low_ns),
                ideal: match result.cpus {
                    Cpus::Count(count) => Some(f64::from(count.get())),
                    Cpus::Infinite => None,
                },
            }
        })
        .collect();
    let dot = if style.unicode { "·" } else { "." };
    let title = format!("Speed-up by CPUs ({dot} = as many times as CPUs)");
    writeln!(out, "{}", style.paint(Paint::Dim, &title))?;
    plot::write(out, style, &points)
}

fn made_with(prediction: &Prediction, assumptions: &Assumptions) -> String {
    let known = |what: &str, known: Known| format!("{what} {} ({})", duration(known.ns as f64), known.from);
    let mut text = match assumptions.scheduler {
        Scheduler::Ideal => "Model: ideal sharing of CPUs, no costs".to_owned(),
        Scheduler::Eevdf => {
            let slice =
                assumptions.slice.map_or("slice as Linux has it".to_owned(), |slice| known("slice", slice));
            let mut text = format!(
                "Model: EEVDF, {slice}, {}, {}",
                known("switch", assumptions.switch_cost),
                known("wake-up", assumptions.wake_latency)
            );
            if assumptions.wake_cost.ns > 0 {
                text.push_str(&format!(", {}", known("of which the waker's", assumptions.wake_cost)));
            }
            if assumptions.idle_tick.ns > 0 {
                text.push_str(&format!(
                    ", {}",
                    known("idle CPUs look around by chance and every", assumptions.idle_tick)
                ));
            }
            text
        }
    };
    if let Some(quota) = assumptions.quota {
        text.push_str(&format!(", quota {quota} %"));
    }
    for (device, servers) in &assumptions.devices {
        text.push_str(&format!(", {device} serves {servers} at once"));
    }
    if prediction.recordings > 1 {
        text.push_str(&format!("; {} recordings", prediction.recordings));
    }
    text.push_str(
        ". Compute times are as recorded: that they grow when CPUs share caches and memory is not modelled.",
    );
    text
}
