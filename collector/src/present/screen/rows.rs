//! Tables of the screen, among them LOCKS and THREADS.

use super::{About, clip, is_narrow, name_columns, named};
use crate::cell::{duration, ending, grouped, whole_percent as percent, width};
use crate::present::style::{Paint, Style};
use crate::present::words::short::short;
use engine::limit::{Limits, LockUse, ThreadUse};
use engine::program::{CODE_WITHOUT_A_FILE, RecordedWait, bare_name, is_unnamed};
use engine::report::Report;
use std::io::{self, Write};

/// Width of a name's column.
const NAME: usize = 22;
/// Width of a thread's bar.
const BAR: usize = 24;

/// A table of the screen.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Table {
    /// The line with the columns' names.
    pub title: String,
    /// The rows, by weight, the largest first.
    pub rows: Vec<Row>,
}

/// A row of a table.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Row {
    /// The unchanged name of the function, lock or thread.
    pub of: String,
    /// The value that rows are sorted by.
    pub weight: f64,
    /// The line on the screen.
    pub line: String,
}

/// How the user gets names for code without names, if much is computed in such code.
pub(super) fn missing_names(limits: &Limits, about: &About) -> Option<String> {
    let is_much = |used: &&engine::limit::FunctionUse| is_unnamed(&used.function) && used.computes >= 0.1;
    let code = &limits.functions.iter().find(is_much)?.function;
    if code != CODE_WITHOUT_A_FILE {
        return Some(format!("({code} has no names: install its debug symbols, or use --debuginfod)"));
    }
    if about.names_made_code {
        return Some(format!(
            "({CODE_WITHOUT_A_FILE}: the program names some of the code that it makes, but not this)"
        ));
    }
    let how = match about.name.as_str() {
        "java" => "java -XX:+UnlockDiagnosticVMOptions -XX:+DumpPerfMapAtExit names it",
        "node" => "node --perf-basic-prof names it",
        name if name.starts_with("python") => "python3 -X perf names it",
        _ => "docs/languages.md says how a runtime names it",
    };
    Some(format!("({CODE_WITHOUT_A_FILE}: {how})"))
}

impl Table {
    pub(crate) fn new(title: &str, rows: Vec<Row>, style: &Style) -> Table {
        Table { title: clip(title, style.width, style), rows }
    }

    /// Writes the first `shown` rows, and how many more there are.
    pub(super) fn write(
        &self,
        out: &mut impl Write,
        shown: usize,
        what: &str,
        style: &Style,
    ) -> io::Result<()> {
        if self.rows.is_empty() {
            return Ok(());
        }
        writeln!(out, "\n{}", style.paint(Paint::Bold, &self.title))?;
        for row in self.rows.iter().take(shown) {
            writeln!(out, "{}", row.line)?;
        }
        match self.rows.len().saturating_sub(shown) {
            0 => Ok(()),
            rest => {
                let text = format!("({rest} more {what}{}: --all)", ending(what, rest));
                writeln!(out, "{}", style.paint(Paint::Dim, &text))
            }
        }
    }
}

/// LOCKS: the locks that threads wait for.
pub(crate) fn locks(limits: &Limits, style: &Style) -> Table {
    let columns = name_columns(NAME, style);
    let time_ns = limits.at.first().map_or(0.0, |limit| limit.time_ns);
    let holder = if is_narrow(style) { "" } else { "its holder runs" };
    let title = format!(
        "{:columns$} {:>6} {:>8} {:>9}  {holder}",
        predicted("LOCKS", style),
        "held",
        "waiting",
        "waited"
    );
    let rows = limits.locks.iter().map(|used| {
        let LockUse { lock, locks, held_share, as_recorded, waited_ns, .. } = used;
        let name = match locks {
            1 => bare_name(lock).to_owned(),
            _ => format!("{locks} as {}", bare_name(lock)),
        };
        let name = style.fit(&name, columns);
        let pad = " ".repeat(columns.saturating_sub(width(&name)));
        // For a lock that is replayed as recorded it is not known when it is held.
        let held = if *held_share > 0.0 { percent(*held_share) } else { "-".to_owned() };
        let holder = match used.holder() {
            Some(part) => format!("{} {}", short(&part.function), percent(part.share)),
            None if *as_recorded => "(as recorded)".to_owned(),
            None => String::new(),
        };
        let holder = if is_narrow(style) { String::new() } else { style.text(&holder) };
        let waited = style.text(&duration(*waited_ns));
        let pad_waited = " ".repeat(9usize.saturating_sub(width(&waited)));
        // Waiting threads on average, as in LIMIT. The number of waits depends on the order of threads, which the model
        // need not reproduce; their length does not.
        let waiting = if time_ns > 0.0 { format!("{:.1}", waited_ns / time_ns) } else { "-".to_owned() };
        let line = format!("{name}{pad} {held:>6} {waiting:>8} {pad_waited}{waited}  {holder}");
        Row { of: lock.clone(), weight: *waited_ns, line: clip(&line, style.width, style) }
    });
    Table::new(&title, rows.collect(), style)
}

