//! A flame graph as a static SVG: no script, no style that loads anything, names only as text. Pointing at a function
//! shows its name and share (`<title>`). Functions are above their callers, sorted by name.

use super::Model;
use super::weights::{Weight, by_names};
use crate::cell::duration;
use engine::program::is_unnamed;
use std::borrow::Cow;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, Write};

const WIDTH: f64 = 1200.0;
const MARGIN: f64 = 10.0;
const ROW: f64 = 17.0;
const HEAD: f64 = 44.0;
/// Least width of a frame: narrower frames would only be lines, and are omitted.
const NARROWEST: f64 = 0.2;
/// Width of a character, roughly.
const CHARACTER: f64 = 6.6;
/// Higher stacks are cut: no screen shows more.
const MOST_ROWS: usize = 600;

/// Writes the flame graph for the only CPU count asked for, or of CPU time if no count was asked for.
pub fn write(model: &Model<'_>, out: &mut dyn Write) -> io::Result<()> {
    let stacks = model.stacks();
    let weight = if model.cpus.is_empty() { Weight::Cpu } else { Weight::Owed(0) };
    let all = by_names(model, &stacks, weight);
    let total: f64 = all.iter().map(|(_, ns)| ns).sum();
    let rows = all.iter().map(|(names, _)| names.len()).max().unwrap_or(0).min(MOST_ROWS);
    let height = HEAD + ROW * (rows as f64 + 1.0) + MARGIN;
    writeln!(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{height}\" viewBox=\"0 0 {WIDTH} {height}\" \
         font-family=\"monospace\" font-size=\"11\">"
    )?;
    let title = format!("longpole: {}, {}", weight.title(&stacks), duration(total));
    writeln!(out, "<title>{}</title>", escaped(&title))?;
    writeln!(out, "<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>")?;
    writeln!(
        out,
        "<text x=\"{}\" y=\"26\" font-size=\"15\" text-anchor=\"middle\" fill=\"#111111\">{}</text>",
        WIDTH / 2.0,
        escaped(&title)
    )?;
    let mut graph = Graph { out, total, bottom: HEAD + ROW * rows as f64, at: 0.0, open: Vec::new() };
    graph.frame(0.0, total, 0, "all")?;
    for (names, ns) in &all {
        graph.stack(names, *ns)?;
    }
    graph.close(0)?;
    writeln!(graph.out, "</svg>")
}

/// The frames of a flame graph, from left to right.
struct Graph<'w, 'n> {
    out: &'w mut dyn Write,
    total: f64,
    /// Upper edge of the lowest row.
    bottom: f64,
    /// Nanoseconds of all stacks to the left of the next one.
    at: f64,
    /// Frames that may still get wider: name and left edge.
    open: Vec<(Cow<'n, str>, f64)>,
}

impl<'n> Graph<'_, 'n> {
    fn stack(&mut self, names: &[Cow<'n, str>], ns: f64) -> io::Result<()> {
        let names = names.get(..MOST_ROWS.min(names.len())).unwrap_or_default();
        let same = self.open.iter().zip(names).take_while(|((open, _), name)| open == *name).count();
        self.close(same)?;
        self.open.extend(names.iter().skip(same).map(|name| (name.clone(), self.at)));
        self.at += ns;
        Ok(())
    }

    /// Draws and removes all open frames but the lowest `keep`.
    fn close(&mut self, keep: usize) -> io::Result<()> {
        while self.open.len() > keep {
            let row = self.open.len();
            let Some((name, from)) = self.open.pop() else { break };
            self.frame(from, self.at, row, &name)?;
        }
        Ok(())
    }

    fn frame(&mut self, from: f64, to: f64, row: usize, name: &str) -> io::Result<()> {
        if self.total <= 0.0 {
            return Ok(());
        }
        let scale = (WIDTH - 2.0 * MARGIN) / self.total;
        let (x, width) = (MARGIN + from * scale, (to - from) * scale);
        if width < NARROWEST {
            return Ok(());
        }
        let y = self.bottom - ROW * row as f64;
        let share = 100.0 * (to - from) / self.total;
        let told = format!("{name}: {}, {share:.2} %", duration(to - from));
        write!(
            self.out,
            "<g><title>{}</title><rect x=\"{x:.2}\" y=\"{y:.1}\" width=\"{width:.2}\" height=\"{:.1}\" rx=\"1\" fill=\"{}\"/>",
            escaped(&told),
            ROW - 1.0,
            colour(name)
        )?;
        let room = ((width - 6.0) / CHARACTER).max(0.0) as usize;
        if room >= 3 {
            let shown = crate::cell::fit(name, room);
            write!(
                self.out,
                "<text x=\"{:.2}\" y=\"{:.1}\" fill=\"#111111\">{}</text>",
                x + 3.0,
                y + 12.0,
                escaped(&shown)
            )?;
        }
        writeln!(self.out, "</g>")
    }
}

/// Colour of a name: always the same for it, warm for functions, grey for code without names.
fn colour(name: &str) -> String {
    let mut hasher = DefaultHasher::new();
    name.hash(&mut hasher);
    let [a, b, c, ..] = hasher.finish().to_le_bytes();
    if is_unnamed(name) {
        let grey = 190 + a % 40;
        return format!("#{grey:02x}{grey:02x}{:02x}", grey.saturating_add(12));
    }
    format!("#{:02x}{:02x}{:02x}", 215 + a % 36, 130 + b % 90, 60 + c % 50)
}

/// Text for an XML element; characters that XML forbids become U+FFFD.
pub fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            '\u{fffe}' | '\u{ffff}' => escaped.push(char::REPLACEMENT_CHARACTER),
            c if c.is_control() => escaped.push(char::REPLACEMENT_CHARACTER),
            c => escaped.push(c),
        }
    }
    escaped
}
