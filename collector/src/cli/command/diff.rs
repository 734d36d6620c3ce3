//! `longpole diff`

use super::output::{to_reader, to_stdout};
use crate::cli::study::{DiffArguments, Threshold, functions_of_all};
use crate::cpu_words::on;
use crate::exit::{Code, Outcome, UserError};
use crate::input::{Input, Parts};
use crate::plan::{InputPlan, is_dash};
use crate::present::study::diff::{self, Compared};
use crate::present::style;
use engine::attribution::attributed_to_users;
use engine::compare::{
    BeforeAfter, Comparison, PerRequest, Served, Server, Unlike, compare_all, other_load, other_programs,
    per_request,
};
use engine::predict::Model;
use engine::program::{Endpoint, Program};
use engine::report::Cpus;
use std::collections::BTreeSet;
use std::path::PathBuf;

/// Reads and compares both sides, and shows the changes. Exit code 3 if something grew by more than the threshold.
pub fn run(args: &DiffArguments) -> Result<Outcome, UserError> {
    let plans = files(args)?.map(|side| -> Vec<InputPlan> {
        side.iter().map(|file| InputPlan::of(Some(file.clone()), args.between.into())).collect()
    });
    let sides = [read(&plans[0])?, read(&plans[1])?];
    let firsts = [&sides[0][0], &sides[1][0]];
    let other = sides.iter().flatten().find_map(|side| other_programs(&firsts[0].program, &side.program));
    if let Some(Unlike::Programs([before, after])) = other.as_ref().filter(|_| !args.force) {
        return Err(UserError::usage(
            format!("these are recordings of different programs: {before} and {after}"),
            "compare recordings of one program, or add --force to compare these",
        ));
    }
    let model = super::model(args.scheduling.model);
    // As in `report`, standard functions count for their callers; a function that a threshold names counts for itself.
    let users = sides.each_ref().map(|side| -> Vec<Program> {
        side.iter().map(|parts| attributed_to_users(parts.program.clone())).collect()
    });
    let comparison = compared(users.each_ref().map(|side| side.iter().collect()), &args.cpus, &model)?;
    let served = served(&sides);
    let mut unlike: Vec<Unlike> = other.into_iter().chain(hosts(firsts)).collect();
    unlike.extend(engine::compare::unlike(
        firsts.map(|side| &side.program),
        served.each_ref().map(Option::is_some),
        firsts.map(is_cut),
    ));
    let requests = match &served {
        [Some(before), Some(after)] => {
            let servers = [servers(&sides[0], before), servers(&sides[1], after)];
            let requests = per_request([&servers[0], &servers[1]]);
            unlike.extend(other_load(servers[0][0], servers[1][0], &requests));
            Some(requests)
        }
        _ => None,
    };
    let mut compared = Compared { comparison, requests, unlike, failures: Vec::new() };
    compared.failures = failures(&compared, args, &sides)?;
    if args.json {
        to_stdout(|out| diff::json(&compared, out))?;
    } else {
        let frame = |place: usize| super::frame(&plans[place][0], &firsts[place].program, &args.cpus, &model);
        let frames = [frame(0), frame(1)];
        to_reader(|out| diff::text(&compared, &frames, args.top, &style::for_stdout(), out))?;
    }
    let is_kept = compared.failures.is_empty();
    Ok(if is_kept { Outcome::Done } else { Outcome::Code(Code::Threshold as u8) })
}

/// The files of both sides, at least one each.
fn files(args: &DiffArguments) -> Result<[&[PathBuf]; 2], UserError> {
    let sides = match (&args.files[..], &args.after[..]) {
        ([before, after], []) => [std::slice::from_ref(before), std::slice::from_ref(after)],
        (_, []) => {
            return Err(UserError::usage(
                "diff compares A with B",
                "longpole diff A B, or several recordings of each: longpole diff A1 A2 -- B1 B2",
            ));
        }
        (before, after) => [before, after],
    };
    let all: Vec<&PathBuf> = sides.iter().copied().flatten().collect();
    if all.iter().filter(|file| is_dash(file)).count() > 1 {
        return Err(UserError::usage("standard input can be read only once", "give a file for A or for B"));
    }
    for side in sides {
        let twice = side.iter().enumerate().find(|(place, file)| side[..*place].contains(file));
        if let Some((_, file)) = twice {
            return Err(UserError::usage(
                format!("{} is given twice on one side", file.display()),
                "noise comes from the differences between recordings: give other recordings",
            ));
        }
    }
    Ok(sides)
}

fn read(plans: &[InputPlan]) -> Result<Vec<Parts>, UserError> {
    plans.iter().map(|plan| Ok(Input::open(plan)?.into_parts())).collect()
}

fn compared(sides: [Vec<&Program>; 2], cpus: &[Cpus], model: &Model) -> Result<Comparison, UserError> {
    compare_all([&sides[0], &sides[1]], cpus, model).map_err(super::invalid)
}

/// The requests that all recordings of each side serve, at the endpoint with most of them; `None`: one of the recordings has
/// none.
fn served(sides: &[Vec<Parts>; 2]) -> [Option<Vec<Served>>; 2] {
    let traffic = |parts: &'_ Parts| parts.program.recorded.traffic.clone();
    let [first, second] = [traffic(&sides[0][0]), traffic(&sides[1][0])];
    let ends = Endpoint::served_by_both(&first, &second);
    [0, 1].map(|place| {
        let end = ends[place]?;
        let of = |parts: &Parts| {
            let own =
                Endpoint::served_by_both(std::slice::from_ref(end), &parts.program.recorded.traffic)[1]?;
            Some(Served::of(&parts.program, parts.timeline.as_ref(), own))
        };
        sides[place].iter().map(of).collect()
    })
}

fn servers<'r>(side: &'r [Parts], served: &'r [Served]) -> Vec<Server<'r>> {
    let both = side.iter().zip(served);
    both.map(|(Parts { program, timeline, .. }, served)| Server {
        program,
        timeline: timeline.as_ref(),
        served,
    })
    .collect()
}

/// The names of the machines, if both are known and differ.
fn hosts(sides: [&Parts; 2]) -> Option<Unlike> {
    let host =
        |side: &Parts| side.meta.as_ref().map(|meta| meta.host.clone()).filter(|host| !host.is_empty());
    let [before, after] = [host(sides[0])?, host(sides[1])?];
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
    sides: &[Vec<Parts>; 2],
) -> Result<Vec<String>, UserError> {
    let programs = sides.each_ref().map(|side| side.iter().map(|parts| &parts.program).collect::<Vec<_>>());
    let all = programs.concat();
    let named = |threshold: &Threshold| {
        let function = threshold.function.as_deref();
        function.map(|name| functions_of_all(&all, name)).transpose()
    };
    let named = args.fail_on.iter().map(named).collect::<Result<Vec<_>, _>>()?;
    let functions = all.iter().flat_map(|program| &program.functions);
    let standard = functions.filter(|function| function.origin.is_standard());
    let standard: BTreeSet<&str> = standard.map(|function| function.name.as_str()).collect();
    let is_asked = named.iter().flatten().flatten().any(|name| standard.contains(name.as_str()));
    let is_asked = is_asked && compared.requests.is_none();
    let model = super::model(args.scheduling.model);
    let themselves = is_asked.then(|| self::compared(programs, &args.cpus, &model)).transpose()?;
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
