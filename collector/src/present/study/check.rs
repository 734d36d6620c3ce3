//! `longpole check`: the outcome of rules, and what limits, as text, JSON, JUnit XML and Markdown.

use super::listing::headline;
use crate::present::json::limit::LimitsJson;
use crate::present::screen::limit;
use crate::present::style::{Paint, Style};
use crate::present::table;
use crate::rules::{RuleOutcome, Verdict};
use engine::limit::Limits;
use serde::Serialize;
use std::io::{self, Write};

fn broken(outcomes: &[RuleOutcome]) -> usize {
    outcomes.iter().filter(|outcome| outcome.verdict == Verdict::Broken).count()
}

fn sentence(outcomes: &[RuleOutcome]) -> String {
    match (broken(outcomes), outcomes.len()) {
        (0, 1) => "The rule is kept.".to_owned(),
        (0, all) => format!("All {all} rules are kept."),
        (1, 1) => "The rule is broken.".to_owned(),
        (broken, all) => {
            format!("{broken} of {all} rules {} broken.", if broken == 1 { "is" } else { "are" })
        }
    }
}

/// Writes the outcomes as text.
pub fn text(outcomes: &[RuleOutcome], limits: &Limits, style: &Style, out: &mut dyn Write) -> io::Result<()> {
    headline(out, style, &sentence(outcomes))?;
    for outcome in outcomes {
        let (word, paint) = match outcome.verdict {
            Verdict::Kept => ("ok    ", Paint::Plain),
            Verdict::Broken => ("BROKEN", Paint::Warning),
        };
        let text = if outcome.name == outcome.measure {
            outcome.text.clone()
        } else {
            format!("{}: {}", outcome.name, outcome.text)
        };
        let mut plain: &mut dyn Write = out;
        table::wrap(&mut plain, style, paint, &format!("{word} "), &style.text(&text), "       ")?;
    }
    if limits.at.is_empty() {
        return Ok(());
    }
    let mut out = out;
    writeln!(out)?;
    limit::write(&mut out, None, limits, 0, style)
}

/// Writes the outcomes as JSON: `longpole-check/1`.
pub fn json(outcomes: &[RuleOutcome], limits: &Limits, out: &mut dyn Write) -> io::Result<()> {
    #[derive(Serialize)]
    struct Document<'a> {
        schema: &'static str,
        broken: usize,
        rules: Vec<RuleJson<'a>>,
        limit: LimitsJson<'a>,
    }
    #[derive(Serialize)]
    struct RuleJson<'a> {
        name: &'a str,
        measure: &'a str,
        kept: bool,
        text: &'a str,
    }
    let rules = outcomes.iter().map(|outcome| RuleJson {
        name: &outcome.name,
        measure: &outcome.measure,
        kept: outcome.verdict == Verdict::Kept,
        text: &outcome.text,
    });
    let document = Document {
        schema: "longpole-check/1",
        broken: broken(outcomes),
        rules: rules.collect(),
        limit: LimitsJson::new(limits),
    };
    super::json::write(&document, out)
}

/// JUnit XML: one test case for each rule.
pub fn junit(outcomes: &[RuleOutcome], out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>")?;
    writeln!(
        out,
        "<testsuite name=\"longpole check\" tests=\"{}\" failures=\"{}\" errors=\"0\" skipped=\"0\">",
        outcomes.len(),
        broken(outcomes)
    )?;
    for outcome in outcomes {
        let (name, class) = (xml(&outcome.name), xml(&outcome.measure));
        write!(out, "  <testcase name=\"{name}\" classname=\"longpole.{class}\"")?;
        match outcome.verdict {
            Verdict::Kept => writeln!(out, "/>")?,
            Verdict::Broken => {
                writeln!(out, ">\n    <failure message=\"{}\"/>\n  </testcase>", xml(&outcome.text))?
            }
        }
    }
    writeln!(out, "</testsuite>")
}

/// A Markdown table.
pub fn markdown(outcomes: &[RuleOutcome], out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "**{}**\n", sentence(outcomes))?;
    writeln!(out, "| | rule | |\n|---|---|---|")?;
    for outcome in outcomes {
        let word = match outcome.verdict {
            Verdict::Kept => "ok",
            Verdict::Broken => "**broken**",
        };
        writeln!(out, "| {word} | {} | {} |", escaped(&outcome.name), escaped(&outcome.text))?;
    }
    Ok(())
}

/// Text for an attribute; characters that XML does not allow become U+FFFD.
fn xml(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\t' | '\n' | '\r' => safe.push(' '),
            '\u{0}'..='\u{1f}' | '\u{fffe}' | '\u{ffff}' => safe.push('\u{fffd}'),
            letter => safe.push(letter),
        }
    }
    safe
}

/// Text for a table cell, with all markup escaped.
fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for letter in crate::cell::clean(text).chars() {
        match letter {
            '|' | '\\' | '*' | '_' | '`' | '[' | ']' | '#' => {
                safe.push('\\');
                safe.push(letter);
            }
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '&' => safe.push_str("&amp;"),
            letter => safe.push(letter),
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcomes() -> Vec<RuleOutcome> {
        let outcome = |name: &str, verdict| RuleOutcome {
            name: name.to_owned(),
            measure: "time".to_owned(),
            verdict,
            text: "time is 3 s, allowed at most 2 s".to_owned(),
        };
        vec![outcome("a<b> & \"c\"\u{1}|d", Verdict::Broken), outcome("fine", Verdict::Kept)]
    }

    fn written(write: impl Fn(&mut dyn Write) -> io::Result<()>) -> String {
        let mut out = Vec::new();
        write(&mut out).expect("written");
        String::from_utf8(out).expect("text")
    }

    #[test]
    fn junit_output_is_valid_xml_for_any_name() {
        assert_eq!(
            written(|out| junit(&outcomes(), out)),
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
             <testsuite name=\"longpole check\" tests=\"2\" failures=\"1\" errors=\"0\" skipped=\"0\">\n  \
             <testcase name=\"a&lt;b&gt; &amp; &quot;c&quot;\u{fffd}|d\" classname=\"longpole.time\">\n    \
             <failure message=\"time is 3 s, allowed at most 2 s\"/>\n  </testcase>\n  \
             <testcase name=\"fine\" classname=\"longpole.time\"/>\n</testsuite>\n"
        );
    }

    #[test]
    fn markdown_output_has_one_row_for_each_rule() {
        let text = written(|out| markdown(&outcomes(), out));
        assert_eq!(text.lines().count(), 6, "{text}");
        assert!(text.contains("| **broken** | a&lt;b&gt; &amp; \"c\"\u{fffd}\\|d |"), "{text}");
    }
}
