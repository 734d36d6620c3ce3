//! `longpole diff`

use super::output::{to_reader, to_stdout};
use crate::cli::study::{DiffArguments, Threshold, functions_of_both};
use crate::cpu_words::on;
use crate::exit::{Code, Outcome, UserError};
use crate::input::{Input, Parts};
use crate::plan::{InputPlan, Source};
use crate::present::study::diff::{self, Compared};
use crate::present::style;
use engine::attribution::attributed_to_users;
use engine::compare::{
    BeforeAfter, Comparison, PerRequest, Served, Server, Unlike, compare, other_load, other_programs,
    per_request,
};
use engine::program::{Endpoint, Program};
use std::collections::BTreeSet;

/// Reads and compares both inputs, and shows the changes. Exit code 3 if something grew by more than the threshold.
pub fn run(args: &DiffArguments) -> Result<Outcome, UserError> {
    let plans =
        [&args.before, &args.after].map(|file| InputPlan::of(Some(file.clone()), args.between.into()));
    if plans.iter().all(|plan| plan.source == Source::Stdin) {
        return Err(UserError::usage("standard input can be read only once", "give a file for A or for B"));
    }
    let sides = [Input::open(&plans[0])?.into_parts(), Input::open(&plans[1])?.into_parts()];
    let programs = sides.each_ref().map(|side| &side.program);
    let other = other_programs(programs[0], programs[1]);
    if let Some(Unlike::Programs([before, after])) = other.as_ref().filter(|_| !args.force) {
        return Err(UserError::usage(
            format!("A and B are recordings of different programs: {before} and {after}"),
            "compare two recordings of one program, or add --force to compare these",
        ));
    }
    let model = super::model(args.scheduling.model);
    // As in `report`, standard functions count for their callers; a function that a threshold names counts for itself.
    let users = programs.map(|program| attributed_to_users(program.clone()));
    let comparison = compare(&users[0], &users[1], &args.cpus, &model).map_err(super::invalid)?;
    let [first, second] = programs.map(|program| &program.recorded.traffic[..]);
    let ends = Endpoint::served_by_both(first, second);
    let served = [0, 1].map(|place| {
        let Parts { timeline, program, .. } = &sides[place];
        ends[place].map(|end| Served::of(program, timeline.as_ref(), end))
    });
    let mut unlike: Vec<Unlike> = other.into_iter().chain(hosts(&sides)).collect();
    unlike.extend(engine::compare::unlike(
        programs,
        served.each_ref().map(Option::is_some),
        sides.each_ref().map(is_cut),
    ));
    let requests = match &served {
        [Some(before), Some(after)] => {
            let server = |place: usize, served| {
                let Parts { timeline, program, .. } = &sides[place];
                Server { program, timeline: timeline.as_ref(), served }
            };
            let (before, after) = (server(0, before), server(1, after));
            let requests = per_request(before, after);
            unlike.extend(other_load(before, after, &requests));
            Some(requests)
        }
        _ => None,
    };
    let mut compared = Compared { comparison, requests, unlike, failures: Vec::new() };
    compared.failures = failures(&compared, args, programs)?;
    if args.json {
        to_stdout(|out| diff::json(&compared, out))?;
    } else {
        let frame = |place: usize| super::frame(&plans[place], programs[place], &args.cpus, &model);
        let frames = [frame(0), frame(1)];
        to_reader(|out| diff::text(&compared, &frames, args.top, &style::for_stdout(), out))?;
    }
    let is_kept = compared.failures.is_empty();
    Ok(if is_kept { Outcome::Done } else { Outcome::Code(Code::Threshold as u8) })
}

/// The names of the machines, if both are known and differ.
fn hosts(sides: &[Parts; 2]) -> Option<Unlike> {
    let host =
        |side: &Parts| side.meta.as_ref().map(|meta| meta.host.clone()).filter(|host| !host.is_empty());
    let [before, after] = [host(&sides[0])?, host(&sides[1])?];
    (before != after).then_some(Unlike::Hosts([before, after]))
}

