//! Describes a benchmark or validation as data for the runner.

use std::path::Path;
use std::process::Command;

use anyhow::Result;
use serde_json::Value;

use super::results::{Outcome, Results};
use super::setting::Setting;
use crate::command;

/// A benchmark or validation. Each fills a section of BENCHMARKS.md or VALIDATION.md.
pub struct Measurement {
    /// Name on the command line and in the document.
    pub name: &'static str,
    /// What is measured, for `--help`.
    pub about: &'static str,
    /// Title of the section.
    pub title: &'static str,
    /// What the measurement needs on this machine.
    pub needs: &'static [Need],
    /// How often each side runs.
    pub runs: Runs,
    /// Whether the side that runs first changes from turn to turn.
    pub rotates: bool,
    /// Whether `--only NAME` chooses among the measurement's programs.
    pub chooses: bool,
    /// Prepares the measurement, and returns the sides to run in turns.
    pub sides: fn(&Setting) -> Result<Vec<Side<'_>>>,
    /// Text before the table. `{runs}` is replaced by the number of runs.
    pub says: &'static str,
    /// Other names in that text that are replaced by figures, and the values of these figures.
    pub fills: fn(&Results) -> Result<Fills>,
    /// Heads of the columns for the sides' labels. If there is no head at all, there is no table.
    pub heads: &'static str,
    /// Heads of the other columns, with units, and how each cell is computed from a side's results.
    pub columns: &'static [(&'static str, Cell)],
    /// Makes the rows, if the rows are not the sides.
    pub rows: Option<Rows>,
    /// Text after the table.
    pub ends: fn(&Results) -> Result<String>,
}

/// Computes a cell in a side's row.
pub type Cell = fn(&Outcome, &Results) -> Result<String>;

/// Names in the text before the table, and the values that replace them.
pub type Fills = Vec<(&'static str, String)>;

/// Makes the rows of the table. Cells are separated by ` | `.
pub type Rows = fn(&Results) -> Result<Vec<String>>;

/// Something that a measurement needs.
#[derive(PartialEq, Eq)]
pub enum Need {
    /// A release binary of longpole.
    Longpole,
    /// A release binary that can record on this machine.
    Recorder,
    /// A program, and the Debian package that contains it.
    Program(&'static str, &'static str),
    /// Sources whose folder the user gives by `--sources`. The text says where they come from.
    Sources(&'static str),
    /// The kernel's tracing folder for perf. The folder is mounted during the measurement.
    Tracefs,
    /// The user must name the measurement on the command line: a run of all measurements excludes it.
    Asked,
}

/// How often each side runs, unless an option says otherwise.
pub enum Runs {
    /// In this number of turns.
    Times(usize),
    /// Once, because the side itself repeats what it measures ([`Setting::runs`]).
    Inside(usize),
}

impl Measurement {
    /// A measurement without table and text. Other measurements name only the fields in which they differ from it.
    pub const NEW: Measurement = Measurement {
        name: "",
        about: "",
        title: "",
        needs: &[],
        runs: Runs::Times(1),
        rotates: false,
        chooses: false,
        sides: |_| Ok(Vec::new()),
        says: "",
        fills: |_| Ok(Vec::new()),
        heads: "",
        columns: &[],
        rows: None,
        ends: |_| Ok(String::new()),
    };
}

/// One of the variants that run in turns.
pub struct Side<'a> {
    /// First cells of the side's row, separated by ` | `.
    pub label: String,
    pub(super) stage: usize,
    pub(super) is_once: bool,
    pub(super) is_warming: bool,
    pub(super) is_listed: bool,
    pub(super) may_fail: bool,
    pub(super) enough: Option<fn(&Outcome) -> bool>,
    pub(super) run: Run<'a>,
}

/// Runs a side in the given turn and returns a JSON object. Numbers in the object become samples by their names.
type Run<'a> = Box<dyn FnMut(usize) -> Result<Value> + 'a>;

impl<'a> Side<'a> {
    /// A side with this label.
    pub fn new(label: impl Into<String>, run: impl FnMut(usize) -> Result<Value> + 'a) -> Self {
        Side {
            label: label.into(),
            stage: 0,
            is_once: false,
            is_warming: false,
            is_listed: true,
            may_fail: false,
            enough: None,
            run: Box::new(run),
        }
    }

    /// A side that runs a program with these words as arguments. The program prints JSON.
    pub fn program(label: impl Into<String>, program: &Path, words: &str) -> Self {
        Side::command(label, command::line(program, words))
    }

    /// A side that runs a command. The command prints JSON.
    pub fn command(label: impl Into<String>, mut command: Command) -> Self {
        Side::new(label, move |_| Ok(serde_json::from_str(&command::text(&mut command)?)?))
    }

    /// A side that cannot run on this machine.
    pub fn absent(label: impl Into<String>, why: String) -> Self {
        Side::new(label, move |_| anyhow::bail!("{why}")).may_fail()
    }

    /// Makes the side run after all sides with a lower number, in turns with those that have the same number.
    pub fn stage(self, stage: usize) -> Self {
        Side { stage, ..self }
    }

    /// Makes the side run in the first turn only.
    pub fn once(self, is_once: bool) -> Self {
        Side { is_once, ..self }
    }

    /// The side's first run does not count.
    pub fn warming(self) -> Self {
        Side { is_warming: true, ..self }
    }

    /// The side has no row in the table.
    pub fn unlisted(self) -> Self {
        Side { is_listed: false, ..self }
    }

    /// If a run fails, the side has no row, and the section says why.
    pub fn may_fail(self) -> Self {
        Side { may_fail: true, ..self }
    }

    /// The side does not run again once `enough` returns true.
    pub fn enough(self, enough: fn(&Outcome) -> bool) -> Self {
        Side { enough: Some(enough), ..self }
    }
}
