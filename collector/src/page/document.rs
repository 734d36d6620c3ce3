//! All data of the page.

use super::colours::{PathColour, StateColour};
use super::columns::Columns;
use super::measured::{self, MeasuredRun};
use super::path::PathJson;
use super::predicted::{PredictedRun, Simulated};
use super::sources;
use crate::export::Model;
use crate::palette::Palette;
use crate::present::frame::Trust;
use crate::present::screen::limit::{self, Words};
use engine::limit::Limits;
use engine::program::Program;
use engine::report::Finding;
use engine::view::{Frame, Stack, Stacks};
use serde::Serialize;
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use std::io::{self, Write};

/// JSON documents of other commands, as these print them; null for documents that do not apply.
#[derive(Debug, Serialize)]
pub struct Tables {
    /// The report, as in `longpole report --json`.
    pub report: Box<RawValue>,
    /// The prediction, as in `longpole predict --json`.
    pub predict: Box<RawValue>,
    /// The parallelism, as in `longpole parallelism --json`.
    pub parallelism: Box<RawValue>,
    /// The slack, as in `longpole slack --json`.
    pub slack: Box<RawValue>,
    /// The paths, as in `longpole paths --json`.
    pub paths: Box<RawValue>,
}

/// Predicted times for several steps of a change.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Curve {
    /// `function` or `lock`.
    pub kind: &'static str,
    /// Name of the function or lock.
    pub name: String,
    /// The steps; the first is the unchanged program.
    pub stops: Vec<Stop>,
}

/// A step of a [`Curve`].
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Stop {
    /// The remaining part of a function's computing, or the number of locks.
    pub value: f64,
    /// Predicted time on each CPU count, nanoseconds.
    pub times_ns: Vec<f64>,
}

/// Length of a recording.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Point {
    /// The recording's file.
    pub file: String,
    /// CPUs of the recording.
    pub cpus: u32,
    /// Its time, nanoseconds.
    pub time_ns: u64,
}

/// See the module.
#[derive(Debug)]
pub struct Document<'a> {
    /// Runs and names.
    pub model: &'a Model<'a>,
    /// The limits, and the changes.
    pub limits: Limits,
    /// Findings, including doubts about the prediction.
    pub findings: Vec<Finding>,
    /// Tables of other commands.
    pub tables: Tables,
    /// Call stacks.
    pub stacks: Stacks,
    /// The predicted run on each CPU count of the model.
    pub simulated: Vec<Simulated>,
    /// Predicted times with changes, for curves.
    pub curves: Vec<Curve>,
    /// Whether source lines are included.
    pub has_sources: bool,
    /// Other recordings of the same command.
    pub measured: Vec<Point>,
}

/// Largest number of call stacks that are complete.
const FLAMES: usize = 100_000;

#[derive(Serialize)]
struct Json<'a> {
    format: &'static str,
    about: About<'a>,
    cpus: Vec<String>,
    limit: Words,
    trust: Trust,
    #[serde(flatten)]
    tables: &'a Tables,
    curves: &'a [Curve],
    points: &'a [Point],
    names: Names<'a>,
    states: Palette<StateColour>,
    path_colours: Palette<PathColour>,
    measured: Option<MeasuredRun<'a>>,
    predicted: Vec<PredictedRun>,
    paths_on: Vec<PathJson>,
    flames: Vec<Flame>,
    sources: BTreeMap<String, BTreeMap<usize, String>>,
    columns: BTreeMap<String, (usize, usize)>,
}

#[derive(Serialize)]
struct About<'a> {
    title: &'a str,
    file: &'a str,
    command: Option<&'a str>,
    host: Option<&'a str>,
    longpole: Option<&'a str>,
    recorded_cpus: Option<u32>,
    start_ns: u64,
    /// Nanoseconds since 1970.
    recorded_at_ns: Option<u64>,
}

#[derive(Serialize)]
struct Names<'a> {
    threads: Vec<ThreadName<'a>>,
    functions: Vec<FunctionName<'a>>,
    objects: &'a [String],
    /// Function and line of each place.
    places: Vec<(u32, Option<&'a str>)>,
    /// Places of each sampled stack, the innermost first.
    stacks: Vec<Vec<u32>>,
}

#[derive(Serialize)]
struct ThreadName<'a> {
    name: &'a str,
    process: Option<&'a str>,
}

#[derive(Serialize)]
struct FunctionName<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    location: Option<&'a str>,
}

