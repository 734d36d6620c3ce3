//! `longpole what-if`

use super::Studied;
use super::output::{to_reader, to_stdout};
use crate::cli::study::{Changes, Count, Threads, WhatIfArguments, functions, lock, semaphore};
use crate::exit::{Outcome, UserError};
use crate::plan::InputPlan;
use crate::present::words::edit_words::{About, words};
use crate::present::{study::what_if as show, style};
use engine::attribution::Owners;
use engine::experiment::{ComputePart, Edit, Trials, permits};
use engine::limit::{Limits, Search};
use engine::predict::Model;
use engine::program::{FunctionRef, ObjectId, Program, bare_name};
use engine::report::Cpus;
use engine::what_if::{Ranker, Ranking, WhatIf, WhatIfError, WhatIfRow, headroom, what_if};
use std::borrow::Cow;
use std::collections::BTreeSet;
use symbols::listed;

/// Reads an input, changes it, predicts, shows the times.
pub fn run(args: &WhatIfArguments) -> Result<Outcome, UserError> {
    let changes = &args.changes;
    if !(args.rank || args.threads.is_some() || args.headroom.is_some() || changes.any()) {
        return Err(UserError::usage(
            "no change is given",
            "give a change: --scale NAME=0.8, --split-lock LOCK=4, --threads +1, --free-io; or ask --rank or --headroom FUNCTION",
        ));
    }
    let input = args.studied.input.plan();
    // A ranking is about functions that a user can change, as in a report; a change is about exactly the named function.
    let own = !args.rank || args.all;
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
                "give the name of one",
            ));
        };
        let name = program.functions[function.0 as usize].name.as_str();
        let scaled = Owners::of(&studied.own).owned_by(function);
        let curves = headroom(program, &scaled, &args.cpus, &model).map_err(super::invalid)?;
        if args.json {
            to_stdout(|out| show::headroom_json(name, &curves, out))?;
        } else {
            let frame = frame();
            to_reader(|out| show::headroom_text(name, &curves, program, &frame, &style, out))?;
        }
    } else if let Some(threads) = &args.threads {
        other_threads(args, &input, threads, &studied.own, &model)?;
    } else if args.rank {
        if args.json {
            let rankings = ranked(&studied, &args.cpus, &model, args.top)?;
            to_stdout(|out| show::rank_json(&rankings, out))?;
        } else {
            let cpus = show::ranked_on(&args.cpus, program.recorded_cpus);
            let rankings = ranked(&studied, &cpus, &model, args.top)?;
            let limits = super::limits_on_all_cores(&studied.own, &args.cpus, &model);
            let frame = super::framed(&input, &studied.own, limits);
            to_reader(|out| show::rank_text(&rankings, program, args.all, &frame, &style, out))?;
        }
    } else {
        let (edits, words) = edits(&studied, changes, &model)?;
        let trials = Trials::new(Cow::Borrowed(program), Owners::of(&studied.own), &model);
        let result = what_if(&trials, &edits, &args.cpus).map_err(|error| match error {
            WhatIfError::Edit(error) => UserError::usage(error.to_string(), error.hint()),
            WhatIfError::Program(error) => super::invalid(error),
        })?;
        if args.json {
            to_stdout(|out| show::json(&result, out))?;
        } else {
            let after = Search::after(&studied.own, &edits, &args.cpus, &model);
            let after = after.map_or_else(|_| Limits::default(), super::limit_of);
            let frame = frame();
            to_reader(|out| show::text(&result, &words, &frame, &after, &style, out))?;
        }
    }
    Ok(Outcome::Done)
}

