//! The terminal, taken for as long as the guard lives.

use super::{State, Theme, view};
use ratatui::DefaultTerminal;
use std::io;

/// Holds the terminal in raw mode on its alternate screen. Dropping it gives the terminal back, and so does a
/// panic of any thread (before its message is printed).
#[derive(Debug)]
pub struct Guard {
    terminal: DefaultTerminal,
    theme: Theme,
}

impl Guard {
    /// Takes the terminal. Fails where stdout is none.
    pub fn take() -> io::Result<Guard> {
        let terminal = ratatui::try_init()?;
        Ok(Guard { terminal, theme: Theme::from_environment() })
    }

    /// Draws the state, after telling it how many rows there are.
    pub fn draw(&mut self, state: &mut State) -> io::Result<()> {
        let size = self.terminal.size()?;
        state.set_page_rows(view::table_rows(state, size.width, size.height));
        self.terminal.draw(|frame| view::draw(frame, state, self.theme)).map(|_| ())
    }

    /// Forgets what is on the screen, so that the next draw paints all of it.
    pub fn clear(&mut self) -> io::Result<()> {
        self.terminal.clear()
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        ratatui::restore();
    }
}
