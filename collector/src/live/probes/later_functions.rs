//! Functions that get probes while recording: those of new processes, programs and libraries, and those that a user or
//! samples ask for.

use super::c_libraries::{LibcChoice, SPARED};
use super::function_finder::Choose;
use super::hot_functions::HotFunctions;
use super::lock_rate_trials::Tried;
use super::probed_functions::{First, ProbedFunctions};
use super::tally::Tally;
use crate::live::main_loop::{
    ChangeKind, Chosen, FunctionRequest, Granted, LibcChosen, NewFunctions, Placing, ProcessChange, Unprobed,
};
use capture::probe::{LibcProbes, now_ns};
use capture::target::Process;
use symbols::SymbolError;

/// Largest number of processes with function probes: each one costs links in the kernel, and time to detach them.
const MOST_PROCESSES: usize = 256;

impl Choose for ProbedFunctions {
    fn choose_libc(&mut self, change: ProcessChange) -> Option<Result<LibcChosen, String>> {
        let ProcessChange { pid, time_ns, kind } = change;
        if !self.libc.are_probed() {
            return None;
        }
        if self.tries_locks {
            return self.try_locks_later(change).map(Ok);
        }
        let executed = match kind {
            ChangeKind::Ended | ChangeKind::Mapped { libc: false } => return None,
            ChangeKind::Forked { .. } | ChangeKind::Mapped { libc: true } => None,
            ChangeKind::Executed { by_leader } => Some(by_leader),
        };
        let process = Process::open(pid).ok()?;
        if executed.is_some() {
            // The new program may get probes. Whether it moves code is checked later, since that takes longer.
            self.libc.spare(pid, false);
        }
        match self.libc.of_process(&process) {
            LibcChoice::Inside => None,
            LibcChoice::Probes(_) if self.has_moving_library(&process) => {
                self.libc.spare(pid, true);
                Some(Err(SPARED.to_owned()))
            }
            LibcChoice::Probes(probes) => {
                Some(Ok(LibcChosen { missing_since_ns: time_ns, probes, executed }))
            }
            // The loader may not be done yet.
            LibcChoice::None(_) if matches!(kind, ChangeKind::Mapped { .. }) => None,
            LibcChoice::None(why) => Some(Err(why)),
        }
    }

    fn too_short(&mut self, change: ProcessChange) -> Option<Chosen> {
        // If functions get probes only after samples show them, no calls count as missing.
        (self.max_functions > 0 && !self.from_samples).then_some(Chosen {
            pid: change.pid,
            missing_since_ns: change.time_ns,
            functions: Err(Unprobed::Ended),
            placing: Placing::Instead,
        })
    }

    fn choose(&mut self, change: ProcessChange) -> Option<Chosen> {
        let ProcessChange { pid, time_ns, kind } = change;
        if kind == ChangeKind::Ended {
            self.probed.remove(&pid);
            self.forget_libraries(pid);
            self.pairs.forget(pid);
            return None;
        }
        let looked_ns = now_ns();
        if matches!(kind, ChangeKind::Mapped { .. }) {
            let functions = self.of_libraries(&Process::open(pid).ok()?);
            let functions = NewFunctions { looked_ns, ..functions };
            return (!functions.probes.is_empty()).then_some(Chosen {
                pid,
                missing_since_ns: time_ns,
                functions: Ok(functions),
                placing: Placing::Beside,
            });
        }
        if self.max_functions == 0 {
            // No functions are wanted, so none are missing, and reading symbols would be a waste.
            return None;
        }
        let placing = Placing::Instead;
        let gone = Some(Chosen { pid, missing_since_ns: time_ns, functions: Err(Unprobed::Ended), placing });
        let Ok(process) = Process::open(pid) else { return gone };
        let binary = process.open_path();
        let functions = if self.probed.len() >= MOST_PROCESSES && !self.probed.contains_key(&pid) {
            Err(Unprobed::Refused(format!("{MOST_PROCESSES} processes have function probes already")))
        } else {
            match self.of_process(pid, process.program_name(), &binary) {
                Ok(First { mut probes, mut facts, module, .. }) => {
                    self.forget_libraries(pid);
                    let beside = self.of_libraries(&process);
                    probes.extend(beside.probes);
                    facts.extend(beside.facts);
                    let modules = module.into_iter().chain(beside.modules).collect();
                    Ok(NewFunctions { probes, facts, modules, looked_ns })
                }
                Err(SymbolError::Open { .. }) => return gone,
                Err(error) => Err(Unprobed::Refused(error.to_string())),
            }
        };
        Some(Chosen { pid, missing_since_ns: time_ns, functions, placing })
    }

    fn grant(&mut self, request: &FunctionRequest, pids: &[u32]) -> Granted {
        self.granted(request, pids)
    }

    fn hot_functions(&mut self, hot: &HotFunctions, pids: &[u32]) -> Option<Granted> {
        (self.from_samples || self.few_at_once).then(|| self.select_probes(hot, pids))?
    }

    fn tallied(&mut self, tally: &Tally, pids: &[u32]) -> Option<Granted> {
        let tried = self.lock_trials.run(tally, pids, &mut self.libc, &mut self.trials);
        let functions = if self.from_samples { self.seen_in(tally, pids) } else { None };
        if tried.is_empty() {
            return functions;
        }
        let mut granted = functions.unwrap_or_default();
        for tried in tried {
            match tried {
                Tried::Decided(chosen) => granted.libc.push(*chosen),
                Tried::Without(why) => granted.without_libc.push(why),
            }
        }
        Some(granted)
    }
}

impl ProbedFunctions {
    fn has_moving_library(&mut self, process: &Process) -> bool {
        let ProbedFunctions { moving_libraries, parsers, .. } = self;
        self.selection.include.is_empty()
            && moving_libraries.of_process(process.pid, &process.open_path(), parsers).is_some()
    }

    /// Queues a new process or program for trials of lock functions: results of the former program do not apply to it.
    fn try_locks_later(&mut self, change: ProcessChange) -> Option<LibcChosen> {
        let ProcessChange { pid, time_ns, kind } = change;
        let executed = match kind {
            ChangeKind::Ended => {
                self.lock_trials.forget(pid);
                return None;
            }
            ChangeKind::Mapped { .. } => return None,
            ChangeKind::Forked { .. } => None,
            ChangeKind::Executed { .. } => Some(false),
        };
        self.lock_trials.wait(pid, time_ns);
        let probes = LibcProbes { pid, ..LibcProbes::default() };
        Some(LibcChosen { missing_since_ns: time_ns, probes, executed })
    }
}
