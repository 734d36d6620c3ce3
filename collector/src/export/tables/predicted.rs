//! Rows about what limits on each CPU count, as in a report.

use super::{Cell, Rows};
use crate::export::model::NO_FUNCTION;
use crate::present::text::delays;
use engine::report::Cpus;
use engine::time::Ticks;
use engine::view::{Stack, StretchKind};
use std::borrow::Cow;
use std::io;

fn count_of(cpus: Cpus) -> Cell<'static> {
    match cpus {
        Cpus::Count(count) => Cell::count(u64::from(count.get())),
        Cpus::Infinite => Cell::Null,
    }
}

impl Rows<'_, '_, '_> {
    pub(super) fn functions(&mut self) -> io::Result<()> {
        for result in &self.model.report().results {
            for row in &result.functions {
                self.put(&[
                    count_of(result.cpus),
                    Cell::number(Some(result.time_ns)),
                    Cell::text(&row.function),
                    Cell::known(row.location.as_deref()),
                    if row.uncounted { Cell::Null } else { Cell::count(row.calls) },
                    Cell::number(Some(row.tet_ns)),
                    Cell::number(row.tet_error_ns),
                    Cell::number(Some(row.tetid_ns)),
                    Cell::number(row.tetid_error_ns),
                ])?;
            }
        }
        Ok(())
    }

    pub(super) fn locks(&mut self) -> io::Result<()> {
        let report = self.model.report();
        for result in &report.results {
            for (row, critical_ns) in report.locks.iter().zip(&result.locks_held_ns) {
                self.put(&[
                    count_of(result.cpus),
                    Cell::number(Some(result.time_ns)),
                    Cell::text(&row.lock),
                    Cell::number(Some(*critical_ns)),
                    Cell::count(row.acquisitions),
                    row.contended.map_or(Cell::Null, Cell::count),
                    Cell::number(row.wait_ns),
                    Cell::number(row.hold_ns),
                ])?;
            }
        }
        Ok(())
    }

    pub(super) fn waits(&mut self) -> io::Result<()> {
        for result in &self.model.report().results {
            let cpus = [count_of(result.cpus), Cell::Float(result.time_ns), Cell::Float(result.speedup)];
            let computing: f64 = result.functions.iter().map(|row| row.tet_ns).sum();
            let waits: f64 = result.waits.iter().map(|wait| wait.weighted_ns).sum();
            // All rows of a CPU count add up to the predicted time on it.
            let elsewhere = result.time_ns - computing - waits;
            for (wait, ns) in [("computing", computing), ("computing_elsewhere", elsewhere)] {
                let row = [Cell::text(wait), Cell::Null, Cell::Null, Cell::number(Some(ns))];
                self.put(&[&cpus[..], &row].concat())?;
            }
            for wait in &result.waits {
                let row = [
                    Cell::text(wait.kind.name()),
                    Cell::known(wait.kind.object()),
                    Cell::count(wait.count),
                    Cell::number(Some(wait.weighted_ns)),
                ];
                self.put(&[&cpus[..], &row].concat())?;
            }
        }
        Ok(())
    }

    pub(super) fn stacks(&mut self) -> io::Result<()> {
        let stacks = self.model.stacks();
        for stack in &stacks.stacks {
            let names = self.names(stack);
            for (on, owed_ns) in stacks.on.iter().zip(&stack.owed_ns) {
                self.put(&[
                    count_of(on.cpus),
                    Cell::text(self.model.thread(stack.thread)),
                    Cell::text(&names),
                    Cell::number(Some(stack.cpu_ns)),
                    Cell::number(Some(*owed_ns)),
                ])?;
            }
        }
        Ok(())
    }

    /// Names of a stack's functions as in folded stacks: `main;work`.
    fn names(&self, stack: &Stack) -> String {
        if stack.frames.is_empty() {
            return NO_FUNCTION.to_owned();
        }
        let names =
            stack.frames.iter().map(|frame| self.model.function(Some(frame.function)).replace(';', ":"));
        names.collect::<Vec<_>>().join(";")
    }

    pub(super) fn paths(&mut self) -> io::Result<()> {
        for cpus in &self.model.cpus {
            for stretch in self.model.path(*cpus).stretches {
                let ns = |time: Ticks| Cell::number(Some(time.as_ns_f64()));
                let (thread, function, wait) = match &stretch.kind {
                    StretchKind::Computes { thread, function } => {
                        let known = function.map(|function| self.model.function(Some(function)));
                        (Cell::text(self.model.thread(*thread)), Cell::known(known), Cell::Null)
                    }
                    StretchKind::Passes(kind) => {
                        (Cell::Null, Cell::Null, Cell::Text(Cow::Owned(delays::words(kind))))
                    }
                };
                let weight = Cell::number(Some(stretch.weight));
                let row =
                    [count_of(*cpus), ns(stretch.start), ns(stretch.end), weight, thread, function, wait];
                self.put(&row)?;
            }
        }
        Ok(())
    }
}