/// Marks a title: the table shows the predicted run, not the recorded one.
fn predicted(title: &str, style: &Style) -> String {
    if is_narrow(style) { title.to_owned() } else { format!("{title} (predicted)") }
}

/// THREADS: threads that do the same share a row. After `most` rows, one more row has all others.
pub(crate) fn threads(limits: &Limits, all: bool, most: usize, style: &Style) -> Table {
    let worth = |of: &ThreadUse| all || of.running + of.ready + of.spinning + of.lock >= 0.005;
    let told = limits.threads.iter().filter(|of| all || known(of) >= 0.005).cloned();
    let (mut threads, mut rest): (Vec<ThreadUse>, Vec<ThreadUse>) = told.partition(worth);
    if threads.len() > most {
        rest.extend(threads.split_off(most));
    }
    let others = others(&rest);
    let columns = name_columns(NAME, style);
    // Few programs spin: the column is shown only where one does.
    let spins = threads.iter().any(|of| of.spinning >= 0.005);
    let bar_columns = if spins { BAR - 9 } else { BAR };
    let spinning = |text: &str| if spins { format!(" {text:>8}") } else { String::new() };
    let other = |text: &str| if is_narrow(style) { String::new() } else { format!(" {text:>7}") };
    let title = format!(
        "{:columns$} {:>7} {:>7}{} {:>7}{}",
        predicted("THREADS", style),
        "running",
        "ready",
        spinning("spinning"),
        "lock",
        other("other")
    );
    let row = |of: &ThreadUse, name: String| {
        let mut line = format!(
            "{} {:>7} {:>7}{} {:>7}{}",
            named(&name, true, style, columns),
            percent(of.running),
            percent(of.ready),
            spinning(&percent(of.spinning)),
            percent(of.lock),
            other(&percent(of.other))
        );
        if width(&line) + 2 + bar_columns <= style.width {
            line.push_str("  ");
            line.push_str(&bar(of, bar_columns));
        }
        let weight = of.running * of.names.len() as f64;
        let first = of.names.first().cloned().unwrap_or_default();
        Row { of: first, weight, line: clip(&line, style.width, style) }
    };
    let mut rows: Vec<Row> = threads.iter().map(|of| row(of, together(&of.names))).collect();
    if let Some(others) = others {
        let name = format!("{} other{}", others.names.len(), if others.names.len() == 1 { "" } else { "s" });
        // Weight 0 keeps this row last in any sorting.
        rows.push(Row { weight: 0.0, ..row(&others, name) });
    }
    Table::new(&title, rows, style)
}

/// One row with the mean of several threads or groups.
fn others(rest: &[ThreadUse]) -> Option<ThreadUse> {
    let mut all = ThreadUse::default();
    for of in rest {
        let count = of.names.len() as f64;
        all.running += of.running * count;
        all.ready += of.ready * count;
        all.spinning += of.spinning * count;
        all.lock += of.lock * count;
        all.other += of.other * count;
        all.names.extend(of.names.iter().cloned());
    }
    let count = all.names.len() as f64;
    for share in [&mut all.running, &mut all.ready, &mut all.spinning, &mut all.lock, &mut all.other] {
        *share /= count;
    }
    (!all.names.is_empty()).then_some(all)
}

/// Whether a shown thread lives so much shorter than the run that its shares visibly do not add up to 100 %.
pub(super) fn is_short_lived(limits: &Limits, most: usize) -> bool {
    limits.threads.iter().take(most).any(|of| (0.005..0.95).contains(&known(of)))
}

/// The share of the run for which a thread's state is known: 0 for a thread that is never woken.
fn known(of: &ThreadUse) -> f64 {
    of.running + of.ready + of.spinning + of.lock + of.other
}

/// A name for several threads: `store/28458`, `store x4`, `teller-* x3`, or `main +2` where they have nothing in common.
pub(super) fn together(names: &[String]) -> String {
    let bare = |name: &String| name.rsplit_once('/').map_or(name.as_str(), |(name, _)| name).to_owned();
    let (first, rest) = match names {
        [] => return String::new(),
        [one] => return one.clone(),
        [first, rest @ ..] => (bare(first), rest),
    };
    let mut prefix = first.as_str();
    for other in rest.iter().map(bare) {
        let common = prefix.chars().zip(other.chars()).take_while(|(own, other)| own == other);
        let end = common.map(|(own, _)| own.len_utf8()).sum();
        prefix = prefix.get(..end).unwrap_or_default();
    }
    if rest.iter().all(|name| bare(name) == first) {
        return format!("{first} x{}", names.len());
    }
    match prefix.trim_end_matches(|c: char| c.is_ascii_digit()) {
        "" => format!("{first} +{}", rest.len()),
        prefix => format!("{prefix}* x{}", names.len()),
    }
}

