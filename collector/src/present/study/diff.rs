//! `longpole diff`: two recordings side by side.

use super::diff_requests::{self, RequestsJson};
use super::json::Findings;
use super::listing::{headline, line, main_row, note, share, signed};
use crate::cell::{counted, duration};
use crate::cpu_words::on;
use crate::present::frame::{Frame, command, doubts, more, sure};
use crate::present::screen::limit;
use crate::present::style::cpu_title;
use crate::present::style::{Paint, Style};
use crate::present::table;
use crate::present::words::counts::{self, alike};
use crate::present::words::short::short;
use crate::present::words::unlike::sentence as unlike_words;
use engine::compare::{BeforeAfter, Comparison, CurveRow, ItemRow, PerRequest, Unlike};
use engine::json::Number;
use engine::program::bare_name;
use engine::report::{Cpus, Finding};
use serde::Serialize;
use std::io::{self, Write};

/// Number of locks shown without an option.
const LOCKS: usize = 5;
/// Titles of the columns after the name.
pub(super) const TITLES: [&str; 4] = ["before", "after", "change", "noise"];
/// Changes of less than this share of the time before have no row.
const LEAST: f64 = 0.005;

/// Two recordings side by side.
#[derive(Clone, Debug, Default)]
pub struct Compared {
    /// Predicted times, functions and locks.
    pub comparison: Comparison,
    /// Set if both programs serve requests: what one request takes is shown in place of predicted times.
    pub requests: Option<PerRequest>,
    /// What makes the two hard to compare.
    pub unlike: Vec<Unlike>,
    /// Thresholds that were exceeded.
    pub failures: Vec<String>,
}

/// Writes the first `top` functions and locks, on one CPU count or for each request. `frames`: the frames of both recordings.
pub fn text(
    compared: &Compared,
    frames: &[Frame; 2],
    top: usize,
    style: &Style,
    out: &mut dyn Write,
) -> io::Result<()> {
    let Compared { comparison, requests, unlike, failures } = compared;
    let place = main_place(comparison);
    let said = requests.as_ref().map_or_else(|| sentence(comparison, place), diff_requests::sentence);
    headline(out, style, &format!("{said}{}", source(comparison, requests.as_ref(), place)))?;
    warnings(unlike, style, out)?;
    for (frame, whose) in frames.iter().zip(["LIMIT before  ", "after         "]) {
        if let Some(limit) = frame.limits.at.first() {
            let mut out: &mut dyn Write = out;
            let text = style.text(&limit::sentence(limit));
            table::wrap(&mut out, style, Paint::Plain, whose, &text, "              ")?;
        }
    }
    writeln!(out)?;
    match requests {
        Some(requests) => {
            diff_requests::text(
                requests,
                &noise_words(comparison, "server under one load"),
                top,
                style,
                out,
            )?;
        }
        None => predicted(comparison, place, top, style, out)?,
    }
    writeln!(out)?;
    let mut out = out;
    for failure in failures {
        table::wrap(&mut out, style, Paint::Warning, "FAIL ", &style.text(failure), "     ")?;
    }
    let own = |place: usize| [&frames[place].doubts[..], &comparison.findings[place]].concat();
    let (mut both, after) = (own(0), own(1));
    let counts = [both.len(), after.len()];
    let new = |finding: &Finding| !both.iter().any(|known| known.is_like(finding));
    let new: Vec<Finding> = after.into_iter().filter(new).collect();
    both.extend(new);
    let computes = comparison.curve.iter().any(|row| row.time.before > 0.0 || row.time.after > 0.0);
    doubts(&both, style, out)?;
    let notes = frames.iter().zip(counts).zip(["before", "after"]).map(|((frame, count), when)| {
        format!("{} {when} ({})", counted(count, "note"), command("notes", &frame.file, style))
    });
    let notes: Vec<String> = notes.collect();
    let sure = format!("Sure: {}, {}.", sure(&both, computes), notes.join(", "));
    table::wrap(&mut out, style, Paint::Plain, "", &sure, "  ")
}

/// Writes what makes two recordings hard to compare.
fn warnings(unlike: &[Unlike], style: &Style, out: &mut dyn Write) -> io::Result<()> {
    let mut out = out;
    for unlike in unlike {
        let text = style.text(&format!("! {}", unlike_words(unlike)));
        table::wrap(&mut out, style, Paint::Warning, "", &text, "  ")?;
    }
    if unlike.is_empty() { Ok(()) } else { writeln!(out) }
}

