//! `longpole diff`

use super::output::{to_reader, to_stdout};
use crate::cli::study::{DiffArguments, Threshold, functions_of_both};
use crate::cpu_words::on;
use crate::exit::{Code, Outcome, UserError};
use crate::input::Input;
use crate::plan::{InputPlan, Source};
use crate::present::{study::diff, style};
use engine::attribution::attributed_to_users;
use engine::compare::{BeforeAfter, Comparison, compare};
use std::collections::BTreeSet;

/// Reads and compares both inputs, and shows the changes. Exit code 3 if something grew by more than the threshold.
pub fn run(args: &DiffArguments) -> Result<Outcome, UserError> {
    let [first, second] =
        [&args.before, &args.after].map(|file| InputPlan::of(Some(file.clone()), args.between.into()));
    if first.source == Source::Stdin && second.source == Source::Stdin {
        return Err(UserError::usage("standard input can be read only once", "give a file for A or for B"));
    }
    let (before, after) = (Input::open(&first)?.into_program(), Input::open(&second)?.into_program());
    let named = |threshold: &Threshold| {
        let function = threshold.function.as_deref();
        function.map(|name| functions_of_both([&before, &after], name)).transpose()
    };
    let named = args.fail_on.iter().map(named).collect::<Result<Vec<_>, _>>()?;
    let model = super::model(args.scheduling.model);
    // As in `report`, standard functions count for their callers; a function that a threshold names counts for itself.
    let users = [&before, &after].map(|program| attributed_to_users(program.clone()));
    let comparison = compare(&users[0], &users[1], &args.cpus, &model).map_err(super::invalid)?;
    let functions = before.functions.iter().chain(&after.functions);
    let standard = functions.filter(|function| function.origin.is_standard());
    let standard: BTreeSet<&str> = standard.map(|function| function.name.as_str()).collect();
    let is_asked = named.iter().flatten().flatten().any(|name| standard.contains(name.as_str()));
    let themselves = is_asked.then(|| compare(&before, &after, &args.cpus, &model)).transpose();
    let themselves = themselves.map_err(super::invalid)?;
    let mut failures: Vec<String> = Vec::new();
    for (threshold, named) in args.fail_on.iter().zip(named) {
        let split = |names: BTreeSet<String>| -> (BTreeSet<String>, BTreeSet<String>) {
            names.into_iter().partition(|name| standard.contains(name.as_str()))
        };
        let (of_standard, others) = named.map(split).unzip();
        failures.extend(broken(&comparison, threshold, others.as_ref()));
        if let (Some(themselves), Some(names)) = (&themselves, &of_standard) {
            failures.extend(broken(themselves, threshold, Some(names)));
        }
    }
    if args.json {
        to_stdout(|out| diff::json(&comparison, &failures, out))?;
    } else {
        let frames = [
            super::frame(&first, &before, &args.cpus, &model),
            super::frame(&second, &after, &args.cpus, &model),
        ];
        to_reader(|out| diff::text(&comparison, &frames, &failures, args.top, &style::for_stdout(), out))?;
    }
    Ok(if failures.is_empty() { Outcome::Done } else { Outcome::Code(Code::Threshold as u8) })
}

/// Sentences about growth beyond a threshold; `functions`: those that it names, if it names any.
fn broken(
    comparison: &Comparison,
    threshold: &Threshold,
    functions: Option<&BTreeSet<String>>,
) -> Vec<String> {
    let mut failures = Vec::new();
    for (place, row) in comparison.curve.iter().enumerate() {
        let whole = row.time.before_ns;
        let mut look = |what: &str, change: &BeforeAfter| {
            let share = if whole > 0.0 { change.by_ns() / whole } else { change.by_ns().signum() };
            if share > threshold.share {
                failures.push(format!(
                    "{what} grows by {:.2} % {}, allowed {:.2} %",
                    share * 100.0,
                    on(row.cpus),
                    threshold.share * 100.0
                ));
            }
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
