//! `longpole report --per`: requests, which are calls of a function.

use super::output::{to_reader, to_stdout};
use crate::cli::args::ReportArguments;
use crate::exit::{Outcome, UserError};
use crate::input::Input;
use crate::present::{json, style, text};
use engine::event::{FunctionFact, FunctionId};
use engine::program::Program;
use engine::requests::{Calls, calls, summarize};
use engine::timeline::Timeline;
use symbols::{NameMatch, listed, match_name};

/// The requests of a recording.
#[derive(Debug)]
pub(super) struct Asked {
    /// The timeline of the recording.
    pub(super) timeline: Timeline,
    /// The program, for names.
    pub(super) program: Program,
    /// The requests.
    pub(super) calls: Calls,
    /// Names of the functions whose calls are requests.
    pub(super) functions: Vec<String>,
}

/// Reads an input, follows each request, shows the summary.
pub fn run(args: &ReportArguments, name: &str) -> Result<Outcome, UserError> {
    let mut input = Input::open(&args.input.plan())?;
    if let Input::Session(read) = &mut input {
        super::symbolize::in_memory(&mut read.recording, &args.sources)?;
    }
    let asked = asked(if args.raw { input.raw() } else { input }, name)?;
    let summary = summarize(&asked.timeline, &asked.program, &asked.calls);
    let findings = &asked.program.findings;
    if args.json {
        to_stdout(|out| json::requests::write(&summary, &asked.functions, args.top, findings, out))?;
    } else {
        let style = style::for_stdout();
        let what = match &asked.functions[..] {
            [one] => one.clone(),
            _ => name.to_owned(),
        };
        to_reader(|out| text::requests::write(&summary, &what, args.top, findings, &style, out))?;
    }
    Ok(Outcome::Done)
}

/// The calls of the functions that a user names.
pub(super) fn asked(input: Input, name: &str) -> Result<Asked, UserError> {
    let Some((timeline, program)) = input.into_unsimulated() else {
        return Err(UserError::usage(
            "a program has no requests, since it has no recorded times of calls",
            format!("give a recording; `{}` makes one", record(name)),
        ));
    };
    let functions = functions(&timeline, name)?;
    let ids: Vec<FunctionId> = functions.iter().map(|function| function.id).collect();
    let calls = calls(&timeline, &ids);
    if calls.requests.is_empty() {
        return Err(UserError::usage(
            format!("there is no call of '{name}' in this recording"),
            format!("record for longer, or record another function: `{}`", record("NAME")),
        ));
    }
    let mut functions: Vec<String> = functions.iter().map(|function| function.name.clone()).collect();
    functions.dedup();
    Ok(Asked { timeline, program, calls, functions })
}

fn record(name: &str) -> String {
    let name = if name.contains(|c: char| !(c.is_alphanumeric() || "_:.~".contains(c))) {
        format!("'{}'", name.replace('\'', r"'\''"))
    } else {
        name.to_owned()
    };
    format!("longpole record --per {name} -- COMMAND")
}

/// The functions with probes that match this name.
fn functions<'t>(timeline: &'t Timeline, name: &str) -> Result<Vec<&'t FunctionFact>, UserError> {
    let names = || timeline.functions.iter().map(|function| function.name.as_str());
    let at = |places: Vec<usize>| {
        places.into_iter().filter_map(|place| timeline.functions.get(place)).collect::<Vec<_>>()
    };
    match match_name(name, names()) {
        NameMatch::These(places) => Ok(at(places)),
        NameMatch::Several(places) => {
            let found: Vec<&str> = at(places).iter().map(|function| function.name.as_str()).collect();
            Err(UserError::usage(
                format!("'{name}' matches {} functions", found.len()),
                format!("choose one: {}; or '{name}*' for all that begin with this", listed(&found)),
            ))
        }
        NameMatch::Nothing => Err(UserError::usage(
            format!("calls of '{name}' were not recorded"),
            format!("record them: `{}`, or -p PID for a running process", record(name)),
        )),
    }
}
