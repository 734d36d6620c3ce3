//! `longpole view`, and `report --html`

use super::output::to_stdout;
use super::{SIMULATED, changes};
use crate::cli::args::ViewArguments;
use crate::cores;
use crate::exit::{Outcome, UserError, say};
use crate::export::Model;
use crate::input::{Input, Parts};
use crate::page::{self, Document, Point, Simulated, Tables, is_page, write};
use crate::plan::{InputPlan, Source, is_dash};
use crate::present::json;
use crate::present::study::{parallelism, paths, paths_json, slack};
use engine::attribution::{Owners, attributed_to_users, with_sampled_calls};
use engine::graph::{self, ActivityGraph, PathsWanted};
use engine::limit::Limits;
use engine::parallelism::{measured, predicted};
use engine::predict::{Prediction, Timing};
use engine::program::{FunctionRef, Program};
use engine::report::{Cpus, Report};
use engine::what_if::Without;
use recording::{Overwrite, SudoUser, check_file, write_whole};
use serde_json::value::RawValue;
use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, OnceLock};

/// Largest number of paths in the table, as in `longpole paths`.
const PATHS: usize = 100;

/// Reads an input, analyses it, writes the page, opens it in a browser.
pub fn run(args: &ViewArguments) -> Result<Outcome, UserError> {
    let plan = args.input.plan();
    let path = match &args.output {
        Some(output) => output.clone(),
        None => next_to(&plan)?,
    };
    let overwrite = if args.force || is_page_file(&path) { Overwrite::Reports } else { Overwrite::Devices };
    if !is_dash(&path) {
        // Checked now, since reading and simulating may take long.
        check_file(&path, overwrite)?;
    }
    let measured = args.measured.iter().map(|path| point(path)).collect::<Result<_, _>>()?;
    let mut input = Input::open(&plan)?;
    if let Input::Session(read) = &mut input {
        super::symbolize::in_memory(&mut read.recording, &args.symbols)?;
    }
    let parts = input.into_parts();
    let about = super::export::about(&plan, parts.meta.as_ref());
    let model = Model::new(parts.timeline.as_ref(), &parts.program, args.cpus.clone(), about)
        .map_err(super::invalid)?;
    let document = document(args, &parts, &model, measured)?;
    if is_dash(&path) {
        to_stdout(|out| write(&document, page::MOST_BYTES, out))?;
    } else {
        write_whole(&path, overwrite, |out| write(&document, page::MOST_BYTES, out))?;
        if !args.no_open {
            open(&path);
        }
    }
    Ok(Outcome::Done)
}

/// Computes all data of the page.
fn document<'a>(
    args: &ViewArguments,
    parts: &Parts,
    model: &'a Model<'a>,
    measured: Vec<Point>,
) -> Result<Document<'a>, UserError> {
    let (cpus, machine, expanded) = (&model.cpus, model.machine(), model.expanded());
    let (prediction, stacks) = {
        let together = model.together().map_err(super::invalid)?;
        let found = super::on_all_cores(&together.groups(), |cpus| together.at(cpus));
        let (report, prediction, stacks) = together.conclude(found);
        model.keep(report);
        (prediction, stacks)
    };
    // As in `slack` and `paths`, standard functions count for their callers.
    let users = with_sampled_calls(attributed_to_users(parts.program.clone()));
    let owners = Owners::of(&parts.program);
    // Ends before the tables are made: each stage frees its memory, since recordings are large.
    let ((limits, graph), simulated) = {
        let timing = Timing::new(expanded, machine).map_err(super::invalid)?;
        cores::both(
            || {
                let limits = super::limits_on_all_cores(&parts.program, cpus, machine);
                (limits, ActivityGraph::on(&users, machine))
            },
            || cores::on_all_cores(cpus, |cpus| Simulated::on(&timing, *cpus, model.cpus.len())),
        )
    };
    let graph = graph.map_err(super::invalid)?;
    let mut findings = model.report().findings.clone();
    findings.extend(limits.doubts(parts.program.overhead));
    let report = Report { findings, ..model.report().clone() };
    let tables = Tables {
        report: report_table(&report, &limits)?,
        predict: prediction_table(prediction, &limits)?,
        ..tables(parts, model, (users, graph), &owners)?
    };
    let curves = changes::curves(expanded, &owners, model.report(), machine);
    Ok(Document {
        model,
        limits,
        findings: report.findings,
        tables,
        stacks,
        simulated,
        curves,
        has_sources: args.sources,
        measured,
    })
}

