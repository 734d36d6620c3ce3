//! The table of waits and hand-overs: their shares of the predicted time.

use crate::cell::percent;
use crate::present::style::{Paint, Style};
use crate::present::table::{self, Layout};
use engine::report::{CpuResult, WaitKind};
use std::collections::BTreeMap;
use std::io::{self, Write};

/// A row whose share is smaller than this on all CPU counts is omitted.
const WORTH_A_ROW: f64 = 0.005;
/// Largest number of rows shown; the JSON has all rows.
const ROWS: usize = 6;

/// Writes the table, if anything is worth a row.
pub(in crate::present) fn write(
    out: &mut impl Write,
    layout: &Layout,
    style: &Style,
    results: &[&CpuResult],
) -> io::Result<()> {
    let mut shares: BTreeMap<&WaitKind, Vec<f64>> = BTreeMap::new();
    for (place, result) in results.iter().enumerate().filter(|(_, result)| result.time_ns > 0.0) {
        for row in &result.waits {
            let shares = shares.entry(&row.kind).or_insert_with(|| vec![0.0; results.len()]);
            shares[place] = row.weighted_ns / result.time_ns;
        }
    }
    let most = |shares: &[f64]| shares.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let mut rows: Vec<(&WaitKind, Vec<f64>)> =
        shares.into_iter().filter(|(_, shares)| most(shares) >= WORTH_A_ROW).collect();
    rows.sort_by(|a, b| most(&b.1).total_cmp(&most(&a.1)).then_with(|| a.0.cmp(b.0)));
    if rows.is_empty() {
        return Ok(());
    }
    let what =
        "Share of the predicted time on the critical path in which nothing is computed: the gain without it.";
    table::wrap(out, style, Paint::Dim, "", what, "")?;
    writeln!(out)?;
    for (kind, shares) in rows.into_iter().take(ROWS) {
        let cells: Vec<String> = shares.into_iter().map(percent).collect();
        table::line(out, layout, style, &style.text(&words(kind)), Paint::Plain, &cells)?;
    }
    writeln!(out)
}

pub(crate) fn words(kind: &WaitKind) -> String {
    match kind {
        WaitKind::HandOver(object) => format!("hand over {object}"),
        WaitKind::WakeUp => "until woken threads act".to_owned(),
        WaitKind::ThreadStart => "until new threads act".to_owned(),
        WaitKind::Waking => "waking threads".to_owned(),
        WaitKind::Sleep => "sleeping".to_owned(),
        WaitKind::Scheduling => "until ready threads have a CPU".to_owned(),
        WaitKind::Spinning(lock) => format!("spinning for {lock}"),
        WaitKind::Device(device) => format!("waiting: {device}"),
    }
}
