//! `longpole report`

use super::output::{to_reader, to_stdout};
use crate::exit::{Outcome, UserError};
use crate::input::Input;
use crate::plan::ReportPlan;
use crate::present::{json, screen, style, text, view};
use engine::program::{Program, Samples};
use engine::report::{Cpus, Detail};

/// Reads, analyses, shows. A deadlock and damage to a session are findings, not errors.
pub fn run(plan: &ReportPlan) -> Result<Outcome, UserError> {
    let mut input = Input::open(&plan.input)?;
    if let Input::Session(read) = &mut input {
        super::symbolize::in_memory(&mut read.0, &plan.symbols)?;
    }
    let mut program = if plan.raw { input.raw() } else { input }.into_program();
    if plan.probed_only {
        program.samples = Samples::default();
    }
    let detail = if plan.segments { Detail::Segments } else { Detail::Functions };
    let model = super::model(plan.scheduler);
    let is_table = !(plan.json || plan.wide || plan.segments);
    let is_screen = is_table && plan.top.is_none() && plan.by == text::By::Function;
    let is_view = is_table && plan.by != text::By::Function;
    let mut cpus = plan.cpus.clone();
    if (is_screen || is_view)
        && let Some(machine) = program.recorded_cpus.and_then(Cpus::count)
        && !cpus.contains(&machine)
    {
        // What limits there is what the screen begins with.
        cpus.push(machine);
        cpus.sort_unstable();
    }
    let mut report = super::report_on_all_cores(&program, &cpus, detail, plan.by.grouping(), &model);
    if plan.json {
        let limits = super::limits_on_all_cores(&program, &cpus, &model);
        report.findings.extend(limits.doubts(program.overhead));
        let options = json::Options { segments: plan.segments, by: plan.by.grouping(), live: None };
        to_stdout(|out| json::write(&report, &limits, options, out))?;
    } else if is_screen {
        let limits = super::limits_on_all_cores(&program, &cpus, &model);
        report.findings.extend(limits.doubts(program.overhead));
        let about = about(plan, &program);
        to_reader(|out| screen::write(&report, &limits, &about, plan.all, &style::for_stdout(), out))?;
    } else {
        let frame = super::frame(&plan.input, &program, &cpus, &model);
        let options = text::Options { by: plan.by, top: plan.top, segments: plan.segments };
        let style = style::for_stdout();
        to_reader(|out| match is_view {
            true => view::write(&report, &frame, options, &style, out),
            false => text::write(&report, &frame, options, &style, out),
        })?;
    }
    Ok(Outcome::Done)
}

fn about(plan: &ReportPlan, program: &Program) -> screen::About {
    let file = super::file_name(&plan.input);
    let process = program.threads.first().and_then(|thread| thread.process.as_deref());
    let process = process.map(|process| process.rsplit_once('/').map_or(process, |(name, _)| name));
    let stem = || file.rsplit('/').next().unwrap_or_default();
    let name = process.unwrap_or_else(stem).to_owned();
    screen::About { name, file, threads: program.threads.len(), live: None }
}
