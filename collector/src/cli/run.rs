//! Runs a command, and turns the command's outcome into the exit code.

use super::args::{Arguments, Command};
use super::{command, logging, plan_from_args, value};
use crate::exit::{Code, Outcome, UserError, say};
use capture::target::launching::{limits, signals};
use clap::Parser;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use std::error::Error;
use std::ffi::OsString;
use std::process::ExitCode;

/// The whole program: parses and checks arguments, runs the command, reports.
pub fn main(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    if let Err(error) = capture::rights::give_up_others() {
        say(UserError::runtime(
            format!("longpole cannot give up the capabilities of its file: {error}"),
            "run it as root, or as a member of the group of its file",
        ));
        return ExitCode::from(Code::Runtime as u8);
    }
    logging::init();
    signals::survive_file_size_limit();
    let arguments = match Arguments::try_parse_from(arguments) {
        Ok(arguments) => arguments,
        Err(error) => return refuse(&error),
    };
    match run(arguments.command) {
        Ok(outcome) => finish(outcome),
        Err(error) => {
            let error = about_limits(error);
            say(&error);
            ExitCode::from(error.code as u8)
        }
    }
}

/// Explains errors that a resource limit of this process caused, wherever they occurred: raising the limit helps.
fn about_limits(mut error: UserError) -> UserError {
    let says = |number: i32| error.message.contains(&format!("(os error {number})"));
    let hint = if says(libc::EMFILE) {
        // The operation that failed is arbitrary, and the verifier's log does not help either.
        let (most, needed) = (limits::descriptors().unwrap_or(u64::MAX), limits::descriptors_needed());
        const RAISE: &str = "raise the limit (`ulimit -Hn 65536`, as root)";
        let (message, hint) = match most < needed {
            true => (format!("longpole may open {most} files, but needs about {needed}"), RAISE.to_owned()),
            false => (
                format!("longpole may open {most} files, too few for this target"),
                format!("{RAISE}, record fewer processes at once, or leave out --exact"),
            ),
        };
        error.message = message;
        Some(hint)
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

fn run(command: Command) -> Result<Outcome, UserError> {
    match command {
        Command::Record(args) => crate::live::record(&plan_from_args::record(args)?),
        Command::Top(args) => crate::live::top(&plan_from_args::top(args)?),
        Command::Gate(args) => {
            Ok(Outcome::Code(capture::target::launching::gate::run(args.fd, &args.command)))
        }
        Command::Symbols(args) => {
            let limits =
                symbols::sandbox::ParserLimits { memory: args.memory_bytes, cpu_s: args.cpu_seconds };
            Ok(Outcome::Code(symbols::serve(limits)))
        }
        Command::Links => Ok(Outcome::Code(capture::probe::hold_links())),
        Command::Report(args) => command::report::run(args),
        Command::Predict(args) => command::predict::run(args),
        Command::Slack(args) => command::slack::run(&args),
        Command::Parallelism(args) => command::parallelism::run(&args),
        Command::CompareMetrics(args) => command::compare_metrics::run(&args),
        Command::Paths(args) => command::paths::run(&args),
        Command::WhatIf(args) => command::what_if::run(&args),
        Command::Diff(args) => command::diff::run(&args),
        Command::Check(args) => command::check::run(&args),
        Command::Symbolize(args) => command::symbolize::run(&args),
        Command::Export(args) => command::export::run(&args),
        Command::View(args) => command::view::run(&args),
        Command::Join(args) => command::join::run(&args),
        Command::Info(args) => command::info::run(&args),
        Command::Notes(args) => command::notes::run(&args),
        Command::Validate(args) => crate::validate::validate(&plan_from_args::validate(args)?),
        Command::Doctor(args) => command::doctor::run(&args),
        Command::Completions(args) => command::manual::completions(args.shell),
        Command::Man(args) => command::manual::pages(&args.folder),
    }
}

/// Prints help and version, which are no errors; other errors become longpole's two lines.
fn refuse(error: &clap::Error) -> ExitCode {
    if !error.use_stderr() {
        // An error means that stdout is closed, so it cannot be reported.
        let _ = error.print();
        return ExitCode::SUCCESS;
    }
    if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        let _ = error.print();
        return ExitCode::from(Code::Usage as u8);
    }
    let error = value_error(error).unwrap_or_else(|| usage_error(&error.render().to_string()));
    say(&error);
    ExitCode::from(error.code as u8)
}

/// An error about a value, in the words of [`value`] or with the words that the option accepts.
fn value_error(error: &clap::Error) -> Option<UserError> {
    let text = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.as_str()),
        _ => None,
    };
    // `--top <N>` becomes `--top`, `<SHELL>` becomes `SHELL`.
    let option = text(ContextKind::InvalidArg)?.split(' ').next()?.trim_matches(['<', '>']);
    if let Some(UserError { message, hint, code }) = error.source().and_then(|source| source.downcast_ref()) {
        let message = match message.strip_prefix(value::OPTION) {
            Some(rest) => format!("{option}{rest}"),
            None => message.clone(),
        };
        return Some(UserError::new(*code, message, hint.replace(value::OPTION, option)));
    }
    let (ErrorKind::InvalidValue, Some(ContextValue::Strings(words))) =
        (error.kind(), error.get(ContextKind::ValidValue))
    else {
        return None;
    };
    let hint = match (text(ContextKind::SuggestedValue), words.split_last()) {
        (Some(meant), _) => format!("did you mean {meant}?"),
        (None, Some((last, others))) => format!("it can be {} or {last}", others.join(", ")),
        (None, None) => return None,
    };
    Some(UserError::usage(format!("{option} cannot be '{}'", text(ContextKind::InvalidValue)?), hint))
}

/// Parses clap's text: a paragraph that says what is wrong, tips, and the usage.
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
        // Ends by the same signal. If that fails: 128 + n, as a shell has it.
        Outcome::Signal(signal) => {
            capture::target::launching::signals::end_by(signal);
            ExitCode::from(u8::try_from(128 + (signal & 0x7f)).unwrap_or(255))
        }
    }
}
