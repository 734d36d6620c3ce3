//! Patterns for function names: `*` is any text, `?` any one character, everything else is itself. `[`, `{`, `/` and `::` are
//! common in names, so they are not special.

/// Whether `pattern` matches the complete text. Takes at most length × length steps.
pub fn matches(pattern: &str, text: &str) -> bool {
    let (pattern, text) = (pattern.as_bytes(), text.as_bytes());
    let (mut p, mut t) = (0, 0);
    // Where to retry if the present attempt fails: after the last star of the pattern, one byte further in the text.
    let mut retry: Option<(usize, usize)> = None;
    while t < text.len() {
        match pattern.get(p) {
            Some(b'*') => {
                p += 1;
                retry = Some((p, t));
            }
            Some(b'?') => {
                p += 1;
                t += 1;
                // The rest of a character of several bytes.
                while text.get(t).is_some_and(|byte| byte & 0xc0 == 0x80) {
                    t += 1;
                }
            }
            Some(&byte) if byte == text[t] => {
                p += 1;
                t += 1;
            }
            _ => match &mut retry {
                Some((after_star, from)) => {
                    *from += 1;
                    (p, t) = (*after_star, *from);
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|&byte| byte == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_s_stars_and_question_marks_match_any_text() {
        for (pattern, text) in [
            ("sort", "sort"),
            ("*", ""),
            ("*sort*", "my::quick_sort(int*)"),
            ("s?rt", "sört"),
            ("a*b*c", "a--b-b-c"),
            ("operator/*", "operator/(A)"),
            ("*{{closure}}", "m::f::{{closure}}"),
            ("<[T]>::*", "<[T]>::len"),
        ] {
            assert!(matches(pattern, text), "{pattern} {text}");
        }
        for (pattern, text) in [("sort", "sorted"), ("", "a"), ("?", ""), ("a*b", "a-c"), ("*a", "ab")] {
            assert!(!matches(pattern, text), "{pattern} {text}");
        }
    }

    #[test]
    fn a_pattern_of_many_stars_is_matched_in_time() {
        assert!(!matches(&"*a".repeat(200), &"a".repeat(199)));
        assert!(!matches(&format!("{}b", "*a".repeat(30)), &"a".repeat(20_000)));
    }
}