/// A unique name for a kind of wait.
pub(crate) fn wait_name(wait: &RecordedWait) -> String {
    if wait.idle { format!("nothing to do: {}", wait.name) } else { wait.name.to_string() }
}

/// WAITS: what threads slept for, as recorded; idle waits come last.
pub(crate) fn waits(report: &Report, style: &Style) -> Table {
    let columns = name_columns(NAME, style);
    let title =
        format!("{:columns$} {:>9} {:>9} {:>8} {:>9}", "WAITS", "waited", "times", "threads", "longest");
    let rows = report.recorded.waits.iter().map(|wait| {
        let right = |text: String, columns: usize| {
            let text = style.text(&text);
            format!("{}{text}", " ".repeat(columns.saturating_sub(width(&text))))
        };
        let line = format!(
            "{} {} {} {} {}",
            named(&wait_name(wait), true, style, columns),
            right(duration(wait.wait_ns as f64), 9),
            right(grouped(wait.waits), 9),
            right(grouped(wait.threads), 8),
            right(duration(wait.longest_ns as f64), 9),
        );
        let weight = if wait.idle { 0.0 } else { wait.wait_ns as f64 };
        Row { of: wait_name(wait), weight, line: clip(&line, style.width, style) }
    });
    Table::new(&title, rows.collect(), style)
}

/// A bar such as `######==SSLLLLLL........`: running, ready, spinning, waiting for a lock, waiting for something else.
fn bar(of: &ThreadUse, columns: usize) -> String {
    let mut bar = String::with_capacity(columns);
    let mut sum = 0.0;
    let states = [(of.running, '#'), (of.ready, '='), (of.spinning, 'S'), (of.lock, 'L'), (of.other, '.')];
    for (share, sign) in states {
        sum += share;
        let until = ((sum * columns as f64).round() as usize).min(columns);
        bar.extend(std::iter::repeat_n(sign, until.saturating_sub(bar.len())));
    }
    bar
}

#[cfg(test)]
mod tests {
    use super::together;
    use super::{About, CODE_WITHOUT_A_FILE, Limits, missing_names};

    /// Code without names is mentioned if much is computed in it.
    #[test]
    fn much_time_in_code_without_names_gets_a_hint_for_the_language() {
        let used = |computes| engine::limit::FunctionUse {
            function: CODE_WITHOUT_A_FILE.to_owned(),
            computes,
            tenth: None,
            kernel: None,
        };
        let limits = |computes| Limits { functions: vec![used(computes)], ..Limits::default() };
        let program = |name: &str| About { name: name.to_owned(), ..About::default() };
        let text = missing_names(&limits(0.96), &program("java")).expect("a line");
        assert!(text.contains("-XX:+DumpPerfMapAtExit"), "{text}");
        assert!(
            missing_names(&limits(0.96), &program("mono")).expect("a line").contains("docs/languages.md")
        );
        assert_eq!(missing_names(&limits(0.05), &program("java")), None);
        // A JVM that was started with the option for a map needs no hint to use it.
        let with_map = About { names_made_code: true, ..program("java") };
        assert!(!missing_names(&limits(0.96), &with_map).expect("a line").contains("-XX"));
        let used = engine::limit::FunctionUse { function: "[libz.so.1]".to_owned(), ..used(0.9) };
        let library = Limits { functions: vec![used], ..Limits::default() };
        let text = missing_names(&library, &program("pigz")).expect("a line");
        assert!(text.starts_with("([libz.so.1] has no names") && text.contains("--debuginfod"), "{text}");
    }

    #[test]
    fn threads_with_similar_names_are_shown_as_one_pattern() {
        let together =
            |names: &[&str]| together(&names.iter().map(|name| name.to_string()).collect::<Vec<_>>());
        assert_eq!(together(&["teller-1/7", "teller-2/8", "teller-3/9"]), "teller-* x3");
        assert_eq!(together(&["w10/1", "w11/2"]), "w* x2");
        assert_eq!(together(&["w1/1", "w10/2", "w1/3"]), "w* x3");
        assert_eq!(together(&["store/1", "store/2"]), "store x2");
        assert_eq!(together(&["store/1"]), "store/1");
        assert_eq!(together(&["main", "io", "gc"]), "main +2");
        assert_eq!(together(&["é1", "è1"]), "é1 +1");
        assert_eq!(together(&[]), "");
    }
}
