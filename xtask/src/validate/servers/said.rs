//! Reads LIMIT, "Or" and FIX from the text of longpole's first screen.

use anyhow::{Context, Result};

/// The result if the cause is in LIMIT.
pub const FIRST: &str = "first";
/// The result if the cause is not on the screen.
pub const NOWHERE: &str = "-";
/// Rows of these parts are indented by this, below their heads.
const MARGIN: &str = "       ";

/// The part of the first screen that is about limits.
pub struct Screen {
    /// LIMIT without its "Or" rows.
    pub limit: String,
    /// The rows "Or".
    alternatives: Vec<String>,
    /// Rows of FIX: the change and its gain.
    fixes: Vec<(String, String)>,
    /// Number of CPUs that were used by programs outside of the recording.
    pub others: f64,
}

impl Screen {
    /// Reads what `longpole report` prints.
    ///
    /// # Errors
    /// There is no LIMIT.
    pub fn parse(text: &str) -> Result<Screen> {
        let mut limit = Vec::new();
        let (mut alternatives, mut fixes): (Vec<String>, Vec<(String, String)>) = (Vec::new(), Vec::new());
        let mut part = "";
        for line in text.lines() {
            let (head, row) = line.split_at_checked(MARGIN.len()).unwrap_or((line, ""));
            if head != MARGIN {
                part = head.trim();
            }
            match part {
                // A limit on a machine with more CPUs does not count.
                "LIMIT" if row.starts_with("On ") && row.contains(" CPUs: ") => part = "",
                "LIMIT" if row.starts_with("Or, ") => alternatives.push(row.to_owned()),
                "LIMIT" => match alternatives.last_mut() {
                    // The text of a long row continues. Sentences about the whole limit come before the first "Or".
                    Some(above) => *above = format!("{above} {row}"),
                    None => limit.push(row),
                },
                "FIX" => fixes.push(change(row)),
                _ => {}
            }
        }
        let limit = limit.join(" ");
        let others = text.split_once("OTHERS programs that were not recorded used ");
        let others = others.and_then(|(_, rest)| rest.split(' ').next()?.parse().ok()).unwrap_or(0.0);
        (!limit.is_empty())
            .then_some(Screen { limit, alternatives, fixes, others })
            .context("no LIMIT on the screen")
    }

    /// Where one of these words occurs: `first`, `row 2`, or `-` for nowhere.
    pub fn place_of(&self, words: &[&str]) -> String {
        let has = |text: &str| words.iter().any(|word| text.to_lowercase().contains(word));
        if has(&self.limit) {
            return FIRST.to_owned();
        }
        let rows = self.alternatives.iter().chain(self.fixes.iter().map(|(what, _)| what));
        let at = rows.enumerate().find(|(_, row)| has(row)).map(|(at, _)| at);
        at.map_or(NOWHERE.to_owned(), |at| format!("row {}", at + 2))
    }

    /// The predicted gain of the first change that contains all of these words.
    pub fn promise(&self, words: &[&str]) -> Option<String> {
        let has = |what: &str| !words.is_empty() && words.iter().all(|word| what.contains(word));
        let (_, gain) = self.fixes.iter().find(|(what, _)| has(what))?;
        Some(gain.clone())
    }
}

/// Splits a row of FIX into the change and its gain. Gains on other numbers of CPUs are removed. After a long change,
/// only one blank precedes the gain.
fn change(row: &str) -> (String, String) {
    let now = row.rsplit_once('(').filter(|(_, rest)| rest.contains(" on ")).map_or(row, |(now, _)| now);
    let words: Vec<&str> = now.split_whitespace().collect();
    let is_of_gain =
        |word: &&&str| matches!(**word, "up" | "to" | "%") || word.starts_with(['+', '-', '±', '~']);
    let split = words.len() - words.iter().rev().take_while(is_of_gain).count();
    (words[..split].join(" "), words[split..].join(" "))
}

#[cfg(test)]
mod tests {
    use super::Screen;

    const TEXT: &str = "\
nginx   3.00 s on 2 CPUs, 2 threads
OTHERS programs that were not recorded used 0.67 CPUs: wrk

LIMIT  only one thread computes, mostly in deflate: more CPUs would be
       idle.
       Or, up to 30 %: the kernel: write takes 33 % of the CPU
       time.
       On 16 CPUs: waiting for disk.
FIX    divide that work among 2 threads       up to -50 %   (-50 % on 16 CPUs)
       deflate 2x faster                       -49 ±7 %     (-49 % on 16 CPUs)
       divide main(int) among 2 threads up to -13 %(-13 % on 16 CPUs)
       do not sleep                            +14 to -100 %(-94 % on 16 CPUs)
SURE   fair, 2 notes (longpole notes gz.lp)

CPUs         1 to ∞
";

    #[test]
    fn limit_or_and_fix_are_read_from_a_screen() {
        let screen = Screen::parse(TEXT).unwrap();
        assert_eq!(screen.limit, "only one thread computes, mostly in deflate: more CPUs would be idle.");
        assert_eq!(screen.others, 0.67);
        assert_eq!(screen.place_of(&["lock", "one thread"]), "first");
        assert_eq!(screen.place_of(&["write takes 33 % of the cpu time"]), "row 2");
        assert_eq!(screen.place_of(&["2x faster"]), "row 4");
        assert_eq!(screen.place_of(&["disk"]), "-");
        assert_eq!(screen.promise(&["divide", "2 threads"]).unwrap(), "up to -50 %");
        assert_eq!(screen.promise(&["2x faster"]).unwrap(), "-49 ±7 %");
        assert_eq!(screen.promise(&["main(int)", "2 threads"]).unwrap(), "up to -13 %");
        assert_eq!(screen.promise(&["do not sleep"]).unwrap(), "+14 to -100 %");
        assert!(screen.promise(&[]).is_none());
        assert!(Screen::parse("nothing").is_err());
    }
}
