//! What an output stream can show: colour, width, characters beyond ASCII.

use crate::cell::{clean, fit};
use engine::report::Cpus;
use std::io::IsTerminal;

/// How text is written to one stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Style {
    /// Colour and bold may be used.
    pub colour: bool,
    /// Characters beyond ASCII may be used.
    pub unicode: bool,
    /// Width in columns.
    pub width: usize,
}

/// Emphasis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Paint {
    /// None.
    Plain,
    /// To read first.
    Bold,
    /// May be skipped.
    Dim,
    /// To worry about.
    Warning,
    /// The selected row, which keys act on.
    Selected,
}

/// Codes before a painted text.
const CODES: [(Paint, &str); 4] = [
    (Paint::Bold, "\u{1b}[1m"),
    (Paint::Dim, "\u{1b}[2m"),
    (Paint::Warning, "\u{1b}[33m"),
    (Paint::Selected, "\u{1b}[7m"),
];
/// The terminal code after a coloured text.
const END: &str = "\u{1b}[0m";

/// Splits a line that [`Style::paint`] made into its texts, for a screen that colours text itself. Texts that are safe
/// for terminals contain no other codes.
pub fn spans(line: &str) -> Vec<(Paint, &str)> {
    let mut spans = Vec::new();
    let mut rest = line;
    while let Some((before, after)) = rest.split_once('\u{1b}') {
        let code = CODES.iter().find_map(|(paint, code)| Some((*paint, after.strip_prefix(&code[1..])?)));
        spans.push((Paint::Plain, before));
        let Some((paint, after)) = code else {
            rest = after;
            continue;
        };
        let (text, after) = after.split_once(END).unwrap_or((after, ""));
        spans.push((paint, text));
        rest = after;
    }
    spans.push((Paint::Plain, rest));
    spans.retain(|(_, text)| !text.is_empty());
    spans
}

impl Style {
    /// The text with the code of its colour, if this stream has colour. The text must be safe for terminals already.
    pub fn paint(&self, paint: Paint, text: &str) -> String {
        let code = CODES.iter().find(|(other, _)| *other == paint);
        match code.filter(|_| self.colour && !text.is_empty()) {
            Some((_, code)) => format!("{code}{text}{END}"),
            None => text.to_owned(),
        }
    }

    /// The text as a link to the file of `place` (`file`, `line`), in terminals that are known to have links. The text must be
    /// safe for terminals already.
    pub fn link(&self, text: &str, place: Option<(&str, &str)>) -> String {
        match place {
            Some((file, _))
                if self.colour
                    && file.starts_with('/')
                    && supports_hyperlinks::on(supports_hyperlinks::Stream::Stdout) =>
            {
                format!("\u{1b}]8;;file://{}\u{1b}\\{text}\u{1b}]8;;\u{1b}\\", encoded(file))
            }
            _ => text.to_owned(),
        }
    }

    /// The text made safe for terminals, in ASCII if the terminal has no UTF-8.
    pub fn text(&self, text: &str) -> String {
        self.ascii(clean(text).into_owned())
    }

    /// The text made safe for terminals, in at most `columns` columns; a longer text is cut in the middle.
    pub fn fit(&self, text: &str, columns: usize) -> String {
        self.ascii(fit(text, columns))
    }

    fn ascii(&self, text: String) -> String {
        if self.unicode || text.is_ascii() {
            return text;
        }
        text.chars()
            .map(|c| match c {
                c if c.is_ascii() => c,
                'µ' => 'u',
                '×' => 'x',
                '…' => '~',
                '–' | '—' | '−' => '-',
                '·' => ';',
                '±' => '~',
                '≥' => '>',
                '≤' => '<',
                '“' | '”' => '"',
                '‘' | '’' => '\'',
                _ => '?',
            })
            .collect()
    }
}

/// A path as in a URL (RFC 3986, section 2.3): no character of it can end the link.
fn encoded(path: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/-._~".contains(&byte);
    let each = path
        .bytes()
        .map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") });
    each.collect()
}

/// Settings of the user's environment.
struct Environment {
    no_color: bool,
    force_color: bool,
    dumb: bool,
    utf8: bool,
    columns: Option<usize>,
}

/// The style of standard output.
pub fn for_stdout() -> Style {
    let terminal = std::io::stdout().is_terminal();
    decide(terminal, terminal_columns(terminal), &environment())
}

/// The style of standard error.
pub fn for_stderr() -> Style {
    let terminal = std::io::stderr().is_terminal();
    decide(terminal, terminal_columns(terminal), &environment())
}

