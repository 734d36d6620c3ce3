//! The summary that `record` writes to stderr at the end.

use super::paragraph::folded;
use crate::cell::{bytes, counted, duration, grouped};
use crate::live::main_loop::UnprobedCounts;
use crate::plan::Breakpoints;
use crate::present::style::{Paint, Style};
use crate::present::words::finding::missing;
use crate::present::words::short::short;
use engine::event::{LeftOut, LossCounts, Overhead, SampleCounts, SamplingFact};
use recording::FileLimits;
use std::io::{self, Write};
use std::path::Path;
use std::time::Duration;

/// Put before continuation lines: as wide as a label.
const INDENT: &str = "          ";

/// If more samples than this were skipped for each sample taken, the summary says so.
const FEW_LEFT: u64 = 3;

/// The facts of the summary.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RecordSummary {
    /// The limit, if known.
    pub limit: Option<String>,
    /// Options of the next command.
    pub per: String,
    /// The recorded subject, e.g. `quicksort (pid 4242)`.
    pub subject: String,
    /// Length of the recording.
    pub elapsed: Duration,
    /// Length of the part that was kept.
    pub kept_for: Duration,
    /// Which part was kept, in words; `None`: all of it.
    pub kept: Option<String>,
    /// Records in the file.
    pub events: u64,
    /// Size of the file.
    pub file_bytes: u64,
    /// The file's path.
    pub file: std::path::PathBuf,
    /// Lost records.
    pub loss: LossCounts,
    /// Facts that the file had no room for.
    pub left_out: LeftOut,
    /// Functions that got probes, in any process.
    pub probed: usize,
    /// Names of functions that lost their probes again because of too many calls.
    pub taken_off: Vec<String>,
    /// Functions that the kernel would not probe in any process.
    pub refused: usize,
    /// Processes that started later and got no probes.
    pub unprobed: UnprobedCounts,
    /// Where in the target breakpoints could be written.
    pub breakpoints: Breakpoints,
    /// How synchronization operations were recorded, or why they were not.
    pub locks: String,
    /// How stacks were sampled, and counts of samples by result.
    pub samples: Option<(SamplingFact, SampleCounts)>,
    /// The cost of recording.
    pub overhead: Option<Overhead>,
    /// Children were recorded, too.
    pub children: bool,
    /// The command that longpole started and that has not ended, e.g. `quicksort (pid 4242)`.
    pub runs_on: Option<String>,
    /// The command that longpole started, if it has ended after it also got ^C.
    pub interrupted: Option<String>,
}

