//! Writes JSON that is safe to print: characters that control a terminal are escaped.

use serde::Serialize;
use serde_json::Serializer;
use serde_json::ser::Formatter;
use std::io::{self, Write};

/// Writes a value as compact JSON, safe to print on a terminal.
///
/// Control characters beyond ASCII, and marks that change the writing direction, become `\uXXXX`, which readers take for the
/// same text. So a name from a hostile file cannot command the terminal. (JSON requires this only below U+0020.)
///
/// # Errors
/// Errors of the writer, or a value that JSON cannot represent.
pub fn write_value<T: Serialize + ?Sized>(value: &T, to: impl Write) -> io::Result<()> {
    value.serialize(&mut Serializer::with_formatter(to, Escaping)).map_err(io::Error::from)
}

/// Escapes JSON made by serde_json as [`write_value`] does. Outside of strings it is plain ASCII.
pub(super) fn escaped(json: String) -> String {
    if !json.contains(commands) {
        return json;
    }
    let mut out = String::with_capacity(json.len() + 16);
    for c in json.chars() {
        if commands(c) { out.push_str(&escape(c)) } else { out.push(c) }
    }
    out
}

struct Escaping;

impl Formatter for Escaping {
    fn write_string_fragment<W: ?Sized + Write>(&mut self, to: &mut W, fragment: &str) -> io::Result<()> {
        let mut rest = fragment;
        while let Some((at, bad)) = rest.char_indices().find(|&(_, c)| commands(c)) {
            to.write_all(&rest.as_bytes()[..at])?;
            to.write_all(escape(bad).as_bytes())?;
            rest = &rest[at + bad.len_utf8()..];
        }
        to.write_all(rest.as_bytes())
    }
}

/// The JSON escape of a character below U+10000.
fn escape(c: char) -> String {
    format!("\\u{:04x}", u32::from(c))
}

/// Whether a terminal does more than show the character.
fn commands(c: char) -> bool {
    matches!(c, '\u{7f}'..='\u{9f}' | '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written<T: Serialize + ?Sized>(value: &T) -> String {
        let mut out = Vec::new();
        write_value(value, &mut out).expect("JSON");
        String::from_utf8(out).expect("text")
    }

    /// U+009B is CSI, like ESC [.
    #[test]
    fn control_characters_are_escaped_in_json_and_read_back() {
        for (text, json) in [
            ("plain äöü ☃ 𝄞", r#""plain äöü ☃ 𝄞""#),
            ("a\u{9b}2Jb\u{85}", r#""a\u009b2Jb\u0085""#),
            ("\u{1b}[2J\"\\", r#""\u001b[2J\"\\""#),
            ("\u{7f}\u{80}\u{9f}\u{a0}", "\"\\u007f\\u0080\\u009f\u{a0}\""),
            ("x\u{202e}y", r#""x\u202ey""#),
        ] {
            assert_eq!(written(text), json);
            assert_eq!(escaped(serde_json::to_string(text).expect("JSON")), json);
            assert_eq!(serde_json::from_str::<String>(json).expect("text"), text);
        }
        let key = std::collections::BTreeMap::from([("k\u{9b}", 1)]);
        assert_eq!(written(&key), r#"{"k\u009b":1}"#);
    }
}
