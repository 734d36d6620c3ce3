//! Checks the text of documents: plain English in short sentences, a limit on the number of words, and no missing paths
//! or tests. The rule of plain words also applies to comments.

use super::files::Source;

/// Largest number of words in a sentence. A piece of code counts as one word. Tables, headings and addresses of links
/// are ignored.
const MOST_WORDS: usize = 30;
/// Phrases that are translated word for word from another language, with plain English for most of their uses.
const CALQUES: [(&str, &str); 27] = [
    ("anew", "again"),
    ("are said", "say who says it"),
    ("are told", "say who tells it"),
    ("as it were", "nothing"),
    ("beside", "besides, next to, with"),
    ("dear", "expensive"),
    ("dearer", "more expensive"),
    ("dearest", "most expensive"),
    ("given back", "released, returned, restored"),
    ("gives back", "releases, returns, restores"),
    ("handed over", "passed on"),
    ("hands over", "passes on"),
    ("in earnest", "nothing"),
    ("in vain", "without success, forever"),
    ("is said", "say who says it"),
    ("is told", "say who tells it"),
    ("keeps house", "does housekeeping"),
    ("reckon", "compute"),
    ("reckons", "computes"),
    ("seldom", "rarely"),
    ("so many", "this many, a number of"),
    ("thereby", "by this"),
    ("told apart", "distinguished, separated"),
    ("was said", "say who said it"),
    ("what is left out", "the rest"),
    ("what was left out", "the rest"),
    ("whoever", "the thread that, anyone who"),
];
/// Largest number of words in a document. The limit for a folder applies to each file in it.
const BUDGETS: [(&str, usize); 4] =
    [("ARCHITECTURE.md", 2_500), ("CHANGELOG.md", 1_500), ("README.md", 1_200), ("docs/decisions/", 100)];
/// Folders at the root whose paths in documents are checked.
const FOLDERS: [&str; 12] = [
    "capture/",
    "collector/",
    "docs/",
    "engine/",
    "probe-abi/",
    "probe-ebpf/",
    "probe-preload/",
    "recording/",
    "symbols/",
    "tests/",
    "view/",
    "xtask/",
];

/// Checks a document's words and sentences, and returns the complaints.
pub fn check(source: &Source) -> Vec<String> {
    let mut complaints = Vec::new();
    let words = source.text.split_whitespace().count();
    for (_, most) in BUDGETS.iter().filter(|(path, most)| source.path.starts_with(path) && words > *most) {
        complaints.push(format!("{words} words, more than {most}"));
    }
    let mut is_code = false;
    // The line in which the sentence begins, and the number of its words so far.
    let (mut first, mut words) = (1, 0);
    for (number, line) in (1..).zip(source.text.lines()) {
        let is_fence = line.trim_start().starts_with("```");
        is_code ^= is_fence;
        if is_fence || is_code || line.trim().is_empty() || line.starts_with(['#', '<']) {
            words = 0;
            continue;
        }
        let line = without_code(line);
        calques(number, &line, &mut complaints);
        if line.starts_with('|') {
            words = 0;
            continue;
        }
        if is_item(&line) {
            words = 0;
        }
        for word in line.split_whitespace().filter(|word| word.chars().any(char::is_alphanumeric)) {
            if words == 0 {
                first = number;
            }
            words += 1;
            if words == MOST_WORDS + 1 {
                complaints.push(format!("line {first}: a sentence of more than {MOST_WORDS} words"));
            }
            if word.trim_end_matches(['*', ')', '"', '_', '”', ']']).ends_with(['.', ':', '!', '?']) {
                words = 0;
            }
        }
    }
    complaints
}

/// Checks a source file's comments for the same phrases. Comments after code are ignored.
pub fn comments(source: &Source) -> Vec<String> {
    let mut complaints = Vec::new();
    for (number, line) in (1..).zip(source.text.lines()) {
        if let Some(comment) = line.trim_start().strip_prefix("//") {
            calques(number, &without_code(comment), &mut complaints);
        }
    }
    complaints
}

fn calques(number: usize, line: &str, complaints: &mut Vec<String>) {
    for (phrase, plain) in CALQUES.iter().filter(|(phrase, _)| has_phrase(line, phrase)) {
        complaints.push(format!("line {number}: “{phrase}” is no plain English: {plain}"));
    }
}

/// Checks that paths in backquotes exist. `exists` gets each path, relative to the workspace.
pub fn named_paths(source: &Source, exists: impl Fn(&str) -> bool) -> Vec<String> {
    let mut complaints = Vec::new();
    let mut is_code = false;
    for (number, line) in (1..).zip(source.text.lines()) {
        is_code ^= line.starts_with("```");
        for path in line.split('`').skip(1).step_by(2).filter(|_| !is_code) {
            let is_path = FOLDERS.iter().any(|folder| path.starts_with(folder))
                && path.chars().all(|c| c.is_alphanumeric() || "/._-".contains(c));
            if is_path && !exists(path) {
                complaints.push(format!("line {number}: there is no {path}"));
            }
        }
    }
    complaints
}

