//! Holds the terminal as long as the guard lives.

use super::{State, last_picture, log, picture};
use crate::present::style::{self, Paint, Style, spans};
use crossterm::cursor::Show;
use crossterm::terminal::{EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode};
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::style::{Color, Modifier};
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;
use std::io::{self, Stdout, Write, stdout};
use std::mem::ManuallyDrop;
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether the screen has the terminal. A second restore would put the cursor back to where it was before a panic printed
/// its message, and the next line would overwrite that.
static TAKEN: AtomicBool = AtomicBool::new(false);

/// Holds the terminal in raw mode, on its alternate screen. Dropping the guard restores the terminal. A panic of any
/// thread also restores it, before the panic's message is printed.
#[derive(Debug)]
pub struct Guard {
    /// Never dropped: on a terminal that was closed, ratatui's drop panics when its error message cannot be printed,
    /// either. All that the drop does is show the cursor, which [`give_back`] does, too.
    terminal: ManuallyDrop<Terminal<CrosstermBackend<Stdout>>>,
    style: Style,
}

impl Guard {
    /// Takes the terminal. Fails if standard output is no terminal.
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
            Ok(terminal) => Ok(Guard { terminal: ManuallyDrop::new(terminal), style: style::for_stdout() }),
            Err(error) => {
                give_back();
                Err(error)
            }
        }
    }

    /// Draws the state, which learns the number of rows.
    pub fn draw(&mut self, state: &mut State) -> io::Result<()> {
        if !TAKEN.load(Ordering::SeqCst) {
            // A thread has panicked: its message has to stay readable.
            return Ok(());
        }
        let size = self.terminal.size()?;
        // Always painted: without colours, texts differ by weight.
        let style = Style { colour: true, width: size.width.into(), ..self.style };
        let lines = picture(state, &style, size.height.into());
        let lines: Vec<Line<'_>> = lines.iter().map(|line| self.line(line)).collect();
        self.terminal.draw(|frame| frame.render_widget(Paragraph::new(lines), frame.area())).map(|_| ())
    }

    fn line<'l>(&self, line: &'l str) -> Line<'l> {
        let colours = self.style.colour;
        let look = |paint: Paint| {
            let look = ratatui::style::Style::new();
            match paint {
                Paint::Plain => look,
                Paint::Bold => look.add_modifier(Modifier::BOLD),
                Paint::Dim if colours => look.fg(Color::DarkGray),
                Paint::Dim => look,
                Paint::Warning if colours => look.fg(Color::Yellow),
                Paint::Warning => look.add_modifier(Modifier::BOLD),
                Paint::Selected => look.add_modifier(Modifier::REVERSED),
            }
        };
        spans(line).into_iter().map(|(paint, text)| Span::styled(text, look(paint))).collect()
    }

    /// Restores the terminal, and leaves a copy of the last screen in it.
    pub fn leave(self, state: &mut State) {
        let size = self.terminal.size().unwrap_or_default();
        let style = Style { width: usize::from(size.width).clamp(40, 400), ..self.style };
        drop(self);
        let mut out = stdout().lock();
        for line in last_picture(state, &style, size.height.into()) {
            // A write error means that the terminal was closed.
            let _ = writeln!(out, "{line}");
        }
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        give_back();
    }
}

fn give_back() {
    if TAKEN.swap(false, Ordering::SeqCst) {
        // Errors mean that the terminal was closed.
        let _ = disable_raw_mode();
        let _ = crossterm::execute!(stdout(), LeaveAlternateScreen, Show);
        log::show_kept();
    }
}

/// Whether the screen has the terminal now.
pub(super) fn is_taken() -> bool {
    TAKEN.load(Ordering::SeqCst)
}