/// Predicts with more or fewer of the threads that do the same. The gain is computed as for LIMIT.
fn other_threads(
    args: &WhatIfArguments,
    input: &InputPlan,
    wanted: &Threads,
    own: &Program,
    model: &Model,
) -> Result<(), UserError> {
    let search = Search::new(own, &args.cpus, model).map_err(super::invalid)?;
    let unknown = |what: &str| {
        UserError::runtime(
            format!("the gain of another number of threads is not known: {what}"),
            "`longpole report` shows in THREADS which threads do the same",
        )
    };
    let threads = match &wanted.name {
        Some(name) => search.cohort(name).ok_or_else(|| {
            UserError::usage(
                format!("this recording has no threads called '{name}'"),
                format!("threads are: {}", listed(&search.cohort_names())),
            )
        })?,
        None => search.workers().ok_or_else(|| unknown("no threads do the same and most of the work"))?,
    };
    let now = threads.len();
    let then = match wanted.count {
        Count::More(more) => now.saturating_add(more),
        Count::All(all) if all != now && all > 0 => all,
        Count::All(all) => {
            return Err(UserError::usage(
                format!("--threads {all} is no change: {now} do the same"),
                "give another number, or for example --threads +1",
            ));
        }
    };
    let times = super::on_all_cores(&args.cpus, |cpus| match then.checked_sub(now) {
        Some(more) => {
            search.with_workers(&threads, more, *cpus).map(|times| (times, search.is_bound(&threads, *cpus)))
        }
        None => search.with_fewer(&threads, then, *cpus).map(|times| (times, false)),
    });
    let rows = args.cpus.iter().zip(times).map(|(cpus, times)| {
        let ((before_ns, after_ns), is_bound) = times?;
        Some(WhatIfRow {
            cpus: *cpus,
            before_ns,
            after_ns,
            promised_ns: None,
            gain_between: is_bound.then(|| (0.0, 1.0 - after_ns / before_ns)),
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
    let words = format!("{then} threads in place of {now}");
    let style = style::for_stdout();
    to_reader(|out| show::text(&result, &words, &frame, &Limits::default(), &style, out))
}

/// Like [`engine::what_if::rank`], but computed on all cores: each core takes the next change.
fn ranked(studied: &Studied, cpus: &[Cpus], model: &Model, most: usize) -> Result<Vec<Ranking>, UserError> {
    let changed = studied.changed();
    let ranker = Ranker::new(&studied.program, (&changed, &studied.owners), cpus, model, most)
        .map_err(super::invalid)?;
    let times = super::simulated(&ranker.changes(), "changes", |change| ranker.times_ns(*change));
    Ok(ranker.conclude(times))
}

/// The changes, and their text, such as `parse at 80 %, split cache in 4 and free I/O`. A function that changes alone
/// has its own name in the text.
fn edits(studied: &Studied, changes: &Changes, model: &Model) -> Result<(Vec<Edit>, String), UserError> {
    let program = &studied.program;
    let (mut edits, mut texts) = (Vec::new(), Vec::new());
    let mut add = |edit: Edit, function: &str, lock: &str| {
        let now = program.recorded_cpus.and_then(Cpus::count).unwrap_or(Cpus::ONE);
        texts.push(words(&edit, About { function, lock, now }));
        edits.push(edit);
    };
    let function_name = |found: &[FunctionRef], name: &str| match found {
        [one] => program.functions.get(one.0 as usize).map_or(name, |own| &own.name).to_owned(),
        _ => name.to_owned(),
    };
    let lock_name = |lock: ObjectId| program.objects.get(lock.0 as usize).map_or("", |name| bare_name(name));
    let one_function = |name: &str, option: &str| match functions(program, name)?[..] {
        [function] => Ok(function),
        _ => Err(UserError::usage(
            format!("{option} '{name}' matches several functions"),
            "give the name of one",
        )),
    };
    // As in FIX, standard functions that count for a function are scaled with it, unless the user scales them by name.
    let owners = Owners::of(&studied.own);
    let named: Vec<(&str, f64, Vec<FunctionRef>)> = changes
        .scale
        .iter()
        .map(|(name, factor)| Ok((name.as_str(), *factor, functions(program, name)?)))
        .collect::<Result<_, UserError>>()?;
    let by_name: BTreeSet<FunctionRef> = named.iter().flat_map(|(_, _, found)| found).copied().collect();
    for (name, factor, found) in &named {
        let owned = found.iter().flat_map(|one| owners.owned_by(*one));
        let owned = owned.filter(|function| found.contains(function) || !by_name.contains(function));
        let scaled: BTreeSet<FunctionRef> = owned.collect();
        add(Edit::Scale(scaled.into_iter().collect(), *factor), &function_name(found, name), "");
    }
    for (name, parts) in &changes.split_lock {
        let lock = lock(program, name)?;
        add(Edit::SplitLock(lock, *parts), "", lock_name(lock));
    }
    for (name, then) in &changes.permits {
        let semaphore = semaphore(program, name)?;
        let edit = Edit::Permits { semaphore, now: permits(program, semaphore), then: *then };
        add(edit, "", lock_name(semaphore));
    }
    for name in &changes.free_lock {
        let lock = lock(program, name)?;
        add(Edit::FreeLocks(vec![lock]), "", lock_name(lock));
    }
    for (name, of) in &changes.move_out {
        let (function, lock) = (one_function(name, "--move-out")?, lock(program, of)?);
        add(Edit::MoveOut(function, vec![lock]), &function_name(&[function], name), lock_name(lock));
    }
    for (name, among) in &changes.divide {
        let function = one_function(name, "--divide")?;
        let part = ComputePart::of_function(program, &owners, function).ok_or_else(|| {
            UserError::usage(
                format!("no thread computes anything in '{name}' itself"),
                "`longpole report` lists the functions that compute",
            )
        })?;
        add(Edit::Divide(part, *among as usize), &function_name(&[function], name), "");
    }
    if changes.divide_evenly {
        let search = Search::new(&studied.own, &[], model).map_err(super::invalid)?;
        add(search.evenly(), "", "");
    }
    let plain = [
        (changes.free_io, Edit::FreeIo),
        (changes.no_sleeps, Edit::NoSleeps),
        (changes.no_spinning, Edit::NoSpinning),
        (changes.free_wakeups, Edit::FreeHandOver),
        (changes.no_quota, Edit::NoQuota),
    ];
    for (_, edit) in plain.into_iter().filter(|(is_asked, _)| *is_asked) {
        add(edit, "", "");
    }
    let words = match texts.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} and {last}", rest.join(", ")),
        _ => texts.concat(),
    };
    Ok((edits, words))
}
