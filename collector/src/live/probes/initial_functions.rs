//! Chooses the functions that have probes from the start on, and makes the remarks about the choice.

use super::alive::is_alive;
use super::probed_functions::ProbedFunctions;
use crate::exit::UserError;
use crate::live::main_loop::NewFunctions;
use crate::plan::CapturePlan;
use capture::probe::{Capture, ProbeFunction, Since};
use capture::target::Process;
use engine::event::{Facts, HitCosts};
use std::path::PathBuf;
use symbols::SymbolError;

/// A process to choose functions for.
pub(super) struct Subject {
    pub(super) pid: u32,
    pub(super) name: String,
    pub(super) binary: Option<PathBuf>,
    /// The process is a command at the gate, which will run `binary`.
    pub(super) held: bool,
    /// `binary` is the interpreter of the script that the user named.
    pub(super) is_script: bool,
    /// The process's pid in its own PID namespace, if that is not the first one.
    pub(super) inner: Option<u32>,
}

impl Subject {
    pub(super) fn running(process: &Process) -> Subject {
        Subject {
            pid: process.pid,
            name: process.program_name().to_owned(),
            binary: Some(process.open_path()),
            held: false,
            is_script: false,
            inner: process.namespace_pids.get(1..).and_then(|inner| inner.last().copied()),
        }
    }
}

/// Functions that were chosen before the capture starts.
#[derive(Default)]
pub(super) struct Chosen {
    pub(super) probes: Vec<ProbeFunction>,
    /// Processes whose program could not be read.
    pub(super) unread: Vec<u32>,
}

/// Reads symbols and chooses functions. For the first `strict` subjects an unreadable program is an error, unless the
/// process has ended in the meantime; for all others it is a remark.
pub(super) fn choose(
    functions: &mut ProbedFunctions,
    subjects: &[Subject],
    strict: usize,
    facts: &mut Facts,
    remarks: &mut Vec<String>,
) -> Result<Chosen, UserError> {
    let mut chosen = Chosen::default();
    for (number, Subject { pid, name, binary, held, is_script, .. }) in subjects.iter().enumerate() {
        let Some(binary) = binary else {
            remarks.push(format!(
                "{name}: the program that this process runs is not known, so no function is probed"
            ));
            continue;
        };
        // A script has no symbols, and missing symbols of its interpreter may not matter: many scripts run another
        // program.
        let interpreter = binary.file_name().filter(|_| *is_script);
        let name = &interpreter.map_or_else(|| name.clone(), |file| symbols::safe(&file.to_string_lossy()));
        match functions.of_process(*pid, name, binary) {
            Ok(first) => {
                chosen.probes.extend(first.probes);
                facts.functions.extend(first.facts);
                let missing = first.module.as_ref().and_then(|module| module.missing.as_ref());
                let missing = missing.filter(|_| !is_script);
                remarks.extend(missing.map(|missing| format!("{name}: {missing}")));
                facts.modules.extend(first.module);
                remarks.extend(first.sentence.map(|sentence| format!("{name}: {sentence}")));
                let hint = first.hint.filter(|_| !is_script);
                remarks.extend(hint.map(|hint| format!("hint: {hint}")));
                if let (false, Ok(process)) = (*held, Process::open(*pid)) {
                    let NewFunctions { probes: more, facts: known, modules, .. } =
                        functions.of_libraries(&process);
                    if !more.is_empty() {
                        remarks.push(format!("{name}: {} functions of libraries probed", more.len()));
                    }
                    chosen.probes.extend(more);
                    facts.functions.extend(known);
                    facts.modules.extend(modules);
                }
            }
            Err(error) if number < strict && is_alive(*pid) => return Err(error.into()),
            // An ambiguous name is an error for the first process: the user can say which function is meant before all begins.
            Err(error @ SymbolError::Unclear { .. }) if number == 0 => return Err(error.into()),
            Err(error) => {
                remarks.push(format!("{name}: no function is probed: {error}"));
                chosen.unread.push(*pid);
            }
        }
    }
    let held = subjects.iter().any(|subject| subject.held);
    remarks.extend(functions.pairs.verdict(held)?);
    Ok(chosen)
}

/// Attaches function probes to processes that are already recorded, and notes that their calls were missing until now.
/// `looked_ns`: time at which their programs were read.
pub(super) fn probe_later(
    capture: &mut Capture,
    subjects: &[Subject],
    chosen: &Chosen,
    looked_ns: u64,
    remarks: &mut Vec<String>,
) {
    let since = Since { missing_ns: capture.start_ns(), looked_ns };
    for subject in subjects {
        let of_it = |probe: &&ProbeFunction| probe.pid.is_none_or(|pid| pid == subject.pid);
        let probes: Vec<ProbeFunction> = chosen.probes.iter().filter(of_it).cloned().collect();
        if !probes.is_empty()
            && let Err(error) = capture.attacher().add_process(subject.pid, since, &probes)
        {
            remarks.push(format!("{}: {}", subject.name, error.message));
            capture.leave_unprobed(subject.pid, since.missing_ns);
        }
    }
}

/// A remark on what the probes of named functions cost.
pub(super) fn named_cost(plan: &CapturePlan, costs: Option<HitCosts>, count: usize) -> Option<String> {
    let asked = !plan.selection.functions.is_empty() && count > 0;
    asked.then_some(())?;
    let call_us = costs.map(|costs| (costs.entry.total_ns() + costs.exit.total_ns()) as f64 / 1e3);
    let call = call_us.map_or("an unknown time".to_owned(), |us| format!("{us:.1} µs"));
    Some(format!("named with --functions, so probed at once: {count} functions; each call costs {call} more"))
}