/// A call stack, summed over threads, as functions; the outermost first.
#[derive(Serialize)]
struct Flame {
    functions: Vec<u32>,
    cpu_ns: f64,
    owed_ns: Vec<f64>,
}

impl Document<'_> {
    /// Writes the length of the JSON (32 bits, lowest byte first), the JSON, and the columns. The measured run has `coarser`
    /// times less detail than usual.
    ///
    /// # Errors
    /// Writing fails, or the JSON is longer than 4 GiB.
    pub fn write(&self, coarser: usize, out: &mut dyn Write) -> io::Result<()> {
        let model = self.model;
        let mut columns = Columns::default();
        let (mut states, mut path_colours) = (Palette::default(), Palette::default());
        let measured =
            model.measured.as_ref().map(|run| measured::run(run, coarser, &mut states, &mut columns));
        let runs = self.simulated.iter().enumerate();
        let (predicted, paths_on) = runs
            .map(|(number, run)| run.finish(number, (&mut states, &mut path_colours), &mut columns))
            .unzip();
        let json = Json {
            format: "longpole-page/1",
            about: about(model),
            cpus: model.cpus.iter().map(ToString::to_string).collect(),
            limit: limit::words(&self.limits),
            trust: Trust::of(&self.limits, &self.findings),
            tables: &self.tables,
            curves: &self.curves,
            points: &self.measured,
            names: names(model.program, model.expanded()),
            states,
            path_colours,
            measured,
            predicted,
            paths_on,
            flames: flames(&self.stacks, FLAMES / coarser),
            sources: if self.has_sources { sources::lines(model.program) } else { BTreeMap::new() },
            columns: columns.places().clone(),
        };
        let bytes = serde_json::to_vec(&json)?;
        let length = u32::try_from(bytes.len()).map_err(|_| io::Error::from(io::ErrorKind::FileTooLarge))?;
        out.write_all(&length.to_le_bytes())?;
        out.write_all(&bytes)?;
        out.write_all(columns.bytes())
    }
}

fn about<'a>(model: &'a Model<'_>) -> About<'a> {
    let start = model.measured.as_ref().map(|measured| measured.window().0);
    About {
        title: model.title(),
        file: &model.about.name,
        command: model.about.command.as_deref(),
        host: model.about.host.as_deref(),
        longpole: model.about.longpole.as_deref(),
        recorded_cpus: model.program.recorded_cpus,
        start_ns: start.map_or(0, |start| start.0),
        recorded_at_ns: start.and_then(|start| model.about.at(start)),
    }
}

/// Names of threads, functions, objects and samples. Functions that samples have turned into calls have names, too.
fn names<'a>(program: &'a Program, expanded: &'a Program) -> Names<'a> {
    let threads = program.threads.iter();
    let functions = expanded.functions.iter();
    let samples = &program.samples;
    Names {
        threads: threads
            .map(|thread| ThreadName { name: &thread.name, process: thread.process.as_deref() })
            .collect(),
        functions: functions
            .map(|function| FunctionName { name: &function.name, location: function.location.as_deref() })
            .collect(),
        objects: &program.objects,
        places: samples.places.iter().map(|place| (place.function.0, place.line.as_deref())).collect(),
        stacks: samples.stacks.iter().map(|stack| stack.iter().map(|place| place.0).collect()).collect(),
    }
}

/// Summed stacks. The `most` ones with the most CPU time are complete; others are cut to their outermost function.
fn flames(stacks: &Stacks, most: usize) -> Vec<Flame> {
    let mut sums: BTreeMap<Vec<u32>, (f64, Vec<f64>)> = BTreeMap::new();
    let mut all: Vec<&Stack> = stacks.stacks.iter().collect();
    if all.len() > most {
        all.sort_by(|one, other| other.cpu_ns.total_cmp(&one.cpu_ns));
    }
    for (place, stack) in all.into_iter().enumerate() {
        let depth = if place < most { usize::MAX } else { 1 };
        let frames = stack.frames.iter().take(depth);
        let functions = frames.map(|frame: &Frame| frame.function.0).collect();
        let sum = sums.entry(functions).or_insert_with(|| (0.0, vec![0.0; stacks.on.len()]));
        sum.0 += stack.cpu_ns;
        sum.1.iter_mut().zip(&stack.owed_ns).for_each(|(sum, ns)| *sum += ns);
    }
    let flame = |(functions, (cpu_ns, owed_ns))| Flame { functions, cpu_ns, owed_ns };
    sums.into_iter().map(flame).collect()
}
