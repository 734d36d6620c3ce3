//! The rules for files, each as a function of a file's text.

use super::files::Source;
use super::prose;

/// Number of lines of a Rust file, without tests, above which tidy prints a note.
const SOFT_LINES: usize = 300;
/// Number of lines of a Rust file, with tests, above which tidy complains: such a file does more than one thing.
/// `clippy.toml` limits functions.
const HARD_LINES: usize = 500;
/// Folders that may use `unsafe`: the kernel programs, the library in the target, code that communicates with them or
/// with /proc, and code that gives up privileges.
const UNSAFE_PLACES: [&str; 6] = [
    "probe-ebpf/",
    "probe-preload/",
    "capture/src/probe/",
    "capture/src/interpose/",
    "capture/src/target/",
    "symbols/src/sandbox/",
];
/// The allowed dependencies of the engine, which is pure: only data structures and text formats.
const ENGINE_DEPENDENCIES: [&str; 6] =
    ["probe-abi", "rustc-hash", "serde", "serde_json", "strum", "thiserror"];

/// A broken rule.
pub enum Complaint {
    /// Makes the check fail.
    Hard(String),
    /// Is only printed.
    Soft(String),
}

/// Checks all rules for this kind of file.
pub fn check(source: &Source) -> Vec<Complaint> {
    let mut complaints = Vec::new();
    for (number, line) in source.text.lines().enumerate() {
        for word in unfinished() {
            if has_word(line, &word) {
                complaints
                    .push(Complaint::Hard(format!("line {}: {word}: do it or open an issue", number + 1)));
            }
        }
    }
    if source.path.ends_with(".rs") {
        rust(source, &mut complaints);
        complaints.extend(prose::comments(source).into_iter().map(Complaint::Hard));
    }
    if source.path.ends_with(".md") {
        complaints.extend(prose::check(source).into_iter().map(Complaint::Hard));
    }
    complaints
}

fn rust(source: &Source, complaints: &mut Vec<Complaint>) {
    if !source.text.starts_with("//! ") {
        complaints.push(Complaint::Hard("line 1 must be `//!` and say what the file is".into()));
    }
    let lines = source.text.lines().take_while(|line| *line != "#[cfg(test)]").count();
    let is_test = source.path.contains("tests/") || source.path.ends_with("tests.rs");
    let all = source.text.lines().count();
    if all > HARD_LINES {
        complaints.push(Complaint::Hard(format!("{all} lines, more than {HARD_LINES}")));
    } else if !is_test && lines > SOFT_LINES {
        complaints.push(Complaint::Soft(format!("{lines} lines without tests, more than {SOFT_LINES}")));
    }
    if !UNSAFE_PLACES.iter().any(|place| source.path.starts_with(place)) {
        for (number, line) in without_raw_strings(&source.text).lines().enumerate() {
            if opens_unsafe(line) {
                complaints
                    .push(Complaint::Hard(format!("line {}: unsafe code does not belong here", number + 1)));
            }
        }
    }
}

/// Complains about dependencies of the engine that are not allowed. Dependencies of tests are not limited.
pub fn engine_dependencies(manifest: &str) -> Vec<String> {
    let mut section = "";
    let mut complaints = Vec::new();
    for line in manifest.lines().map(str::trim) {
        if line.starts_with('[') {
            section = line;
            if let Some(name) = line.strip_prefix("[dependencies.") {
                allow(name.trim_end_matches(']'), &mut complaints);
            } else if line.contains("build-dependencies") || line.contains("target.") {
                complaints.push(format!("engine/Cargo.toml: {line} does not belong in the engine"));
            }
        } else if section == "[dependencies]" && !line.is_empty() && !line.starts_with('#') {
            let name = line.split(['.', '=', ' ']).next().unwrap_or_default();
            allow(name, &mut complaints);
        }
    }
    complaints
}

fn allow(name: &str, complaints: &mut Vec<String>) {
    if !ENGINE_DEPENDENCIES.contains(&name) {
        complaints.push(format!(
            "engine/Cargo.toml: {name} is not among the engine's dependencies (xtask/src/tidy/rules.rs)"
        ));
    }
}

/// Words that mark unfinished work. The words are put together from parts, so that this file does not break its own
/// rule.
fn unfinished() -> [String; 2] {
    [["TO", "DO"].concat(), ["FIX", "ME"].concat()]
}

