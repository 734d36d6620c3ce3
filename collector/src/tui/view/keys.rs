//! The bottom line.

use crate::present::cell::{clean, width};
use crate::tui::{State, Theme};
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

const KEYS: [(&str, &str); 8] = [
    ("q", "quit"),
    ("←→", "sort"),
    ("t", "on top"),
    ("l", "locks"),
    ("f", "probe"),
    ("u", "off"),
    ("p", "pause"),
    ("?", "help"),
];

pub(super) fn draw(frame: &mut Frame<'_>, area: Rect, state: &State, theme: Theme) {
    if let Some(prompt) = &state.prompt {
        let hint = "  (* and ? are patterns; Enter, Esc)";
        let question = prompt.question();
        let room = usize::from(area.width).saturating_sub(question.len() + 1);
        // The end of what is typed is what one looks at.
        let skip = prompt.text.chars().count().saturating_sub(room);
        let text: String = prompt.text.chars().skip(skip).collect();
        let mut spans = vec![Span::styled(question, theme.key()), Span::raw(clean(&text).into_owned() + "_")];
        if usize::from(area.width) > question.len() + width(&text) + 1 + hint.len() {
            spans.push(Span::styled(hint, theme.quiet()));
        }
        frame.render_widget(Line::from(spans), area);
        return;
    }
    let mut spans = Vec::new();
    for (key, what) in KEYS {
        spans.push(Span::styled(format!(" {key} "), theme.key()));
        spans.push(Span::raw(format!(" {what} ")));
    }
    frame.render_widget(Line::from(spans), area);
}
