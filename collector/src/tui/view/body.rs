//! The table's rows.

use super::header::Columns;
use crate::present::cell::{clean, fit, width};
use crate::tui::{Cell, Measure, Phase, Row, State, Theme, View, lock_rows, rows};
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Paragraph, Wrap};

pub(super) fn draw(frame: &mut Frame<'_>, area: Rect, state: &State, columns: &Columns, theme: Theme) {
    let Some(snapshot) = state.shown() else {
        if let Phase::Ended(why) = &state.phase {
            frame.render_widget(Paragraph::new(clean(why).into_owned()).wrap(Wrap { trim: true }), area);
        }
        return;
    };
    let rows = match state.view {
        View::Functions => rows(&snapshot.report, state.sort, state.measure),
        View::Locks => lock_rows(&snapshot.report, state.sort),
    };
    if rows.is_empty() && state.view == View::Locks {
        let text = "No lock operation in this window.";
        frame.render_widget(Paragraph::new(text).style(theme.quiet()).wrap(Wrap { trim: true }), area);
        return;
    }
    if rows.is_empty() {
        let text = "No function in this window: its threads slept, or computed in code without probes.";
        frame.render_widget(Paragraph::new(text).style(theme.quiet()).wrap(Wrap { trim: true }), area);
        return;
    }
    for (row, y) in rows.iter().skip(state.scroll).zip(area.y..area.bottom()) {
        frame.render_widget(line(row, state, columns, theme), Rect { y, height: 1, ..area });
    }
}

fn line(row: &Row<'_>, state: &State, columns: &Columns, theme: Theme) -> Line<'static> {
    let chosen = row.cells.get(state.sort).copied().flatten();
    let name_style = theme.hot(chosen.map_or(0.0, |cell| cell.share(state.measure)));
    // One column stays free, so that a name never touches a number.
    let mut room = columns.name.saturating_sub(1);
    let mark = match (row.folded, row.sampled) {
        (true, _) => " (folded)".to_owned(),
        (false, true) => {
            let error = chosen.map_or(0.0, |cell| cell.error(state.measure));
            if error > 0.0 { format!(" ±{}", percent(error)) } else { " ±".to_owned() }
        }
        (false, false) => String::new(),
    };
    let name = fit(row.function, room.saturating_sub(width(&mark)));
    room -= width(&name).min(room);
    let mut spans = vec![Span::styled(name, name_style)];
    if !mark.is_empty() && room >= width(&mark) {
        room -= width(&mark);
        spans.push(Span::styled(mark, theme.quiet()));
    }
    if let Some(location) = row.location.as_deref()
        && room >= 12
    {
        let text = format!("  {}", fit(file_name(location), room - 2));
        room -= width(&text).min(room);
        spans.push(Span::styled(text, theme.quiet()));
    }
    spans.push(Span::raw(" ".repeat(room + columns.name.min(1))));
    for i in columns.shown() {
        let cell = row.cells.get(i).copied().flatten();
        let style = match cell {
            None => theme.quiet(),
            Some(cell) if i == state.sort => theme.hot(cell.share(state.measure)).patch(theme.chosen()),
            Some(_) => Style::new(),
        };
        spans.push(Span::styled(
            format!("{:>width$}", text(cell, state, columns), width = columns.each),
            style,
        ));
    }
    Line::from(spans)
}

/// `file:line` without the folders.
fn file_name(location: &str) -> &str {
    location.rsplit('/').next().unwrap_or(location)
}

fn text(cell: Option<Cell>, state: &State, columns: &Columns) -> String {
    let Some(cell) = cell else { return "·".to_owned() };
    let first = percent(cell.share(state.measure));
    if !columns.both {
        return first;
    }
    let other = match state.measure {
        Measure::Anywhere => cell.on_top,
        Measure::OnTop => cell.anywhere,
    };
    format!("{first} {:>6}", percent(other))
}

fn percent(share: f64) -> String {
    let percent = share * 100.0;
    if !percent.is_finite() {
        "?".to_owned()
    } else if percent.abs() < 0.05 {
        // Neither "-0.0" nor the look of an exact zero.
        if percent == 0.0 { "0".to_owned() } else { "~0".to_owned() }
    } else if percent.abs() < 999.95 {
        format!("{percent:.1}")
    } else {
        format!("{percent:.0}")
    }
}
