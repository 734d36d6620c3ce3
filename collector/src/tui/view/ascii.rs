//! For terminals without UTF-8: every cell in ASCII, in the same place.

use ratatui::buffer::Buffer;

/// Replaces what such a terminal cannot show.
pub(super) fn only(buffer: &mut Buffer) {
    for cell in &mut buffer.content {
        if !cell.symbol().is_ascii() {
            let plain = cell.symbol().chars().next().map_or(' ', plain);
            cell.set_char(plain);
        }
    }
}

fn plain(c: char) -> char {
    match c {
        '─' | '–' | '−' => '-',
        '│' => '|',
        '┌' | '┐' | '└' | '┘' => '+',
        '·' => ';',
        '…' => '~',
        'µ' => 'u',
        '×' => 'x',
        '←' => '<',
        '→' => '>',
        '↑' => '^',
        '↓' => 'v',
        _ => '?',
    }
}
