//! FUNCTIONS: shares of the critical path on the recorded machine and on a large one, and what a faster function gains.

use super::rows::{Row, Table};
use super::{clip, is_narrow, name_columns, named};
use crate::cell::{whole_percent, width};
use crate::present::style::Style;
use engine::limit::{FunctionUse, Limits, Tenth};
use engine::program::is_start_up;
use engine::report::{CpuResult, Report};
use std::collections::BTreeMap;

/// Smaller shares have no row.
pub(super) const LEAST: f64 = 0.01;
/// Width of a name's column.
const NAME: usize = 26;
/// Width of a bar.
const BAR: usize = 10;
/// Width that the column of the share in the kernel takes from the name's column.
const KERNEL: usize = 5;
/// Least share of a function's CPU time in the kernel for which the column `kernel` is shown.
const MUCH_KERNEL: f64 = 0.05;
/// A range of gains around zero that is narrower than this is shown as zero.
const NOTHING: f64 = 0.035;

/// A share of the time, and half of its 95 % interval.
#[derive(Clone, Copy, Debug, Default)]
struct Share {
    of: f64,
    error: f64,
}

/// The functions' own shares of the predicted time. Unless `all`, standard functions count for their callers.
fn shares<'r>(report: &'r Report, result: &'r CpuResult, all: bool) -> BTreeMap<&'r str, Share> {
    let mut shares: BTreeMap<&str, Share> = BTreeMap::new();
    let mut add = |function: &'r str, of: f64, error: f64| {
        let share = shares.entry(function).or_default();
        share.of += of;
        share.error = share.error.hypot(error);
    };
    for row in result.functions.iter().filter(|_| result.time_ns > 0.0) {
        let of = row.tet_ns / result.time_ns;
        let error = row.tet_error_ns.unwrap_or(0.0) / result.time_ns;
        let found = report.used_by.binary_search_by(|used| used.function.as_str().cmp(&row.function));
        let by = found.ok().and_then(|at| report.used_by.get(at)).filter(|_| !all);
        let mut rest = 1.0;
        for (own, part) in by.map_or(&[][..], |used| &used.by) {
            add(own, of * part, error * part);
            rest -= part;
        }
        if rest > 1e-9 {
            add(&row.function, of * rest, error * rest);
        }
    }
    shares
}

/// The gain if a function gets 10 % faster.
fn of_tenth(tenth: Tenth) -> String {
    match tenth.agreed() {
        Some(both) if both.abs() < 0.0005 => "~0 %".to_owned(),
        Some(both) => format!("{:+.1} %", 0.0 - both * 100.0),
        None => {
            let (least, most) = (tenth.faster.min(tenth.slower), tenth.faster.max(tenth.slower));
            if least <= 0.0 && most >= 0.0 && most - least < NOTHING {
                return "~0 %".to_owned();
            }
            format!("{:+.0} to {:+.0} %", 0.0 - least * 100.0, 0.0 - most * 100.0)
        }
    }
}

