//! The table of segments: each computation with its weight for each CPU count.

use crate::cell::duration;
use crate::present::style::{Paint, Style, cpu_title};
use crate::present::table::{self, Layout};
use engine::report::{Report, SegmentRow};
use std::io::{self, Write};

const CELL: usize = 9;
const THREAD: usize = 12;
const FUNCTION: usize = 16;
/// Width of `thread op function start length`, a space between each.
const LABEL: usize = THREAD + 1 + 7 + 1 + FUNCTION + 1 + 8 + 1 + 8;

/// Writes one line for each segment: its place in the schedule on unlimited CPUs, and its weights.
pub fn write(out: &mut impl Write, report: &Report, style: &Style) -> io::Result<()> {
    let Some(first) = report.results.first() else {
        return Ok(());
    };
    let layout = Layout::new(style, report.results.len(), CELL, LABEL);
    let all: Vec<usize> = (0..report.results.len()).collect();
    for block in all.chunks(layout.cells_per_block) {
        let what = "Segments: start and length on unlimited CPUs, and by how much the predicted time falls \
                    when a segment gets shorter (its weight).";
        table::wrap(out, style, Paint::Dim, "", what, "")?;
        let label = labels(style, ["thread", "op", "function", "start", "length"]);
        let titles: Vec<String> =
            block.iter().map(|&column| cpu_title(report.results[column].cpus, style)).collect();
        table::line(out, &layout, style, &label, Paint::Bold, &titles)?;
        for (i, segment) in first.segments.iter().enumerate() {
            let weights: Vec<String> = block
                .iter()
                .map(|&column| {
                    // All results list the same segments in the same order.
                    let same = report.results[column].segments.get(i).filter(|other| is_same(segment, other));
                    same.map_or("-".into(), |segment| weight(segment.weight))
                })
                .collect();
            table::line(out, &layout, style, &label_of(style, segment), Paint::Plain, &weights)?;
        }
        writeln!(out)?;
    }
    Ok(())
}

fn is_same(a: &SegmentRow, b: &SegmentRow) -> bool {
    a.thread == b.thread && a.operation == b.operation
}

fn label_of(style: &Style, segment: &SegmentRow) -> String {
    labels(
        style,
        [
            &segment.thread,
            &segment.operation.to_string(),
            segment.function.as_deref().unwrap_or("-"),
            &duration(segment.start_ns),
            &duration(segment.end_ns - segment.start_ns),
        ],
    )
}

fn labels(style: &Style, [thread, operation, function, start, length]: [&str; 5]) -> String {
    let left = |text: &str, columns| {
        let text = style.fit(text, columns);
        let spaces = columns.saturating_sub(crate::cell::width(&text));
        format!("{text}{}", " ".repeat(spaces))
    };
    let (start, length) = (style.text(start), style.text(length));
    format!("{} {operation:>7} {} {start:>8} {length:>8}", left(thread, THREAD), left(function, FUNCTION))
}

/// The weight with at most four digits after the point, none for an integer.
fn weight(weight: f64) -> String {
    let text = format!("{weight:.4}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" { "0".into() } else { text.into() }
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_weight_is_short_and_keeps_its_sign() {
        for (value, text) in
            [(1.0, "1"), (0.5, "0.5"), (-1.0 / 3.0, "-0.3333"), (2.0, "2"), (-0.00001, "0"), (10.0, "10")]
        {
            assert_eq!(super::weight(value), text);
        }
    }
}
