//! `longpole view`, and `report --html`

use super::output::to_stdout;
use super::{SIMULATED, changes};
use crate::exit::{Outcome, UserError, say};
use crate::export::Model;
use crate::input::{Input, Parts};
use crate::page::{Document, Point, Tables, is_page, write};
use crate::plan::{InputPlan, OutputPlan, ViewPlan};
use crate::present::study::{parallelism, paths, paths_json, slack};
use crate::present::{json, predict_json};
use engine::attribution::with_sampled_calls;
use engine::graph::PathsWanted;
use engine::limit::Limits;
use engine::parallelism::{measured, predicted};
use engine::predict::Forecast;
use engine::report::{Cpus, Finding, Report};
use recording::{Overwrite, SudoUser, check_file, write_whole};
use serde_json::value::RawValue;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Paths in the table, as `longpole paths` has them.
const PATHS: usize = 100;

/// Reads, analyses, writes the page, opens it.
pub fn run(plan: &ViewPlan) -> Result<Outcome, UserError> {
    let output = match &plan.output {
        Some(output) => output.clone(),
        None => OutputPlan::File(next_to(&plan.input)?),
    };
    let overwrite = match &output {
        OutputPlan::File(path) if plan.force || is_page_file(path) => Overwrite::Reports,
        _ => Overwrite::Devices,
    };
    if let OutputPlan::File(path) = &output {
        // Reading and simulating may take long.
        check_file(path, overwrite)?;
    }
    let measured = plan.measured.iter().map(|path| point(path)).collect::<Result<_, _>>()?;
    let mut input = Input::open(&plan.input)?;
    if let Input::Session(read) = &mut input {
        super::symbolize::in_memory(&mut read.0, &plan.symbols)?;
    }
    let parts = input.into_parts();
    let about = super::export::about(&plan.input, parts.meta.as_ref());
    let model = Model::new(parts.timeline.as_ref(), &parts.program, plan.cpus.clone(), about)
        .map_err(super::invalid)?;
    let limits = super::limits_on_all_cores(&parts.program, &plan.cpus, model.machine());
    let mut findings = model.report().findings.clone();
    findings.extend(limits.doubts(parts.program.overhead));
    let document = Document {
        model: &model,
        limits: &limits,
        findings: &findings,
        tables: tables(&parts, &model, &limits, &findings)?,
        curves: changes::curves(model.expanded(), model.report(), &plan.cpus, model.machine()),
        has_sources: plan.sources,
        measured,
    };
    match &output {
        OutputPlan::Stdout => to_stdout(|out| write(&document, out))?,
        OutputPlan::File(path) => {
            write_whole(path, overwrite, |out| write(&document, out))?;
            if plan.open {
                open(path);
            }
        }
    }
    Ok(Outcome::Done)
}

/// A larger table is left out: nobody reads it in a page.
const MOST_BYTES: usize = 16 << 20;

/// What has no parts that are independent of each other.
#[derive(Clone, Copy)]
enum Whole {
    Parallelism,
    Slack,
    Paths,
}

fn tables(
    parts: &Parts,
    model: &Model<'_>,
    limits: &Limits,
    findings: &[Finding],
) -> Result<Tables, UserError> {
    let (program, cpus, machine) = (&parts.program, &model.cpus, model.machine());
    let prediction = Forecast::new(program, cpus, machine).map_err(super::invalid)?;
    let runs = super::on_all_cores(prediction.wanted(), |cpus| prediction.at(*cpus));
    let prediction = prediction.conclude(runs);
    let expanded = with_sampled_calls(program.clone());
    let mut others =
        super::on_all_cores(&[Whole::Parallelism, Whole::Slack, Whole::Paths], |whole| match whole {
            Whole::Parallelism => {
                let quartz = match &parts.timeline {
                    Some(timeline) => measured(timeline, program, false),
                    None => predicted(program, Cpus::Infinite, machine).map_err(super::invalid)?,
                };
                small(|out| parallelism::json::write(&[quartz], out))
            }
            Whole::Slack => {
                let times = engine::graph::slack_report(&expanded, false, SIMULATED, machine);
                let times = times.map_err(super::invalid)?;
                small(|out| slack::json(&times, false, out))
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
                let longest =
                    engine::graph::paths_report(&expanded, &wanted, machine).map_err(super::invalid)?;
                small(|out| paths_json::json(&longest, false, out))
            }
        })
        .into_iter();
    let mut next = || others.next().unwrap_or_else(|| Ok(left_out()));
    let report = Report { findings: findings.to_vec(), ..model.report().clone() };
    Ok(Tables {
        report: raw(|out| json::write(&report, limits, json::Options::default(), out))?,
        predict: raw(|out| predict_json::write(&prediction, limits, out))?,
        parallelism: next()?,
        slack: next()?,
        paths: next()?,
    })
}

/// What stands for a table that is left out.
fn left_out() -> Box<RawValue> {
    RawValue::NULL.to_owned()
}

/// The same as [`raw`], if it is not too large.
fn small(write: impl FnOnce(&mut Vec<u8>) -> io::Result<()>) -> Result<Box<RawValue>, UserError> {
    let table = raw(write)?;
    Ok(if table.get().len() > MOST_BYTES { left_out() } else { table })
}

/// What a command prints with `--json`.
fn raw(write: impl FnOnce(&mut Vec<u8>) -> io::Result<()>) -> Result<Box<RawValue>, UserError> {
    let mut bytes = Vec::new();
    let problem =
        |error: String| UserError::runtime(error, "report this: longpole's own JSON cannot be read");
    write(&mut bytes).map_err(|error| problem(error.to_string()))?;
    let text = String::from_utf8(bytes).map_err(|error| problem(error.to_string()))?;
    RawValue::from_string(text.trim_end().to_owned()).map_err(|error| problem(error.to_string()))
}

/// How long another recording is, and on how many CPUs.
fn point(path: &Path) -> Result<Point, UserError> {
    let file = path.display().to_string();
    let no_point = |why: &str| {
        let hint = "give recordings that longpole made on another number of CPUs";
        Err(UserError::runtime(format!("{file} {why}"), hint))
    };
    let Input::Session(read) = Input::open(&InputPlan::File(path.to_owned()))? else {
        return no_point("was written by hand: nothing was measured");
    };
    let (recording, info) = *read;
    let Some(cpus) = info.meta.map(|meta| meta.cpu_count).filter(|&cpus| cpus > 0) else {
        return no_point("does not say on how many CPUs it was recorded");
    };
    let timeline = engine::timeline::build(&recording);
    Ok(Point { file, cpus, time_ns: timeline.end.0.saturating_sub(timeline.start.0) })
}

/// The file with another ending.
fn next_to(input: &InputPlan) -> Result<PathBuf, UserError> {
    match input {
        InputPlan::File(path) => Ok(path.with_extension("html")),
        InputPlan::Newest => Ok(crate::input::newest(Path::new("."))?.with_extension("html")),
        InputPlan::Stdin => Err(UserError::usage(
            "what comes from standard input has no name to write beside",
            "say where to write: -o OUT.html",
        )),
    }
}

/// An older page may be written again.
fn is_page_file(path: &Path) -> bool {
    let mut start = [0; 64];
    let is_file = path.symlink_metadata().is_ok_and(|metadata| metadata.is_file());
    let read = is_file.then(|| File::open(path).and_then(|mut file| file.read(&mut start)));
    matches!(read, Some(Ok(_))) && is_page(&start)
}

/// Opens it in the user's browser, where there is one; says where it is.
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
