//! Colours, or none.

use ratatui::style::{Color, Modifier, Style};

/// How things look. Without colours everything stays told apart by bold, reversed or words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Theme {
    /// Colours may be used.
    pub colours: bool,
    /// Characters beyond ASCII may be used.
    pub unicode: bool,
}

impl Theme {
    /// As the user's environment asks, like everything on standard output.
    pub fn from_environment() -> Theme {
        let style = crate::present::style::for_stdout();
        Theme { colours: style.colour, unicode: style.unicode }
    }

    /// Something is wrong with the data.
    pub fn alarm(self) -> Style {
        self.coloured(Color::Red, Modifier::BOLD | Modifier::REVERSED)
    }

    /// The sentence to read first.
    pub fn headline(self) -> Style {
        self.coloured(Color::Cyan, Modifier::BOLD)
    }

    /// The column that is sorted by.
    pub fn chosen(self) -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }

    /// Labels and rules.
    pub fn quiet(self) -> Style {
        if self.colours { Style::new().fg(Color::DarkGray) } else { Style::new() }
    }

    /// A key in the bottom line; a state such as PAUSED.
    pub fn key(self) -> Style {
        Style::new().add_modifier(Modifier::REVERSED)
    }

    /// A large share of the critical path.
    pub fn hot(self, share: f64) -> Style {
        if share >= 0.5 {
            self.coloured(Color::Red, Modifier::BOLD)
        } else if share >= 0.2 {
            self.coloured(Color::Yellow, Modifier::BOLD)
        } else {
            Style::new()
        }
    }

    fn coloured(self, colour: Color, without: Modifier) -> Style {
        if self.colours {
            Style::new().fg(colour).add_modifier(Modifier::BOLD)
        } else {
            Style::new().add_modifier(without)
        }
    }
}
