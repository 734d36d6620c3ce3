//! The help, over everything else.

use crate::tui::Theme;
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::Text;
use ratatui::widgets::{Block, Clear, Paragraph, Wrap};

const TEXT: &str = "\
Each column is a number of CPUs. On top: how long the work of the window
would take there, and how much faster that is than on one CPU. Below: each
function's share of that time on the extended critical path. A function with
30 % would save up to 30 % if it took no time; one with 0 % saves nothing,
however hot. A share may be above 100 (several threads wait) or below 0.

anywhere   the function or what it calls (TETID)
on top     the function's own code (TET)
lost       events the kernel could not hand over: numbers are too small
unknown    thread time of which nothing is known
unmatched  waits that ended without a recorded wake-up
censored   waits cut by the edges of the window
1 s of 10  analysing more events would take more than 2 % of one CPU

q F10 ^C   quit (the program runs on)    ← → < >    CPU count to sort by
p space    freeze, go on                 t          on top / anywhere
↑ ↓ k j    scroll                        PgUp PgDn Home End
f          probe functions by name       u          take their probes off
l          locks / functions
? h F1     this help                     Esc        close it";

pub(super) fn draw(frame: &mut Frame<'_>, whole: Rect, theme: Theme) {
    let lines = TEXT.lines().count() as u16 + 2;
    let columns = TEXT.lines().map(|line| line.chars().count() as u16).max().unwrap_or(0) + 2;
    let area =
        whole.centered(ratatui::layout::Constraint::Max(columns), ratatui::layout::Constraint::Max(lines));
    let block = Block::bordered().title(" How to read this ").title_style(theme.chosen());
    frame.render_widget(Clear, area);
    frame.render_widget(Paragraph::new(Text::raw(TEXT)).wrap(Wrap { trim: false }).block(block), area);
}
