//! Makes names and numbers fit for a terminal cell. Names come from the target: they may have any characters.

use std::borrow::Cow;
use symbols::is_unsafe;

/// Replaces a character that must not reach a terminal.
const REPLACEMENT: char = '\u{fffd}';

/// The text without characters that move the cursor, change colours, reverse the writing direction or have no width: each
/// becomes U+FFFD. A function's name may contain an escape sequence, which the terminal must not obey.
pub fn clean(text: &str) -> Cow<'_, str> {
    if text.chars().any(is_unsafe) {
        Cow::Owned(text.chars().map(|c| if is_unsafe(c) { REPLACEMENT } else { c }).collect())
    } else {
        Cow::Borrowed(text)
    }
}

/// The cleaned text in at most `columns` terminal columns. A longer text is cut in the middle, since both ends of a
/// qualified name are informative; the end (the function itself) gets more room.
pub fn fit(text: &str, columns: usize) -> String {
    let text = clean(text);
    if width(&text) <= columns {
        return text.into_owned();
    }
    if columns == 0 {
        return String::new();
    }
    let room = columns - 1;
    let tail_room = room - room / 3;
    let mut tail_start = text.len();
    let mut tail_width = 0;
    for (index, c) in text.char_indices().rev() {
        let w = char_width(c);
        if tail_width + w > tail_room {
            break;
        }
        tail_width += w;
        tail_start = index;
    }
    let mut head_end = 0;
    let mut head_width = 0;
    for (index, c) in text.char_indices() {
        let w = char_width(c);
        if head_width + w > room - tail_width || index >= tail_start {
            break;
        }
        head_width += w;
        head_end = index + c.len_utf8();
    }
    format!("{}…{}", &text[..head_end], &text[tail_start..])
}

/// Terminal columns of a cleaned text.
pub fn width(text: &str) -> usize {
    text.chars().map(char_width).sum()
}

fn char_width(c: char) -> usize {
    if c.is_ascii() { 1 } else { ratatui::text::Span::raw(c.encode_utf8(&mut [0; 4]).to_owned()).width() }
}

/// A length of time in at most eight columns: `950 ns`, `12.3 µs`, `4.56 ms`, `12.0 s`, `18.3 min`.
pub fn duration(ns: f64) -> String {
    if !ns.is_finite() {
        return "?".to_owned();
    }
    let units = [(1e3, "µs"), (1e6, "ms"), (1e9, "s"), (60e9, "min"), (3_600e9, "h"), (86_400e9, "d")];
    let size = ns.abs();
    if size < 999.5 {
        return format!("{ns:.0} ns");
    }
    // The smallest unit that needs at most three digits before the point.
    let fitting = units.iter().find(|(unit_ns, _)| size / unit_ns < 999.5);
    match fitting {
        Some((unit_ns, unit)) => three_digits(ns / unit_ns, unit),
        None => format!("{:.0e} d", ns / 86_400e9),
    }
}

fn three_digits(value: f64, unit: &str) -> String {
    let size = value.abs();
    if size < 9.995 {
        format!("{value:.2} {unit}")
    } else if size < 99.95 {
        format!("{value:.1} {unit}")
    } else {
        format!("{value:.0} {unit}")
    }
}

/// A count with commas between groups of three digits.
pub fn grouped(count: u64) -> String {
    let digits = count.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// A count and what is counted: `1 lock`, `2,000 processes`.
pub fn counted(count: usize, noun: &str) -> String {
    format!("{} {noun}{}", grouped(count as u64), ending(noun, count))
}

/// A size: `950 bytes`, `6.4 MB`.
pub fn bytes(count: u64) -> String {
    let count = count as f64;
    match count {
        _ if count < 1e3 => format!("{count:.0} bytes"),
        _ if count < 1e6 => format!("{:.1} kB", count / 1e3),
        _ if count < 1e9 => format!("{:.1} MB", count / 1e6),
        _ => format!("{:.1} GB", count / 1e9),
    }
}

/// `file:line` without folders, which may be too long for a column; the JSON has the complete path.
pub fn file_name(location: &str) -> &str {
    location.rsplit('/').next().unwrap_or(location)
}

/// A share as a percentage: `93.1 %`, `-4.0 %`, `250 %`.
pub fn percent(share: f64) -> String {
    let percent = share * 100.0;
    if !percent.is_finite() {
        "?".into()
    } else if percent.abs() < 99.95 {
        // Without a sign for values that round to zero.
        format!("{:.1} %", if percent.abs() < 0.05 { 0.0 } else { percent })
    } else {
        format!("{percent:.0} %")
    }
}

/// Like [`percent`], but without a fraction: `93 %`.
pub fn whole_percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

/// The plural ending of a noun for this count: `locks`, `futexes`, `processes`.
pub fn ending(noun: &str, count: usize) -> &'static str {
    match count {
        1 => "",
        _ if noun.ends_with(['s', 'x']) => "es",
        _ => "s",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clean_replaces_escape_sequences_and_hidden_characters() {
        assert_eq!(clean("plain::name<T>"), "plain::name<T>");
        assert_eq!(clean("a\x1b[31mred\x07\r\n"), "a\u{fffd}[31mred\u{fffd}\u{fffd}\u{fffd}");
        assert_eq!(clean("c1\u{9b}2J"), "c1\u{fffd}2J");
        assert_eq!(clean("rtl\u{202e}cod"), "rtl\u{fffd}cod");
        assert_eq!(clean("zero\u{200b}width"), "zero\u{fffd}width");
    }

    #[test]
    fn a_fitted_name_is_never_wider_than_its_columns() {
        let names = ["", "a", "std::vec::Vec<T>::push", "日本語の関数名前", "x\u{1b}y", &"n".repeat(5_000)];
        for name in names {
            for columns in 0..40 {
                let fitted = fit(name, columns);
                assert!(width(&fitted) <= columns, "{name:?} in {columns}: {fitted:?}");
            }
        }
        assert_eq!(fit("namespace::inner::function", 14), "name…:function");
        assert_eq!(fit("short", 5), "short");
    }

    #[test]
    fn a_duration_has_three_digits_and_its_unit() {
        for (ns, text) in [
            (0.0, "0 ns"),
            (950.0, "950 ns"),
            (999.6, "1.00 µs"),
            (12_345.0, "12.3 µs"),
            (4_560_000.0, "4.56 ms"),
            (999_600_000.0, "1.00 s"),
            (-2_500_000.0, "-2.50 ms"),
            (187e9, "187 s"),
            (1_098e9, "18.3 min"),
            (1e15, "278 h"),
            (f64::NAN, "?"),
        ] {
            assert_eq!(duration(ns), text, "{ns}");
        }
    }

    #[test]
    fn counts_are_grouped_by_three() {
        for (count, text) in [(0, "0"), (999, "999"), (1_000, "1,000"), (1_234_567, "1,234,567")] {
            assert_eq!(grouped(count), text);
        }
    }
}
