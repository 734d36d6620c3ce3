//! Wraps sentences at the terminal's width.

use crate::cell::width;

/// Splits a sentence into lines of at most `columns`, the second and later ones indented. Without a number, it stays in
/// one line.
pub fn paragraph(text: &str, columns: Option<usize>) -> Vec<String> {
    let room = columns.map(|columns| columns.saturating_sub(2));
    let mut lines = folded(&text.split(' ').collect::<Vec<_>>(), room, "");
    lines.iter_mut().skip(1).for_each(|line| line.insert_str(0, "  "));
    lines
}

/// Words in lines of at most this width; `where_cut` is appended to each line but the last one.
pub(super) fn folded(words: &[&str], room: Option<usize>, where_cut: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in words {
        match lines.last_mut() {
            Some(line) if room.is_none_or(|room| width(line) + 1 + width(word) <= room) => {
                line.push(' ');
                line.push_str(word);
            }
            last => {
                if let Some(line) = last {
                    line.push_str(where_cut);
                }
                lines.push((*word).to_owned());
            }
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_paragraph_is_wrapped_at_the_width_of_the_terminal() {
        let text =
            "std: 1 of 641 functions probed; left out: 606 of the Rust standard library and 35 aliases";
        assert_eq!(paragraph(text, None), [text]);
        let lines = [
            "std: 1 of 641 functions probed; left out:",
            "  606 of the Rust standard library and 35",
            "  aliases",
        ];
        assert_eq!(paragraph(text, Some(44)), lines);
    }
}
