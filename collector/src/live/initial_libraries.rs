//! Which C libraries of the target get probes at once, and which families of their functions are tried first.

use super::c_libraries::{CLibraries, LibcChoice};
use super::initial_functions::Subject;
use super::lock_recording::How;
use crate::plan::{Breakpoints, CapturePlan, TargetPlan, names_locks};
use capture::probe::{Capture, LibcProbes};
use capture::target::{CLibraryKind, Process, mapped_c_libraries};

/// The C libraries that got probes.
#[derive(Default)]
pub(super) struct InitialLibraries {
    /// File names, each once.
    pub(super) names: Vec<String>,
    /// Why one did not.
    pub(super) why: Option<String>,
    /// Their functions are tried first.
    tried: bool,
}

impl InitialLibraries {
    /// Those of programs that run: nothing has probes yet.
    pub(super) fn of_running(pids: impl Iterator<Item = u32>) -> InitialLibraries {
        let mut libraries = InitialLibraries { tried: true, ..InitialLibraries::default() };
        for process in pids.filter_map(|pid| Process::open(pid).ok()) {
            for library in mapped_c_libraries(&process) {
                if library.kind != CLibraryKind::Loader && !libraries.names.contains(&library.name) {
                    libraries.names.push(library.name);
                }
            }
        }
        libraries
    }

    /// What to probe of the libraries of these processes.
    pub(super) fn choose<'s>(
        &mut self,
        libraries: &mut CLibraries,
        subjects: impl Iterator<Item = &'s Subject>,
    ) -> Vec<LibcProbes> {
        let mut chosen = Vec::new();
        for subject in subjects {
            match libraries.choose_for(subject.pid, subject.binary.as_deref().filter(|_| subject.held)) {
                Some(LibcChoice::Probes(probes)) => chosen.push(probes),
                Some(LibcChoice::None(why)) => {
                    self.why.get_or_insert(why);
                }
                Some(LibcChoice::Inside) | None => {}
            }
        }
        chosen
    }

    /// These were to get probes from this capture.
    pub(super) fn got_probes(&mut self, chosen: &[LibcProbes], capture: &Capture) {
        let failed = capture.without_libc();
        if let Some((_, error)) = failed.first() {
            self.why.get_or_insert_with(|| error.message.clone());
        }
        let has_failed = |probes: &&LibcProbes| failed.iter().any(|(pid, _)| *pid == probes.pid);
        for probes in chosen.iter().filter(|probes| !has_failed(probes)) {
            for file in probes.files.iter().filter(|file| !file.is_loader) {
                if !self.names.contains(&file.name) {
                    self.names.push(file.name.clone());
                }
            }
        }
    }

    /// How operations are recorded; `instead`: why not from inside.
    pub(super) fn how(self, plan: &CapturePlan, instead: Option<String>) -> How {
        if self.tried && !self.names.is_empty() {
            return How::Tried(self.names);
        }
        if !self.names.is_empty() {
            return How::Probes { libraries: self.names, instead };
        }
        if plan.breakpoints != Breakpoints::Exact {
            let attached = "in a running program, without breakpoints (--exact sets them)".to_owned();
            return How::No(instead.unwrap_or(attached));
        }
        How::No(self.why.or(instead).unwrap_or_else(|| "no C library was found".to_owned()))
    }
}

/// Whether families of lock functions get probes only when a trial has shown that these cost little: in
/// programs that already run and have users. Not if the user has named such functions, or has set no limit on
/// the cost.
pub(super) fn tries_locks(plan: &CapturePlan) -> bool {
    plan.breakpoints == Breakpoints::Exact
        && matches!(plan.target, TargetPlan::Attach { .. })
        && plan.budget_ppm.is_some()
        && !names_locks(&plan.selection.functions)
}
