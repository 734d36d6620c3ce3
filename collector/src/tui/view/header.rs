//! The table's head: CPU counts, predicted time and speed-up; and which columns there is room for.

use crate::present::cell::{duration, fit};
use crate::tui::{Measure, State, Theme, View};
use engine::report::Cpus;
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};

/// CPU counts, predicted time, speed-up, rule.
pub(super) const LINES: u16 = 4;

/// Columns of a CPU count that shows one share, and of one that shows both.
const NARROW: usize = 9;
const WIDE: usize = 14;
/// The name column never gets less while more than one CPU count is shown…
const NAME_MIN: usize = 24;
/// … and both shares are only shown if it keeps this much.
const NAME_GOOD: usize = 56;

/// Which CPU counts are shown, and how wide.
pub(super) struct Columns {
    /// Width of the name column.
    pub name: usize,
    /// Width of each CPU count.
    pub each: usize,
    /// First CPU count shown.
    pub first: usize,
    /// CPU counts shown.
    pub count: usize,
    /// TETID and TET side by side.
    pub both: bool,
}

impl Columns {
    /// Indices of the CPU counts shown.
    pub fn shown(&self) -> std::ops::Range<usize> {
        self.first..self.first + self.count
    }
}

pub(super) fn columns(state: &State, width: u16) -> Columns {
    let width = usize::from(width);
    let all = state.shown().map_or(state.cpus.len(), |snapshot| snapshot.report.results.len());
    let both = width >= NAME_GOOD + all * WIDE;
    let each = if both { WIDE } else { NARROW };
    let fitting = (width.saturating_sub(NAME_MIN) / each).clamp(1, all.max(1));
    let count = fitting.min(all);
    // The chosen CPU count is always among those shown.
    let first = (state.sort + 1).saturating_sub(count).min(all - count);
    Columns { name: width.saturating_sub(count * each), each, first, count, both }
}

pub(super) fn draw(frame: &mut Frame<'_>, area: Rect, state: &State, columns: &Columns, theme: Theme) {
    let results = state.shown().map(|snapshot| snapshot.report.results.as_slice()).unwrap_or_default();
    let cpus = |i: usize| results.get(i).map(|result| result.cpus).or_else(|| state.cpus.get(i).copied());
    let legend = match (columns.both, state.measure) {
        _ if state.view == View::Locks => "% of predicted time with the lock held",
        (true, Measure::Anywhere) => "% of predicted time: function anywhere on the stack, on top",
        (true, Measure::OnTop) => "% of predicted time: function on top of the stack, anywhere",
        (false, Measure::Anywhere) => "% anywhere on stack",
        (false, Measure::OnTop) => "% on top of stack",
    };
    let more = (columns.first > 0, columns.first + columns.count < state_columns(state));
    let lines = [
        line(columns, &format!("CPUs{}", arrows(more)), theme.quiet(), state, theme, |i| {
            let label = cpus(i).map(cpus_label).unwrap_or_default();
            if i == state.sort { format!("[{label}]") } else { label }
        }),
        line(columns, "predicted time", theme.quiet(), state, theme, |i| {
            results.get(i).map_or_else(|| "-".to_owned(), |result| duration(result.time_ns))
        }),
        line(columns, "predicted speed-up", theme.quiet(), state, theme, |i| {
            results.get(i).map_or_else(|| "-".to_owned(), |result| speedup(result.speedup))
        }),
        rule(legend, area.width, theme),
    ];
    for (line, y) in lines.into_iter().zip(area.y..area.bottom()) {
        frame.render_widget(line, Rect { y, height: 1, ..area });
    }
}

fn state_columns(state: &State) -> usize {
    state.shown().map_or(state.cpus.len(), |snapshot| snapshot.report.results.len())
}

fn arrows((left, right): (bool, bool)) -> &'static str {
    match (left, right) {
        (false, false) => "",
        (true, false) => " (← more)",
        (false, true) => " (more →)",
        (true, true) => " (← more →)",
    }
}

/// One line of the head: a label and a value for each CPU count, to the right.
fn line(
    columns: &Columns,
    label: &str,
    label_style: Style,
    state: &State,
    theme: Theme,
    value: impl Fn(usize) -> String,
) -> Line<'static> {
    let label = fit(label, columns.name);
    let mut spans = vec![
        Span::styled(label.clone(), label_style),
        Span::raw(" ".repeat(columns.name.saturating_sub(label.chars().count()))),
    ];
    for i in columns.shown() {
        let style = if i == state.sort { theme.chosen() } else { Style::new() };
        spans.push(Span::styled(format!("{:>width$}", value(i), width = columns.each), style));
    }
    Line::from(spans)
}

fn rule(legend: &str, width: u16, theme: Theme) -> Line<'static> {
    let width = usize::from(width);
    let text = fit(&format!("── {legend} "), width);
    let rest = width.saturating_sub(text.chars().count());
    Line::styled(format!("{text}{}", "─".repeat(rest)), theme.quiet())
}

fn cpus_label(cpus: Cpus) -> String {
    match cpus {
        Cpus::Count(count) => count.to_string(),
        Cpus::Infinite => "inf".to_owned(),
    }
}

fn speedup(value: f64) -> String {
    if !value.is_finite() {
        "-".to_owned()
    } else if value < 99.5 {
        format!("{value:.2}")
    } else {
        format!("{value:.0}")
    }
}
