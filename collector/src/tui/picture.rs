//! The picture of the screen: as many lines of text as the screen has, painted like those of `report`.
//!
//! Where there is little room, the least important lines go first: empty lines, how sure all is, the curve, the changes.

use super::history::chart;
use super::keys::PromptKind;
use super::lines::written;
use super::pages::{self, Page};
use super::state::{Phase, Snapshot, State};
use super::view::View;
use crate::cell::{counted, duration, width};
use crate::present::screen::{self, About, Live, Table};
use crate::present::study::parallelism::table as parallelism;
use crate::present::style::{Paint, Style, spans};
use crate::present::table;
use crate::present::words::traffic;
use engine::limit::LimitKind;
use engine::program::Endpoint;
use std::time::Duration;

/// Least number of lines of the table with its head; the second number includes the lines about the selected row. It is also
/// that of the page about requests.
const TABLE: usize = 7;
const TABLE_WITH_ROW: usize = 14;
/// Largest number of changes shown.
const FIXES: usize = 2;
/// Age of numbers, in seconds, from which on the age is shown.
const OLD: u64 = 1;

/// Lines that are either all shown or all omitted.
struct Block {
    /// Importance: the block with the least goes first.
    worth: u8,
    lines: Vec<String>,
}

/// Importance of a block that is never omitted.
const ALWAYS: u8 = u8::MAX;

/// The screen in `height` lines.
pub fn picture(state: &mut State, style: &Style, height: usize) -> Vec<String> {
    // The help may use the complete screen.
    let (mut above, mut below) = match state.page {
        Some(Page::Help) => (Vec::new(), Vec::new()),
        _ => (above(state, style), below(state, style)),
    };
    below.push(Block { worth: ALWAYS, lines: vec![bottom(state, style)] });
    let is_long = state.view == View::Parallelism || state.page == Some(Page::Requests);
    let table = if is_long { TABLE_WITH_ROW } else { TABLE };
    let lines = |blocks: &[Block]| blocks.iter().map(|block| block.lines.len()).sum::<usize>();
    while lines(&above) + lines(&below) + table > height
        && let Some(worth) = above.iter().chain(&below).map(|block| block.worth).min()
        && worth < ALWAYS
    {
        for blocks in [&mut below, &mut above] {
            if let Some(place) = blocks.iter().rposition(|block| block.worth == worth) {
                blocks.remove(place);
                break;
            }
        }
    }
    let mut picture = all(above);
    let below = all(below);
    // Even a very small screen keeps some of the table.
    picture.truncate(height.saturating_sub(below.len() + TABLE.min(height / 2)));
    let room = height.saturating_sub(picture.len() + below.len());
    picture.extend(body(state, style, room));
    picture.resize(height.saturating_sub(below.len()), String::new());
    picture.extend(below);
    picture.truncate(height);
    picture.iter().map(|line| clipped(line, style)).collect()
}

/// A painted line, cut at the screen's width.
fn clipped(line: &str, style: &Style) -> String {
    let mut room = style.width;
    let mut clipped = String::new();
    for (paint, text) in spans(line) {
        let columns = width(text);
        if columns > room {
            clipped.push_str(&style.paint(paint, &screen::clip(text, room, style)));
            break;
        }
        clipped.push_str(&style.paint(paint, text));
        room -= columns;
    }
    clipped
}

/// The lines that stay in the terminal after the screen: all except keys, with as many rows as fit.
pub fn last_picture(state: &mut State, style: &Style, height: usize) -> Vec<String> {
    if state.shown().is_none() {
        return Vec::new();
    }
    let page = state.page.take().filter(|page| *page == Page::Requests);
    let (mut picture, below) = (all(above(state, style)), all(below(state, style)));
    let rows = height.saturating_sub(picture.len() + below.len() + 3).clamp(3, 20);
    if let Some(page) = page {
        picture.extend(pages::lines(state, &page, style).into_iter().take(rows + 1));
        picture.push(String::new());
    } else if let Some(table) = state.table(style).filter(|table| !table.rows.is_empty()) {
        picture.push(style.paint(Paint::Bold, &table.title));
        picture.extend(table.rows.into_iter().take(rows).map(|row| row.line));
        picture.push(String::new());
    }
    picture.extend(below);
    picture
}

