//! Splits a Rust file into words: names and punctuation, without comments, strings, attributes and code compiled only
//! for tests.

/// The file's names, `::` and single punctuation characters, in order.
pub fn of(text: &str) -> Vec<&str> {
    without_tests(&all(text))
}

fn all(text: &str) -> Vec<&str> {
    let mut words = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let length = match first {
            _ if rest.starts_with("//") => rest.find('\n').unwrap_or(rest.len()),
            _ if rest.starts_with("/*") => rest.find("*/").map_or(rest.len(), |end| end + 2),
            'r' if raw_string(rest).is_some() => raw_string(rest).unwrap_or(1),
            '"' => string(rest),
            '\'' => character_or_lifetime(rest),
            _ if first.is_alphabetic() || first == '_' => {
                let length = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
                words.push(&rest[..length]);
                length
            }
            _ if rest.starts_with("::") => {
                words.push("::");
                2
            }
            _ => {
                if !first.is_whitespace() {
                    words.push(&rest[..first.len_utf8()]);
                }
                first.len_utf8()
            }
        };
        rest = &rest[length..];
    }
    words
}

/// Length of a string including its closing quote, in bytes.
fn string(rest: &str) -> usize {
    let mut is_escaped = false;
    for (at, c) in rest.char_indices().skip(1) {
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            '"' => return at + 1,
            _ => {}
        }
    }
    rest.len()
}

/// Length of `r"…"` or `r#"…"#` in bytes; `None` if the text is a name.
fn raw_string(rest: &str) -> Option<usize> {
    let hashes = rest[1..].bytes().take_while(|byte| *byte == b'#').count();
    let inside = rest[1 + hashes..].strip_prefix('"')?;
    let end = format!("\"{}", "#".repeat(hashes));
    Some(2 + hashes + inside.find(&end).map_or(inside.len(), |at| at + end.len()))
}

fn character_or_lifetime(rest: &str) -> usize {
    let mut inside = rest.char_indices().skip(1);
    match inside.next() {
        Some((_, '\\')) => rest[3..].find('\'').map_or(rest.len(), |at| at + 4),
        Some((at, c)) if rest[at + c.len_utf8()..].starts_with('\'') => at + c.len_utf8() + 1,
        // A lifetime, whose name follows.
        _ => 1,
    }
}

/// Removes attributes, and the items after `#[cfg(test)]` and `#[cfg(any(test, …))]`.
fn without_tests<'a>(words: &[&'a str]) -> Vec<&'a str> {
    let mut kept = Vec::new();
    let mut at = 0;
    while let Some(word) = words.get(at) {
        if *word == "#" && matches!(words.get(at + 1), Some(&"[") | Some(&"!")) {
            let end = closing(words, at);
            let attribute = words.get(at..end).unwrap_or_default();
            let has = |word| attribute.contains(&word);
            at = if has("cfg") && has("test") && !has("not") { item(words, end) } else { end };
        } else {
            kept.push(*word);
            at += 1;
        }
    }
    kept
}

/// Index after the item that begins here.
fn item(words: &[&str], mut at: usize) -> usize {
    while words.get(at) == Some(&"#") {
        at = closing(words, at);
    }
    while let Some(word) = words.get(at) {
        match *word {
            "{" => return closing(words, at),
            "(" | "[" => at = closing(words, at),
            ";" | "," => return at + 1,
            "}" | ")" => return at,
            _ => at += 1,
        }
    }
    at
}

/// Index after the bracket that closes the first opening bracket at or after `from`.
fn closing(words: &[&str], from: usize) -> usize {
    let mut depth = 0usize;
    for (at, word) in words.iter().enumerate().skip(from) {
        match *word {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return at + 1;
                }
            }
            _ => {}
        }
    }
    words.len()
}

#[cfg(test)]
mod tests {
    use super::of;

    #[test]
    fn only_code_outside_comments_and_strings_has_words() {
        let text = "// a\n/* b */ use c::d; let e: &'f str = \"g \\\" h\"; r#\"i \" j\"#; 'k'; '\\'' ; rest";
        let words =
            ["use", "c", "::", "d", ";", "let", "e", ":", "&", "f", "str", "=", ";", ";", ";", ";", "rest"];
        assert_eq!(of(text), words);
    }

    #[test]
    fn code_compiled_only_for_tests_has_no_words() {
        let text = "#[cfg(test)] #[derive(A)] mod b { c() } d; #[cfg(any(test, x))] use e; #[cfg(not(test))] f; #[g] h";
        assert_eq!(of(text), ["d", ";", "f", ";", "h"]);
    }
}