/// The rows, by share on the CPU count of `result`, the largest first.
pub(crate) fn rows(report: &Report, limits: &Limits, result: &CpuResult, all: bool, style: &Style) -> Table {
    let here = shares(report, result, all);
    let largest = limits.at.get(1).map(|limit| limit.cpus);
    let largest =
        report.results.iter().find(|other| Some(other.cpus) == largest && other.cpus != result.cpus);
    let there = largest.map(|largest| shares(report, largest, all)).unwrap_or_default();
    let mut functions: Vec<(&str, Share)> = here.into_iter().collect();
    functions.sort_by(|a, b| b.1.of.total_cmp(&a.1.of).then_with(|| a.0.cmp(b.0)));
    // A function in a line of FIX always has a row, however uncertain its share is.
    let is_fix = |function: &str| limits.fixes.iter().any(|fix| fix.function.as_deref() == Some(function));
    functions.retain(|(function, share)| {
        let is_told = share.of > share.error || is_fix(function);
        all || (share.of >= LEAST && is_told && !is_start_up(function))
    });
    let on = largest.map_or(String::new(), |largest| crate::cpu_words::on(largest.cpus));
    let is_told = |used: &FunctionUse| used.kernel.is_some_and(|share| share >= MUCH_KERNEL);
    let tells_kernel = !is_narrow(style)
        && limits
            .functions
            .iter()
            .any(|used| is_told(used) && functions.iter().any(|of| of.0 == used.function));
    let columns = name_columns(if tells_kernel { NAME - KERNEL } else { NAME }, style);
    let kernel = if tells_kernel { format!(" {:>1$}", "kernel", KERNEL + 1) } else { String::new() };
    // The gain of 10 % was simulated on one CPU count only, and for no function of a large program. In that simulation,
    // standard functions counted for their callers.
    let tried = !(all && !report.used_by.is_empty())
        && limits.at.first().is_some_and(|limit| limit.cpus == result.cpus)
        && limits.functions.iter().any(|used| used.tenth.is_some());
    let gives = if tried { "10 % gives" } else { "" };
    let title = if is_narrow(style) {
        format!("{:columns$} {:>5}  {:<8}{gives:>10}", "FUNCTIONS", "CPU", "limits")
    } else {
        format!("{:columns$} {:>5}{kernel}  {:<18} {gives:>10}  {on:>10}", "FUNCTIONS", "CPU", "limits")
    };
    let (plus_minus, at_least) = if style.unicode { ("±", "≥") } else { ("~", ">=") };
    let rows = functions.into_iter().map(|(function, share)| {
        let used = limits.functions.iter().find(|used| used.function == *function);
        let computes = used.map_or("-".to_owned(), |used| whole_percent(used.computes));
        let kernel = match used.and_then(|used| used.kernel) {
            _ if !tells_kernel => String::new(),
            Some(share) => format!(" {:>width$}", whole_percent(share), width = KERNEL + 1),
            None => format!(" {:>width$}", "-", width = KERNEL + 1),
        };
        let percent = share.of * 100.0;
        let limits = match share.error * 100.0 {
            // A share cannot exceed 100 %, so only its lower bound is shown.
            error if error >= 0.5 && percent + error > 100.5 => {
                format!("{at_least}{:.0} %", (percent - error).max(0.0))
            }
            error if error >= 0.5 => format!("{percent:.0} {plus_minus}{error:.0} %"),
            _ => format!("{percent:.0} %"),
        };
        let tenth = used.and_then(|used| used.tenth).filter(|_| tried);
        let none = if tried { "-" } else { "" };
        let tenth = tenth.map_or(none.to_owned(), of_tenth);
        let on = match largest {
            Some(_) => whole_percent(there.get(function).map_or(0.0, |share| share.of)),
            None => String::new(),
        };
        let filled = ((share.of.clamp(0.0, 1.0) * BAR as f64).round() as usize).min(BAR);
        let bar = format!("{}{}", "#".repeat(filled), " ".repeat(BAR - filled));
        let pad = " ".repeat(8usize.saturating_sub(width(&limits)).max(1));
        // A long text of the share takes one column of the bar, if that column is empty.
        let is_long = width(&limits) >= 8 && bar.ends_with(' ');
        let bar = bar.get(..if is_long { BAR - 1 } else { BAR }).unwrap_or(&bar);
        let name = named(function, all, style, columns);
        let line = if is_narrow(style) {
            format!("{name} {computes:>5}  {limits}{pad}{tenth:>10}")
        } else {
            format!("{name} {computes:>5}{kernel}  {limits}{pad}{bar} {tenth:>10}  {on:>10}")
        };
        Row { of: function.to_owned(), weight: share.of, line: clip(&line, style.width, style) }
    });
    Table::new(&title, rows.collect(), style)
}
