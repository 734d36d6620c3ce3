//! All rows of a run in one table, and the advice for one row: the page "parallelism" of `longpole top`.

use super::screen::{column, is_worth};
use super::words::{name, sentence, share};
use super::{notice, row};
use crate::cell::{duration, width};
use crate::present::screen::{Row, Table, clip};
use crate::present::style::{Paint, Style};
use crate::present::table::wrap;
use engine::parallelism::{self, Parallelism, ParallelismRowKind};

/// Widths of a name's column and of a number's column.
const NAME: usize = 24;
const CELL: usize = 9;

/// The rows, sorted by normalized time including all work on their behalf, the largest first. States are sums over
/// threads.
pub(crate) fn rows(run: &Parallelism, style: &Style) -> Table {
    let columns = if style.width < 60 { 14 } else { NAME };
    let head = ["of run", "itself", "busy", "spinning", "blocked", "ready"];
    let head: String = head.iter().map(|word| format!("{word:>CELL$}")).collect();
    let title = format!("{:columns$}{head}", column(run, style).replace("measured", "MEASURED"));
    let rows = run.rows.iter().filter(|row| !notice::is_empty(run) && is_worth(run, row)).map(|row| {
        let name = style.fit(&told(row), columns - 1);
        let mut line = format!("{name}{}", " ".repeat(columns.saturating_sub(width(&name))));
        let of = &row.total;
        let time = |ns: u64| if ns == 0 { "-".to_owned() } else { duration(ns as f64) };
        let shares = [row.normalized_total_ns, row.normalized_self_ns].map(|ns| share(ns, run));
        let states = [of.busy.ns, of.spinning.ns, of.blocked.ns, of.ready.ns].map(time);
        for text in shares.iter().chain(&states) {
            let text = style.text(text);
            line.push_str(&" ".repeat(CELL.saturating_sub(width(&text))));
            line.push_str(&text);
        }
        let weight = row.normalized_total_ns as f64 + row.normalized_self_ns as f64 * 1e-3;
        Row { of: key(row), weight, line: clip(&line, style.width, style) }
    });
    let mut rows: Vec<Row> = rows.collect();
    rows.sort_by(|a, b| b.weight.total_cmp(&a.weight));
    Table::new(&title, rows, style)
}

/// Says why there are no rows.
pub(crate) fn nothing(run: Option<&Parallelism>) -> String {
    let problem = run.and_then(notice::problem);
    problem.unwrap_or_else(|| "no function, lock or thread takes a noticeable part".to_owned())
}

/// An empty line, then the advice for a row and its histogram, in at most `most` lines in total.
pub(crate) fn about(run: &Parallelism, of: &str, most: usize, style: &Style) -> Vec<String> {
    let Some(row) = found(run, of) else { return Vec::new() };
    let mut lines = vec![String::new()];
    let mut said = Vec::new();
    let advice = match run.advice(row) {
        Some(advice) => sentence(run, row, advice),
        None => format!("{}: {} of the run.", name(row), share(row.normalized_total_ns, run)),
    };
    // Writing to memory cannot fail.
    let _ = wrap(&mut said, style, Paint::Bold, "", &style.text(&advice), "");
    let _ = row::histogram(run, row, style, &mut said);
    lines.extend(String::from_utf8_lossy(&said).lines().map(str::to_owned));
    lines.truncate(most);
    lines
}

/// The complete page about a row.
pub(crate) fn page(run: &Parallelism, of: &str, style: &Style) -> Vec<String> {
    let Some(row) = found(run, of) else { return Vec::new() };
    let mut said = Vec::new();
    let _ = row::write(run, row, style, &mut said);
    String::from_utf8_lossy(&said).lines().map(str::to_owned).collect()
}

/// The row to change first.
pub(crate) fn first(run: &Parallelism) -> Option<String> {
    run.first().map(|(row, _)| key(row))
}

fn found<'r>(run: &'r Parallelism, of: &str) -> Option<&'r parallelism::ParallelismRow> {
    run.rows.iter().find(|row| key(row) == of)
}

/// A unique key: a function may have the same name as a thread.
fn key(row: &parallelism::ParallelismRow) -> String {
    match (row.kind, &row.name) {
        (ParallelismRowKind::Thread, Some(name)) => format!("thread {name}"),
        (_, Some(name)) => name.clone(),
        (_, None) => name(row),
    }
}

fn told(row: &parallelism::ParallelismRow) -> String {
    match row.kind {
        ParallelismRowKind::Function => name(row),
        _ => key(row),
    }
}
