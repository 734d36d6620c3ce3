//! The prompt in which a user types a pattern.

use super::keys::PromptKind;
use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

/// Longest pattern that can be typed, in characters.
const LONGEST: usize = 200;

/// The text that the user has typed, and its purpose.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prompt {
    /// Its purpose.
    pub what: PromptKind,
    /// The text so far.
    pub text: String,
}

/// The effect of a key on the prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Typed {
    /// Typing goes on.
    Goes,
    /// The text is complete.
    Done,
    /// The user gave up.
    GivenUp,
}

impl Prompt {
    /// The text before the input.
    pub fn question(&self) -> &'static str {
        match self.what {
            PromptKind::Filter => "rows with: ",
            PromptKind::Probe => "write breakpoints into the program, to count calls of: ",
            PromptKind::TakeOff => "remove breakpoints from: ",
        }
    }

    /// Handles a key.
    pub fn typed(&mut self, key: KeyEvent) -> Typed {
        if key.kind == KeyEventKind::Release {
            return Typed::Goes;
        }
        let with_control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Char('c') if with_control => return Typed::GivenUp,
            KeyCode::Esc => return Typed::GivenUp,
            // An empty filter filters nothing. For other prompts an empty text stands for the selected row.
            KeyCode::Enter if self.text.trim().is_empty() && self.what == PromptKind::Filter => {
                return Typed::GivenUp;
            }
            KeyCode::Enter => {
                self.text = self.text.trim().to_owned();
                return Typed::Done;
            }
            KeyCode::Char('u') if with_control => self.text.clear(),
            KeyCode::Backspace => drop(self.text.pop()),
            KeyCode::Char(letter)
                if !with_control && !letter.is_control() && self.text.chars().count() < LONGEST =>
            {
                self.text.push(letter);
            }
            _ => {}
        }
        Typed::Goes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_in_the_prompt_can_be_typed_erased_entered_and_cancelled() {
        let mut prompt = Prompt { what: PromptKind::Probe, text: String::new() };
        let press = |code| KeyEvent::new(code, KeyModifiers::NONE);
        assert_eq!(prompt.clone().typed(press(KeyCode::Enter)), Typed::Done, "the chosen row is meant");
        let mut filter = Prompt { what: PromptKind::Filter, text: String::new() };
        assert_eq!(filter.typed(press(KeyCode::Enter)), Typed::GivenUp, "nothing was typed");
        for letter in " ab*c".chars() {
            assert_eq!(prompt.typed(press(KeyCode::Char(letter))), Typed::Goes);
        }
        assert_eq!(prompt.typed(press(KeyCode::Backspace)), Typed::Goes);
        assert_eq!(prompt.clone().typed(press(KeyCode::Esc)), Typed::GivenUp);
        assert_eq!(prompt.typed(press(KeyCode::Enter)), Typed::Done);
        assert_eq!(prompt.text, "ab*");
        for _ in 0..1_000 {
            prompt.typed(press(KeyCode::Char('x')));
        }
        assert_eq!(prompt.text.len(), LONGEST);
    }
}
