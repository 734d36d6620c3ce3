//! How far the numbers can be trusted: losses in red, what is unknown, cut or folded, and findings.

use crate::present::cell::{clean, duration, fit, grouped};
use crate::present::finding::sentence;
use crate::present::overhead;
use crate::tui::{Phase, Row, State, Theme, View, rows};
use engine::report::Finding;
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

/// Lines that [`draw`] needs: the rule, the counts, and one for each of cost, what is exact, folded functions, findings, remark.
pub(super) fn lines(state: &State) -> u16 {
    let further = [
        cost(state).is_some(),
        exact(state).is_some(),
        folded(state).is_some(),
        finding(state).is_some(),
        remark(state).is_some(),
    ];
    2 + further.into_iter().filter(|&yes| yes).count() as u16
}

pub(super) fn draw(frame: &mut Frame<'_>, area: Rect, state: &State, theme: Theme) {
    let width = usize::from(area.width);
    let mut all = vec![Line::styled(position(state, width), theme.quiet()), counts(state, width, theme)];
    all.extend(cost(state).map(|text| Line::raw(fit_end(&text, width))));
    all.extend(exact(state).map(|text| Line::raw(fit_end(&text, width))));
    all.extend(folded(state).map(|text| Line::raw(fit(&text, width))));
    all.extend(finding(state).map(|text| Line::raw(fit_end(&text, width))));
    all.extend(remark(state).map(|text| Line::styled(fit(&text, width), theme.quiet())));
    for (line, y) in all.into_iter().zip(area.y..area.bottom()) {
        frame.render_widget(line, Rect { y, height: 1, ..area });
    }
}

/// A rule that says which rows are shown if not all are.
fn position(state: &State, width: usize) -> String {
    let rows = state.row_count();
    let first = state.scroll;
    let last = state.last_row_shown();
    let text = if rows == 0 || (first == 0 && last == rows) {
        String::new()
    } else {
        let what = if state.view == View::Locks { "locks" } else { "functions" };
        format!(" {what} {}-{last} of {} ", first + 1, grouped(rows as u64))
    };
    let text = fit(&text, width.saturating_sub(3));
    format!("{}{text}───", "─".repeat(width.saturating_sub(3 + text.chars().count())))
}

fn counts(state: &State, width: usize, theme: Theme) -> Line<'static> {
    let trust = state.shown().map(|snapshot| snapshot.report.trust).unwrap_or_default();
    let since_start = state.counts.loss.lost();
    let lost = if since_start > trust.lost {
        format!("lost {} ({} in all)", grouped(trust.lost), grouped(since_start))
    } else {
        format!("lost {}", grouped(trust.lost))
    };
    let is_lossy = trust.lost > 0 || since_start > 0;
    let mut rest = vec![
        format!("unknown {}", unknown(state, trust.unknown_ns)),
        format!("unmatched {}", grouped(trust.unmatched)),
        format!("censored {}", grouped(trust.censored)),
        format!("events {}", grouped(state.counts.events)),
    ];
    if let Some(snapshot) = state.shown() {
        rest.push(format!("report took {}", duration(snapshot.took.as_nanos() as f64)));
    }
    let mut text = String::new();
    let mut room = width.saturating_sub(lost.chars().count());
    for part in rest {
        // What does not fit whole says nothing; the most important comes first.
        let Some(less) = room.checked_sub(part.chars().count() + 3) else { break };
        room = less;
        text.push_str(&format!(" · {part}"));
    }
    let style = if is_lossy { theme.alarm() } else { theme.chosen() };
    Line::from(vec![Span::styled(lost, style), Span::raw(text)])
}

/// Unknown thread time as a share of the time that threads lived in the window.
fn unknown(state: &State, unknown_ns: u64) -> String {
    let Some(snapshot) = state.shown() else { return "0 ns".to_owned() };
    let all_ns = snapshot.thread_ns as f64;
    if unknown_ns == 0 || all_ns <= 0.0 {
        duration(unknown_ns as f64)
    } else {
        format!("{} ({:.1} %)", duration(unknown_ns as f64), 100.0 * unknown_ns as f64 / all_ns)
    }
}

/// What recording cost in the last seconds.
fn cost(state: &State) -> Option<String> {
    state.counts.recent_overhead.as_ref().map(overhead)
}

/// Whose time on the stack is exact, where there are samples.
fn exact(state: &State) -> Option<String> {
    let snapshot = state.shown().filter(|_| state.view == View::Functions)?;
    snapshot.report.samples?;
    let rows = rows(&snapshot.report, state.sort, state.measure);
    let error = |row: &Row<'_>| row.cells.get(state.sort).copied().flatten().map(|cell| cell.anywhere_error);
    let is_exact = |row: &&Row<'_>| row.probed && error(row) == Some(0.0);
    let sampled = rows.iter().filter(|row| error(row) > Some(0.0)).count();
    let mut names: Vec<&str> = rows.iter().filter(is_exact).map(|row| row.function).collect();
    names.sort_unstable();
    let more = names.len().saturating_sub(3);
    let mut text = match names.len() {
        0 => "exact: no function".to_owned(),
        1 => "exact: 1 function".to_owned(),
        count => format!("exact: {} functions", grouped(count as u64)),
    };
    for (number, name) in names.iter().take(3).enumerate() {
        text.push_str(if number == 0 { " (" } else { ", " });
        text.push_str(&clean(name));
    }
    match (names.is_empty(), more) {
        (true, _) => {}
        (false, 0) => text.push(')'),
        (false, more) => text.push_str(&format!(" and {more} more)")),
    }
    text.push_str(&format!(" · from samples (±): {}", grouped(sampled as u64)));
    Some(text)
}

fn folded(state: &State) -> Option<String> {
    let snapshot = state.shown()?;
    let mut names: Vec<&str> = rows(&snapshot.report, state.sort, state.measure)
        .iter()
        .filter(|row| row.folded)
        .map(|row| row.function)
        .collect();
    names.sort_unstable();
    let more = names.len().saturating_sub(4);
    let first = names.first()?;
    let mut text = format!("folded into their callers (too hot to probe): {}", clean(first));
    for name in names.iter().skip(1).take(3) {
        text.push_str(", ");
        text.push_str(&clean(name));
    }
    if more > 0 {
        text.push_str(&format!(" and {more} more"));
    }
    Some(text)
}

fn finding(state: &State) -> Option<String> {
    // Loss and folding have their own lines.
    let snapshot = state.shown()?;
    let mut own = snapshot
        .report
        .findings
        .iter()
        .filter(|f| !matches!(f, Finding::Loss { .. } | Finding::Folded { .. }));
    let first = own.next()?;
    let more = own.count();
    let more = if more > 0 { format!(" (and {more} more)") } else { String::new() };
    Some(format!("note{more}: {}", clean(&sentence(first))))
}

fn remark(state: &State) -> Option<String> {
    match (&state.phase, state.shown()) {
        (Phase::Ended(why), Some(_)) => Some(clean(why).into_owned()),
        _ => state.remark.as_deref().map(|text| clean(text).into_owned()),
    }
}

/// A sentence loses its end, not its middle.
fn fit_end(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    let mut out: String = text.chars().take(width.saturating_sub(1)).collect();
    out.push('…');
    out
}
