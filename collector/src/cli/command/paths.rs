//! `longpole paths`

use super::output::{to_reader, to_stdout};
use crate::cli::study::PathsArguments;
use crate::exit::{Outcome, UserError};
use crate::plan::Source;
use crate::present::study::{paths, paths_json};
use crate::present::style;
use engine::graph::{ActivityGraph, NearPaths, PathsWanted, VertexTimes, path_row};
use engine::predict::Model;
use engine::program::{Program, is_start_up};

/// Number of paths listed by default.
const PATHS: usize = 100;
/// Largest number of paths listed by default with --within.
const PATHS_WITHIN: usize = 10_000;

/// Reads an input, shows its longest paths. A deadlock is a finding, not an error; there may be fewer paths than asked for.
pub fn run(args: &PathsArguments) -> Result<Outcome, UserError> {
    let input = args.studied.input.plan();
    if args.next && input.source == Source::Stdin {
        return Err(UserError::usage(
            "--next reads the program and your answers from standard input",
            "write the program to a file",
        ));
    }
    let studied = super::studied(&input, args.studied.probed_only, args.all)?;
    let (program, model) = (&studied.program, super::model(args.studied.scheduling.model));
    if args.next {
        return one_by_one(program, &model);
    }
    let show = args.show.map(|rank| rank as usize);
    let wanted = PathsWanted {
        most: args.k.map_or(if args.within.is_some() { PATHS_WITHIN } else { PATHS }, |most| most as usize),
        within: args.within,
        routes: if show.is_some() { 0 } else { paths::ROUTES },
        shown: show,
        segments: args.segments,
        simulated: if show.is_some() { 0 } else { args.top.min(super::SIMULATED) },
    };
    let mut report =
        engine::graph::paths_report(program, (&studied.changed(), &studied.owners), &wanted, &model)
            .map_err(super::invalid)?;
    if let (Some(rank), None) = (show, &report.shown) {
        return Err(no_such_path(rank, report.counts.all));
    }
    if args.json {
        to_stdout(|out| paths_json::json(&report, args.segments, out))?;
    } else {
        report.benefit.retain(|row| args.all || row.kind != "function" || !is_start_up(&row.name));
        let frame = super::frame(&input, &studied.own, &super::usual_cpus(), &model);
        to_reader(|out| paths::text(&report, &frame, args.top, &style::for_stdout(), out))?;
    }
    Ok(Outcome::Done)
}

/// Shows one path, and the next one for each line of standard input. Each path is computed when it is asked for.
fn one_by_one(program: &Program, model: &Model) -> Result<Outcome, UserError> {
    let graph = ActivityGraph::on(program, model).map_err(super::invalid)?;
    let timing = VertexTimes::of(&graph);
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

/// Number of paths that the search prepares for at first.
const AHEAD: usize = 1 << 10;

fn no_such_path(rank: usize, all: u128) -> UserError {
    let problem = format!("there is no path {rank}: the recording has {}", paths::paths(all));
    let hint = match all {
        1 => "give --show 1".to_owned(),
        _ => format!("give --show a number from 1 to {all}"),
    };
    UserError::usage(problem, hint)
}
