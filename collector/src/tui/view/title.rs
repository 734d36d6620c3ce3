//! The first line (who, how long, paused) and the sentence to read first.

use crate::present::cell::{clean, duration, fit};
use crate::tui::{Phase, State, Theme};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Paragraph, Wrap};

/// Seconds. Numbers of two seconds ago are as new as they usually are.
const OLD: u64 = 3;

pub(super) fn draw(frame: &mut Frame<'_>, area: Rect, state: &State, theme: Theme) {
    let badge = match &state.phase {
        _ if state.paused() => Some(" PAUSED "),
        Phase::Running => None,
        Phase::Ended(_) => Some(" ENDED "),
    };
    let badge_width = badge.map_or(0, |text| text.len() as u16);
    let [left, right] =
        Layout::horizontal([Constraint::Fill(1), Constraint::Length(badge_width)]).areas(area);
    let mut facts = Vec::new();
    if let Some(snapshot) = state.shown() {
        facts.push(match snapshot.threads {
            1 => "1 thread".to_owned(),
            threads => format!("{threads} threads"),
        });
        facts.push(window(snapshot.window_ns, state));
    }
    facts.push(format!("up {}", clock(state.elapsed.as_secs())));
    let facts = facts.join(" · ");
    let room = usize::from(left.width).saturating_sub("longpole top ".len() + facts.chars().count() + 3);
    let line = Line::from(vec![
        Span::styled("longpole top ", theme.quiet()),
        Span::styled(fit(&state.subject, room), theme.chosen()),
        Span::raw(if facts.is_empty() { String::new() } else { format!(" · {facts}") }),
    ]);
    frame.render_widget(line, left);
    if let Some(text) = badge {
        frame.render_widget(Span::styled(text, theme.key()), right);
    }
}

fn window(ns: u64, state: &State) -> String {
    let is = duration(ns as f64);
    let full_ns = state.window.as_nanos() as f64;
    let cut = state.shown().is_some_and(|snapshot| snapshot.cut_by_events);
    let mut text = if cut || (ns as f64) < 0.95 * full_ns {
        format!("window {is} of {}", duration(full_ns))
    } else {
        format!("window {is}")
    };
    let age = state.age().as_secs();
    if age >= OLD {
        text.push_str(&format!(", {age} s ago"));
    }
    text
}

fn clock(seconds: u64) -> String {
    let (hours, minutes, seconds) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
    if hours > 0 { format!("{hours}:{minutes:02}:{seconds:02}") } else { format!("{minutes}:{seconds:02}") }
}

pub(super) fn draw_headline(frame: &mut Frame<'_>, area: Rect, state: &State, theme: Theme) {
    let (text, style) = match (&state.phase, state.shown()) {
        (_, Some(snapshot)) => match &snapshot.headline {
            Some(headline) => (clean(headline).into_owned(), theme.headline()),
            None => (
                "Nothing to improve in this window: no thread of the program computed in it.".to_owned(),
                theme.quiet(),
            ),
        },
        (Phase::Ended(_), None) => {
            ("The program ended before there was anything to report.".to_owned(), theme.quiet())
        }
        (Phase::Running, None) => ("Collecting events for the first report …".to_owned(), theme.quiet()),
    };
    frame.render_widget(Paragraph::new(text).style(style).wrap(Wrap { trim: true }), area);
}
