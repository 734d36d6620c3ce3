//! Runs a plan, and turns what came of it into the one exit code.

use super::args::Arguments;
use super::{command, logging, plan_from_args};
use crate::exit::{Code, Outcome, UserError, say};
use crate::plan::Plan;
use capture::target::{limits, signals};
use clap::Parser;
use std::ffi::OsString;
use std::process::ExitCode;

/// The whole program: parse, check, run, report.
pub fn main(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    logging::init();
    signals::survive_file_size_limit();
    let arguments = match Arguments::try_parse_from(arguments) {
        Ok(arguments) => arguments,
        Err(error) => return refuse(&error),
    };
    match plan_from_args::check(arguments.command).and_then(run) {
        Ok(outcome) => finish(outcome),
        Err(error) => {
            let error = about_limits(error);
            say(&error);
            ExitCode::from(error.code as u8)
        }
    }
}

/// What the system says no to because of a limit of this process, wherever it was, is helped by raising the limit.
fn about_limits(mut error: UserError) -> UserError {
    let says = |number: i32| error.message.contains(&format!("(os error {number})"));
    let hint = if says(libc::EMFILE) {
        let most = limits::descriptors().unwrap_or(u64::MAX);
        Some(format!(
            "longpole may open {most} files, too few for this target: raise the limit (`ulimit -Hn 65536`, as root), or \
             probe less with --max-functions or --no-uprobes"
        ))
    } else if says(libc::EFBIG) {
        Some(format!(
            "`ulimit -f` limits the size of files here: raise it, or record for a shorter time; {}",
            error.hint
        ))
    } else {
        None
    };
    error.hint = hint.unwrap_or(error.hint);
    error
}

fn run(plan: Plan) -> Result<Outcome, UserError> {
    match plan {
        Plan::Record(plan) => crate::live::record(&plan),
        Plan::Top(plan) => crate::live::top(&plan),
        Plan::Gate(plan) => Ok(Outcome::Code(capture::target::gate::run(plan.fd, &plan.command))),
        Plan::Symbols(limits) => Ok(Outcome::Code(symbols::serve(limits))),
        Plan::Report(plan) => command::report::run(&plan),
        Plan::Predict(plan) => command::predict::run(&plan),
        Plan::Slack(plan) => command::slack::run(&plan),
        Plan::Parallelism(plan) => command::parallelism::run(&plan),
        Plan::CompareMetrics(plan) => command::compare_metrics::run(&plan),
        Plan::Paths(plan) => command::paths::run(&plan),
        Plan::WhatIf(plan) => command::what_if::run(&plan),
        Plan::Diff(plan) => command::diff::run(&plan),
        Plan::Check(plan) => command::check::run(&plan),
        Plan::Symbolize(plan) => command::symbolize::run(&plan),
        Plan::Export(plan) => command::export::run(&plan),
        Plan::View(plan) => command::view::run(&plan),
        Plan::Info(plan) => command::info::run(&plan),
        Plan::Notes(plan) => command::notes::run(&plan),
        Plan::Validate(plan) => crate::validate::validate(&plan),
        Plan::Doctor(plan) => command::doctor::run(plan),
        Plan::Completions(shell) => command::manual::completions(shell),
        Plan::Man(folder) => command::manual::pages(&folder),
    }
}

/// Help and version are no errors; everything else becomes our two lines.
fn refuse(error: &clap::Error) -> ExitCode {
    if !error.use_stderr() {
        // The reader is gone: nothing to report.
        let _ = error.print();
        return ExitCode::SUCCESS;
    }
    if matches!(error.kind(), clap::error::ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand) {
        let _ = error.print();
        return ExitCode::from(Code::Usage as u8);
    }
    let error = usage_error(&error.render().to_string());
    say(&error);
    ExitCode::from(error.code as u8)
}

/// clap's text is a paragraph that says what is wrong, tips, and the usage.
fn usage_error(text: &str) -> UserError {
    let mut message = String::new();
    let mut hint = String::new();
    for line in text.lines().map(str::trim) {
        if let Some(tip) = line.strip_prefix("tip: ") {
            hint = tip.to_string();
        } else if let Some(usage) = line.strip_prefix("Usage: ") {
            if hint.is_empty() {
                hint = format!("usage: {usage}");
            }
        } else if line.starts_with("For more information") {
            break;
        } else if !line.is_empty() {
            if !message.is_empty() {
                message.push(' ');
            }
            message.push_str(line.strip_prefix("error: ").unwrap_or(line));
        }
    }
    if hint.is_empty() {
        hint = "see `longpole --help`".into();
    }
    UserError::usage(message, hint)
}

fn finish(outcome: Outcome) -> ExitCode {
    match outcome {
        Outcome::Done => ExitCode::SUCCESS,
        Outcome::Code(code) => ExitCode::from(code),
        // A shell shows a command killed by signal n as 128 + n.
        Outcome::Signal(signal) => {
            capture::target::signals::end_by(signal);
            ExitCode::from(u8::try_from(128 + (signal & 0x7f)).unwrap_or(255))
        }
    }
}
