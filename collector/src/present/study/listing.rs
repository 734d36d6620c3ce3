//! Tables with a name on the left and numbers on the right, and helpers for the texts around such tables.

use crate::cell::{duration, file_name, width};
use crate::present::style::{Paint, Style};
use crate::present::table;
use crate::present::words::finding;
use crate::present::words::short::short;
use engine::report::{Cpus, Finding};
use std::io::{self, Write};

/// Width of a number's column.
const CELL: usize = 12;

/// Least width of the column with names.
const NAME: usize = 16;

/// Writes one line: a name, shortened if necessary, and right-aligned cells. On a narrow screen the cells get a line of
/// their own.
pub(super) fn line(
    out: &mut dyn Write,
    style: &Style,
    paint: Paint,
    name: &str,
    cells: &[String],
) -> io::Result<()> {
    if NAME + cells.len() * CELL > style.width {
        return two_lines(out, style, paint, name, cells);
    }
    let room = style.width.saturating_sub(cells.len() * CELL).clamp(NAME, 44);
    let name = style.fit(name, room);
    let mut line = format!("{name}{}", " ".repeat(room.saturating_sub(width(&name))));
    for cell in cells {
        let cell = style.text(cell);
        line.push_str(&" ".repeat(CELL.saturating_sub(width(&cell)).max(1)));
        line.push_str(&cell);
    }
    writeln!(out, "{}", style.paint(paint, line.trim_end()))
}

fn two_lines(
    out: &mut dyn Write,
    style: &Style,
    paint: Paint,
    name: &str,
    cells: &[String],
) -> io::Result<()> {
    let name = style.fit(name, style.width);
    if !name.is_empty() {
        writeln!(out, "{}", style.paint(paint, &name))?;
    }
    let cell = (style.width / cells.len().max(1)).min(CELL);
    let mut line = String::new();
    for (place, text) in cells.iter().enumerate() {
        let text = style.text(text);
        let end = (place + 1) * cell;
        let pad = end.saturating_sub(width(&line) + width(&text));
        line.push_str(&" ".repeat(pad.max(usize::from(place > 0))));
        line.push_str(&text);
    }
    writeln!(out, "{}", style.paint(paint, line.trim_end()))
}

/// Writes the sentence above the table.
pub(super) fn headline(out: &mut dyn Write, style: &Style, text: &str) -> io::Result<()> {
    let mut out = out;
    table::wrap(&mut out, style, Paint::Bold, "", &style.text(text), "")?;
    writeln!(out)
}

/// The row that a sentence is about: the recorded machine's, else the one with the largest finite CPU count.
pub(super) fn main_row<T>(rows: &[T], recorded: Option<u32>, cpus: impl Fn(&T) -> Cpus) -> Option<&T> {
    let machine = recorded.and_then(Cpus::count);
    let finite = rows.iter().filter(|row| cpus(row) != Cpus::Infinite);
    rows.iter()
        .find(|row| Some(cpus(row)) == machine)
        .or_else(|| finite.max_by_key(|row| cpus(row)))
        .or_else(|| rows.first())
}

/// The change of the time: a gain has a minus sign, as in `-1.2 s`.
pub(super) fn gained(gain_ns: f64) -> String {
    match gain_ns {
        gain_ns if gain_ns > 0.0 => format!("-{}", duration(gain_ns)),
        gain_ns if gain_ns < 0.0 => format!("+{}", duration(-gain_ns)),
        _ => duration(0.0),
    }
}

/// A change with its sign, such as `-6.8 %`; a change that rounds to zero has no sign.
pub(super) fn signed(by: f64, whole: f64) -> String {
    match by {
        by if by.abs() < 0.0005 * whole => "0 %".to_owned(),
        by if by > 0.0 => format!("+{}", share(by, whole)),
        by => format!("-{}", share(-by, whole)),
    }
}

/// Says why the graph's run and the predicted one differ in length, if they do.
pub(super) fn unlike_predicted(
    length_ns: f64,
    predicted_ns: f64,
    style: &Style,
    out: &mut dyn Write,
) -> io::Result<()> {
    if predicted_ns <= 0.0 || (length_ns - predicted_ns).abs() < 0.005 * predicted_ns {
        return Ok(());
    }
    let text = format!(
        "This run of {} has no scheduler. With Linux's scheduler, `predict` says {}: threads reach locks in another order.",
        duration(length_ns),
        duration(predicted_ns)
    );
    note(out, style, &text)?;
    writeln!(out)
}

/// The advice to remove a deadlock first, if the findings contain one.
pub(super) fn deadlock(findings: &[Finding]) -> Option<String> {
    let deadlock = findings.iter().find(|finding| finding.deadlock().is_some())?;
    Some(format!("Remove the deadlock first: {}", finding::sentence(deadlock)))
}

/// Writes a note that explains the columns.
pub(super) fn note(out: &mut dyn Write, style: &Style, text: &str) -> io::Result<()> {
    let mut out = out;
    table::wrap(&mut out, style, Paint::Dim, "", &style.text(text), "")
}

/// A name and its place, such as `f  file.c:3`.
pub(super) fn placed(name: &str, location: Option<&str>) -> String {
    match location {
        Some(location) => format!("{}  {}", short(name), file_name(location)),
        None => short(name),
    }
}

/// A share with two significant digits: `33 %`, `4.5 %`, `0.03 %`.
pub(super) fn share(part: f64, whole: f64) -> String {
    let percent = if whole > 0.0 { part / whole * 100.0 } else { 0.0 };
    match percent.abs() {
        size if size >= 9.95 => format!("{percent:.0} %"),
        size if size >= 0.95 => format!("{percent:.1} %"),
        size if size >= 0.005 => format!("{percent:.2} %"),
        _ => "0 %".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::{Paint, Style, line};

    /// Four columns of `slack` are too wide for a screen of 40 columns.
    #[test]
    fn on_a_narrow_screen_the_numbers_are_below_the_name() {
        let style = Style { colour: false, unicode: true, width: 40 };
        let mut shown = Vec::new();
        let titles = ["on path", "without it", "for sure", "simulated"].map(str::to_owned);
        line(&mut shown, &style, Paint::Plain, "FUNCTIONS", &titles).expect("written");
        line(&mut shown, &style, Paint::Plain, "f", &["1 s".to_owned()]).expect("written");
        let shown = String::from_utf8(shown).expect("UTF-8");
        let lines: Vec<&str> = shown.lines().collect();
        assert_eq!(lines[..2], ["FUNCTIONS", "   on path without it for sure simulated"]);
        assert!(lines[2].starts_with("f ") && lines[2].ends_with(" 1 s"), "{shown}");
    }

    #[test]
    fn a_share_has_two_digits() {
        let share = |part: f64| super::share(part, 100.0);
        assert_eq!(
            [33.4, 9.96, 4.52, 0.95, 0.034, 0.001, -12.4].map(share),
            ["33 %", "10 %", "4.5 %", "0.9 %", "0.03 %", "0 %", "-12 %"].map(String::from)
        );
        assert_eq!(super::share(1.0, 0.0), "0 %");
    }
}
