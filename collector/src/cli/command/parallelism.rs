//! `longpole parallelism`

use super::output::{to_reader, to_stdout};
use crate::cli::study::ParallelismArguments;
use crate::exit::{Outcome, UserError};
use crate::input::{Input, Parts};
use crate::present::study::parallelism::screen::Asked;
use crate::present::study::parallelism::{json, row, screen};
use crate::present::style;
use engine::parallelism::{Parallelism, ParallelismRow, measured, predicted};
use engine::program::{Samples, bare_name};
use engine::report::Cpus;
use symbols::{NameMatch, listed, match_name};

/// Reads an input, computes and shows its parallelism. A deadlock is a finding, not an error.
pub fn run(args: &ParallelismArguments) -> Result<Outcome, UserError> {
    let (input, probed_only) = (args.studied.input.plan(), args.studied.probed_only);
    let Parts { timeline, mut program, .. } = Input::open(&input)?.into_parts();
    let seen =
        timeline.filter(|_| args.cpus.is_none()).map(|timeline| measured(&timeline, &program, probed_only));
    if probed_only {
        program.samples = Samples::default();
    }
    let runs = match seen {
        Some(measured) => vec![measured],
        None => {
            let cpus = args.cpus.clone().unwrap_or_else(|| vec![Cpus::Infinite]);
            let model = super::model(args.studied.scheduling.model);
            let runs = super::on_all_cores(&cpus, |cpus| predicted(&program, *cpus, &model));
            runs.into_iter().collect::<Result<Vec<Parallelism>, _>>().map_err(super::invalid)?
        }
    };
    if args.json {
        to_stdout(|out| json::write(&runs, out))?;
        return Ok(Outcome::Done);
    }
    let style = style::for_stdout();
    if let (Some(wanted), Some(run)) = (&args.of, runs.first()) {
        let found = found(run, wanted)?;
        to_reader(|out| row::write(run, found, &style, out))?;
        return Ok(Outcome::Done);
    }
    let beside = match &runs[..] {
        [run] if run.measured => run
            .cpus
            .and_then(|cpus| predicted(&program, cpus, &super::model(args.studied.scheduling.model)).ok()),
        _ => None,
    };
    let model = super::model(args.studied.scheduling.model);
    let frame = super::frame(&input, &program, &super::usual_cpus(), &model);
    let findings = &program.findings;
    let asked = Asked { only: args.by, top: args.top, frame: &frame, findings, beside: beside.as_ref() };
    to_reader(|out| screen::write(&runs, &asked, &style, out))?;
    Ok(Outcome::Done)
}

/// The row that the user names.
fn found<'r>(run: &'r Parallelism, wanted: &str) -> Result<&'r ParallelismRow, UserError> {
    let named: Vec<&ParallelismRow> = run.rows.iter().filter(|row| row.name.is_some()).collect();
    let names = || named.iter().map(|row| row.name.as_deref().unwrap_or_default());
    let bare = || names().map(bare_name);
    let exact = names().position(|name| name == wanted).or_else(|| bare().position(|name| name == wanted));
    let places = match exact {
        Some(place) => vec![place],
        None => match match_name(wanted, bare()) {
            NameMatch::These(places) | NameMatch::Several(places) => places,
            NameMatch::Nothing => Vec::new(),
        },
    };
    match places[..] {
        [place] => named.get(place).copied().ok_or_else(|| unknown(wanted)),
        [] => Err(unknown(wanted)),
        _ => {
            let names: Vec<&str> = places.iter().filter_map(|place| names().nth(*place)).collect();
            let problem = format!("'{wanted}' matches {} functions, locks and threads", names.len());
            Err(UserError::usage(problem, format!("choose one: {}", listed(&names))))
        }
    }
}

fn unknown(wanted: &str) -> UserError {
    UserError::usage(
        format!("there is no function, lock or thread '{wanted}' in this run"),
        "`longpole parallelism FILE --top 1000` lists all of them",
    )
}