/// Largest size of a table, bytes. Larger tables are omitted, since they are of no use in a page.
const MOST_BYTES: usize = 16 << 20;
/// Largest number of rows of each table in a larger report.
const MOST_ROWS: usize = 1_000;

/// Tables whose computation cannot be divided among cores.
#[derive(Clone, Copy)]
enum Whole {
    Parallelism,
    Slack,
    Paths,
}

/// Computes the tables that do not need the report.
fn tables(
    parts: &Parts,
    model: &Model<'_>,
    (users, graph): (Program, ActivityGraph),
    owners: &Owners,
) -> Result<Tables, UserError> {
    let (program, machine) = (&parts.program, model.machine());
    let (users, graph) = (&users, &graph);
    let times = graph::VertexTimes::of(graph);
    let without =
        Without::new((model.expanded(), owners), Cpus::Infinite, machine).map_err(super::invalid)?;
    let gains = Gains::default();
    let gain_ns = |function| gains.once(function, || without.gain_ns(function));
    let mut found =
        super::on_all_cores(&[Whole::Parallelism, Whole::Slack, Whole::Paths], |whole| match whole {
            Whole::Parallelism => {
                let quartz = match &parts.timeline {
                    Some(timeline) => measured(timeline, program, false),
                    None => predicted(program, Cpus::Infinite, machine).map_err(super::invalid)?,
                };
                small(|out| parallelism::json::write(&[quartz], out))
            }
            Whole::Slack => {
                let slack = graph::slack_of(users, (graph, &times), false, SIMULATED, &gain_ns);
                small(|out| slack::json(&slack, false, out))
            }
            Whole::Paths => {
                let wanted = PathsWanted {
                    most: PATHS,
                    within: None,
                    routes: paths::ROUTES,
                    shown: None,
                    segments: false,
                    simulated: SIMULATED,
                };
                let longest = graph::paths_of(users, (graph, &times), &wanted, &gain_ns);
                small(|out| paths_json::json(&longest, false, out))
            }
        })
        .into_iter();
    let mut next = || found.next().unwrap_or_else(|| Ok(left_out()));
    Ok(Tables {
        report: left_out(),
        predict: left_out(),
        parallelism: next()?,
        slack: next()?,
        paths: next()?,
    })
}

/// Gain of leaving out each function, simulated once for all tables.
#[derive(Default)]
struct Gains(Mutex<HashMap<FunctionRef, Arc<OnceLock<Option<f64>>>>>);

impl Gains {
    fn once(&self, function: FunctionRef, simulate: impl FnOnce() -> Option<f64>) -> Option<f64> {
        let gain = {
            let mut known = self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
            known.entry(function).or_default().clone()
        };
        *gain.get_or_init(simulate)
    }
}

/// The report as JSON; if it is very large, each table has its first rows only.
fn report_table(report: &Report, limits: &Limits) -> Result<Box<RawValue>, UserError> {
    let write = |report: &Report, limits: &Limits| {
        raw(|out| json::report::write(report, limits, json::report::Options::default(), out))
    };
    let whole = write(report, limits)?;
    if whole.get().len() <= MOST_BYTES {
        return Ok(whole);
    }
    let (mut report, mut limits) = (report.clone(), limits.clone());
    report.locks.truncate(MOST_ROWS);
    limits.threads.truncate(MOST_ROWS);
    for result in &mut report.results {
        result.locks_held_ns.truncate(MOST_ROWS);
        result.waits.truncate(MOST_ROWS);
        result.functions.truncate(MOST_ROWS);
    }
    write(&report, &limits)
}

