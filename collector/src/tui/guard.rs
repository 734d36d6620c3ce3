//! The terminal, taken for as long as the guard lives.

use super::{State, Theme, log, view};
use crossterm::cursor::Show;
use crossterm::terminal::{EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode};
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use std::io::{self, Stdout, stdout};
use std::mem::ManuallyDrop;
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether the terminal is taken. Giving it back twice would put the cursor back to where it was before a panic
/// told its reason, and the next line would overwrite that.
static TAKEN: AtomicBool = AtomicBool::new(false);

/// Holds the terminal in raw mode on its alternate screen. Dropping it gives the terminal back, and so does a
/// panic of any thread (before its message is printed).
#[derive(Debug)]
pub struct Guard {
    /// Never dropped: on a terminal that is gone, ratatui's own drop panics when its complaint cannot be printed,
    /// either. Showing the cursor again, all that it does, is done by [`give_back`].
    terminal: ManuallyDrop<Terminal<CrosstermBackend<Stdout>>>,
    theme: Theme,
}

impl Guard {
    /// Takes the terminal. Fails where stdout is none.
    pub fn take() -> io::Result<Guard> {
        static HOOK: Once = Once::new();
        HOOK.call_once(|| {
            let earlier = std::panic::take_hook();
            std::panic::set_hook(Box::new(move |info| {
                give_back();
                earlier(info);
            }));
        });
        enable_raw_mode()?;
        TAKEN.store(true, Ordering::SeqCst);
        let made = crossterm::execute!(stdout(), EnterAlternateScreen)
            .and_then(|()| Terminal::new(CrosstermBackend::new(stdout())));
        match made {
            Ok(terminal) => {
                Ok(Guard { terminal: ManuallyDrop::new(terminal), theme: Theme::from_environment() })
            }
            Err(error) => {
                give_back();
                Err(error)
            }
        }
    }

    /// Draws the state, after telling it how many rows there are.
    pub fn draw(&mut self, state: &mut State) -> io::Result<()> {
        if !TAKEN.load(Ordering::SeqCst) {
            // A thread has panicked: its message stays readable.
            return Ok(());
        }
        let size = self.terminal.size()?;
        state.set_page_rows(view::table_rows(state, size.width, size.height));
        self.terminal.draw(|frame| view::draw(frame, state, self.theme)).map(|_| ())
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        give_back();
    }
}

fn give_back() {
    if TAKEN.swap(false, Ordering::SeqCst) {
        // Nothing can be done about a terminal that is gone.
        let _ = disable_raw_mode();
        let _ = crossterm::execute!(stdout(), LeaveAlternateScreen, Show);
        log::show_kept();
    }
}

/// Whether the terminal belongs to the screen now.
pub(super) fn is_taken() -> bool {
    TAKEN.load(Ordering::SeqCst)
}