/// Writes predicted times, and the first `top` functions and locks on the CPU count at `place`.
fn predicted(
    comparison: &Comparison,
    place: usize,
    top: usize,
    style: &Style,
    out: &mut dyn Write,
) -> io::Result<()> {
    line(out, style, Paint::Bold, "predicted time", &TITLES.map(str::to_owned))?;
    for same in alike(&comparison.curve, |row| vec![row.time.before, row.time.after]) {
        let Some(row) = same.first() else { continue };
        let cpus: Vec<Cpus> = same.iter().map(|row| row.cpus).collect();
        line(out, style, paint(&row.time), &counts::on(&cpus, style), &cells(&row.time, row.time.before))?;
    }
    writeln!(out)?;
    if let Some(row) = comparison.curve.get(place) {
        let on = cpu_title(row.cpus, style);
        let whole = row.time.before;
        let table = Table { place, whole, top };
        items(&comparison.functions, &format!("FUNCTIONS, {on}"), "function", &table, style, out)?;
        let top = top.min(LOCKS);
        items(
            &comparison.locks,
            &format!("WHILE A LOCK IS HELD, {on}"),
            "lock",
            &Table { top, ..table },
            style,
            out,
        )?;
    }
    let what = "Times on the critical path; changes in percent of the predicted time before.";
    note(out, style, &format!("{what} {}", noise_words(comparison, "program")))
}

fn main_place(comparison: &Comparison) -> usize {
    let row = main_row(&comparison.curve, comparison.recorded_cpus, |row| row.cpus);
    row.and_then(|main| comparison.curve.iter().position(|row| row.cpus == main.cpus)).unwrap_or(0)
}

fn sentence(comparison: &Comparison, place: usize) -> String {
    let Some(row) = comparison.curve.get(place) else {
        return "There is nothing to compare.".to_owned();
    };
    let on = on(row.cpus);
    if row.time.before == 0.0 && row.time.after == 0.0 {
        return "There is nothing to compare: no thread took any time in either.".to_owned();
    }
    if !row.time.is_clear() {
        return format!(
            "The predicted time {on} has not changed by more than noise: {}{}.",
            duration(row.time.after),
            diff_requests::noise(&row.time)
        );
    }
    let word = if row.time.by() < 0.0 { "shorter" } else { "longer" };
    let most = comparison.functions.iter().filter(|item| {
        item.changes
            .get(place)
            .is_some_and(|change| change.is_clear() && (change.by() < 0.0) == (row.time.by() < 0.0))
    });
    let size = |item: &&ItemRow| item.changes.get(place).map_or(0.0, |change| change.by().abs());
    let because = match most.max_by(|a, b| size(a).total_cmp(&size(b))) {
        Some(item) => format!(", most of it {}", short(&item.name)),
        None => String::new(),
    };
    format!(
        "The predicted time {on} is {} {word}{}: {} instead of {}{because}.",
        share(row.time.by().abs(), row.time.before),
        diff_requests::beyond(&row.time),
        duration(row.time.after),
        duration(row.time.before)
    )
}

/// What the first sentence says about the recordings that noise comes from, if there are several or too short ones.
fn source(comparison: &Comparison, requests: Option<&PerRequest>, place: usize) -> String {
    let [before, after] = comparison.recordings;
    if before + after > 2 {
        return format!(" Noise is from {before} recordings before and {after} after.");
    }
    let noise = match requests {
        Some(requests) => requests.mean.noise,
        None => comparison.curve.get(place).and_then(|row| row.time.noise),
    };
    // A program that was written by hand has no noise.
    if noise.is_some() || comparison.recorded_cpus.is_none() {
        return String::new();
    }
    " How much of that is noise is not known: record each twice (longpole diff A1 A2 -- B1 B2).".to_owned()
}

/// Explains the columns of changes and noise.
pub(super) fn noise_words(comparison: &Comparison, what: &str) -> String {
    let [before, after] = comparison.recordings;
    let from = match before + after {
        0..=2 => "from the spread within each and from samples",
        _ => "from the differences between recordings of one side",
    };
    let not_known = match before + after {
        0..=2 => " -: not known from one recording of each.",
        _ => "",
    };
    format!(
        "Noise: how much two recordings of one {what} may differ, {from}. * marks changes beyond noise, “in noise” are smaller ones.{not_known}"
    )
}

/// Parameters of a table of changes.
#[derive(Clone, Copy)]
pub(super) struct Table {
    /// Index of the table's CPU count, 0 if there is one column only.
    pub(super) place: usize,
    /// The time of which changes are parts.
    pub(super) whole: f64,
    /// Largest number of rows.
    pub(super) top: usize,
}

/// Writes the rows that take or took enough time.
pub(super) fn items(
    rows: &[ItemRow],
    title: &str,
    noun: &str,
    table: &Table,
    style: &Style,
    out: &mut dyn Write,
) -> io::Result<()> {
    let least = LEAST * table.whole;
    let worth = |row: &&ItemRow| {
        let change = row.changes.get(table.place);
        change.is_some_and(|change| change.before.max(change.after) >= least)
    };
    let worth: Vec<&ItemRow> = rows.iter().filter(worth).collect();
    if worth.is_empty() {
        return Ok(());
    }
    line(out, style, Paint::Bold, title, &TITLES.map(str::to_owned))?;
    for row in worth.iter().take(table.top) {
        let Some(change) = row.changes.get(table.place) else { continue };
        let name = short(bare_name(&row.name));
        let name = match row.there {
            [true, false] => format!("{name} (gone)"),
            [false, true] => format!("{name} (new)"),
            _ => name,
        };
        line(out, style, paint(change), &name, &cells(change, table.whole))?;
    }
    let how = match worth.len() > table.top {
        true => format!("--top {} shows more, --json all", worth.len()),
        false => "too small to be shown here, --json has all".to_owned(),
    };
    more(out, rows.len() - worth.len().min(table.top), noun, &how, style)?;
    writeln!(out)
}