fn has_word(line: &str, word: &str) -> bool {
    line.match_indices(word).any(|(at, _)| {
        let letter = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
        !letter(line[..at].chars().next_back()) && !letter(line[at + word.len()..].chars().next())
    })
}

/// Whether the line has `unsafe` as code: a block, function, impl, trait or attribute. Comments and strings do not
/// count.
fn opens_unsafe(line: &str) -> bool {
    let code = without_strings(line);
    let code = code.split("//").next().unwrap_or_default();
    has_word(code, "unsafe")
}

/// Removes the content of raw strings (`r#"…"#`) except line ends, because such strings may contain the source of
/// another program.
fn without_raw_strings(text: &str) -> String {
    let mut parts = text.split("r#\"");
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (inside, after) = part.split_once("\"#").unwrap_or((part, ""));
        out.extend(inside.chars().filter(|c| *c == '\n'));
        out.push_str(after);
    }
    out
}

/// Removes text between double quotes. This handles only strings within one line.
fn without_strings(line: &str) -> String {
    let line = line.replace("\\\"", "").replace("'\"'", "");
    line.split('"').step_by(2).collect::<Vec<_>>().join("\"\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complaints(path: &str, text: &str) -> Vec<String> {
        check(&Source { path: path.into(), text: text.into() })
            .into_iter()
            .map(|complaint| match complaint {
                Complaint::Hard(text) => format!("hard {text}"),
                Complaint::Soft(text) => format!("soft {text}"),
            })
            .collect()
    }

    #[test]
    fn a_file_without_a_first_comment_is_a_complaint() {
        assert!(complaints("a/src/x.rs", "//! Clean.\nfn main() {}\n").is_empty());
        assert!(complaints("a/src/x.rs", "use std;\n")[0].starts_with("hard line 1"));
    }

    #[test]
    fn a_file_that_is_too_long_is_a_complaint() {
        let long = |lines: usize| format!("//! Long.\n{}", "x();\n".repeat(lines));
        assert!(complaints("a/src/x.rs", &long(299)).is_empty());
        assert!(complaints("a/src/x.rs", &long(300))[0].starts_with("soft 301"));
        assert!(complaints("a/src/x.rs", &long(500))[0].starts_with("hard 501"));
        let tested = |lines| format!("//! Long.\n#[cfg(test)]\n{}", "x();\n".repeat(lines));
        assert!(complaints("a/src/x.rs", &tested(498)).is_empty());
        assert!(complaints("a/src/x.rs", &tested(499))[0].starts_with("hard 501"));
    }

    #[test]
    fn unsafe_code_stays_in_its_places() {
        let text = format!("//! Steps out.\nlet x = {} {{ y() }};\n", "unsafe");
        assert_eq!(complaints("engine/src/x.rs", &text).len(), 1);
        assert!(complaints("capture/src/probe/sources/cpu_ring_reader.rs", &text).is_empty());
        assert!(
            complaints("engine/src/x.rs", "//! Words.\n// unsafe { is a word }\nlet unsafely = 1;\n")
                .is_empty()
        );
    }

    #[test]
    fn a_mark_of_unfinished_work_is_a_complaint() {
        let [first, second] = unfinished();
        assert_eq!(complaints("README.md", &format!("{first}: later\n{second}\n")).len(), 2);
        assert!(complaints("README.md", &format!("{first}S are words\n")).is_empty());
    }

    #[test]
    fn every_document_has_the_rules_of_documents() {
        for path in ["README.md", "CHANGELOG.md", "docs/a.md", "tests/data/README.md"] {
            assert_eq!(complaints(path, "It is said.\n").len(), 1, "{path}");
        }
    }

    #[test]
    fn the_engine_s_dependencies_are_listed() {
        let good = "[package]\nname = \"engine\"\n[dependencies]\nserde.workspace = true\n# tokio\n\n[dev-dependencies]\nproptest = \"1\"\n";
        assert!(engine_dependencies(good).is_empty());
        assert_eq!(engine_dependencies("[dependencies]\ntokio = \"1\"\nserde = \"1\"\n").len(), 1);
        assert_eq!(engine_dependencies("[dependencies.aya]\nversion = \"1\"\n").len(), 1);
        assert_eq!(engine_dependencies("[build-dependencies]\ncc = \"1\"\n").len(), 1);
    }
}
