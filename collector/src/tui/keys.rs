//! Keys and their actions.

use super::view::View;
use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

/// The action of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Leave; the target runs on.
    Quit,
    /// Choose the CPU count to the left or right.
    Cpus(Direction),
    /// Freeze the screen, or go on with the newest report.
    Pause,
    /// Show an earlier or a later report.
    Time(Direction),
    /// Write the window on the screen as a recording.
    Write,
    /// Show or hide the help.
    Help,
    /// Show or hide all notes.
    Notes,
    /// Show or hide the single requests.
    Requests,
    /// Back from the help, the notes or a row, or to all rows.
    Back,
    /// Show the page about the selected row.
    Open,
    /// Show the next table, or the previous one.
    Turn(Direction),
    /// Show this table.
    Show(View),
    /// Type a pattern.
    Ask(PromptKind),
    /// Move down by this many rows.
    Scroll(isize),
    /// Move by a page.
    Page(Direction),
    /// Move to the first row.
    Top,
    /// Move to the last row.
    Bottom,
}

/// What a typed pattern is used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PromptKind {
    /// Show only rows that contain the typed text.
    Filter,
    /// Attach probes to functions that match.
    Probe,
    /// Remove the probes of functions that match.
    TakeOff,
}

/// Left or up is `Back`, right or down is `Forward`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Left, up.
    Back,
    /// Right, down.
    Forward,
}

/// The action of a key, if the key has one. Key releases, which some terminals report, have none.
pub fn action_of(key: KeyEvent) -> Option<Action> {
    if key.kind == KeyEventKind::Release {
        return None;
    }
    if key.modifiers.contains(KeyModifiers::CONTROL) {
        return match key.code {
            // A terminal in raw mode sends ^C as a key.
            KeyCode::Char('c') => Some(Action::Quit),
            _ => None,
        };
    }
    Some(match key.code {
        KeyCode::Char('q') | KeyCode::F(10) => Action::Quit,
        KeyCode::Left | KeyCode::Char('<') => Action::Cpus(Direction::Back),
        KeyCode::Right | KeyCode::Char('>') => Action::Cpus(Direction::Forward),
        KeyCode::Char('p' | ' ') => Action::Pause,
        KeyCode::Char('[') => Action::Time(Direction::Back),
        KeyCode::Char(']') => Action::Time(Direction::Forward),
        KeyCode::Char('w') => Action::Write,
        KeyCode::Char('?' | 'h') | KeyCode::F(1) => Action::Help,
        KeyCode::Char('n') => Action::Notes,
        KeyCode::Char('r') => Action::Requests,
        KeyCode::Esc => Action::Back,
        KeyCode::Enter => Action::Open,
        KeyCode::Tab => Action::Turn(Direction::Forward),
        KeyCode::BackTab => Action::Turn(Direction::Back),
        KeyCode::Char(digit @ '1'..='5') => {
            let number = digit.to_digit(10).and_then(|number| number.checked_sub(1))?;
            Action::Show(*View::ALL.get(number as usize)?)
        }
        KeyCode::Char('/') => Action::Ask(PromptKind::Filter),
        KeyCode::Char('f') => Action::Ask(PromptKind::Probe),
        KeyCode::Char('u') => Action::Ask(PromptKind::TakeOff),
        KeyCode::Up | KeyCode::Char('k') => Action::Scroll(-1),
        KeyCode::Down | KeyCode::Char('j') => Action::Scroll(1),
        KeyCode::PageUp => Action::Page(Direction::Back),
        KeyCode::PageDown => Action::Page(Direction::Forward),
        KeyCode::Home => Action::Top,
        KeyCode::End => Action::Bottom,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn press(code: KeyCode) -> Option<Action> {
        action_of(KeyEvent::new(code, KeyModifiers::NONE))
    }

    #[test]
    fn each_key_of_the_manual_has_its_action() {
        assert_eq!(press(KeyCode::Char('q')), Some(Action::Quit));
        assert_eq!(press(KeyCode::Left), Some(Action::Cpus(Direction::Back)));
        assert_eq!(press(KeyCode::Right), Some(Action::Cpus(Direction::Forward)));
        assert_eq!(press(KeyCode::Char('p')), Some(Action::Pause));
        assert_eq!(press(KeyCode::Char('?')), Some(Action::Help));
        assert_eq!(press(KeyCode::Char('[')), Some(Action::Time(Direction::Back)));
        assert_eq!(press(KeyCode::Char(']')), Some(Action::Time(Direction::Forward)));
        assert_eq!(press(KeyCode::Char('w')), Some(Action::Write));
        assert_eq!(press(KeyCode::Char('r')), Some(Action::Requests));
        assert_eq!(press(KeyCode::PageDown), Some(Action::Page(Direction::Forward)));
        assert_eq!(press(KeyCode::Tab), Some(Action::Turn(Direction::Forward)));
        assert_eq!(press(KeyCode::Enter), Some(Action::Open));
        assert_eq!(press(KeyCode::Char('1')), Some(Action::Show(View::Functions)));
        assert_eq!(press(KeyCode::Char('4')), Some(Action::Show(View::Waits)));
        assert_eq!(press(KeyCode::Char('5')), Some(Action::Show(View::Parallelism)));
        assert_eq!(press(KeyCode::Char('/')), Some(Action::Ask(PromptKind::Filter)));
        assert_eq!(press(KeyCode::Char('f')), Some(Action::Ask(PromptKind::Probe)));
        assert_eq!(press(KeyCode::Char('u')), Some(Action::Ask(PromptKind::TakeOff)));
        assert_eq!(press(KeyCode::Char('x')), None);
        assert_eq!(press(KeyCode::Char('6')), None);
    }

    #[test]
    fn control_c_quits_in_raw_mode_and_other_control_keys_do_nothing() {
        let control = |c| action_of(KeyEvent::new(KeyCode::Char(c), KeyModifiers::CONTROL));
        assert_eq!(control('c'), Some(Action::Quit));
        assert_eq!(control('q'), None);
        assert_eq!(control('p'), None);
    }

    #[test]
    fn the_release_of_a_key_does_nothing() {
        let mut key = KeyEvent::new(KeyCode::Char('q'), KeyModifiers::NONE);
        key.kind = KeyEventKind::Release;
        assert_eq!(action_of(key), None);
    }
}
