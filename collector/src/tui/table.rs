//! The rows of the table: every function of any CPU count, sorted by one of them.

use super::state::Measure;
use crate::present::cell::duration;
use engine::report::Report;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// One function.
#[derive(Clone, Debug, PartialEq)]
pub struct Row<'a> {
    /// Its name as the report has it: not cleaned.
    pub function: &'a str,
    /// `file:line`, if known.
    pub location: Option<Cow<'a, str>>,
    /// Its probes were taken off: later calls count for its callers.
    pub folded: bool,
    /// Some of its numbers come from samples.
    pub sampled: bool,
    /// Its calls were seen by probes.
    pub probed: bool,
    /// One cell for each CPU count of the report; `None` where it has no part in the critical path.
    pub cells: Vec<Option<Cell>>,
}

/// A function's part in the extended critical path of one CPU count.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cell {
    /// TETID ÷ predicted time: 1.0 is all of it. May be above 1 or below 0.
    pub anywhere: f64,
    /// TET ÷ predicted time.
    pub on_top: f64,
    /// Half of the 95 % intervals of both, 0 where they are exact.
    pub anywhere_error: f64,
    /// See there.
    pub on_top_error: f64,
}

impl Cell {
    /// Half of the 95 % interval of what `measure` asks for, 0 if that is exact.
    pub fn error(&self, measure: Measure) -> f64 {
        match measure {
            Measure::Anywhere => self.anywhere_error,
            Measure::OnTop => self.on_top_error,
        }
    }

    /// The share that `measure` asks for.
    pub fn share(&self, measure: Measure) -> f64 {
        match measure {
            Measure::Anywhere => self.anywhere,
            Measure::OnTop => self.on_top,
        }
    }
}

/// All rows, largest share of `measure` at the CPU count with index `sort` first, equal ones by name.
pub fn rows(report: &Report, sort: usize, measure: Measure) -> Vec<Row<'_>> {
    let columns = report.results.len();
    let mut by_name: BTreeMap<&str, Row<'_>> = BTreeMap::new();
    for (column, result) in report.results.iter().enumerate() {
        for function in &result.functions {
            let row = by_name.entry(&function.function).or_insert_with(|| Row {
                function: &function.function,
                location: function.location.as_deref().map(Cow::Borrowed),
                folded: false,
                sampled: false,
                probed: false,
                cells: vec![None; columns],
            });
            row.folded |= function.folded;
            row.sampled |= !function.exact;
            row.probed |= !function.uncounted;
            let share = |ns: f64| if result.time_ns > 0.0 { ns / result.time_ns } else { 0.0 };
            row.cells[column] = Some(Cell {
                anywhere: share(function.tetid_ns),
                on_top: share(function.tet_ns),
                anywhere_error: share(function.tetid_error_ns.unwrap_or(0.0)),
                on_top_error: share(function.tet_error_ns.unwrap_or(0.0)),
            });
        }
    }
    let mut rows: Vec<Row<'_>> = by_name.into_values().collect();
    let key = |row: &Row<'_>| row.cells.get(sort).copied().flatten().map_or(0.0, |cell| cell.share(measure));
    // Stable: rows of equal share stay in order of their names.
    rows.sort_by(|a, b| key(b).total_cmp(&key(a)));
    rows
}

/// All locks, largest share of what is computed under them at the CPU count with index `sort` first, then by how long
/// they were waited for.
pub fn lock_rows(report: &Report, sort: usize) -> Vec<Row<'_>> {
    let mut rows: Vec<(f64, Row<'_>)> = report
        .locks
        .iter()
        .enumerate()
        .map(|(number, lock)| {
            let cell = |result: &engine::report::CpuResult| {
                let held = result.locks_held_ns.get(number).copied().filter(|_| result.time_ns > 0.0)?;
                let share = held / result.time_ns;
                Some(Cell { anywhere: share, on_top: share, anywhere_error: 0.0, on_top_error: 0.0 })
            };
            let contended = lock.contended.filter(|_| lock.acquisitions > 0);
            let contended = contended.map(|count| 100.0 * count as f64 / lock.acquisitions as f64);
            let location = match (contended, lock.wait_ns) {
                (Some(percent), Some(wait)) => {
                    Some(format!("{percent:.0} % not free, waited {}", duration(wait)))
                }
                _ => lock.holder.as_deref().map(|holder| format!("in {holder}")),
            };
            let row = Row {
                function: &lock.lock,
                location: location.map(Cow::Owned),
                folded: false,
                sampled: false,
                probed: false,
                cells: report.results.iter().map(cell).collect(),
            };
            (lock.wait_ns.unwrap_or(0.0), row)
        })
        .collect();
    let key = |row: &Row<'_>| row.cells.get(sort).copied().flatten().map_or(0.0, |cell| cell.anywhere);
    rows.sort_by(|a, b| key(&b.1).total_cmp(&key(&a.1)).then(b.0.total_cmp(&a.0)));
    rows.into_iter().map(|(_, row)| row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tui::samples;

    fn names(sort: usize, measure: Measure) -> Vec<String> {
        rows(&samples::report(), sort, measure).iter().map(|row| row.function.to_owned()).collect()
    }

    #[test]
    fn the_chosen_cpu_count_decides_the_order() {
        assert_eq!(names(0, Measure::Anywhere)[..3], ["main", "sort_parallel", "sort_recursive"]);
        assert_eq!(names(5, Measure::Anywhere)[..3], ["main", "sort_parallel", "partition"]);
        assert_ne!(names(0, Measure::OnTop), names(0, Measure::Anywhere));
    }

    #[test]
    fn a_function_without_part_has_no_cell_and_negative_shares_come_last() {
        let report = samples::report();
        let rows = rows(&report, 5, Measure::Anywhere);
        let recursive = rows.iter().find(|row| row.function == "sort_recursive").expect("row");
        assert_eq!(recursive.cells[5], None);
        let last = rows.last().expect("rows");
        assert_eq!(last.function, "wait_for_disk");
        assert!(last.cells[5].expect("cell").anywhere < 0.0);
    }

    #[test]
    fn the_lock_that_holds_up_most_comes_first() {
        let report = samples::report();
        let rows = lock_rows(&report, 5);
        let names: Vec<&str> = rows.iter().map(|row| row.function).collect();
        assert_eq!(names, ["mutex queue", "mutex stats"]);
        assert_eq!(rows[0].location.as_deref(), Some("12 % not free, waited 3.00 ms"));
        assert_eq!(rows[1].location.as_deref(), Some("in count"));
        assert!((rows[0].cells[5].expect("a share").anywhere - 0.25).abs() < 1e-9);
        assert_eq!(lock_rows(&report, 99).len(), 2);
    }

    #[test]
    fn a_column_that_is_not_there_and_a_time_of_zero_do_no_harm() {
        let mut report = samples::report();
        report.results[0].time_ns = 0.0;
        assert_eq!(rows(&report, 99, Measure::Anywhere).len(), rows(&report, 0, Measure::Anywhere).len());
        assert!(rows(&Report::default(), 0, Measure::OnTop).is_empty());
    }
}
