//! `longpole parallelism`

use super::output::{to_reader, to_stdout};
use crate::exit::{Outcome, UserError};
use crate::input::{Input, Parts};
use crate::plan::InputPlan;
use crate::plan::{Listed, ParallelismPlan};
use crate::present::study::parallelism::screen::{Asked, Class};
use crate::present::study::parallelism::{json, row, screen};
use crate::present::style;
use engine::parallelism::{Parallelism, Row, measured, predicted};
use engine::program::{Samples, bare_name};
use engine::report::Cpus;
use symbols::{NameMatch, listed, match_name};

/// Reads, accounts, shows. A deadlock is a finding, not an error.
pub fn run(plan: &ParallelismPlan) -> Result<Outcome, UserError> {
    let input = Input::open(&plan.input)?;
    let Parts { timeline, mut program, .. } = input.into_parts();
    let seen = timeline
        .filter(|_| plan.cpus.is_none())
        .map(|timeline| measured(&timeline, &program, plan.probed_only));
    if plan.probed_only {
        program.samples = Samples::default();
    }
    let runs = match seen {
        Some(measured) => vec![measured],
        None => {
            let cpus = plan.cpus.clone().unwrap_or_else(|| vec![Cpus::Infinite]);
            let model = super::model(plan.scheduler);
            let runs = super::on_all_cores(&cpus, |cpus| predicted(&program, *cpus, &model));
            runs.into_iter().collect::<Result<Vec<Parallelism>, _>>().map_err(super::invalid)?
        }
    };
    if plan.json {
        to_stdout(|out| json::write(&runs, out))?;
        return Ok(Outcome::Done);
    }
    let style = style::for_stdout();
    if let (Some(wanted), Some(run)) = (&plan.of, runs.first()) {
        let found = found(run, wanted)?;
        to_reader(|out| row::write(run, found, &style, out))?;
        return Ok(Outcome::Done);
    }
    let beside = match &runs[..] {
        [run] if run.measured => {
            run.cpus.and_then(|cpus| predicted(&program, cpus, &super::model(plan.scheduler)).ok())
        }
        _ => None,
    };
    let file = match &plan.input {
        InputPlan::Stdin => "-".to_owned(),
        InputPlan::File(path) => path.display().to_string(),
        InputPlan::Newest => String::new(),
    };
    let only = plan.by.map(|by| match by {
        Listed::Functions => Class::Functions,
        Listed::Objects => Class::Objects,
        Listed::Threads => Class::Threads,
    });
    let asked = Asked { only, top: plan.top, file: &file, beside: beside.as_ref() };
    to_reader(|out| screen::write(&runs, &asked, &style, out))?;
    Ok(Outcome::Done)
}

/// The row that the user names.
fn found<'r>(run: &'r Parallelism, wanted: &str) -> Result<&'r Row, UserError> {
    let named: Vec<&Row> = run.rows.iter().filter(|row| row.name.is_some()).collect();
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
            let problem = format!("{} functions, locks and threads may be meant by '{wanted}'", names.len());
            Err(UserError::usage(problem, format!("say which: {}", listed(&names))))
        }
    }
}

fn unknown(wanted: &str) -> UserError {
    UserError::usage(
        format!("there is no function, lock or thread '{wanted}' in this run"),
        "`longpole parallelism FILE --top 1000` lists all of them",
    )
}
