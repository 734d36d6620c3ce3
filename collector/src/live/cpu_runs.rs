//! `record --cpus 1,2 -- COMMAND`: after the recording, the command runs on each of these numbers of CPUs. What it costs
//! there is added to the recording.

use crate::exit::{Outcome, UserError, say};
use crate::input::Input;
use crate::live::record::record_silently;
use crate::plan::cpus_in_command::command_for;
use crate::plan::keep::Keep;
use crate::plan::{Breakpoints, CapturePlan, CpuRunsPlan, InputPlan, RecordPlan, Selection, TargetPlan};
use crate::present::style;
use capture::interpose::InterposeMode;
use capture::target::{BusyTimes, CpuList, children_cpu_time};
use engine::event::{CpuRun, Facts};
use engine::program::cpu_run;
use recording::add_facts;
use std::path::Path;
use std::time::Duration;
use symbols::sandbox::own_cpu_time_ns;

/// The plan for the recording itself, which runs on the largest number of CPUs.
///
/// # Errors
///
/// The machine has fewer CPUs.
pub fn on_most_cpus(plan: &RecordPlan) -> Result<RecordPlan, UserError> {
    let Some(runs) = &plan.cpu_runs else { return Ok(plan.clone()) };
    let pool = pool(&plan.capture.target)?;
    let most = runs.cpus.iter().copied().max().unwrap_or(1);
    if most as usize > pool.len() {
        return Err(UserError::usage(
            format!("the command cannot run on {most} CPUs: there are {}", pool.len()),
            "give --cpus numbers up to that; `longpole predict` goes further",
        ));
    }
    Ok(RecordPlan { capture: on_cpus(&plan.capture, &pool, most, most), ..plan.clone() })
}

/// Runs the command on each number of CPUs, in several rounds, recording only samples, and adds the results to the recording.
///
/// # Errors
/// The command fails, or cannot be recorded: the recording stays as it is.
pub fn add_cpu_runs(plan: &RecordPlan, path: &Path) -> Result<(), UserError> {
    let Some(runs) = &plan.cpu_runs else { return Ok(()) };
    let counts: Vec<String> = runs.cpus.iter().map(u32::to_string).collect();
    let times = match runs.rounds {
        1 => "once".to_owned(),
        rounds => format!("{rounds} times"),
    };
    say(style::for_stderr().text(&format!("running it on {} CPUs, {times} on each", counts.join(" and "))));
    let cpu_runs = cpu_runs(plan, runs)?;
    let facts = Facts { cpu_runs, ..Facts::default() };
    add_facts(path, &facts).map(|_| ()).map_err(|error| {
        UserError::runtime(
            format!(
                "{}: the command's cost on other numbers of CPUs cannot be added: {error}",
                path.display()
            ),
            "the recording is unchanged",
        )
    })
}

fn cpu_runs(plan: &RecordPlan, runs: &CpuRunsPlan) -> Result<Vec<CpuRun>, UserError> {
    let folder = tempfile::tempdir().map_err(|error| {
        UserError::runtime(format!("cannot make a folder for the runs: {error}"), "set TMPDIR")
    })?;
    let pool = pool(&plan.capture.target)?;
    let mut all = Vec::new();
    for round in 0..runs.rounds {
        // Every second round is in reverse order: slow changes of the machine then affect all CPU counts alike.
        let mut order = runs.cpus.clone();
        if round % 2 == 1 {
            order.reverse();
        }
        for cpus in order {
            let file = folder.path().join(format!("{cpus}-{round}.lp"));
            let capture = CapturePlan {
                breakpoints: Breakpoints::None,
                interpose: InterposeMode::Never,
                selection: Selection::default(),
                from_samples: false,
                ..on_cpus(&plan.capture, &pool, cpus, cpus)
            };
            let run = RecordPlan {
                capture,
                output: Some(file.clone()),
                force: false,
                duration: None,
                cpu_runs: None,
                keep: Keep::All,
                per: None,
            };
            let on = pool.spread(cpus as usize);
            let (busy, used, own) = (BusyTimes::now(), children_cpu_time(), own_cpu_time_ns());
            let outcome = record_silently(&run)?;
            // Longpole's own CPU time may be on CPUs outside this set, so the difference is the least that other
            // programs took.
            let used = children_cpu_time().saturating_sub(used);
            let own = Duration::from_nanos(own_cpu_time_ns().saturating_sub(own));
            let others = BusyTimes::now().since(&busy, &on).saturating_sub(used).saturating_sub(own);
            match outcome {
                Outcome::Done => {}
                _ => {
                    return Err(UserError::runtime(
                        format!("the command failed on {cpus} CPUs"),
                        "give a command that ends with exit code 0 on each number of CPUs",
                    ));
                }
            }
            all.extend(read(&file, (cpus, round), others)?);
            // The file may be large.
            let _ = std::fs::remove_file(&file);
        }
    }
    Ok(all)
}

fn read(file: &Path, run: (u32, u32), others: Duration) -> Result<Option<CpuRun>, UserError> {
    let parts = Input::open(&InputPlan::whole(file.to_owned()))?.into_parts();
    let others_ns = u64::try_from(others.as_nanos()).unwrap_or(u64::MAX);
    Ok(parts.timeline.and_then(|timeline| cpu_run(&timeline, &parts.program, run, others_ns)))
}

/// The CPUs that runs may use.
///
/// # Errors
/// The kernel does not say which CPUs they are.
pub fn pool(target: &TargetPlan) -> Result<CpuList, UserError> {
    match target {
        TargetPlan::Launch { cpus: Some(cpus), .. } => Ok(cpus.clone()),
        _ => CpuList::allowed().map_err(|error| {
            UserError::runtime(format!("cannot tell which CPUs there are: {error}"), "give --cpu-list")
        }),
    }
}

/// A plan with the command's variant for `setup` CPUs, restricted to `cpus` CPUs of the pool.
pub fn on_cpus(capture: &CapturePlan, pool: &CpuList, setup: u32, cpus: u32) -> CapturePlan {
    let target = match &capture.target {
        TargetPlan::Launch { command, keep_root, .. } => TargetPlan::Launch {
            command: command_for(command, setup),
            keep_root: *keep_root,
            cpus: Some(pool.spread(cpus as usize)),
        },
        other => other.clone(),
    };
    CapturePlan { target, ..capture.clone() }
}
