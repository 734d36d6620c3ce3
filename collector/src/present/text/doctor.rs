//! The doctor's findings as text and as JSON (schema `longpole-doctor/1`).

use crate::doctor::{Check, all_required};
use crate::present::style::{Paint, Style};
use crate::present::table;
use serde::Serialize;
use std::io::{self, Write};

#[derive(Serialize)]
struct DoctorJson<'a> {
    schema: &'static str,
    ok: bool,
    checks: Vec<CheckJson<'a>>,
}

#[derive(Serialize)]
struct CheckJson<'a> {
    status: &'static str,
    #[serde(flatten)]
    check: &'a Check,
}

/// Writes the checks as one line of JSON.
pub fn json(checks: &[Check], mut out: impl Write) -> io::Result<()> {
    let json = DoctorJson {
        schema: "longpole-doctor/1",
        ok: all_required(checks),
        checks: checks.iter().map(|check| CheckJson { status: status(check), check }).collect(),
    };
    engine::program::json::write_value(&json, &mut out)?;
    out.write_all(b"\n")
}

/// Writes one line for each check, and an explanation of each missing thing.
pub fn text(checks: &[Check], style: &Style, mut out: impl Write) -> io::Result<()> {
    let out = &mut out;
    for check in checks {
        let paint = match (check.ok, check.required) {
            (true, _) => Paint::Plain,
            (false, true) => Paint::Warning,
            (false, false) => Paint::Bold,
        };
        let optional = if check.ok || check.required { "" } else { " (optional)" };
        let line = format!("{:<9}{:<21}{}{optional}", status(check), check.id, style.text(&check.found));
        writeln!(out, "{}", style.paint(paint, &line))?;
        if let Some(fix) = &check.fix {
            explain(out, style, "why", check.why)?;
            explain(out, style, "fix", fix)?;
        }
    }
    writeln!(out)?;
    let optional = checks.iter().filter(|check| !check.ok && !check.required).count();
    let last = match (all_required(checks), optional) {
        (true, 0) => "longpole can record on this machine.".to_string(),
        (true, _) => "longpole can record on this machine; the failed checks above are optional.".to_string(),
        (false, _) => {
            "longpole cannot record on this machine yet: do each fix above. Analysing recordings works."
                .to_string()
        }
    };
    table::wrap(out, style, Paint::Bold, "", &last, "")
}

fn status(check: &Check) -> &'static str {
    if check.ok { "ok" } else { "missing" }
}

/// Writes the text without wrapping, since users copy commands from it.
fn explain(out: &mut impl Write, style: &Style, label: &str, text: &str) -> io::Result<()> {
    let indent = " ".repeat(9);
    writeln!(out, "{indent}{}", style.paint(Paint::Dim, &format!("{label}: {}", style.text(text))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checks() -> Vec<Check> {
        let check = |id, ok: bool, required| Check {
            id,
            ok,
            required,
            found: "found\u{1b}".into(),
            why: "it matters",
            fix: (!ok).then(|| "do this".into()),
        };
        vec![check("a", true, true), check("b", false, false), check("c", false, true)]
    }

    #[test]
    fn doctor_s_text_gives_reason_and_fix_of_a_missing_requirement() {
        let style = Style { colour: false, unicode: true, width: 80 };
        let mut out = Vec::new();
        text(&checks(), &style, &mut out).expect("written");
        let text = String::from_utf8(out).expect("text");
        let expected = "\
ok       a                    found\u{fffd}
missing  b                    found\u{fffd} (optional)
         why: it matters
         fix: do this
missing  c                    found\u{fffd}
         why: it matters
         fix: do this

longpole cannot record on this machine yet: do each fix above. Analysing
recordings works.
";
        assert_eq!(text, expected);
    }

    #[test]
    fn doctor_s_json_has_its_schema() {
        let mut out = Vec::new();
        json(&checks()[2..], &mut out).expect("written");
        assert_eq!(
            String::from_utf8(out).expect("text"),
            concat!(
                r#"{"schema":"longpole-doctor/1","ok":false,"checks":[{"status":"missing","id":"c","ok":false,"#,
                r#""required":true,"found":"found\u001b","why":"it matters","fix":"do this"}]}"#,
                "\n"
            )
        );
    }
}
