//! `longpole diff`

use super::output::to_stdout;
use crate::cli::input::Input;
use crate::cli::study::{DiffPlan, Threshold, any_function};
use crate::cli::{Code, Outcome, UserError};
use crate::present::{study::diff, style};
use crate::symbols::matches;
use engine::compare::{Change, Comparison, compare};
use engine::report::Cpus;

/// Reads both, compares, shows: exit code 3 if something grew by more than was allowed.
pub fn run(plan: &DiffPlan) -> Result<Outcome, UserError> {
    let [before, after] = &plan.inputs;
    let (before, after) = (Input::open(before)?.into_program(), Input::open(after)?.into_program());
    for function in plan.fail_on.iter().filter_map(|threshold| threshold.function.as_deref()) {
        any_function([&before, &after], function)?;
    }
    let comparison = compare(&before, &after, &plan.cpus).map_err(super::invalid)?;
    let failures: Vec<String> =
        plan.fail_on.iter().flat_map(|threshold| failures(&comparison, threshold)).collect();
    if plan.json {
        to_stdout(|out| diff::json(&comparison, &failures, out))?;
    } else {
        to_stdout(|out| diff::text(&comparison, &failures, plan.top, &style::for_stdout(), out))?;
    }
    Ok(if failures.is_empty() { Outcome::Done } else { Outcome::Code(Code::Threshold as u8) })
}

fn failures(comparison: &Comparison, threshold: &Threshold) -> Vec<String> {
    let mut failures = Vec::new();
    for (place, row) in comparison.curve.iter().enumerate() {
        let whole = row.time.before_ns;
        let mut look = |what: &str, change: &Change| {
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
        match &threshold.function {
            None => look("the predicted time", &row.time),
            Some(name) => {
                let named = comparison
                    .functions
                    .iter()
                    .filter(|item| item.name == *name || matches(name, &item.name));
                for item in named {
                    if let Some(change) = item.changes.get(place) {
                        look(&item.name, change);
                    }
                }
            }
        }
    }
    failures
}

fn on(cpus: Cpus) -> String {
    match cpus {
        Cpus::Count(count) if count.get() == 1 => "on 1 CPU".to_owned(),
        Cpus::Count(count) => format!("on {count} CPUs"),
        Cpus::Infinite => "on unlimited CPUs".to_owned(),
    }
}
