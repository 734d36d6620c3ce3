//! `longpole what-if`

use super::output::{to_reader, to_stdout};
use crate::cli::study::{Threads, WhatIfArguments, functions, lock};
use crate::exit::{Outcome, UserError};
use crate::plan::InputPlan;
use crate::present::{study::what_if as show, style};
use engine::limit::{Limits, Search};
use engine::predict::Model;
use engine::program::{Program, bare_name};
use engine::report::Cpus;
use engine::what_if::{Edit, Ranker, Ranking, WhatIf, WhatIfRow, edited, headroom, what_if};

/// Reads, changes, predicts, shows.
pub fn run(args: &WhatIfArguments) -> Result<Outcome, UserError> {
    let asks = args.rank || args.free_io || args.threads.is_some() || args.headroom.is_some();
    if !asks && args.scale.is_empty() && args.split_lock.is_empty() {
        return Err(UserError::usage(
            "nothing is to be changed",
            "say what if: --scale NAME=0.8, --split-lock LOCK=4, --threads +1, --free-io; or ask --rank or --headroom FUNCTION",
        ));
    }
    let input = args.studied.input.plan();
    // A ranking is of what a user can change, as the functions of a report are; a change is of what its name says.
    let own = !args.rank || args.all || args.json;
    let studied = super::studied(&input, args.studied.probed_only, own)?;
    let program = &studied.program;
    let model = super::model(args.studied.scheduling.model);
    let frame = || super::frame(&input, &studied.own, &args.cpus, &model);
    let style = style::for_stdout();
    if let Some(name) = &args.headroom {
        let found = functions(program, name)?;
        let [function] = found[..] else {
            return Err(UserError::usage(
                format!("--headroom '{name}' matches {} functions", found.len()),
                "give the name of one of them",
            ));
        };
        let name = program.functions[function.0 as usize].name.as_str();
        let curves = headroom(program, function, &args.cpus, &model).map_err(super::invalid)?;
        if args.json {
            to_stdout(|out| show::headroom_json(name, &curves, out))?;
        } else {
            let frame = frame();
            to_reader(|out| show::headroom_text(name, &curves, program, &frame, &style, out))?;
        }
    } else if let Some(threads) = args.threads {
        more_threads(args, &input, threads, &studied.own, &model)?;
    } else if args.rank {
        if args.json {
            let rankings = ranked(program, &args.cpus, &model, args.top)?;
            to_stdout(|out| show::rank_json(&rankings, out))?;
        } else {
            let cpus = show::ranked_on(&args.cpus, program.recorded_cpus);
            let rankings = ranked(program, &cpus, &model, args.top)?;
            let limits = super::limits_on_all_cores(&studied.own, &args.cpus, &model);
            let frame = super::framed(&input, &studied.own, limits);
            to_reader(|out| show::rank_text(&rankings, program, args.all, &frame, &style, out))?;
        }
    } else {
        let (edits, words) = edits(program, args)?;
        let after =
            edited(program, &edits).map_err(|error| UserError::usage(error.to_string(), error.hint()))?;
        let result = what_if(program, &after, &edits, &args.cpus, &model).map_err(super::invalid)?;
        if args.json {
            to_stdout(|out| show::json(&result, out))?;
        } else {
            // Callers that samples show are the same after the changes.
            let after = edited(&studied.own, &edits).unwrap_or(after);
            let after = super::limit_on_all_cores(&after, &args.cpus, &model);
            let frame = frame();
            to_reader(|out| show::text(&result, &words, &frame, &after, &style, out))?;
        }
    }
    Ok(Outcome::Done)
}

/// With more of the threads that do the same, as the gain of one more is computed for LIMIT.
fn more_threads(
    args: &WhatIfArguments,
    input: &InputPlan,
    wanted: Threads,
    own: &Program,
    model: &Model,
) -> Result<(), UserError> {
    let search = Search::new(own, &args.cpus, model).map_err(super::invalid)?;
    let unknown = |what: &str| {
        UserError::runtime(
            format!("what more threads bring is not known: {what}"),
            "`longpole report` shows in THREADS which threads do the same",
        )
    };
    let now = search.workers().ok_or_else(|| unknown("no threads do the same and most of the work"))?;
    let more = match wanted {
        Threads::More(more) => more,
        Threads::All(all) if all > now => all - now,
        Threads::All(all) => {
            return Err(UserError::usage(
                format!("--threads {all} is no more than there are: {now} do the same"),
                format!("give more than {now}, or for example --threads +1"),
            ));
        }
    };
    let times = super::on_all_cores(&args.cpus, |cpus| search.with_workers(more, *cpus));
    let rows = args.cpus.iter().zip(times).map(|(cpus, times)| {
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
    if args.json {
        return to_stdout(|out| show::json(&result, out));
    }
    let frame = super::frame(input, own, &args.cpus, model);
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

/// What is to be changed; and in words, by its own name where it is one: `parse at 80 %, cache split into 4 and free I/O`.
fn edits(program: &Program, args: &WhatIfArguments) -> Result<(Vec<Edit>, String), UserError> {
    let (mut edits, mut texts) = (Vec::new(), Vec::new());
    for (name, factor) in &args.scale {
        let functions = functions(program, name)?;
        let own = match functions[..] {
            [one] => program.functions.get(one.0 as usize).map(|function| &function.name),
            _ => None,
        };
        texts.push(format!("{} at {} %", own.unwrap_or(name), (factor * 1000.0).round() / 10.0));
        edits.push(Edit::Scale(functions, *factor));
    }
    for (name, parts) in &args.split_lock {
        let lock = lock(program, name)?;
        let own = program.objects.get(lock.0 as usize).map(|lock| bare_name(lock));
        texts.push(format!("{} split into {parts}", own.unwrap_or(name)));
        edits.push(Edit::SplitLock(lock, *parts));
    }
    if args.free_io {
        texts.push("free I/O".to_owned());
        edits.push(Edit::FreeIo);
    }
    let words = match texts.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} and {last}", rest.join(", ")),
        _ => texts.concat(),
    };
    Ok((edits, words))
}
