//! `longpole report --per`: requests, which are calls of a function, or messages at sockets.

use super::output::{to_reader, to_stdout};
use crate::cli::args::ReportArguments;
use crate::exit::{Outcome, UserError};
use crate::input::Input;
use crate::plan::per::Per;
use crate::present::{json, style, text};
use engine::program::Program;
use engine::requests::{Calls, summarize};
use engine::timeline::Timeline;

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
        let about = text::requests::About { what: &what, kind: per.kind() };
        to_reader(|out| text::requests::write(&summary, &about, args.top, findings, &style, out))?;
    }
    Ok(Outcome::Done)
}

/// The requests that a user means.
pub(super) fn asked(input: Input, per: &Per) -> Result<Asked, UserError> {
    let Some((timeline, program)) = input.into_unsimulated() else {
        return Err(UserError::usage(
            "a program has no requests, since it has no recorded times of calls",
            format!("give a recording; `{}` makes one", per.record()),
        ));
    };
    let (calls, names) = per.requests(&timeline)?;
    if calls.requests.is_empty() {
        return Err(per.none(timeline.requests.is_some()));
    }
    Ok(Asked { timeline, program, calls, names })
}
