//! Decides which C libraries of the target get probes at the start, and which of their functions are tried first.

use super::c_libraries::{CLibraries, LibcChoice};
use super::initial_functions::Subject;
use super::lock_recording::How;
use crate::plan::{Breakpoints, CapturePlan, TargetPlan, names_locks};
use capture::probe::{Capture, LibcProbes};
use capture::target::{CLibraryKind, Process, mapped_c_libraries};

/// The C libraries that got probes, or are tried first.
#[derive(Default)]
pub(super) struct InitialLibraries {
    /// File names, each once.
    pub(super) names: Vec<String>,
    /// The first reason why a library got no probes.
    pub(super) why: Option<String>,
    /// Whether calls of the libraries' functions are counted by a trial before these functions get probes.
    tried: bool,
}

impl InitialLibraries {
    /// The libraries of running programs: they get no probes before a trial.
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

    /// The probes for the C libraries of these processes.
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

    /// Remembers which of the chosen libraries got probes from this capture.
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

    /// How operations are recorded. `instead`: why the preloaded library does not record them.
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

/// Whether families of lock functions get probes only if a trial shows that these cost little. That is so in programs
/// that already run and serve users, unless the user names such functions or sets no limit on the cost.
pub(super) fn tries_locks(plan: &CapturePlan) -> bool {
    plan.breakpoints == Breakpoints::Exact
        && matches!(plan.target, TargetPlan::Attach { .. })
        && plan.budget_ppm.is_some()
        && !names_locks(&plan.selection.functions)
}
