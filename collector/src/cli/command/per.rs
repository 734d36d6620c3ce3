//! `longpole report --per`: requests, which are calls of a function, or messages at sockets.

use super::output::{to_reader, to_stdout};
use crate::cli::args::ReportArguments;
use crate::exit::{Outcome, UserError};
use crate::input::Input;
use crate::plan::per::Per;
use crate::present::{json, style, text};
use engine::event::{FunctionFact, FunctionId};
use engine::program::Program;
use engine::requests::{Calls, Sockets, at_sockets, calls, summarize};
use engine::timeline::Timeline;
use symbols::{NameMatch, UsdtPair, listed, match_name};

/// The requests of a recording.
#[derive(Debug)]
pub(super) struct Asked {
    /// The timeline of the recording.
    pub(super) timeline: Timeline,
    /// The program, for names.
    pub(super) program: Program,
    /// The requests.
    pub(super) calls: Calls,
    /// Names of the functions whose calls are requests, or of the sockets.
    pub(super) names: Vec<String>,
}

/// Reads an input, follows each request, shows the summary.
pub fn run(args: &ReportArguments, per: &Per) -> Result<Outcome, UserError> {
    let mut input = Input::open(&args.input.plan())?;
    if let Input::Session(read) = &mut input {
        super::symbolize::in_memory(&mut read.recording, &args.sources)?;
    }
    let asked = asked(if args.raw { input.raw() } else { input }, per)?;
    let summary = summarize(&asked.timeline, &asked.program, &asked.calls);
    let findings = &asked.program.findings;
    if args.json {
        to_stdout(|out| json::requests::write(&summary, &asked.names, args.top, findings, out))?;
    } else {
        let style = style::for_stdout();
        let what = match &asked.names[..] {
            [one] => one.clone(),
            _ => per.to_string(),
        };
        let about = text::requests::About { what: &what, at_sockets: matches!(per, Per::Sockets(_)) };
        to_reader(|out| text::requests::write(&summary, &about, args.top, findings, &style, out))?;
    }
    Ok(Outcome::Done)
}

/// The requests that a user means.
pub(super) fn asked(input: Input, per: &Per) -> Result<Asked, UserError> {
    let Some((timeline, program)) = input.into_unsimulated() else {
        return Err(UserError::usage(
            "a program has no requests, since it has no recorded times of calls",
            format!("give a recording; `{}` makes one", record(&per.to_string())),
        ));
    };
    let (calls, mut names) = match per {
        Per::Function(name) => {
            let functions = functions(&timeline, name)?;
            let ids: Vec<FunctionId> = functions.iter().map(|function| function.id).collect();
            (calls(&timeline, &ids), functions.iter().map(|function| function.name.clone()).collect())
        }
        Per::Sockets(sockets) => (at_sockets(&timeline, *sockets), vec![words(*sockets)]),
    };
    if calls.requests.is_empty() {
        return Err(none(per, timeline.requests.is_some()));
    }
    names.dedup();
    Ok(Asked { timeline, program, calls, names })
}

fn words(sockets: Sockets) -> String {
    match sockets {
        Sockets::All => "sockets".to_owned(),
        Sockets::Port(port) => format!("port {port}"),
        Sockets::Unix => "Unix sockets".to_owned(),
    }
}

/// There are no such requests. `are_counted`: those over sockets were.
fn none(per: &Per, are_counted: bool) -> UserError {
    match per {
        Per::Function(name) if UsdtPair::is_meant(name) => UserError::usage(
            format!("no thread passed {name} in this recording"),
            "record for longer, while the program works",
        ),
        Per::Function(name) => UserError::usage(
            format!("there is no call of '{name}' in this recording"),
            format!("record for longer, or record another function: `{}`", record("NAME")),
        ),
        Per::Sockets(_) if !are_counted => UserError::usage(
            "requests over sockets were not recorded",
            "they need Linux 6.3; or record calls of a function: `longpole record --per NAME`",
        ),
        Per::Sockets(sockets) => UserError::usage(
            format!("no request at {} was answered while this was recorded", words(*sockets)),
            "record a server under load, for longer; `longpole info FILE` shows at which ports it answers",
        ),
    }
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