fn all(blocks: Vec<Block>) -> Vec<String> {
    blocks.into_iter().flat_map(|block| block.lines).collect()
}

/// Facts about the program that are not in its report.
fn about(state: &State, snapshot: &Snapshot) -> About {
    let mut stretch = format!("last {}", duration(snapshot.window_ns as f64));
    let age = state.age().as_secs();
    if age >= OLD {
        stretch.push_str(&format!(", {age} s ago"));
    }
    let live = Live { stretch, notes: "n" };
    About { name: state.subject.clone(), threads: snapshot.threads, live: Some(live), ..About::default() }
}

/// Blocks above the table: name and facts, LIMIT, FIX, the curve.
fn above(state: &State, style: &Style) -> Vec<Block> {
    let Some(snapshot) = state.shown() else {
        let what = match state.phase {
            Phase::Running => "waiting for the first analysis",
            Phase::Ended(_) => "ended before there was anything to analyse",
        };
        let name = style.paint(Paint::Bold, &style.fit(&state.subject, style.width));
        return vec![Block { worth: ALWAYS, lines: vec![name, what.to_owned()] }];
    };
    let (report, limits) = (&snapshot.report, &snapshot.limits);
    let about = about(state, snapshot);
    let mut facts = written(|out| screen::facts(out, report, &about, style));
    let cost = facts.split_off(facts.len().min(2));
    let mut limit = written(|out| screen::limit::write(out, screen::machine(report), limits, FIXES, style));
    let fixes = limits.fixes.len().min(FIXES);
    let fixes = limit.split_off(limit.len().saturating_sub(fixes));
    let blank = || Block { worth: 0, lines: vec![String::new()] };
    let mut blocks = vec![
        Block { worth: ALWAYS, lines: facts },
        Block { worth: 1, lines: cost },
        Block { worth: 2, lines: busy(state, style).into_iter().collect() },
    ];
    let requests = traffic::lines(&limits.traffic).into_iter();
    blocks.extend(requests.map(|(label, text)| {
        let label = format!("{label:<7}");
        let line =
            |out: &mut Vec<u8>| table::wrap(out, style, Paint::Bold, &label, &style.text(&text), "       ");
        Block { worth: 5, lines: written(line) }
    }));
    blocks.extend([
        Block { worth: 2, lines: rates(state, style).into_iter().collect() },
        blank(),
        Block { worth: ALWAYS, lines: limit },
        Block { worth: 6, lines: fixes },
    ]);
    if screen::computes(report) && !screen::is_beside(report, limits) {
        let curve = written(|out| screen::curve(out, report, state.cpus(), style));
        blocks.extend([blank(), Block { worth: 4, lines: curve }]);
    }
    blocks.push(blank());
    blocks
}

/// The number of CPUs that the program kept busy, for all of the time, analysed or not.
fn busy(state: &State, style: &Style) -> Option<String> {
    let now = state.busy.latest()?;
    let machine = state.shown()?.report.recorded_cpus?;
    let of = format!("busy   {now:.2} of {} ", counted(machine as usize, "CPU"));
    Some(charted(&of, |columns| state.busy.line(columns, f64::from(machine), style.unicode), style))
}

/// The rate of the requests that the line SERVES is about, in the reports of the last minutes.
fn rates(state: &State, style: &Style) -> Option<String> {
    let end = Endpoint::most_served(&state.shown()?.limits.traffic)?;
    let (rates, long) = state.history.rates(&end.name);
    if rates.len() < 2 {
        return None;
    }
    let most = rates.iter().copied().fold(0.0, f64::max);
    let of = format!("rate   at most {} requests/s ", traffic::rate(most));
    Some(charted(&of, |columns| (chart(&rates, columns, most, style.unicode), long), style))
}