impl RecordSummary {
    /// Writes the summary: one fact per line, the next command last. Lines longer than `columns` are wrapped between words
    /// and indented; without a number each fact is one line, however long.
    pub fn write(&self, style: &Style, columns: Option<usize>, mut out: impl Write) -> io::Result<()> {
        let room = columns.map(|columns| columns.saturating_sub(INDENT.len()));
        let mut put = |label: &str, paint: Paint, words: &[&str], where_cut: &str| {
            for (number, line) in folded(words, room, where_cut).iter().enumerate() {
                let label = if number == 0 { label } else { "" };
                writeln!(out, "{label:<9} {}", style.paint(paint, line))?;
            }
            Ok::<(), io::Error>(())
        };
        let mut line = |label: &str, paint: Paint, text: &str| {
            put(label, paint, &style.text(text).split(' ').collect::<Vec<_>>(), "")
        };
        let seconds = self.elapsed.as_secs_f64();
        let left_out = self.left_out_text();
        let paint = if left_out.is_some() { Paint::Warning } else { Paint::Plain };
        let left_out = left_out.map_or(String::new(), |text| format!("; {text}"));
        line("recorded", paint, &format!("{}, {}{left_out}", self.subject, duration(seconds * 1e9)))?;
        if let Some(kept) = &self.kept {
            line("kept", Paint::Plain, kept)?;
        }
        line("events", Paint::Plain, &self.events_text(self.kept_for.as_secs_f64()))?;
        let lost = self.loss.lost();
        let paint = if lost > 0 { Paint::Warning } else { Paint::Plain };
        line("lost", paint, &self.lost_text(lost))?;
        if !self.left_out.is_nothing() {
            let most = FileLimits::FILE.bytes >> 20;
            let text =
                format!("{}: a file holds {most} MiB of everything but events", missing(&self.left_out));
            line("left out", Paint::Warning, &text)?;
        }
        line("probes", Paint::Plain, &self.probes_text())?;
        if let Some((sampling, counts)) = &self.samples {
            line("samples", Paint::Plain, &crate::present::samples(sampling, Some(counts)))?;
        }
        if let Some(cost) = &self.overhead {
            line("cost", Paint::Plain, &crate::present::cost(cost))?;
        }
        line("locks", Paint::Plain, &self.locks_text())?;
        // A path is never wrapped.
        let file = style.text(&format!("{},", self.file.display()));
        put("file", Paint::Plain, &[&file, &bytes(self.file_bytes)], "")?;
        let mut line = |label: &str, paint: Paint, text: &str| {
            put(label, paint, &style.text(text).split(' ').collect::<Vec<_>>(), "")
        };
        if let Some(command) = &self.runs_on {
            line("command", Paint::Plain, &runs_on_text(command))?;
        }
        if let Some(command) = &self.interrupted {
            line("command", Paint::Plain, &interrupted_text(command))?;
        }
        if self.events > 0 || self.limit.is_some() {
            if let Some(limit) = &self.limit {
                line("LIMIT", Paint::Bold, limit)?;
            }
            // The shell continues after a backslash.
            let file = style.text(&shell_word(&self.file));
            return put("next", Paint::Bold, &[&format!("longpole report{}", self.per), &file], " \\");
        }
        line("nothing", Paint::Warning, "was recorded, so there is nothing to report")?;
        let hint = style.text(&format!("hint: {}", self.empty_hint()));
        for line in folded(&hint.split(' ').collect::<Vec<_>>(), columns, "") {
            writeln!(out, "{}", style.paint(Paint::Bold, &line))?;
        }
        Ok(())
    }

    /// What is missing in the recording because it had to stay within its budget. Function probes do not count: samples
    /// still have these calls. Without this line a reader would assume that the recording is complete.
    fn left_out_text(&self) -> Option<String> {
        let mut parts = Vec::new();
        if self.loss.operations_left_out > 0 {
            parts.push(format!("{} lock operations", grouped(self.loss.operations_left_out)));
        }
        // With half of the ticks the shares are the same, with a wider ±. So a small number of skipped samples is not
        // worth a line.
        if let Some((_, counts)) = self.samples
            && counts.left_out > FEW_LEFT.saturating_mul(counts.taken)
        {
            let all = counts.left_out.saturating_add(counts.taken);
            parts.push(format!("{} of {} samples", grouped(counts.left_out), grouped(all)));
        }
        (!parts.is_empty()).then(|| format!("left out to keep to --overhead: {}", parts.join(" and ")))
    }

