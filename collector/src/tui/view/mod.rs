//! Drawing: one part of the screen per file.

mod ascii;
mod body;
mod header;
mod help;
mod keys;
mod title;
mod trust;

use super::{State, Theme};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};

/// Lines for the sentence on top.
const HEADLINE_LINES: u16 = 2;

/// Where everything is.
struct Areas {
    title: Rect,
    headline: Rect,
    header: Rect,
    body: Rect,
    trust: Rect,
    keys: Rect,
}

fn areas(state: &State, whole: Rect) -> Areas {
    let [title, headline, header, body, trust, keys] = Layout::vertical([
        Constraint::Length(1),
        Constraint::Length(HEADLINE_LINES),
        Constraint::Length(header::LINES),
        Constraint::Fill(1),
        Constraint::Length(trust::lines(state)),
        Constraint::Length(1),
    ])
    .areas(whole);
    Areas { title, headline, header, body, trust, keys }
}

/// Table rows that a screen of this size has room for.
pub fn table_rows(state: &State, columns: u16, lines: u16) -> usize {
    areas(state, Rect::new(0, 0, columns, lines)).body.height.into()
}

/// Draws the whole screen.
pub fn draw(frame: &mut Frame<'_>, state: &State, theme: Theme) {
    let areas = areas(state, frame.area());
    title::draw(frame, areas.title, state, theme);
    title::draw_headline(frame, areas.headline, state, theme);
    let columns = header::columns(state, areas.header.width);
    header::draw(frame, areas.header, state, &columns, theme);
    body::draw(frame, areas.body, state, &columns, theme);
    trust::draw(frame, areas.trust, state, theme);
    keys::draw(frame, areas.keys, state, theme);
    if state.help {
        help::draw(frame, frame.area(), theme);
    }
    if !theme.unicode {
        ascii::only(frame.buffer_mut());
    }
}

#[cfg(test)]
mod tests;
