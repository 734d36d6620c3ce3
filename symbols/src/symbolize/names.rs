//! Finds the functions and calls of a recording without a name or line, and names them.

use super::debuginfod::Client;
use super::find;
use crate::{CallPlace, Parser, Parsers, Place, SymbolSummary, call_place};
use engine::event::{AddressFact, Facts, FunctionFact, ModuleFact};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

/// The result of naming functions and calls.
#[derive(Debug, Default)]
pub struct Outcome {
    /// Facts that are new, or better than those of the recording; may be empty.
    pub facts: Facts,
    /// Number of functions that got a better name or a line.
    pub functions: usize,
    /// Number of calls that got a name or a line.
    pub calls: usize,
    /// The name of each binary, and what is missing or why the binary cannot be used. `None` if nothing is missing.
    pub modules: Vec<(String, Option<String>)>,
}

impl Outcome {
    /// Whether the search found nothing new.
    pub fn is_empty(&self) -> bool {
        self.functions == 0
            && self.calls == 0
            && self.facts.modules.is_empty()
            && self.facts.code.is_empty()
            && self.facts.spin.is_empty()
    }
}

/// A binary, and the functions and calls of the recording that need names from it.
#[derive(Default)]
struct Wanted<'a> {
    name: String,
    functions: Vec<&'a FunctionFact>,
    calls: Vec<&'a AddressFact>,
}

/// Names the functions and calls in `facts` that have no name. Uses files in `folders` and on this machine; `client`
/// fetches files that are missing.
pub fn symbolize(
    facts: &Facts,
    parsers: &Parsers,
    folders: &[PathBuf],
    client: Option<Arc<Client>>,
) -> Outcome {
    let mut outcome = Outcome::default();
    let parsers = parsers.clone().with_folders(folders);
    let parsers = match &client {
        Some(client) => parsers.with_fetch(Arc::clone(client) as _),
        None => parsers,
    };
    for ((path, build_id), wanted) in wanted(facts, &mut outcome) {
        let id = build_id.as_deref();
        let found = find::binary(&path, id, folders).or_else(|why| match (&client, id) {
            (Some(client), Some(id)) => client.executable(id).map_err(|error| format!("{why}; {error}")),
            _ => Err(why),
        });
        let opened = found.and_then(|binary| {
            let mut parser = parsers.open(&binary, &wanted.name).map_err(|error| error.to_string())?;
            let summary = parser.summary().map_err(|error| error.to_string())?;
            name(&mut parser, &wanted, &mut outcome)?;
            Ok(summary)
        });
        match opened {
            Ok(summary) => {
                let mut missing = summary.missing(&path);
                if let Some(client) = &client
                    && summary.no_lines.is_some()
                    && let Some(why) = client.why_not(id)
                {
                    missing = missing.map(|missing| format!("{missing}; debuginfod: {why}"));
                }
                tell(facts, &path, id, &summary, &mut outcome);
                outcome.modules.push((wanted.name, missing));
            }
            Err(why) => outcome.modules.push((wanted.name, Some(why))),
        }
    }
    outcome
}

/// The functions and calls that need a name, by the path and build-id of their binary.
fn wanted<'a>(facts: &'a Facts, outcome: &mut Outcome) -> BTreeMap<(String, Option<String>), Wanted<'a>> {
    let mut all: BTreeMap<(String, Option<String>), Wanted<'a>> = BTreeMap::new();
    let mut by_name: BTreeMap<&str, Vec<&ModuleFact>> = BTreeMap::new();
    for module in &facts.modules {
        by_name.entry(&module.name).or_default().push(module);
    }
    let mut told = std::collections::BTreeSet::new();
    for function in &facts.functions {
        match by_name.get(function.module.as_str()).map(Vec::as_slice) {
            Some([module]) => {
                let entry = all.entry((module.path.clone(), module.build_id.clone())).or_default();
                entry.name.clone_from(&module.name);
                entry.functions.push(function);
            }
            other => {
                if told.insert(function.module.as_str()) {
                    let why = match other {
                        Some(_) => {
                            "several binaries of this name were recorded, so the binary of a function is not known"
                        }
                        None => "the recording lacks its path",
                    };
                    outcome.modules.push((function.module.clone(), Some(why.to_owned())));
                }
            }
        }
    }
    for call in facts.addresses.iter().filter(|call| call.linked.is_some()) {
        let Some(path) = &call.module else { continue };
        let entry = all.entry((path.clone(), call.build_id.clone())).or_default();
        if entry.name.is_empty() {
            path.rsplit('/').next().unwrap_or(path).clone_into(&mut entry.name);
        }
        entry.calls.push(call);
    }
    all
}

fn name(parser: &mut Parser, wanted: &Wanted<'_>, outcome: &mut Outcome) -> Result<(), String> {
    let mut places: Vec<Place> =
        wanted.functions.iter().map(|function| Place::FileOffset(function.offset)).collect();
    // The place of a call is the last byte before its return address.
    let calls = wanted.calls.iter().filter_map(|call| call.linked);
    places.extend(calls.map(|linked| Place::Address(linked.wrapping_sub(1))));
    let located = parser.locate(&places).map_err(|error| error.to_string())?.locations();
    let (functions, calls) = located.split_at(wanted.functions.len().min(located.len()));
    for (function, location) in wanted.functions.iter().zip(functions) {
        let mut better = (*function).clone();
        // Functions that already have a name keep it: the same symbol table would give the same name again.
        if let Ok(hit) = &location.symbol
            && hit.distance == 0
            && (function.name.is_empty() || function.name.starts_with(&format!("{}+0x", function.module)))
        {
            better.name.clone_from(&hit.name);
        }
        better.location = location.line().or(better.location);
        if better != **function {
            outcome.functions += 1;
            outcome.facts.functions.push(better);
        }
    }
    for (call, location) in wanted.calls.iter().zip(calls) {
        let mut better = (*call).clone();
        let CallPlace { function, location } = call_place(location);
        better.name = function.or(better.name);
        better.location = location.or(better.location);
        if better != **call {
            outcome.calls += 1;
            outcome.facts.addresses.push(better);
        }
    }
    Ok(())
}

/// Adds the module's fact if fewer symbols are missing now than at the time of the recording.
fn tell(facts: &Facts, path: &str, id: Option<&str>, summary: &SymbolSummary, outcome: &mut Outcome) {
    let same = |module: &&ModuleFact| module.path == path && module.build_id.as_deref() == id;
    let Some(module) = facts.modules.iter().find(same) else { return };
    let now = ModuleFact { missing: summary.missing(path), ..module.clone() };
    if now != *module {
        outcome.facts.modules.push(now);
    }
}