/// The prediction as JSON; without threads if very many of them make it too large.
fn prediction_table(mut prediction: Prediction, limits: &Limits) -> Result<Box<RawValue>, UserError> {
    let whole = raw(|out| json::predict::write(&prediction, limits, out))?;
    if whole.get().len() <= MOST_BYTES {
        return Ok(whole);
    }
    let mut limits = limits.clone();
    limits.threads.truncate(MOST_ROWS);
    prediction.results.iter_mut().for_each(|result| result.threads.clear());
    raw(|out| json::predict::write(&prediction, &limits, out))
}

/// Replaces a table that is omitted.
fn left_out() -> Box<RawValue> {
    RawValue::NULL.to_owned()
}

/// Like [`raw`], but omits a table that is too large.
fn small(write: impl FnOnce(&mut Vec<u8>) -> io::Result<()>) -> Result<Box<RawValue>, UserError> {
    let table = raw(write)?;
    Ok(if table.get().len() > MOST_BYTES { left_out() } else { table })
}

/// The JSON that a command prints with `--json`.
fn raw(write: impl FnOnce(&mut Vec<u8>) -> io::Result<()>) -> Result<Box<RawValue>, UserError> {
    let mut bytes = Vec::new();
    let problem =
        |error: String| UserError::runtime(error, "report this: longpole's own JSON cannot be read");
    write(&mut bytes).map_err(|error| problem(error.to_string()))?;
    let text = String::from_utf8(bytes).map_err(|error| problem(error.to_string()))?;
    RawValue::from_string(text.trim_end().to_owned()).map_err(|error| problem(error.to_string()))
}

/// Length and number of CPUs of another recording.
fn point(path: &Path) -> Result<Point, UserError> {
    let file = path.display().to_string();
    let no_point = |why: &str| {
        let hint = "give recordings that longpole made on another number of CPUs";
        Err(UserError::runtime(format!("{file} {why}"), hint))
    };
    let parts = Input::open(&InputPlan::whole(path.to_owned()))?.into_parts();
    let Some(timeline) = parts.timeline else {
        return no_point("was written by hand, so it has no measured times");
    };
    let Some(cpus) = parts.program.recorded_cpus else {
        return no_point("lacks the number of CPUs that it was recorded on");
    };
    Ok(Point { file, cpus, time_ns: timeline.end.0.saturating_sub(timeline.start.0) })
}

/// The input file's name with the ending `html`.
fn next_to(input: &InputPlan) -> Result<PathBuf, UserError> {
    match &input.source {
        Source::File(path) => Ok(path.with_extension("html")),
        Source::Newest => Ok(crate::input::newest(Path::new("."))?.with_extension("html")),
        Source::Stdin => {
            Err(UserError::usage("a page from standard input needs a name", "give a file: -o OUT.html"))
        }
    }
}

/// Whether a file is an older page, which may be replaced.
fn is_page_file(path: &Path) -> bool {
    let mut start = [0; 64];
    let is_file = path.symlink_metadata().is_ok_and(|metadata| metadata.is_file());
    let read = is_file.then(|| File::open(path).and_then(|mut file| file.read(&mut start)));
    matches!(read, Some(Ok(_))) && is_page(&start)
}

/// Opens the page in the user's browser, if there is one, and prints its path.
fn open(path: &Path) {
    let has_screen = ["DISPLAY", "WAYLAND_DISPLAY"].iter().any(|name| std::env::var_os(name).is_some());
    // A browser must not run as root.
    let opener = (has_screen && SudoUser::from_environment().is_none()).then(|| {
        let mut command = Command::new("xdg-open");
        command.arg(path).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command.spawn()
    });
    match opener {
        Some(Ok(_)) => say(format_args!("{}", path.display())),
        _ => say(format_args!("{}: open it in a browser", path.display())),
    }
}
