//! The bottom line.

use crate::tui::Theme;
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

const KEYS: [(&str, &str); 6] = [
    ("q", "quit"),
    ("←→", "sort by"),
    ("t", "anywhere/on top"),
    ("p", "pause"),
    ("↑↓", "scroll"),
    ("?", "help"),
];

pub(super) fn draw(frame: &mut Frame<'_>, area: Rect, theme: Theme) {
    let mut spans = Vec::new();
    for (key, what) in KEYS {
        spans.push(Span::styled(format!(" {key} "), theme.key()));
        spans.push(Span::raw(format!(" {what} ")));
    }
    frame.render_widget(Line::from(spans), area);
}