/// Columns of standard error, if it is a terminal or `COLUMNS` is set. Elsewhere lines may have any length, and
/// unbroken lines are easier to search.
pub fn columns_of_stderr() -> Option<usize> {
    let terminal = std::io::stderr().is_terminal();
    let columns = terminal_columns(terminal).or(environment().columns).or(terminal.then_some(80))?;
    Some(columns.clamp(40, 400))
}

fn terminal_columns(terminal: bool) -> Option<usize> {
    if !terminal {
        return None;
    }
    crossterm::terminal::size().ok().map(|(columns, _)| usize::from(columns)).filter(|columns| *columns > 0)
}

fn environment() -> Environment {
    let set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let text = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
    // The first variable that is set decides (POSIX, "Environment Variables", LC_ALL).
    let locale = text("LC_ALL").or_else(|| text("LC_CTYPE")).or_else(|| text("LANG"));
    let utf8 = locale.map(|name| name.to_ascii_lowercase().replace('-', "").ends_with("utf8"));
    Environment {
        no_color: set("NO_COLOR"),
        force_color: std::env::var("CLICOLOR_FORCE").is_ok_and(|value| !value.is_empty() && value != "0"),
        dumb: text("TERM").is_some_and(|term| term == "dumb"),
        utf8: utf8.unwrap_or(false),
        columns: text("COLUMNS").and_then(|value| value.parse().ok()),
    }
}

/// Colour: `NO_COLOR` wins, then `CLICOLOR_FORCE`, then whether the stream is a terminal that is not dumb. Width: the
/// terminal's, else `COLUMNS`, else 80.
fn decide(terminal: bool, terminal_columns: Option<usize>, environment: &Environment) -> Style {
    Style {
        colour: !environment.no_color && (environment.force_color || (terminal && !environment.dumb)),
        unicode: environment.utf8,
        width: terminal_columns.or(environment.columns).unwrap_or(80).clamp(40, 400),
    }
}

/// A CPU count as a title: `1 CPU`, `8 CPUs`, `∞ CPUs`; a large number without the word.
pub fn cpu_title(cpus: Cpus, style: &Style) -> String {
    match cpus {
        Cpus::Count(count) if count.get() == 1 => "1 CPU".into(),
        Cpus::Count(count) if count.get() > 9_999 => count.to_string(),
        Cpus::Count(count) => format!("{count} CPUs"),
        Cpus::Infinite => if style.unicode { "∞ CPUs" } else { "inf CPUs" }.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: Environment =
        Environment { no_color: false, force_color: false, dumb: false, utf8: true, columns: None };

    #[test]
    fn colour_is_used_for_terminals_unless_the_environment_forbids_it() {
        assert!(decide(true, Some(80), &PLAIN).colour);
        assert!(!decide(false, None, &PLAIN).colour);
        assert!(decide(false, None, &Environment { force_color: true, ..PLAIN }).colour);
        assert!(!decide(true, Some(80), &Environment { no_color: true, force_color: true, ..PLAIN }).colour);
        assert!(!decide(true, Some(80), &Environment { dumb: true, ..PLAIN }).colour);
    }

    #[test]
    fn a_link_s_path_is_percent_encoded() {
        assert_eq!(encoded("/a b/\u{1b}\\x.c"), "/a%20b/%1B%5Cx.c");
        let style = Style { colour: false, unicode: true, width: 80 };
        assert_eq!(style.link("x.c:3", Some(("/x.c", "3"))), "x.c:3");
    }

    #[test]
    fn painted_text_is_split_into_its_parts_again() {
        let style = Style { colour: true, unicode: true, width: 80 };
        let parts =
            [(Paint::Bold, "LIMIT"), (Paint::Plain, "  a lock "), (Paint::Warning, "! ±"), (Paint::Dim, "x")];
        let line: String = parts.iter().map(|(paint, text)| style.paint(*paint, text)).collect();
        assert_eq!(spans(&line), parts);
        assert_eq!(spans(""), []);
        for odd in ["a\u{1b}b", "\u{1b}[1mopen", "\u{1b}[9m", "\u{1b}"] {
            assert!(spans(odd).iter().all(|(_, text)| !text.contains('\u{1b}')), "{odd:?}");
        }
    }

    #[test]
    fn the_width_is_the_terminal_s_then_columns_then_80() {
        assert_eq!(decide(true, Some(120), &Environment { columns: Some(90), ..PLAIN }).width, 120);
        assert_eq!(decide(false, None, &Environment { columns: Some(90), ..PLAIN }).width, 90);
        assert_eq!(decide(false, None, &PLAIN).width, 80);
        assert_eq!(decide(true, Some(3), &PLAIN).width, 40);
    }
}
