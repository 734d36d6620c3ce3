//! Quoting names from the input in messages.

/// A name from the input, quoted for a message: at most 60 characters, with control characters escaped.
pub fn quoted(name: &str) -> String {
    const LONGEST: usize = 60;
    let mut text = String::from("\"");
    for (count, letter) in name.chars().enumerate() {
        if count == LONGEST {
            text.push('…');
            break;
        }
        if letter == '\'' {
            text.push(letter);
        } else {
            text.extend(letter.escape_debug());
        }
    }
    text.push('"');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_in_a_message_cannot_drive_the_terminal_or_break_the_line() {
        assert_eq!(quoted("a\u{1b}[2J\nb"), "\"a\\u{1b}[2J\\nb\"");
        assert_eq!(quoted("don't"), "\"don't\"");
        assert_eq!(quoted(&"x".repeat(100)).chars().count(), 63);
    }
}
