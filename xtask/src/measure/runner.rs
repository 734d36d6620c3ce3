//! The runner: prepares a measurement, runs its sides in turns, and writes its section into the document.

use std::process::ExitCode;

use anyhow::{Context, Result, bail, ensure};
use clap::builder::{PossibleValue, PossibleValuesParser};

use super::measurement::{Measurement, Need, Runs, Side};
use super::results::{Outcome, Results};
use super::setting::{self, Scratch, Setting, Wishes};
use super::table::table;
use super::tracefs::Tracefs;
use crate::page::{Kind, Page};
use crate::workspace::Workspace;

/// Names of measurements for the command line.
pub fn names(list: &[Measurement]) -> PossibleValuesParser {
    list.iter().map(|one| PossibleValue::new(one.name).help(one.about)).collect::<Vec<_>>().into()
}

/// Runs the measurement with this name, or all. Prints the results and updates their sections of the document.
pub fn run(list: &[Measurement], document: &Kind, only: Option<&str>, wishes: &Wishes) -> Result<ExitCode> {
    let workspace = Workspace::find();
    let mut page = Page::read(&workspace, document)?;
    let mut longpole = wishes.longpole.clone();
    for one in list.iter().filter(|one| only.is_none_or(|name| name == one.name)) {
        if only.is_none() && one.needs.contains(&Need::Asked) {
            continue;
        }
        if let Some(why) = missing(one, wishes) {
            ensure!(only.is_none(), "{why}");
            eprintln!("{} is left out: {why}", one.name);
            continue;
        }
        if longpole.is_none() && one.needs.contains(&Need::Recorder) {
            longpole = Some(setting::recorder(&workspace)?);
        }
        let binary = match &longpole {
            None if one.needs.contains(&Need::Longpole) => crate::build::release(&workspace)?,
            known => known.clone().unwrap_or_default(),
        };
        let _tracefs = if one.needs.contains(&Need::Tracefs) { Tracefs::mounted() } else { None };
        let scratch = Scratch::new(&workspace, one.name)?;
        let setting = Setting {
            workspace: Workspace::find(),
            longpole: binary,
            folder: scratch.0.clone(),
            wishes: wishes.clone(),
            runs: one.runs(wishes),
        };
        let section = section(one, &setting).with_context(|| one.name)?;
        if one.chooses && !wishes.programs.is_empty() {
            println!("{section}");
        } else {
            page.put(one.name, &section)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Why the measurement cannot run on this machine; `None` if it can.
fn missing(one: &Measurement, wishes: &Wishes) -> Option<String> {
    one.needs.iter().find_map(|need| match need {
        Need::Program(program, package) if !setting::is_here(program) => {
            Some(format!("there is no {program}; on Debian: apt-get install {package}"))
        }
        Need::Sources(place) if wishes.sources.is_none() => {
            Some(format!("{} needs --sources DIR, a clone of {place}", one.name))
        }
        _ => None,
    })
}

impl Measurement {
    fn runs(&self, wishes: &Wishes) -> usize {
        let (Runs::Times(usual) | Runs::Inside(usual)) = self.runs;
        wishes.runs.unwrap_or(usual)
    }
}

/// Measures, and returns the section's text.
fn section(one: &Measurement, setting: &Setting) -> Result<String> {
    let results = results(one, setting)?;
    let left_out = results.left_out().join(", ");
    if results.values().next().is_none() {
        bail!("nothing was measured: {left_out}");
    }
    let mut says = one.says.replace("{runs}", &results.runs.to_string());
    for (name, value) in (one.fills)(&results)? {
        says = says.replace(&format!("{{{name}}}"), &value);
    }
    let mut parts = vec![format!("## {}", one.title), says];
    let heads = (!one.heads.is_empty()).then_some(one.heads).into_iter();
    let heads: Vec<&str> = heads.chain(one.columns.iter().map(|(head, _)| *head)).collect();
    if !heads.is_empty() {
        let rows = match one.rows {
            Some(rows) => rows(&results)?,
            None => results.listed().map(|side| row(one, side, &results)).collect::<Result<_>>()?,
        };
        parts.push(table(&heads.join(" | "), rows));
    }
    parts.push((one.ends)(&results)?);
    if !left_out.is_empty() {
        parts.push(format!("Not measured: {left_out}."));
    }
    parts.retain(|part| !part.trim().is_empty());
    Ok(parts.iter().map(|part| part.trim_matches('\n')).collect::<Vec<_>>().join("\n\n"))
}

fn row(one: &Measurement, side: &Outcome, results: &Results) -> Result<String> {
    let label = (!one.heads.is_empty()).then(|| side.label.clone());
    let cells = one.columns.iter().map(|(_, cell)| cell(side, results));
    Ok(label.into_iter().map(Ok).chain(cells).collect::<Result<Vec<_>>>()?.join(" | "))
}

/// Runs all sides, stage by stage. At the end of a stage, its sides are dropped together with everything that they use.
fn results(one: &Measurement, setting: &Setting) -> Result<Results> {
    let mut results = Results { sides: Vec::new(), runs: setting.runs };
    let mut sides = (one.sides)(setting)?.into_iter().peekable();
    while let Some(stage) = sides.peek().map(|side| side.stage) {
        let together: Vec<Side<'_>> =
            std::iter::from_fn(|| sides.next_if(|side| side.stage == stage)).collect();
        let most = if matches!(one.runs, Runs::Inside(_)) { 1 } else { setting.runs };
        let outcomes = alternate(one, together, most, results.sides.len())?;
        results.sides.extend(outcomes);
    }
    Ok(results)
}

/// Runs sides in turns, each at most `most` times. `place` is the index of the first one.
fn alternate(one: &Measurement, mut sides: Vec<Side<'_>>, most: usize, place: usize) -> Result<Vec<Outcome>> {
    let mut outcomes: Vec<Outcome> =
        sides.iter().enumerate().map(|(at, side)| Outcome::new(side, place + at)).collect();
    let count = sides.len();
    for turn in 0.. {
        let first = if one.rotates { turn % count } else { 0 };
        let mut has_run = false;
        for at in (0..count).map(|at| (first + at) % count) {
            let (side, outcome) = (&mut sides[at], &mut outcomes[at]);
            let most = if side.is_once { 1 } else { most };
            let is_enough = side.enough.is_some_and(|enough| outcome.len() > 0 && enough(outcome));
            if outcome.failed.is_some() || outcome.len() >= most || is_enough {
                continue;
            }
            if turn == 0 {
                eprintln!("xtask: {}: {}", one.name, side.label);
            }
            has_run = true;
            match (side.run)(turn) {
                Ok(_) if std::mem::take(&mut side.is_warming) => {}
                Ok(value) => outcome.values.push(value),
                Err(error) if side.may_fail => {
                    eprintln!("xtask: {}: {} is left out: {error:#}", one.name, side.label);
                    outcome.failed = Some(format!("{error:#}"));
                }
                Err(error) => return Err(error.context(side.label.clone())),
            }
        }
        if !has_run {
            break;
        }
    }
    Ok(outcomes)
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;
    use serde_json::json;

    fn measured(one: &Measurement, sides: Vec<Side<'_>>, most: usize) -> Results {
        Results { sides: alternate(one, sides, most, 0).unwrap(), runs: most }
    }

    #[test]
    fn sides_alternate_and_each_is_first_in_turn() {
        let order = RefCell::new(String::new());
        let side = |name: &'static str| {
            let order = &order;
            Side::new(name, move |turn| {
                order.borrow_mut().push_str(name);
                Ok(json!({ "turn": turn }))
            })
        };
        let rotating = Measurement { rotates: true, ..Measurement::NEW };
        measured(&rotating, vec![side("a"), side("b"), side("c")], 3);
        assert_eq!(order.take(), "abcbcacab");
        measured(&Measurement::NEW, vec![side("a"), side("b").once(true), side("c").warming()], 2);
        assert_eq!(order.take(), "abcacc");
    }

    #[test]
    fn a_side_that_may_fail_is_left_out_and_named() {
        let sides = vec![
            Side::new("good", |_| Ok(json!({ "ms": 2 }))),
            Side::new("bad", |turn| if turn == 0 { Ok(json!({ "ms": 1 })) } else { bail!("gone") })
                .may_fail(),
        ];
        let results = measured(&Measurement::NEW, sides, 3);
        assert_eq!(results.left_out(), ["bad (gone)"]);
        assert_eq!(results.listed().map(|side| side.label.as_str()).collect::<Vec<_>>(), ["good"]);
        assert_eq!(results.at(0).unwrap().of("ms").unwrap().len(), 3);
        let fails = || alternate(&Measurement::NEW, vec![Side::new("x", |_| bail!("why"))], 1, 0);
        assert_eq!(format!("{:#}", fails().err().unwrap()), "x: why");
    }

    #[test]
    fn a_side_stops_when_it_has_enough() {
        let side = Side::new("x", |_| Ok(json!({ "ms": 2 }))).enough(|so_far| so_far.len() >= 2);
        assert_eq!(measured(&Measurement::NEW, vec![side], 9).at(0).unwrap().len(), 2);
    }
}
