//! Their plans, checked as far as that is possible without the file.

use super::{InputPlan, OutputPlan};
use engine::predict::Scheduler;
use engine::report::Cpus;
use std::path::PathBuf;

/// `longpole slack`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlackPlan {
    /// What to read.
    pub input: InputPlan,
    /// Every operation, too.
    pub segments: bool,
    /// Rows in the table.
    pub top: usize,
    /// Without what samples say.
    pub probed_only: bool,
    /// Standard functions by themselves.
    pub all: bool,
    /// How threads share CPUs; `None`: as usual for such a program.
    pub scheduler: Option<Scheduler>,
    /// JSON instead of a table.
    pub json: bool,
}

/// `longpole parallelism`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParallelismPlan {
    /// What to read.
    pub input: InputPlan,
    /// CPU counts of predicted runs, in the order asked; `None`: the measured run.
    pub cpus: Option<Vec<Cpus>>,
    /// What is listed; `None`: some of each.
    pub by: Option<Listed>,
    /// One row alone, by its name.
    pub of: Option<String>,
    /// Rows of each kind; `None`: as many as fit.
    pub top: Option<usize>,
    /// Without what samples say.
    pub probed_only: bool,
    /// How threads share CPUs; `None`: as usual for such a program.
    pub scheduler: Option<Scheduler>,
    /// JSON instead of a screen.
    pub json: bool,
}

/// A kind of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Listed {
    /// Functions.
    Functions,
    /// Locks, barriers, conditions.
    Objects,
    /// Threads.
    Threads,
}

/// `longpole compare-metrics`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompareMetricsPlan {
    /// What to read.
    pub input: InputPlan,
    /// The CPUs of the run; `None`: as recorded.
    pub cpus: Option<Cpus>,
    /// Rows in the table.
    pub top: usize,
    /// Without what samples say.
    pub probed_only: bool,
    /// How threads share CPUs; `None`: as usual for such a program.
    pub scheduler: Option<Scheduler>,
    /// JSON instead of a table.
    pub json: bool,
}

/// `longpole paths`.
#[derive(Clone, Debug, PartialEq)]
pub struct PathsPlan {
    /// What to read.
    pub input: InputPlan,
    /// At most this many paths; at least 1.
    pub most: usize,
    /// Only those that lack at most this share.
    pub within: Option<f64>,
    /// Show the path with this rank; at least 1.
    pub show: Option<usize>,
    /// One path after the other, as long as more are asked for.
    pub next: bool,
    /// Every operation, too.
    pub segments: bool,
    /// Rows of each kind in the table.
    pub top: usize,
    /// Without what samples say.
    pub probed_only: bool,
    /// Standard functions by themselves.
    pub all: bool,
    /// How threads share CPUs; `None`: as usual for such a program.
    pub scheduler: Option<Scheduler>,
    /// JSON instead of a table.
    pub json: bool,
}

/// `longpole what-if`.
#[derive(Clone, Debug, PartialEq)]
pub struct WhatIfPlan {
    /// What to read.
    pub input: InputPlan,
    /// What to find out.
    pub question: Question,
    /// CPU counts, in the order asked; not empty.
    pub cpus: Vec<Cpus>,
    /// How threads share CPUs.
    pub scheduler: Option<Scheduler>,
    /// Without what samples say.
    pub probed_only: bool,
    /// JSON instead of a table.
    pub json: bool,
}

/// How many threads that do the same there are to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThreadsPlan {
    /// All together.
    All(usize),
    /// In addition to those that there are.
    More(usize),
}

/// What to find out.
#[derive(Clone, Debug, PartialEq)]
pub enum Question {
    /// What these changes bring; not empty.
    Edits(Vec<EditPlan>),
    /// What more threads bring.
    Threads(ThreadsPlan),
    /// How far this function can be made faster.
    Headroom(String),
    /// What at most this many functions bring.
    Rank(usize),
}

/// A change, by name.
#[derive(Clone, Debug, PartialEq)]
pub enum EditPlan {
    /// Functions with this name, or matching it as a pattern, take this many times as long; at least 0.
    Scale(String, f64),
    /// A lock becomes this many locks; at least 1.
    SplitLock(String, u32),
    /// Waiting for devices takes no time.
    FreeIo,
}

/// `longpole diff`.
#[derive(Clone, Debug, PartialEq)]
pub struct DiffPlan {
    /// Before and after.
    pub inputs: [InputPlan; 2],
    /// CPU counts, in the order asked; not empty.
    pub cpus: Vec<Cpus>,
    /// What is a failure.
    pub fail_on: Vec<Threshold>,
    /// Rows of each kind in the table.
    pub top: usize,
    /// How threads share CPUs; `None`: as usual for such a program.
    pub scheduler: Option<Scheduler>,
    /// JSON instead of tables.
    pub json: bool,
}

/// Growth by more than this is a failure.
#[derive(Clone, Debug, PartialEq)]
pub struct Threshold {
    /// Functions of this name or matching it; `None`: the predicted time.
    pub function: Option<String>,
    /// As a share of the predicted time before.
    pub share: f64,
}

/// `longpole check`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckPlan {
    /// What to read.
    pub input: InputPlan,
    /// Where the rules are.
    pub rules: PathBuf,
    /// Where JUnit XML goes.
    pub junit: Option<OutputPlan>,
    /// Where Markdown goes.
    pub markdown: Option<OutputPlan>,
    /// How threads share CPUs; `None`: as usual for such a program.
    pub scheduler: Option<Scheduler>,
    /// JSON instead of text.
    pub json: bool,
}