/// A text, a chart of at most as many columns as `chart` is given, and the time that it covers.
fn charted(of: &str, chart: impl Fn(usize) -> (String, Duration), style: &Style) -> String {
    // Leaves some columns for the covered time.
    let (line, long) = chart(style.width.saturating_sub(width(of) + 10));
    let long = if line.is_empty() { String::new() } else { format!(" {}", duration(long.as_nanos() as f64)) };
    screen::clip(&style.text(&format!("{of}{line}{long}")), style.width, style)
}

/// Blocks below the table: notes, how sure all is, remarks.
fn below(state: &State, style: &Style) -> Vec<Block> {
    let mut blocks = Vec::new();
    if let Some(snapshot) = state.shown() {
        let Snapshot { report, limits, .. } = snapshot;
        let about = about(state, snapshot);
        let shown_by = about.live.as_ref().map_or("", |live| live.notes);
        let sure = vec![screen::clip(&screen::sure(report, limits, shown_by), style.width, style)];
        // The page of notes shows all notes already.
        let doubts = if state.page == Some(Page::Notes) { Vec::new() } else { screen::doubts(report, style) };
        blocks.extend([Block { worth: 2, lines: doubts }, Block { worth: 3, lines: sure }]);
    }
    let ended = match &state.phase {
        Phase::Ended(why) => Some(why.as_str()).filter(|why| !why.is_empty()),
        Phase::Running => None,
    };
    let said = ended.into_iter().chain(state.remark.as_deref());
    let said = said.map(|text| screen::clip(&style.text(text), style.width, style)).collect();
    blocks.push(Block { worth: 7, lines: said });
    blocks
}

/// The prompt, or the keys.
fn bottom(state: &State, style: &Style) -> String {
    if let Some(prompt) = &state.prompt {
        let question = prompt.question();
        let room = style.width.saturating_sub(width(question) + 1);
        let typed = style.paint(Paint::Bold, question);
        return match state.chosen_function() {
            Some(row) if prompt.text.is_empty() && prompt.what != PromptKind::Filter => {
                format!("{typed}_{}", style.paint(Paint::Dim, &style.fit(&row, room)))
            }
            _ => format!("{typed}{}_", style.fit(&prompt.text, room)),
        };
    }
    let badge = match state.phase {
        _ if state.paused() => "PAUSED",
        Phase::Running => "",
        Phase::Ended(_) => "ENDED",
    };
    let arrows = if style.unicode { "←→" } else { "<>" };
    let open = match (&state.page, state.view) {
        (Some(_), _) => "Esc back",
        (None, View::Functions) => "Enter callers",
        (None, View::Locks) => "Enter holders",
        (None, View::Threads | View::Waits | View::Parallelism) => "Enter more",
    };
    let (requests, notes) = match state.shown().is_some_and(|shown| shown.requests.is_some()) {
        true => ("r requests  ", ""),
        false => ("", "n notes  "),
    };
    let keys =
        format!("q quit  {requests}Tab table  {arrows} CPUs  {open}  / filter  p pause  {notes}? help");
    if badge.is_empty() {
        return style.paint(Paint::Dim, &screen::clip(&keys, style.width, style));
    }
    let keys = screen::clip(&keys, style.width.saturating_sub(badge.len() + 2), style);
    format!("{}  {}", style.paint(Paint::Selected, badge), style.paint(Paint::Dim, &keys))
}

