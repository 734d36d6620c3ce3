//! Applies changes to a program.

use super::edit::{Edit, EditError};
use super::{
    cpu_costs, divide, even, fewer_threads, free, group_commit, hosts_cpus, more_sleepers, more_threads,
    move_out, permits, scale, split,
};
use crate::attribution::Owners;
use crate::predict::{Model, NO_QUOTA};
use crate::program::{Operation, Program};
use std::borrow::Cow;

/// A changed program and machine, for any CPU count.
#[derive(Clone, Debug)]
pub struct Changed<'p> {
    /// The program.
    pub program: Cow<'p, Program>,
    /// The machine.
    pub model: Cow<'p, Model>,
}

/// Applies these changes one after the other. `owners` must be from the program with its samples.
///
/// # Errors
/// The first change that cannot be made.
pub fn apply<'p>(
    program: &'p Program,
    owners: &Owners,
    model: &'p Model,
    edits: &[Edit],
) -> Result<Changed<'p>, EditError> {
    let mut changed = Changed { program: Cow::Borrowed(program), model: Cow::Borrowed(model) };
    for edit in edits {
        match edit {
            Edit::Cpus(cpus) if hosts_cpus::are_several(program) => {
                hosts_cpus::multiply(changed.program.to_mut(), *cpus);
            }
            Edit::Cpus(_) => {}
            Edit::NoQuota => changed.model.to_mut().quota = Some(NO_QUOTA),
            Edit::FreeHandOver => {
                let model = changed.model.to_mut();
                let zero = Some(0);
                (model.switch_cost_ns, model.wake_cost_ns) = (zero, zero);
                (model.wake_latency_ns, model.idle_tick_ns) = (zero, zero);
            }
            _ => change(changed.program.to_mut(), owners, edit)?,
        }
    }
    Ok(changed)
}

/// Returns the program with these changes; changes of the machine are ignored.
///
/// # Errors
/// The first change that cannot be made.
pub fn edited(program: &Program, edits: &[Edit]) -> Result<Program, EditError> {
    let model = Model::default();
    Ok(apply(program, &Owners::of(program), &model, edits)?.program.into_owned())
}

fn change(program: &mut Program, owners: &Owners, edit: &Edit) -> Result<(), EditError> {
    match edit {
        Edit::Scale(functions, factor) => scale::scale(program, functions, *factor)?,
        Edit::FewerCalls(function, factor) => scale::scale(program, &[*function], *factor)?,
        Edit::SplitLock(lock, parts) => split::split(program, *lock, *parts)?,
        Edit::GroupCommit(lock, threads) => group_commit::group_commit(program, *lock, *threads),
        Edit::MoveOut(function, locks) => move_out::move_out(program, owners, *function, locks),
        Edit::FreeLocks(locks) | Edit::Processes(locks) => free::locks(program, locks),
        Edit::Divide(part, among) => divide::divide(program, owners, part, *among),
        Edit::MoreThreads { threads, more, under } => {
            more_threads::more_threads(program, threads, *more, under.as_deref());
        }
        Edit::MoreSleepers { threads, more } => more_sleepers::more_sleepers(program, threads, *more),
        Edit::FewerThreads { threads, kept } => fewer_threads::fewer_threads(program, threads, *kept)?,
        Edit::DivideEvenly(alike) => {
            even::even(program, alike)
                .ok_or(EditError::NothingToChange("no threads wait for a thread with more to do"))?;
        }
        Edit::Permits { semaphore, then, .. } => permits::set_permits(program, *semaphore, *then)?,
        Edit::FreeDevices(devices) => free::devices(program, devices),
        Edit::NoSyncs => group_commit::no_syncs(program),
        Edit::FreeIo => free_io(program),
        Edit::NoSleeps => free::sleeps(program, None),
        Edit::NoPolling(polling) => free::sleeps(program, Some(polling)),
        Edit::NoSpinning => free::spinning(program),
        Edit::NoSpunWaits => free::spun_waits(program),
        Edit::NoTurns
        | Edit::OwnLines { .. }
        | Edit::WakeOne(_)
        | Edit::LargerTasks { .. }
        | Edit::WritersFirst { .. }
        | Edit::LessSupportWork { .. }
        | Edit::Overlap { .. }
        | Edit::EvenRounds { .. }
        | Edit::Goroutines(_) => return Err(EditError::NotSimulated),
        Edit::CostAsOn(cpus) => cpu_costs::cost_as_on(program, *cpus)?,
        Edit::Cpus(_) | Edit::NoQuota | Edit::FreeHandOver => {}
    }
    Ok(())
}

fn free_io(program: &mut Program) {
    for operation in program.threads.iter_mut().flat_map(|thread| &mut thread.operations) {
        if let Operation::Io(_, length) = operation {
            length.0 = 0;
        }
    }
}
