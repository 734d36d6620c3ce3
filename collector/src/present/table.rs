//! Columns of equal width after a label, in as many blocks as the screen's width requires.

use super::style::{Paint, Style};
use crate::cell::width;
use std::io::{self, Write};

/// Widths of a table's parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Columns of the label.
    pub label: usize,
    /// Number of columns of each cell, including the space before it.
    pub cell: usize,
    /// Cells that fit next to the label; at least 1.
    pub cells_per_block: usize,
}

impl Layout {
    /// A layout with as many cells next to a label as fit, at most `cells`.
    pub fn new(style: &Style, cells: usize, cell: usize, label: usize) -> Layout {
        let cells_per_block = (style.width.saturating_sub(label) / cell).clamp(1, cells.max(1));
        Layout { label, cell, cells_per_block }
    }
}

/// Writes one line: `label` on the left, then right-aligned `cells`.
pub fn line(
    out: &mut impl Write,
    layout: &Layout,
    style: &Style,
    label: &str,
    paint: Paint,
    cells: &[String],
) -> io::Result<()> {
    let mut line = String::new();
    let mut columns = 0;
    line.push_str(&style.paint(paint, label));
    columns += width(label);
    let mut target = layout.label;
    for cell in cells {
        target += layout.cell;
        let room = target.saturating_sub(width(cell));
        // A cell that is too wide is not cut: it shifts the remaining cells of its line.
        let spaces = room.saturating_sub(columns).max(1);
        line.extend(std::iter::repeat_n(' ', spaces));
        line.push_str(cell);
        columns += spaces + width(cell);
    }
    writeln!(out, "{}", line.trim_end())
}

/// Writes `first`, then words in lines of at most the style's width; further lines begin with `indent`.
pub fn wrap(
    out: &mut impl Write,
    style: &Style,
    paint: Paint,
    first: &str,
    text: &str,
    indent: &str,
) -> io::Result<()> {
    let mut line = first.to_string();
    let mut empty = true;
    for word in text.split(' ').filter(|word| !word.is_empty()) {
        if !empty && width(&line) + 1 + width(word) > style.width {
            writeln!(out, "{}", style.paint(paint, &line))?;
            line = indent.to_string();
            empty = true;
        }
        if !empty {
            line.push(' ');
        }
        line.push_str(word);
        empty = false;
    }
    if line.trim().is_empty() { Ok(()) } else { writeln!(out, "{}", style.paint(paint, line.trim_end())) }
}