/// The table, or the page that is shown in its place.
fn body(state: &mut State, style: &Style, lines: usize) -> Vec<String> {
    if let Some(page) = state.page.clone() {
        let page = pages::lines(state, &page, style);
        state.page_rows = lines;
        state.scroll = state.scroll.min(page.len().saturating_sub(lines));
        return page.into_iter().skip(state.scroll).take(lines).collect();
    }
    let Some(table) = state.table(style) else { return Vec::new() };
    let selected = state.selected(&table);
    let about = match (state.shown(), table.rows.get(selected)) {
        (Some(snapshot), Some(row)) if state.view == View::Parallelism => {
            parallelism::about(&snapshot.parallelism, &row.of, lines.saturating_sub(TABLE - 1), style)
        }
        _ => Vec::new(),
    };
    let rows = lines.saturating_sub(2 + about.len());
    state.page_rows = rows;
    // The selected row is always visible.
    let most = table.rows.len().saturating_sub(rows);
    state.scroll = state.scroll.min(selected).max((selected + 1).saturating_sub(rows)).min(most);
    let mut body = vec![tabs(state, &table, style)];
    if table.rows.is_empty() {
        body.push(style.paint(Paint::Dim, &screen::clip(&nothing(state), style.width, style)));
        return body;
    }
    body.push(style.paint(Paint::Bold, &table.title));
    for (number, row) in table.rows.iter().enumerate().skip(state.scroll).take(rows) {
        let paint = if number == selected { Paint::Selected } else { Paint::Plain };
        body.push(style.paint(paint, &row.line));
    }
    body.extend(about);
    body
}

/// The line above the table: names of all tables, which rows are visible, the filter.
fn tabs(state: &State, table: &Table, style: &Style) -> String {
    let names = View::ALL.iter().zip(1..).map(|(view, number)| {
        let name = view.name();
        if *view == state.view { format!("[{number} {name}]") } else { format!("{number} {name}") }
    });
    let tabs = names.collect::<Vec<_>>().join(" ");
    let count = table.rows.len();
    let last = (state.scroll + state.page_rows).min(count);
    let mut facts = Vec::new();
    if !state.filter().is_empty() {
        facts.push(format!("/{}", style.fit(state.filter(), 20)));
    }
    if last.saturating_sub(state.scroll) < count {
        facts.push(format!("{} to {last} of {count}", state.scroll + 1));
    }
    let facts = facts.join("  ");
    let gap = style.width.saturating_sub(width(&tabs) + width(&facts));
    let line = if gap < 2 { tabs } else { format!("{tabs}{}{facts}", " ".repeat(gap)) };
    style.paint(Paint::Dim, &screen::clip(&line, style.width, style))
}

/// Says why a table has no rows.
fn nothing(state: &State) -> String {
    let why = match state.view {
        _ if !state.filter().is_empty() => "no row's name contains that (Esc: all rows)",
        View::Functions => "no function takes 1 % of the sampled time",
        View::Locks if locks_are_unknown(state) => {
            "lock operations were not recorded (4: the futex words that threads slept for)"
        }
        View::Locks => "no thread waits for a lock in this stretch (4: what threads slept for)",
        View::Threads => "no thread ran in this stretch",
        View::Waits => "no thread slept in this stretch",
        View::Parallelism => return parallelism::nothing(state.shown().map(|shown| &shown.parallelism)),
    };
    why.to_owned()
}

/// Whether threads wait for what may be a lock that was not recorded.
fn locks_are_unknown(state: &State) -> bool {
    let first = state.shown().and_then(|shown| shown.limits.at.first());
    first.is_some_and(|limit| matches!(limit.kind, LimitKind::LocksNotRecorded { .. }))
}

impl State {
    /// All rows of a table, by weight, the largest first.
    pub(super) fn whole_table(&self, view: View, style: &Style) -> Option<Table> {
        let Snapshot { report, limits, parallelism, .. } = self.shown()?;
        Some(match view {
            View::Functions => screen::functions(report, limits, self.result()?, false, style),
            View::Locks => screen::locks(limits, style),
            View::Threads => screen::threads(limits, true, usize::MAX, style),
            View::Waits => screen::waits(report, style),
            View::Parallelism => parallelism::rows(parallelism, style),
        })
    }

    /// The table on the screen: rows that pass the filter, each in the place that it had before.
    pub(super) fn table(&self, style: &Style) -> Option<Table> {
        let mut table = self.whole_table(self.view, style)?;
        let filter = self.filter().to_lowercase();
        table.rows.retain(|row| filter.is_empty() || row.of.to_lowercase().contains(&filter));
        if let Some(of) = self.table_state() {
            table.rows.sort_by_cached_key(|row| of.order.place(&row.of));
        }
        Some(table)
    }
}
