//! `longpole what-if`

use super::output::to_stdout;
use crate::cli::study::{EditPlan, Question, WhatIfPlan, functions, lock};
use crate::cli::{Outcome, UserError};
use crate::present::{study::what_if as show, style};
use engine::predict::Model;
use engine::program::Program;
use engine::what_if::{Edit, edited, headroom, rank, what_if};

/// Reads, changes, predicts, shows.
pub fn run(plan: &WhatIfPlan) -> Result<Outcome, UserError> {
    let program = super::studied(&plan.input, plan.probed_only)?;
    let model = Model { scheduler: plan.scheduler, ..Model::default() };
    // Many programs are run: once each is enough.
    let one_run = Model { runs: 1, ..model.clone() };
    let style = style::for_stdout();
    match &plan.question {
        Question::Edits(edits) => {
            let words = words(edits);
            let edits =
                edits.iter().map(|edit| resolved(&program, edit)).collect::<Result<Vec<Edit>, _>>()?;
            let after = edited(&program, &edits)
                .map_err(|error| UserError::usage(error.to_string(), error.hint()))?;
            let result = what_if(&program, &after, &edits, &plan.cpus, &model).map_err(super::invalid)?;
            if plan.json {
                to_stdout(|out| show::json(&result, out))?;
            } else {
                to_stdout(|out| show::text(&result, &words, &style, out))?;
            }
        }
        Question::Headroom(name) => {
            let found = functions(&program, name)?;
            let [function] = found[..] else {
                return Err(UserError::usage(
                    format!("--headroom '{name}' matches {} functions", found.len()),
                    "give the name of one of them",
                ));
            };
            let name = program.functions[function.0 as usize].name.as_str();
            let curves = headroom(&program, function, &plan.cpus, &one_run).map_err(super::invalid)?;
            if plan.json {
                to_stdout(|out| show::headroom_json(name, &curves, out))?;
            } else {
                to_stdout(|out| show::headroom_text(name, &curves, program.recorded_cpus, &style, out))?;
            }
        }
        Question::Rank(most) => {
            let rankings = rank(&program, &plan.cpus, &one_run, *most).map_err(super::invalid)?;
            if plan.json {
                to_stdout(|out| show::rank_json(&rankings, out))?;
            } else {
                to_stdout(|out| show::rank_text(&rankings, program.recorded_cpus, &style, out))?;
            }
        }
    }
    Ok(Outcome::Done)
}

fn resolved(program: &Program, edit: &EditPlan) -> Result<Edit, UserError> {
    Ok(match edit {
        EditPlan::Scale(name, factor) => Edit::Scale(functions(program, name)?, *factor),
        EditPlan::SplitLock(name, parts) => Edit::SplitLock(lock(program, name)?, *parts),
        EditPlan::FreeIo => Edit::FreeIo,
    })
}

/// `parse at 80 %, cache split into 4 and free I/O`
fn words(edits: &[EditPlan]) -> String {
    let texts: Vec<String> = edits
        .iter()
        .map(|edit| match edit {
            EditPlan::Scale(name, factor) => format!("{name} at {} %", (factor * 1000.0).round() / 10.0),
            EditPlan::SplitLock(name, parts) => format!("{name} split into {parts}"),
            EditPlan::FreeIo => "free I/O".to_owned(),
        })
        .collect();
    match texts.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} and {last}", rest.join(", ")),
        Some((last, _)) => last.clone(),
        None => String::new(),
    }
}