    /// A hint for a recording without a single event.
    fn empty_hint(&self) -> &'static str {
        if self.loss.lost() > 0 {
            "every event was lost: try a larger --ring-size or fewer --functions"
        } else if self.children {
            "no thread ran or was woken in this time: record while the program works, or for longer"
        } else {
            "no thread ran or was woken in this time: record while the program works, or for longer; if its child \
             processes do the work, add --children"
        }
    }

    fn events_text(&self, seconds: f64) -> String {
        let mut text = grouped(self.events);
        if self.events > 0 && seconds > 0.0 {
            let rate = (self.events as f64 / seconds).round() as u64;
            text.push_str(&format!(", {} a second", grouped(rate)));
        }
        text
    }

    fn locks_text(&self) -> String {
        let mut text = self.locks.clone();
        let operations = |count: u64| counted(usize::try_from(count).unwrap_or(usize::MAX), "operation");
        match self.loss.operations_left_out {
            0 => {}
            left_out => text.push_str(&format!(
                "; {} of mutexes left out to keep to --overhead, while one thread was alone in its process",
                operations(left_out)
            )),
        }
        match self.loss.operations_counted {
            0 => {}
            counted => text.push_str(&format!(
                "; {} without a waiter only counted, since they came faster than longpole could read them",
                operations(counted)
            )),
        }
        match self.loss.operations_forbidden {
            0 => {}
            forbidden => text.push_str(&format!(
                "; {} of threads that may not read the clock or call the kernel (seccomp, PR_SET_TSC) only counted",
                operations(forbidden)
            )),
        }
        text
    }

    fn lost_text(&self, lost: u64) -> String {
        if lost == 0 {
            return "0".to_owned();
        }
        let LossCounts { dropped, missed, operations, operations_short, late, undecodable, .. } = self.loss;
        let short = operations_short.min(operations);
        let reasons = [
            (dropped, "did not fit into the rings: try a larger --ring-size or fewer --functions"),
            (
                short,
                "lock operations found no memory, which all threads share: free memory or raise its limit (a larger --ring-size does not help); --interpose never needs none",
            ),
            (
                operations - short,
                "lock operations came faster than longpole could read them, or their thread was killed while writing one: a larger --ring-size holds more, --interpose never records none",
            ),
            (missed, "the kernel did not run the program"),
            (late, "came too late to be sorted in"),
            (undecodable, "could not be decoded"),
        ];
        let reasons = reasons.iter().filter(|(count, _)| *count > 0);
        let reasons: Vec<String> = reasons.map(|(count, why)| format!("{} {why}", grouped(*count))).collect();
        let share = 100.0 * lost as f64 / (lost as f64 + self.events as f64);
        format!("{} ({share:.2} %): {}", grouped(lost), reasons.join(", "))
    }

    fn probes_text(&self) -> String {
        if self.breakpoints == Breakpoints::None {
            return "none: no byte of the program is changed; functions are known from samples (--exact counts calls)"
                .to_owned();
        }
        let off = self.taken_off.len();
        let on = self.probed.saturating_sub(off);
        let mut text = format!("{} on, {} off", counted(on, "function"), grouped(off as u64));
        if off > 0 {
            let names: Vec<String> = self.taken_off.iter().take(3).map(|name| short(name)).collect();
            let more = off.saturating_sub(names.len());
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            text.push_str(&format!(
                " (called too often, counted for their callers: {}{more})",
                names.join(", ")
            ));
        }
        if self.refused > 0 {
            text.push_str(&format!("; the kernel refused {}", counted(self.refused, "function")));
        }
        let UnprobedCounts { ended, refused, why } = &self.unprobed;
        if *refused > 0 {
            let why = why.as_deref().unwrap_or_default();
            text.push_str(&format!("; {} got none ({why})", counted(*refused, "process")));
        }
        if *ended > 0 {
            text.push_str(&format!("; {} ended before getting any", counted(*ended, "process")));
        }
        if self.loss.recursion_folded > 0 {
            let folded = grouped(self.loss.recursion_folded);
            text.push_str(&format!("; {folded} recursive calls folded into their outermost"));
        }
        text
    }
}

/// A sentence on a command that longpole started and that has not ended, e.g. `quicksort (pid 4242)`.
pub fn runs_on_text(command: &str) -> String {
    format!("{command} has not ended and runs on without longpole")
}

/// A sentence on a command that longpole started and that ended by ^C.
fn interrupted_text(command: &str) -> String {
    format!(
        "{command} has ended: ^C goes to the command, too; to end only the recording, start the program yourself and attach with -p"
    )
}

