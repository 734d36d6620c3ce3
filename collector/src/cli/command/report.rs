//! `longpole report`

use super::output::{to_reader, to_stdout};
use crate::cli::args::{ReportArguments, ViewArguments};
use crate::exit::{Outcome, UserError};
use crate::input::Input;
use crate::plan::InputPlan;
use crate::present::text::report::By;
use crate::present::{json, screen, style, text};
use engine::program::{Function, Program, Samples};
use engine::report::{Cpus, Detail};

/// Reads an input, analyses it, shows the report. A deadlock and damage to a session are findings, not errors.
pub fn run(mut args: ReportArguments) -> Result<Outcome, UserError> {
    if let Some(page) = args.html.take() {
        return super::view::run(&ViewArguments {
            input: args.input,
            output: Some(page),
            cpus: args.cpus,
            no_open: true,
            sources: false,
            measured: Vec::new(),
            force: false,
            symbols: args.sources,
        });
    }
    if let Some(name) = args.per.take() {
        return super::per::run(&args, &name);
    }
    if args.stacks && args.by != By::Wait {
        return Err(UserError::usage("--stacks shows the stacks of waits", "add --by wait"));
    }
    let plan = args.input.plan();
    let mut input = Input::open(&plan)?;
    if let Input::Session(read) = &mut input {
        super::symbolize::in_memory(&mut read.recording, &args.sources)?;
    }
    let mut program = if args.raw { input.raw() } else { input }.into_program();
    if args.probed_only {
        program.samples = Samples::default();
    }
    let detail = if args.segments { Detail::Segments } else { Detail::Functions };
    let model = super::model(args.scheduling.model);
    let is_table = !(args.json || args.wide || args.segments);
    let is_screen = is_table && args.top.is_none() && args.by == By::Function;
    let is_view = is_table && args.by != By::Function;
    let mut cpus = args.cpus;
    if (is_screen || is_view)
        && let Some(machine) = program.recorded_cpus.and_then(Cpus::count)
        && !cpus.contains(&machine)
    {
        // The screen begins with what limits on the recorded machine.
        cpus.push(machine);
        cpus.sort_unstable();
    }
    let mut report = super::report_on_all_cores(&program, &cpus, detail, args.by.grouping(), &model);
    if args.json {
        let limits = super::limits_on_all_cores(&program, &cpus, &model);
        report.findings.extend(limits.doubts(program.overhead));
        let options = json::report::Options { segments: args.segments, by: args.by.grouping(), live: None };
        to_stdout(|out| json::report::write(&report, &limits, options, out))?;
    } else if is_screen {
        let limits = super::limits_on_all_cores(&program, &cpus, &model);
        report.findings.extend(limits.doubts(program.overhead));
        let about = about(&plan, &program);
        to_reader(|out| screen::write(&report, &limits, &about, args.all, &style::for_stdout(), out))?;
    } else {
        let frame = super::frame(&plan, &program, &cpus, &model);
        let options = text::report::Options {
            by: args.by,
            top: args.top,
            all: args.all,
            segments: args.segments,
            stacks: args.stacks,
        };
        let style = style::for_stdout();
        to_reader(|out| match is_view {
            true => text::view::write(&report, &frame, options, &style, out),
            false => text::report::write(&report, &frame, options, &style, out),
        })?;
    }
    Ok(Outcome::Done)
}

fn about(input: &InputPlan, program: &Program) -> screen::About {
    let file = super::file_name(input);
    let process = program.threads.first().and_then(|thread| thread.process.as_deref());
    let process = process.map(|process| process.rsplit_once('/').map_or(process, |(name, _)| name));
    let stem = || file.rsplit('/').next().unwrap_or_default();
    let name = process.unwrap_or_else(stem).to_owned();
    let names_made_code = program.functions.iter().any(Function::is_made_code);
    screen::About { name, file, threads: program.threads.len(), names_made_code, live: None }
}
