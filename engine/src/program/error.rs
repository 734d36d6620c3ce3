//! What can be wrong with a program: one line that says what and where, and what to do about it.

use std::fmt;

/// Why a text or a [`super::Program`] is not a program. `Display` is one line; [`ProgramError::hint`] says what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramError {
    place: Option<String>,
    problem: String,
    hint: &'static str,
}

impl ProgramError {
    /// What to do about it; one line.
    pub fn hint(&self) -> &'static str {
        self.hint
    }

    pub(crate) fn new(problem: impl Into<String>, hint: &'static str) -> ProgramError {
        ProgramError { place: None, problem: problem.into(), hint }
    }

    /// The same, in the operation with this index of the thread with this name.
    pub(crate) fn at(mut self, thread: &str, operation: usize) -> ProgramError {
        self.place = Some(format!("thread {}, operation {operation}", quoted(thread)));
        self
    }
}

impl fmt::Display for ProgramError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.place {
            Some(place) => write!(out, "{place}: {}", self.problem),
            None => out.write_str(&self.problem),
        }
    }
}

impl std::error::Error for ProgramError {}

/// A name from the input as it may stand in a message: in quotes, at most 60 characters, nothing that a terminal
/// would obey.
pub fn quoted(name: &str) -> String {
    const LONGEST: usize = 60;
    let mut text = String::from("\"");
    for (count, letter) in name.chars().enumerate() {
        if count == LONGEST {
            text.push('…');
            break;
        }
        if letter == '\'' {
            text.push(letter);
        } else {
            text.extend(letter.escape_debug());
        }
    }
    text.push('"');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_in_a_message_cannot_drive_the_terminal_or_break_the_line() {
        assert_eq!(quoted("a\u{1b}[2J\nb"), "\"a\\u{1b}[2J\\nb\"");
        assert_eq!(quoted("don't"), "\"don't\"");
        assert_eq!(quoted(&"x".repeat(100)).chars().count(), 63);
    }
}
