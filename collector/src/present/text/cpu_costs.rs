//! Measured times and costs of the command on several numbers of CPUs: a table below the predicted times, and JSON.

use crate::cell::{duration, whole_percent as percent, width};
use crate::cpu_words::cpus as cpu_words;
use crate::present::screen::clip;
use crate::present::style::{Paint, Style};
use crate::present::table;
use crate::present::words::short::short;
use engine::predict::{CountCosts, CpuCosts, Grown, Losses, Spread};
use engine::report::Cpus;
use serde::Serialize;
use std::io::{self, Write};

/// Widths of a name's column and of the column of a CPU count.
const NAME: usize = 22;
const COLUMN: usize = 9;
/// Largest number of functions shown.
const FUNCTIONS: usize = 4;
/// Largest number of CPU counts shown: the smallest one, and the largest ones.
const COUNTS: usize = 4;

/// Writes the table after an empty line.
pub(in crate::present) fn write(costs: &CpuCosts, style: &Style, out: &mut impl Write) -> io::Result<()> {
    let Some((few, many)) = costs.ends() else { return Ok(()) };
    let skipped = costs.counts.len().saturating_sub(COUNTS);
    let shown: Vec<&CountCosts> = costs
        .counts
        .iter()
        .enumerate()
        .filter(|(place, _)| *place == 0 || *place > skipped)
        .map(|(_, count)| count)
        .collect();
    let mut line = |paint: Paint, name: &str, cells: Vec<String>, last: &str| {
        let name = style.fit(name, NAME);
        let mut line = format!("{name}{}", " ".repeat(NAME.saturating_sub(width(&name))));
        for cell in cells {
            let cell = style.text(&cell);
            line.push_str(&" ".repeat(COLUMN.saturating_sub(width(&cell)).max(1)));
            line.push_str(&cell);
        }
        let line = format!("{line}  {last}");
        writeln!(out, "{}", style.paint(paint, clip(&line, style.width, style).trim_end()))
    };
    let on = |count: &&CountCosts| Cpus::count(count.cpus).map_or(String::new(), cpu_words);
    line(Paint::Plain, "", Vec::new(), "")?;
    line(Paint::Bold, "MEASURED", shown.iter().map(on).collect(), "")?;
    let times = shown.iter().map(|count| duration(count.time_ns.middle)).collect();
    line(Paint::Plain, "time", times, &format!("{} as fast", spread(&many.speedup)))?;
    let times = shown.iter().map(|count| duration(count.cpu_ns.middle)).collect();
    line(Paint::Plain, "CPU time", times, &spread(&many.growth))?;
    for grown in costs.grown().iter().take(FUNCTIONS) {
        let times =
            shown.iter().map(|count| count.ns_of(&grown.function).map_or("-".to_owned(), duration)).collect();
        let ratio = if grown.few_ns > 0.0 {
            format!("{:.1} times", grown.many_ns / grown.few_ns)
        } else {
            String::new()
        };
        line(Paint::Plain, &short(&grown.function), times, &ratio)?;
    }
    let runs = match many.runs {
        1 => "one run on each".to_owned(),
        runs => format!("{runs} runs on each, in turn"),
    };
    let losses = costs.losses();
    if costs.is_disturbed() {
        let text = format!(
            "(other programs took {} of the CPUs' time, so these runs show nothing: measure again on a quiet machine)",
            percent(losses.others)
        );
        return table::wrap(out, style, Paint::Warning, "", &style.text(&text), " ");
    }
    let text = format!(
        "(of the time of {} CPUs, {} is CPU time that {} does not need (coherence), and {} is idle (contention); {runs})",
        many.cpus,
        percent(losses.coherence),
        Cpus::count(few.cpus).map_or(String::new(), cpu_words),
        percent(losses.contention)
    );
    table::wrap(out, style, Paint::Dim, "", &style.text(&text), " ")
}

/// A factor with its range over the samples: `1.67 times (1.60 to 1.71)`.
fn spread(of: &Spread) -> String {
    let Spread { middle, least, most } = of;
    if most - least < 0.005 {
        format!("{middle:.2} times")
    } else {
        format!("{middle:.2} times ({least:.2} to {most:.2})")
    }
}

/// The costs on several CPU counts, as JSON.
#[derive(Serialize)]
pub(in crate::present) struct CpuCostsJson<'a> {
    counts: &'a [CountCosts],
    losses: Losses,
    functions: Vec<Grown>,
}

impl<'a> CpuCostsJson<'a> {
    pub(in crate::present) fn new(costs: &'a CpuCosts) -> CpuCostsJson<'a> {
        CpuCostsJson { counts: &costs.counts, losses: costs.losses(), functions: costs.grown() }
    }
}
