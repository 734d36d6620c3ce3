//! A prediction as text: what limits, the times, the curve, and the model's assumptions.

use super::plot::{self, Point};
use crate::cell::{duration, width};
use crate::present::frame::{self, Frame};
use crate::present::style::{Paint, Style};
use crate::present::table;
use crate::present::words::counts::{self, alike};
use engine::predict::{Assumptions, CpuPrediction, KnownNs, Prediction, Scheduler};
use engine::report::Cpus;
use std::io::{self, Write};

/// Largest number of rows shown; the JSON has all rows.
const ROWS: usize = 16;
/// Largest number of sentences about functions that overtake others.
const TURNS: usize = 2;
/// If the speed-ups differ by less than this share, no curve is drawn.
const FLAT: f64 = 0.1;
/// Widths of the columns before the last one: CPUs, time, speed-up, used.
const COLUMNS: [usize; 4] = [10, 10, 10, 12];
/// Widths of the same columns on a narrow screen.
const NARROW: [usize; 4] = [9, 9, 10, 12];

/// Writes the prediction.
pub fn write(prediction: &Prediction, frame: &Frame, style: &Style, mut out: impl Write) -> io::Result<()> {
    let out = &mut out;
    frame.head(style, out)?;
    if !prediction.results.is_empty() {
        rows(out, prediction, style)?;
        writeln!(out)?;
        if !is_flat(prediction) {
            curve(out, prediction, style)?;
            writeln!(out)?;
        }
    }
    for turn in prediction.crossovers.iter().take(TURNS) {
        let from = match turn.cpus {
            Cpus::Infinite => "On unlimited CPUs".to_owned(),
            Cpus::Count(count) if count.get() == 1 => "From 1 CPU on".to_owned(),
            Cpus::Count(count) => format!("From {count} CPUs on"),
        };
        let text = format!("{from}, {} outweighs {}.", turn.function, turn.over);
        table::wrap(out, style, Paint::Plain, "", &style.text(&text), "  ")?;
    }
    if let Some(assumptions) = &prediction.assumptions {
        table::wrap(out, style, Paint::Dim, "", &style.text(&made_with(prediction, assumptions)), "")?;
    }
    frame.foot(&prediction.findings, Some("what-if --rank"), style, out)
}

fn is_flat(prediction: &Prediction) -> bool {
    let speedups = prediction.results.iter().filter(|result| result.complete).map(|result| result.speedup);
    let (low, high) =
        speedups.fold((f64::INFINITY, 0.0_f64), |(low, high), speedup| (speedup.min(low), speedup.max(high)));
    high <= low * (1.0 + FLAT)
}

fn rows(out: &mut impl Write, prediction: &Prediction, style: &Style) -> io::Result<()> {
    let times = if style.unicode { "×" } else { "x" };
    line(out, style, &["CPUs", "time", "speed-up", "used", "may be"].map(str::to_owned), Paint::Bold)?;
    let time = |result: &&CpuPrediction| {
        let complete = if result.complete { 1.0 } else { 0.0 };
        vec![result.time_ns, complete, if result.throttled { 1.0 } else { 0.0 }]
    };
    let groups = alike(&prediction.results, time);
    let shown = shown(groups.iter().map(Vec::as_slice).collect(), prediction);
    for group in &shown {
        let (Some(first), Some(last)) = (group.first(), group.last()) else { continue };
        let cpus: Vec<Cpus> = group.iter().map(|result| result.cpus).collect();
        let low = group.iter().map(|result| result.low_ns).fold(first.time_ns, f64::min);
        let high = group.iter().map(|result| result.high_ns).fold(first.time_ns, f64::max);
        let band = if group.iter().any(|result| result.is_open) {
            format!("{} or more", duration(low))
        } else if high - low > first.time_ns * 0.005 {
            format!("{} to {}", duration(low), duration(high))
        } else {
            String::new()
        };
        let quota = if first.throttled { "  (the quota)" } else { "" };
        let percent = |result: &CpuPrediction| format!("{:.0}", result.used() * 100.0);
        // The share used of unlimited CPUs has another meaning and does not belong here.
        let last = group.iter().rfind(|result| result.cpus != Cpus::Infinite).unwrap_or(last);
        let used = match (percent(first), percent(last)) {
            (one, two) if one == two => format!("{one} %"),
            (one, two) => format!("{one} to {two} %"),
        };
        let or_none = |text: String| if first.complete { text } else { "-".to_owned() };
        let cells = [
            counts::range(&cpus, style),
            or_none(style.text(&duration(first.time_ns))),
            or_none(format!("{:.2}{times}", first.speedup)),
            or_none(used),
            or_none(format!("{}{quota}", style.text(&band))),
        ];
        line(out, style, &cells, Paint::Plain)?;
    }
    let rest = groups.len() - shown.len();
    frame::more(out, rest, "row", "--json has all", style)
}