/// Whether the recording ended while its program ran on.
fn is_cut(side: &Parts) -> bool {
    side.timeline.as_ref().is_some_and(|timeline| timeline.threads.iter().any(|thread| !thread.died))
}

/// Sentences about growth beyond a threshold of the user's.
fn failures(
    compared: &Compared,
    args: &DiffArguments,
    programs: [&Program; 2],
) -> Result<Vec<String>, UserError> {
    let named = |threshold: &Threshold| {
        let function = threshold.function.as_deref();
        function.map(|name| functions_of_both(programs, name)).transpose()
    };
    let named = args.fail_on.iter().map(named).collect::<Result<Vec<_>, _>>()?;
    let functions = programs.iter().flat_map(|program| &program.functions);
    let standard = functions.filter(|function| function.origin.is_standard());
    let standard: BTreeSet<&str> = standard.map(|function| function.name.as_str()).collect();
    let is_asked = named.iter().flatten().flatten().any(|name| standard.contains(name.as_str()));
    let is_asked = is_asked && compared.requests.is_none();
    let model = super::model(args.scheduling.model);
    let themselves = is_asked.then(|| compare(programs[0], programs[1], &args.cpus, &model)).transpose();
    let themselves = themselves.map_err(super::invalid)?;
    let mut failures: Vec<String> = Vec::new();
    for (threshold, named) in args.fail_on.iter().zip(named) {
        if let Some(requests) = &compared.requests {
            failures.extend(broken_requests(requests, threshold, named.as_ref()));
            continue;
        }
        let split = |names: BTreeSet<String>| -> (BTreeSet<String>, BTreeSet<String>) {
            names.into_iter().partition(|name| standard.contains(name.as_str()))
        };
        let (of_standard, others) = named.map(split).unzip();
        failures.extend(broken(&compared.comparison, threshold, others.as_ref()));
        if let (Some(themselves), Some(names)) = (&themselves, &of_standard) {
            failures.extend(broken(themselves, threshold, Some(names)));
        }
    }
    Ok(failures)
}

/// A sentence about growth beyond a threshold by `change`, as a part of `whole`.
fn grown(what: &str, change: &BeforeAfter, whole: f64, threshold: &Threshold) -> Option<String> {
    let share = if whole > 0.0 { change.by() / whole } else { change.by().signum() };
    (share > threshold.share)
        .then(|| format!("{what} grows by {:.2} %, allowed {:.2} %", share * 100.0, threshold.share * 100.0))
}

/// Like [`broken`], for what a server's requests take.
fn broken_requests(
    requests: &PerRequest,
    threshold: &Threshold,
    functions: Option<&BTreeSet<String>>,
) -> Vec<String> {
    let Some(names) = functions else {
        let mean = &requests.mean;
        return grown("the time of a request", mean, mean.before, threshold).into_iter().collect();
    };
    let whole = requests.cpu.map_or(0.0, |cpu| cpu.before);
    let named = requests.functions.iter().filter(|item| names.contains(&item.name));
    named.filter_map(|item| grown(&item.name, item.changes.first()?, whole, threshold)).collect()
}

/// Sentences about growth beyond a threshold; `functions`: those that it names, if it names any.
fn broken(
    comparison: &Comparison,
    threshold: &Threshold,
    functions: Option<&BTreeSet<String>>,
) -> Vec<String> {
    let mut failures = Vec::new();
    for (place, row) in comparison.curve.iter().enumerate() {
        let on = on(row.cpus);
        let mut look = |what: &str, change: &BeforeAfter| {
            failures.extend(grown(&format!("{what} {on}"), change, row.time.before, threshold));
        };
        match functions {
            None => look("the predicted time", &row.time),
            Some(names) => {
                for item in comparison.functions.iter().filter(|item| names.contains(&item.name)) {
                    if let Some(change) = item.changes.get(place) {
                        look(&item.name, change);
                    }
                }
            }
        }
    }
    failures
}
