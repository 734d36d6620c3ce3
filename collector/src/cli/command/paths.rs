//! `longpole paths`

use super::output::{to_reader, to_stdout};
use crate::exit::{Outcome, UserError};
use crate::plan::PathsPlan;
use crate::present::study::{paths, paths_json};
use crate::present::style;
use engine::attribution::is_start_up;
use engine::graph::{ActivityGraph, NearPaths, PathsWanted, Timing, path_row};
use engine::predict::Scheduler;
use engine::program::Program;

/// Reads, analyses, shows. A deadlock is a finding, not an error; fewer paths than asked for are all there are.
pub fn run(plan: &PathsPlan) -> Result<Outcome, UserError> {
    let studied = super::studied(&plan.input, plan.probed_only, plan.all || plan.json)?;
    let (program, model) = (&studied.program, super::model(plan.scheduler));
    if plan.next {
        return one_by_one(program, plan.scheduler);
    }
    let wanted = PathsWanted {
        most: plan.most,
        within: plan.within,
        routes: if plan.show.is_some() { 0 } else { paths::ROUTES },
        shown: plan.show,
        segments: plan.segments,
        simulated: if plan.show.is_some() { 0 } else { plan.top.min(super::SIMULATED) },
    };
    let mut report = engine::graph::paths_report(program, &wanted, &model).map_err(super::invalid)?;
    if let (Some(rank), None) = (plan.show, &report.shown) {
        return Err(no_such_path(rank, report.counts.all));
    }
    if plan.json {
        to_stdout(|out| paths_json::json(&report, plan.segments, out))?;
    } else {
        report.benefit.retain(|row| plan.all || row.kind != "function" || !is_start_up(&row.name));
        let frame = super::frame(&plan.input, &studied.own, &super::usual_cpus(), &model);
        to_reader(|out| paths::text(&report, &frame, plan.top, &style::for_stdout(), out))?;
    }
    Ok(Outcome::Done)
}

/// One path, and one more for each line of standard input: found then, and nothing is computed twice.
fn one_by_one(program: &Program, scheduler: Option<Scheduler>) -> Result<Outcome, UserError> {
    let graph = ActivityGraph::on(program, &super::model(scheduler)).map_err(super::invalid)?;
    let timing = Timing::of(&graph);
    let mut found = NearPaths::new(&graph, &timing, AHEAD);
    let mut lines = std::io::stdin().lines();
    let style = style::for_stdout();
    loop {
        let Some(path) = found.next() else {
            to_stdout(|out| writeln!(out, "There is no other path."))?;
            break;
        };
        let row = path_row(program, &graph, timing.length(), path, Some(&found.edges(path.number)));
        to_stdout(|out| paths::one(&row, &style, out))?;
        match lines.next() {
            Some(Ok(line)) if line.trim() != "q" => {}
            _ => break,
        }
    }
    Ok(Outcome::Done)
}

/// Paths that are looked for at first, without a given number.
const AHEAD: usize = 1 << 10;

fn no_such_path(rank: usize, all: u128) -> UserError {
    let problem = format!("there is no path {rank}: the recording has {}", paths::paths(all));
    let hint = match all {
        1 => "give --show 1".to_owned(),
        _ => format!("give --show a number from 1 to {all}"),
    };
    UserError::usage(problem, hint)
}