pub(super) fn paint(change: &BeforeAfter) -> Paint {
    if change.is_clear() && change.by() > 0.0 { Paint::Warning } else { Paint::Plain }
}

fn cells(change: &BeforeAfter, whole: f64) -> [String; 4] {
    cells_with(change, whole, duration)
}

/// Before, after, the change and its noise, both as parts of `whole`.
pub(super) fn cells_with(change: &BeforeAfter, whole: f64, shown: impl Fn(f64) -> String) -> [String; 4] {
    let by = signed(change.by(), whole);
    let by = match change.is_noise() {
        Some(true) if change.by() != 0.0 => "in noise".to_owned(),
        Some(false) => format!("*{by}"),
        _ => by,
    };
    let noise = match change.noise {
        Some(noise) => format!("±{}", share(noise, whole)),
        None => "-".to_owned(),
    };
    [shown(change.before), shown(change.after), by, noise]
}

/// Writes the comparison as JSON: `longpole-diff/1`.
pub fn json(compared: &Compared, out: &mut dyn Write) -> io::Result<()> {
    let Compared { comparison, requests, unlike, failures } = compared;
    let cpus: Vec<Cpus> = comparison.curve.iter().map(|row| row.cpus).collect();
    let document = Document {
        schema: "longpole-diff/1",
        recordings_before: comparison.recordings[0],
        recordings_after: comparison.recordings[1],
        results: comparison.curve.iter().map(ResultJson::new).collect(),
        functions: comparison.functions.iter().map(|row| ItemJson::new(row, &cpus)).collect(),
        locks: comparison.locks.iter().map(|row| ItemJson::new(row, &cpus)).collect(),
        requests: requests.as_ref().map(RequestsJson::new),
        warnings: unlike.iter().map(WarningJson::new).collect(),
        failures,
        findings_before: Findings(&comparison.findings[0]),
        findings_after: Findings(&comparison.findings[1]),
    };
    super::json::write(&document, out)
}

#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    recordings_before: usize,
    recordings_after: usize,
    results: Vec<ResultJson>,
    functions: Vec<ItemJson<'a>>,
    locks: Vec<ItemJson<'a>>,
    /// Set if both programs serve requests.
    requests: Option<RequestsJson<'a>>,
    warnings: Vec<WarningJson<'a>>,
    failures: &'a [String],
    findings_before: Findings<'a>,
    findings_after: Findings<'a>,
}

/// A difference between the recordings: its kind with both values, and a sentence.
#[derive(Serialize)]
struct WarningJson<'a> {
    #[serde(flatten)]
    unlike: &'a Unlike,
    text: String,
}

impl<'a> WarningJson<'a> {
    fn new(unlike: &'a Unlike) -> WarningJson<'a> {
        WarningJson { unlike, text: unlike_words(unlike) }
    }
}

#[derive(Serialize)]
struct ResultJson {
    #[serde(flatten)]
    time: ChangeJson,
    speedup_before: Number,
    speedup_after: Number,
}

impl ResultJson {
    fn new(row: &CurveRow) -> ResultJson {
        let [before, after] = row.speedup;
        ResultJson {
            time: ChangeJson::new(row.cpus, &row.time),
            speedup_before: Number(before),
            speedup_after: Number(after),
        }
    }
}

#[derive(Serialize)]
struct ChangeJson {
    cpus: Cpus,
    before_ns: Number,
    after_ns: Number,
    noise_ns: Option<Number>,
    clear: bool,
    /// Not set: noise is not known.
    within_noise: Option<bool>,
}

impl ChangeJson {
    fn new(cpus: Cpus, change: &BeforeAfter) -> ChangeJson {
        ChangeJson {
            cpus,
            before_ns: Number(change.before),
            after_ns: Number(change.after),
            noise_ns: change.noise.map(Number),
            clear: change.is_clear(),
            within_noise: change.is_noise(),
        }
    }
}

#[derive(Serialize)]
struct ItemJson<'a> {
    name: &'a str,
    in_before: bool,
    in_after: bool,
    changes: Vec<ChangeJson>,
}

impl<'a> ItemJson<'a> {
    fn new(row: &'a ItemRow, cpus: &[Cpus]) -> ItemJson<'a> {
        let changes = cpus.iter().zip(&row.changes).map(|(cpus, change)| ChangeJson::new(*cpus, change));
        ItemJson {
            name: &row.name,
            in_before: row.there[0],
            in_after: row.there[1],
            changes: changes.collect(),
        }
    }
}
