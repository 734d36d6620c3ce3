//! Colours, or none.

use ratatui::style::{Color, Modifier, Style};

/// How things look. Without colours everything stays told apart by bold, reversed or words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Theme {
    colours: bool,
}

impl Theme {
    /// Colours on or off.
    pub fn new(colours: bool) -> Theme {
        Theme { colours }
    }

    /// As the user's environment asks: `NO_COLOR` (not empty) and `TERM=dumb` switch colours off.
    pub fn from_environment() -> Theme {
        let no_color = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let dumb = std::env::var_os("TERM").is_some_and(|value| value == "dumb");
        Theme::new(!no_color && !dumb)
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