type Group<'g, 'p> = &'g [&'p CpuPrediction];

/// All groups, or the most informative: powers of two, the first and the last, and where more CPUs stop helping.
fn shown<'g, 'p>(groups: Vec<Group<'g, 'p>>, prediction: &Prediction) -> Vec<Group<'g, 'p>> {
    if groups.len() <= ROWS {
        return groups;
    }
    let last = groups.len() - 1;
    let telling = |(place, group): &(usize, Group<'g, 'p>)| {
        let saturates = prediction.saturation.as_ref().map(|saturation| saturation.cpus);
        let is_telling = |result: &&CpuPrediction| match result.cpus {
            Cpus::Count(count) => count.is_power_of_two() || Some(result.cpus) == saturates,
            Cpus::Infinite => true,
        };
        *place == 0 || *place == last || group.iter().any(is_telling)
    };
    groups.into_iter().enumerate().filter(telling).map(|(_, group)| group).collect()
}

/// Writes cells right-aligned in their columns; the last cell takes the remaining width of the line.
fn line(out: &mut impl Write, style: &Style, cells: &[String; 5], paint: Paint) -> io::Result<()> {
    let mut line = String::new();
    let columns = if style.width < 60 { NARROW } else { COLUMNS };
    let (last, others) = (cells.last().map_or("", String::as_str), cells.iter().zip(columns));
    for (cell, column) in others {
        line.extend(std::iter::repeat_n(' ', column.saturating_sub(width(cell)).max(1)));
        line.push_str(cell);
    }
    if width(&line) + 2 + width(last) <= style.width {
        line.push_str("  ");
        line.push_str(last);
    }
    writeln!(out, "{}", style.paint(paint, &frame::clip(&line, style.width, style)))
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
                label: counts::title(result.cpus, style),
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
    table::wrap(out, style, Paint::Dim, "", &title, "  ")?;
    plot::write(out, style, &points)
}

fn made_with(prediction: &Prediction, assumptions: &Assumptions) -> String {
    let known = |what: &str, known: KnownNs| format!("{what} {} ({})", duration(known.ns as f64), known.from);
    let mut text = match assumptions.scheduler {
        Scheduler::Ideal => "Model: CPUs are shared without any cost".to_owned(),
        Scheduler::Eevdf => {
            let slice =
                assumptions.slice.map_or(String::new(), |slice| format!("{}, ", known("slice", slice)));
            let switch = known("a switch", assumptions.switch_cost);
            let found = assumptions.idle_found.map(|found| {
                let percent = f64::from(found) / 10.0;
                format!(", {percent:.0} % of wake-ups on a busy CPU move to an idle one (recorded)")
            });
            format!(
                "Model: Linux's scheduler, {slice}{switch}, {}{}",
                known("a wake-up", assumptions.wake_latency),
                found.unwrap_or_default()
            )
        }
    };
    if let Some(quota) = assumptions.quota {
        text.push_str(&format!(", quota {quota} %"));
    }
    for (device, servers) in &assumptions.devices {
        text.push_str(&format!(", {device} serves {servers} at once"));
    }
    if prediction.recordings > 1 {
        text.push_str(&format!("; {} recordings, the limit is of the first", prediction.recordings));
    }
    if assumptions.lines > 0 {
        text.push_str(
            ". By a model, threads wait longer on more CPUs for cache lines that they change together",
        );
    }
    if assumptions.locks {
        text.push_str(". By a model, most of the CPU time at contended locks is absent on one CPU");
    }
    text.push_str(match (assumptions.lines, assumptions.locks) {
        (0, false) => {
            ". Computing takes as long as recorded: slower caches or memory on more CPUs are not modelled."
        }
        _ => ". All other computing takes as long as recorded.",
    });
    text
}