/// The path as one word of a shell command.
pub(super) fn shell_word(path: &Path) -> String {
    let text = path.display().to_string();
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._+-=:,@%".contains(c);
    if !text.is_empty() && !text.starts_with('-') && text.chars().all(plain) {
        return text;
    }
    // A leading dash would be an option.
    let text = if text.starts_with('-') { format!("./{text}") } else { text };
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cell::width;

    const STYLE: Style = Style { colour: false, unicode: true, width: 100 };

    fn summary() -> RecordSummary {
        RecordSummary {
            subject: "quicksort (pid 4242)".into(),
            elapsed: Duration::from_millis(10_040),
            kept_for: Duration::from_millis(10_040),
            events: 812_345,
            file_bytes: 6_417_525,
            file: "longpole-quicksort-4242-20260101T000000Z.lp".into(),
            probed: 14,
            breakpoints: Breakpoints::Exact,
            locks: "recorded by probes on the functions of libc.so.6".into(),
            ..RecordSummary::default()
        }
    }

    fn text(summary: &RecordSummary) -> String {
        let mut out = vec![];
        summary.write(&STYLE, None, &mut out).expect("written");
        String::from_utf8(out).expect("text")
    }

    #[test]
    fn the_summary_says_what_was_recorded_and_the_next_command() {
        assert_eq!(
            text(&summary()),
            "recorded  quicksort (pid 4242), 10.0 s\n\
             events    812,345, 80,911 a second\n\
             lost      0\n\
             probes    14 functions on, 0 off\n\
             locks     recorded by probes on the functions of libc.so.6\n\
             file      longpole-quicksort-4242-20260101T000000Z.lp, 6.4 MB\n\
             next      longpole report longpole-quicksort-4242-20260101T000000Z.lp\n"
        );
    }

    #[test]
    fn operations_and_samples_left_out_are_on_the_summary_s_first_line() {
        let mut summary = summary();
        summary.loss.operations_left_out = 1_200;
        let counts = SampleCounts { taken: 100, left_out: 200, ..SampleCounts::default() };
        let sampling = SamplingFact { rate_hz: 499, call_graph: engine::event::CallGraph::Auto };
        summary.samples = Some((sampling, counts));
        let first = |summary: &RecordSummary| text(summary).lines().next().unwrap_or_default().to_owned();
        assert_eq!(
            first(&summary),
            "recorded  quicksort (pid 4242), 10.0 s; left out to keep to --overhead: 1,200 lock operations"
        );
        summary.samples = Some((sampling, SampleCounts { left_out: 900, ..counts }));
        assert!(
            first(&summary).ends_with("1,200 lock operations and 900 of 1,000 samples"),
            "{}",
            first(&summary)
        );
    }

    #[test]
    fn the_summary_says_what_the_file_had_no_room_for() {
        let left_out = LeftOut { stacks: 12, ..LeftOut::default() };
        let said = text(&RecordSummary { left_out, ..summary() });
        let line = "left out  12 stacks of samples: a file holds 256 MiB of everything but events";
        assert_eq!(said.lines().nth(3), Some(line), "{said}");
    }

    /// Without wrapping, the terminal would break the lines at any place.
    #[test]
    fn a_long_summary_line_is_wrapped_under_its_beginning() {
        let mut summary = summary();
        summary.loss = LossCounts { dropped: 1_000, late: 2, ..LossCounts::default() };
        summary.file =
            "/home/somebody/measurements/of  today/longpole-quicksort-4242-20260101T000000Z.lp".into();
        let mut out = vec![];
        summary.write(&STYLE, Some(60), &mut out).expect("written");
        let text = String::from_utf8(out).expect("text");
        let lost = [
            "lost      1,002 (0.12 %): 1,000 did not fit into the rings:",
            "          try a larger --ring-size or fewer --functions, 2",
            "          came too late to be sorted in\n",
        ];
        assert!(text.contains(&lost.join("\n")), "{text}");
        // Paths are not broken, so the command can still be pasted.
        let path = "/home/somebody/measurements/of  today/longpole-quicksort-4242-20260101T000000Z.lp";
        assert!(text.contains(&format!("file      {path},\n          6.4 MB\n")), "{text}");
        assert!(text.ends_with(&format!("next      longpole report \\\n          '{path}'\n")), "{text}");
        for line in text.lines().filter(|line| !line.contains(path)) {
            assert!(width(line) <= 60, "{line}");
        }
    }

    #[test]
    fn the_summary_lists_losses_by_reason_and_functions_by_name() {
        let mut summary = summary();
        summary.loss = LossCounts { dropped: 1_000, late: 2, recursion_folded: 5, ..LossCounts::default() };
        summary.taken_off = ["swap", "less", "min", "max"].map(str::to_owned).to_vec();
        summary.refused = 1;
        let text = text(&summary);
        assert!(!text.contains("lock operations"));
        assert!(text.contains(
            "lost      1,002 (0.12 %): 1,000 did not fit into the rings: try a larger --ring-size or fewer \
             --functions, 2 came too late to be sorted in\n"
        ));
        assert!(text.contains(
            "probes    10 functions on, 4 off (called too often, counted for their callers: swap, less, min and 1 \
             more); the kernel refused 1 function; 5 recursive calls folded into their outermost\n"
        ));
    }

    /// If memory is short, larger rings do not help.
    #[test]
    fn the_summary_separates_operations_without_memory_from_too_fast_ones() {
        let said = |operations, operations_short| {
            let loss = LossCounts { operations, operations_short, ..LossCounts::default() };
            text(&RecordSummary { loss, ..summary() })
        };
        assert!(
            said(7, 7).contains("7 lock operations found no memory") && !said(7, 7).contains("came faster")
        );
        let both = said(9, 7);
        assert!(
            both.contains("): 7 lock operations found no memory")
                && both.contains(", 2 lock operations came faster")
        );
        assert!(!said(9, 0).contains("found no memory"));
    }

    /// Processes beyond the limit get no probes: the summary has to say so.
    #[test]
    fn the_summary_says_which_processes_got_no_probes() {
        let mut unprobed = UnprobedCounts::default();
        assert!(!text(&summary()).contains("process"));
        unprobed.add(UnprobedCounts::ended(1));
        for why in ["256 processes have function probes already", "no room"] {
            unprobed.add(UnprobedCounts::refused(why.to_owned()));
        }
        let text = text(&RecordSummary { unprobed, ..summary() });
        assert!(
            text.contains(
                "probes    14 functions on, 0 off; 2 processes got none (256 processes have function probes already); \
                 1 process ended before getting any\n"
            ),
            "{text}"
        );
    }

    #[test]
    fn control_characters_in_the_summary_s_subject_are_replaced() {
        let mut summary = summary();
        summary.subject = "evil\u{1b}[2J\nname (pid 1)".into();
        assert!(text(&summary).starts_with("recorded  evil\u{fffd}[2J\u{fffd}name (pid 1), 10.0 s\n"));
    }

    #[test]
    fn the_file_in_the_next_command_is_quoted_for_a_shell() {
        for (path, word) in [
            ("/tmp/a-b.lp", "/tmp/a-b.lp"),
            ("my file.lp", "'my file.lp'"),
            ("it's.lp", r"'it'\''s.lp'"),
            ("-x.lp", "'./-x.lp'"),
            ("$(rm).lp", "'$(rm).lp'"),
        ] {
            assert_eq!(shell_word(Path::new(path)), word);
        }
    }

    #[test]
    fn the_summary_of_an_empty_recording_has_a_hint_and_no_next_command() {
        let empty = RecordSummary { events: 0, ..summary() };
        let said = text(&empty);
        assert!(said.contains("events    0\n"), "{said}");
        assert!(!said.contains("longpole report"), "{said}");
        assert!(
            said.ends_with(
                "nothing   was recorded, so there is nothing to report\n\
                 hint: no thread ran or was woken in this time: record while the program works, or for longer; if its \
                 child processes do the work, add --children\n"
            ),
            "{said}"
        );
        let with_children = text(&RecordSummary { children: true, ..empty.clone() });
        assert!(!with_children.contains("--children"), "{with_children}");
        let loss = LossCounts { dropped: 7, ..LossCounts::default() };
        assert!(text(&RecordSummary { loss, ..empty }).contains("hint: every event was lost"));
    }

    #[test]
    fn the_summary_says_whether_the_command_runs_on_or_was_interrupted() {
        assert!(!text(&summary()).contains("command"));
        let interrupted = RecordSummary { interrupted: Some("quicksort (pid 4242)".into()), ..summary() };
        let said = text(&interrupted);
        assert!(
            said.contains("\ncommand   quicksort (pid 4242) has ended: ^C goes to the command, too; to end"),
            "{said}"
        );
        let outlived = RecordSummary { runs_on: Some("quicksort (pid 4242)".into()), ..summary() };
        assert!(
            text(&outlived).contains(
                "\ncommand   quicksort (pid 4242) has not ended and runs on without longpole\nnext "
            ),
            "{}",
            text(&outlived)
        );
    }
}
