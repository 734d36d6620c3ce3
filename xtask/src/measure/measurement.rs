//! What a benchmark or validation is: data for the runner.

use std::path::Path;
use std::process::Command;

use anyhow::Result;
use serde_json::Value;

use super::results::{Outcome, Results};
use super::setting::Setting;
use crate::command;

/// A benchmark or validation: a section of BENCHMARKS.md or VALIDATION.md.
pub struct Measurement {
    /// Its name on the command line and in the document.
    pub name: &'static str,
    /// What it measures, for `--help`.
    pub about: &'static str,
    /// Title of its section.
    pub title: &'static str,
    /// What must be there.
    pub needs: &'static [Need],
    /// How often each side runs.
    pub runs: Runs,
    /// Whether another side is the first in each turn.
    pub rotates: bool,
    /// Whether `--only NAME` chooses among its programs.
    pub chooses: bool,
    /// Prepares, and returns what runs side by side.
    pub sides: fn(&Setting) -> Result<Vec<Side<'_>>>,
    /// Text before the table; `{runs}` stands for their number.
    pub says: &'static str,
    /// Other names in that text that stand for figures, and their values.
    pub fills: fn(&Results) -> Result<Fills>,
    /// Heads of the cells in the sides' labels; if there is no head at all, there is no table.
    pub heads: &'static str,
    /// Heads of the other columns, with units, and how a cell comes from what was measured of a side.
    pub columns: &'static [(&'static str, Cell)],
    /// Makes the rows if they are not the sides.
    pub rows: Option<Rows>,
    /// Text after the table.
    pub ends: fn(&Results) -> Result<String>,
}

/// A cell of a side's row.
pub type Cell = fn(&Outcome, &Results) -> Result<String>;

/// Names in the text before the table, and what stands for them.
pub type Fills = Vec<(&'static str, String)>;

/// Rows of the table: cells separated by ` | `.
pub type Rows = fn(&Results) -> Result<Vec<String>>;

/// What a measurement cannot do without.
#[derive(PartialEq, Eq)]
pub enum Need {
    /// A release binary of longpole.
    Longpole,
    /// A release binary that may record here.
    Recorder,
    /// A program, and the Debian package that it comes in.
    Program(&'static str, &'static str),
    /// Sources that `--sources` names: where they come from.
    Sources(&'static str),
    /// The kernel's tracing folder for perf, which is mounted meanwhile.
    Tracefs,
    /// Its name on the command line: it is no part of a run of all.
    Asked,
}

/// How often each side runs, unless an option says otherwise.
pub enum Runs {
    /// In this number of turns.
    Times(usize),
    /// Once: it repeats by itself what it measures ([`Setting::runs`]).
    Inside(usize),
}

impl Measurement {
    /// Without table and text: measurements name only the fields in which they differ.
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

/// One of those that run side by side.
pub struct Side<'a> {
    /// First cells of its row, separated by ` | `.
    pub label: String,
    pub(super) stage: usize,
    pub(super) is_once: bool,
    pub(super) is_warming: bool,
    pub(super) is_listed: bool,
    pub(super) may_fail: bool,
    pub(super) enough: Option<fn(&Outcome) -> bool>,
    pub(super) run: Run<'a>,
}

/// A run of a side in this turn: returns an object of JSON. Numbers in it become samples by their names.
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

    /// A program that prints JSON; its arguments are the words.
    pub fn program(label: impl Into<String>, program: &Path, words: &str) -> Self {
        Side::command(label, command::line(program, words))
    }

    /// A command that prints JSON.
    pub fn command(label: impl Into<String>, mut command: Command) -> Self {
        Side::new(label, move |_| Ok(serde_json::from_str(&command::text(&mut command)?)?))
    }

    /// A side that cannot run here.
    pub fn absent(label: impl Into<String>, why: String) -> Self {
        Side::new(label, move |_| anyhow::bail!("{why}")).may_fail()
    }

    /// Runs after all sides with a lower number, in turns with those that have the same.
    pub fn stage(self, stage: usize) -> Self {
        Side { stage, ..self }
    }

    /// Runs in the first turn only.
    pub fn once(self, is_once: bool) -> Self {
        Side { is_once, ..self }
    }

    /// Its first run does not count.
    pub fn warming(self) -> Self {
        Side { is_warming: true, ..self }
    }

    /// Has no row in the table.
    pub fn unlisted(self) -> Self {
        Side { is_listed: false, ..self }
    }

    /// If a run fails, the side is left out, and the section says why.
    pub fn may_fail(self) -> Self {
        Side { may_fail: true, ..self }
    }

    /// Does not run again once this holds.
    pub fn enough(self, enough: fn(&Outcome) -> bool) -> Self {
        Side { enough: Some(enough), ..self }
    }
}