/// Checks that tests exist. Their names are in backquotes in tables whose last column is called `test`.
pub fn named_tests(document: &Source, sources: &[Source]) -> Vec<String> {
    let last_cell = |line: &'_ str| line.trim_end_matches('|').rsplit('|').next().map(str::to_owned);
    let mut names = Vec::new();
    let mut is_named = false;
    let mut before = "";
    for line in document.text.lines() {
        if line.starts_with("|---") {
            is_named = last_cell(before).is_some_and(|cell| cell.trim() == "test");
        } else if !line.starts_with('|') {
            is_named = false;
        } else if is_named {
            let cell = last_cell(line).unwrap_or_default();
            names.extend(cell.split('`').skip(1).step_by(2).map(str::to_owned));
        }
        before = line;
    }
    if names.is_empty() {
        return vec!["names no test".into()];
    }
    let is_there = |name: &str| {
        let start = format!("fn {name}()");
        sources.iter().any(|source| source.text.contains(&start))
    };
    let missing = names.into_iter().filter(|name| !is_there(name));
    missing.map(|name| format!("there is no test {name}")).collect()
}

/// Replaces each piece of code in the line by a letter, and removes the addresses of links.
fn without_code(line: &str) -> String {
    let mut text = String::new();
    for (number, part) in line.split('`').enumerate() {
        text.push_str(if number % 2 == 0 { part } else { "x" });
    }
    let mut parts = text.split("](");
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        plain.push(']');
        plain.push_str(part.split_once(')').map_or("", |(_, after)| after));
    }
    plain
}

/// Whether the line begins a new item of a list.
fn is_item(line: &str) -> bool {
    let line = line.trim_start();
    let after_number = line.trim_start_matches(|c: char| c.is_ascii_digit());
    line.starts_with("- ")
        || line.starts_with("* ")
        || (after_number != line && after_number.starts_with(". "))
}

/// Whether the line contains this phrase, in upper or lower case.
fn has_phrase(line: &str, phrase: &str) -> bool {
    let line = line.to_lowercase();
    line.match_indices(phrase).any(|(at, _)| {
        let is_letter = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
        !is_letter(line[..at].chars().next_back()) && !is_letter(line[at + phrase.len()..].chars().next())
    })
}

#[cfg(test)]
mod tests {
    use super::{MOST_WORDS, Source, check, comments, named_paths, named_tests};

    fn page(path: &str, text: &str) -> Source {
        Source { path: path.into(), text: text.into() }
    }

    fn complaints(text: &str) -> Vec<String> {
        check(&page("docs/a.md", text))
    }

    #[test]
    fn a_calque_in_a_document_is_a_complaint() {
        assert_eq!(
            complaints("Fine.\nWhoever it is, it\nis said.\n"),
            [
                "line 2: “whoever” is no plain English: the thread that, anyone who",
                "line 3: “is said” is no plain English: say who says it"
            ]
        );
        assert_eq!(complaints("| besides | beside |\n|---|---|\n").len(), 1);
        assert!(complaints("Besides: `live/beside.rs`.\n\n```\nwhoever\n```\n").is_empty());
    }

    #[test]
    fn a_calque_in_a_comment_is_a_complaint() {
        let text = "//! Fine.\n    /// Whoever `beside` it is.\nlet beside = 1; // whoever\n";
        assert_eq!(
            comments(&page("a/src/x.rs", text)),
            ["line 2: “whoever” is no plain English: the thread that, anyone who"]
        );
    }

    #[test]
    fn a_sentence_of_more_than_thirty_words_is_a_complaint() {
        let words = |count: usize| "word ".repeat(count);
        assert!(complaints(&format!("{}.\n", words(MOST_WORDS).trim())).is_empty());
        assert_eq!(
            complaints(&format!("One.\n{}\n{}.\n", words(MOST_WORDS), words(1).trim())),
            ["line 2: a sentence of more than 30 words"]
        );
        // In these texts something ends a sentence, or resets the count of words.
        for text in [
            format!("{}. {}.", words(20).trim(), words(20).trim()),
            format!("- {}\n- {}", words(20), words(20)),
            format!("{}\n\n{}", words(20), words(20)),
            format!("| {} |", words(40)),
            format!("`{}`.", words(40)),
            format!("[a](b{}).", words(40)),
        ] {
            assert!(complaints(&text).is_empty(), "{text}");
        }
    }

    #[test]
    fn a_document_beyond_its_budget_of_words_is_a_complaint() {
        let long = "word.\n".repeat(101);
        assert_eq!(check(&page("docs/decisions/001-a.md", &long)), ["101 words, more than 100"]);
        assert!(check(&page("docs/a.md", &long)).is_empty());
    }

    #[test]
    fn a_path_that_does_not_exist_is_a_complaint() {
        let page = page("A.md", "`engine/src/a.rs`, `engine/src/b.rs`, `b.rs`, `engine::x`, `tests/{a,b}`\n");
        assert_eq!(
            named_paths(&page, |path| path == "engine/src/a.rs"),
            ["line 1: there is no engine/src/b.rs"]
        );
    }

    #[test]
    fn a_test_name_in_a_table_that_does_not_exist_is_a_complaint() {
        let source = page("a/tests/x.rs", "#[test]\nfn is_there() {}\n");
        let named = |cell: &str| {
            let text =
                format!("| a | b |\n|---|---|\n| x | `no` |\n\n| what | test |\n|---|---|\n| x | {cell} |\n");
            named_tests(&page("docs/a.md", &text), std::slice::from_ref(&source))
        };
        assert_eq!(named("`is_there`"), Vec::<String>::new());
        assert_eq!(named("`is_there`, `is_gone`"), ["there is no test is_gone"]);
        assert_eq!(named("–"), ["names no test"]);
    }
}
