//! Folded stacks, one in each line, for Brendan Gregg's `flamegraph.pl`, inferno and speedscope: `main;work 1200`, in
//! nanoseconds.

use super::Model;
use super::weights::{Rounded, Weight, by_names};
use std::io::{self, Write};

/// Writes the stacks for the only CPU count asked for, or with CPU time if no count was asked for.
pub fn write(model: &Model<'_>, out: &mut dyn Write) -> io::Result<()> {
    let stacks = model.stacks();
    let weight = if model.cpus.is_empty() { Weight::Cpu } else { Weight::Owed(0) };
    let mut rounded = Rounded::default();
    let mut line = String::new();
    for (names, ns) in by_names(model, &stacks, weight) {
        let ns = rounded.next(ns);
        if ns == 0 {
            continue;
        }
        line.clear();
        for (place, name) in names.iter().enumerate() {
            if place > 0 {
                line.push(';');
            }
            line.extend(name.chars().map(plain));
        }
        writeln!(out, "{line} {ns}")?;
    }
    Ok(())
}

/// Replaces characters that would end a name or a line.
pub(super) fn plain(c: char) -> char {
    match c {
        ';' => ':',
        c if c.is_control() || matches!(c, '\u{2028}' | '\u{2029}') => char::REPLACEMENT_CHARACTER,
        c => c,
    }
}
