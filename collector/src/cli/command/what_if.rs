//! `longpole what-if`

use super::output::{to_reader, to_stdout};
use crate::cli::study::{functions, lock};
use crate::exit::{Outcome, UserError};
use crate::plan::{EditPlan, Question, ThreadsPlan, WhatIfPlan};
use crate::present::{study::what_if as show, style};
use engine::limit::{Limits, Search};
use engine::predict::Model;
use engine::program::{Program, bare_name};
use engine::report::Cpus;
use engine::what_if::{Edit, Ranker, Ranking, WhatIf, WhatIfRow, edited, headroom, what_if};

/// Reads, changes, predicts, shows.
pub fn run(plan: &WhatIfPlan) -> Result<Outcome, UserError> {
    let studied = super::studied(&plan.input, plan.probed_only, true)?;
    let program = &studied.program;
    let model = super::model(plan.scheduler);
    let frame = || super::frame(&plan.input, &studied.own, &plan.cpus, &model);
    let style = style::for_stdout();
    match &plan.question {
        Question::Edits(edits) => {
            let plans = edits;
            let edits = edits.iter().map(|edit| resolved(program, edit)).collect::<Result<Vec<Edit>, _>>()?;
            let words = words(program, plans, &edits);
            let after =
                edited(program, &edits).map_err(|error| UserError::usage(error.to_string(), error.hint()))?;
            let result = what_if(program, &after, &edits, &plan.cpus, &model).map_err(super::invalid)?;
            if plan.json {
                to_stdout(|out| show::json(&result, out))?;
            } else {
                // Callers that samples show are the same after the changes.
                let after = edited(&studied.own, &edits).unwrap_or(after);
                let after = super::limit_on_all_cores(&after, &plan.cpus, &model);
                let frame = frame();
                to_reader(|out| show::text(&result, &words, &frame, &after, &style, out))?;
            }
        }
        Question::Threads(threads) => more_threads(plan, *threads, &studied.own, &model)?,
        Question::Headroom(name) => {
            let found = functions(program, name)?;
            let [function] = found[..] else {
                return Err(UserError::usage(
                    format!("--headroom '{name}' matches {} functions", found.len()),
                    "give the name of one of them",
                ));
            };
            let name = program.functions[function.0 as usize].name.as_str();
            let curves = headroom(program, function, &plan.cpus, &model).map_err(super::invalid)?;
            if plan.json {
                to_stdout(|out| show::headroom_json(name, &curves, out))?;
            } else {
                let frame = frame();
                to_reader(|out| show::headroom_text(name, &curves, program, &frame, &style, out))?;
            }
        }
        Question::Rank(most) => {
            if plan.json {
                let rankings = ranked(program, &plan.cpus, &model, *most)?;
                to_stdout(|out| show::rank_json(&rankings, out))?;
            } else {
                let cpus = show::ranked_on(&plan.cpus, program.recorded_cpus);
                let rankings = ranked(program, &cpus, &model, *most)?;
                let limits = super::limits_on_all_cores(&studied.own, &plan.cpus, &model);
                let frame = super::framed(&plan.input, &studied.own, limits);
                to_reader(|out| show::rank_text(&rankings, program, &frame, &style, out))?;
            }
        }
    }
    Ok(Outcome::Done)
}

/// With more of the threads that do the same, as the gain of one more is computed for LIMIT.
fn more_threads(
    plan: &WhatIfPlan,
    wanted: ThreadsPlan,
    own: &Program,
    model: &Model,
) -> Result<(), UserError> {
    let search = Search::new(own, &plan.cpus, model).map_err(super::invalid)?;
    let unknown = |what: &str| {
        UserError::runtime(
            format!("what more threads bring is not known: {what}"),
            "`longpole report` shows in THREADS which threads do the same",
        )
    };
    let now = search.workers().ok_or_else(|| unknown("no threads do the same and most of the work"))?;
    let more = match wanted {
        ThreadsPlan::More(more) => more,
        ThreadsPlan::All(all) if all > now => all - now,
        ThreadsPlan::All(all) => {
            return Err(UserError::usage(
                format!("--threads {all} is no more than there are: {now} do the same"),
                format!("give more than {now}, or for example --threads +1"),
            ));
        }
    };
    let times = super::on_all_cores(&plan.cpus, |cpus| search.with_workers(more, *cpus));
    let rows = plan.cpus.iter().zip(times).map(|(cpus, times)| {
        let (before_ns, after_ns) = times?;
        Some(WhatIfRow {
            cpus: *cpus,
            before_ns,
            after_ns,
            promised_ns: None,
            gain_between: None,
            first_before: None,
            first_after: None,
        })
    });
    let results = rows.collect::<Option<Vec<WhatIfRow>>>();
    let result = WhatIf {
        results: results.ok_or_else(|| unknown("the threads do not share the work evenly"))?,
        trust: own.trust,
        findings: own.findings.clone(),
        findings_after: Vec::new(),
        recorded_cpus: own.recorded_cpus,
    };
    if plan.json {
        return to_stdout(|out| show::json(&result, out));
    }
    let frame = super::frame(&plan.input, own, &plan.cpus, model);
    let words = format!("{} threads in place of {now}", now.saturating_add(more));
    let style = style::for_stdout();
    to_reader(|out| show::text(&result, &words, &frame, &Limits::default(), &style, out))
}

/// [`engine::what_if::rank`], each core of this machine taking the next change.
fn ranked(program: &Program, cpus: &[Cpus], model: &Model, most: usize) -> Result<Vec<Ranking>, UserError> {
    let ranker = Ranker::new(program, cpus, model, most).map_err(super::invalid)?;
    let times = super::simulated(&ranker.changes(), "changes", |change| ranker.times_ns(*change));
    Ok(ranker.conclude(times))
}

fn resolved(program: &Program, edit: &EditPlan) -> Result<Edit, UserError> {
    Ok(match edit {
        EditPlan::Scale(name, factor) => Edit::Scale(functions(program, name)?, *factor),
        EditPlan::SplitLock(name, parts) => Edit::SplitLock(lock(program, name)?, *parts),
        EditPlan::FreeIo => Edit::FreeIo,
    })
}

/// `parse at 80 %, cache split into 4 and free I/O`: what was asked for, by its own name where it is one.
fn words(program: &Program, plans: &[EditPlan], edits: &[Edit]) -> String {
    let text = |(plan, edit): (&EditPlan, &Edit)| match (plan, edit) {
        (EditPlan::Scale(name, factor), edit) => {
            let own = match edit {
                Edit::Scale(functions, _) if functions.len() == 1 => {
                    functions.first().and_then(|function| program.functions.get(function.0 as usize))
                }
                _ => None,
            };
            let name = own.map_or(name, |function| &function.name);
            format!("{name} at {} %", (factor * 1000.0).round() / 10.0)
        }
        (EditPlan::SplitLock(name, parts), edit) => {
            let own = match edit {
                Edit::SplitLock(lock, _) => program.objects.get(lock.0 as usize),
                _ => None,
            };
            format!("{} split into {parts}", own.map_or(name.as_str(), |lock| bare_name(lock)))
        }
        (EditPlan::FreeIo, _) => "free I/O".to_owned(),
    };
    let texts: Vec<String> = plans.iter().zip(edits).map(text).collect();
    match texts.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} and {last}", rest.join(", ")),
        Some((last, _)) => last.clone(),
        None => String::new(),
    }
}
