//! Removes probes that must not stay: those chosen for programs that their processes no longer run, and those in files that
//! have been written to.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use engine::event::Note;

use super::function_groups::Group;
use super::function_probes::FunctionProbes;
use super::libc_points::off_note;
use super::lock_probes::{LockProbes, Watched};
use super::programs::{Began, NewProgram};
use crate::probe::options::ProbeFunction;
use symbols::FileKey;
use symbols::binary::Binary;

impl FunctionProbes {
    /// Removes the groups that were chosen for programs that `news` replaces, unless the same file was started again by the
    /// leading thread: links still work then.
    pub(crate) fn remove_stale(&mut self, news: &[NewProgram]) {
        let has_older = |new: &&NewProgram| {
            self.groups.iter().any(|group| group.pid.get() == new.pid && group.chosen_ns < new.at_ns)
        };
        let holds = |new: &NewProgram| new.began == Began::ByLeader && self.is_run_by(new.pid);
        let over: Vec<NewProgram> =
            news.iter().filter(has_older).filter(|new| !holds(new)).copied().collect();
        if over.is_empty() {
            return;
        }
        drop(self.silence_where(&mut |group| {
            over.iter().any(|new| new.pid == group.pid.get() && group.chosen_ns < new.at_ns)
        }));
    }

    /// Whether a process runs a file on which it has probes.
    fn is_run_by(&self, pid: u32) -> bool {
        let Ok(found) = std::fs::metadata(format!("/proc/{pid}/exe")) else { return false };
        let run = FileKey::of(&found);
        let mut own = self.groups.iter().filter(|group| group.pid.get() == pid);
        own.any(|group| group.binary.key_now().is_ok_and(|key| key == run))
    }

    /// The functions among `functions` that have probes in a process.
    pub(crate) fn with_probes(&self, pid: u32, functions: &[u32]) -> Vec<u32> {
        let own = self.groups.iter().filter(|group| group.pid.get() == pid);
        let on: BTreeSet<u32> = own.flat_map(|group| &group.functions).map(|function| function.id).collect();
        functions.iter().copied().filter(|function| on.contains(function)).collect()
    }

    /// Whether a process has probes on all of these functions, except on functions that were called too often.
    pub(crate) fn has_all(&self, pid: u32, functions: &[ProbeFunction]) -> bool {
        let own = || self.groups.iter().filter(|group| group.pid.get() == pid);
        let known: BTreeMap<u32, &Arc<Binary>> = own()
            .flat_map(|group| group.functions.iter().chain(&group.disabled))
            .map(|function| (function.id, &function.binary))
            .collect();
        let wanted = |function: &&ProbeFunction| {
            self.shared.function(function.id).is_none_or(|counters| counters.cut_ns == 0)
        };
        let has = |function: &ProbeFunction| {
            known.get(&function.id).is_some_and(|binary| binary.is_same_file(&function.binary))
        };
        own().next().is_some() && functions.iter().filter(wanted).all(has)
    }

    /// Removes the probes from files that have been written to, since the code at their places is unknown now, or all
    /// probes if the process that holds them has ended. Returns the processes that lost probes, with the reason.
    pub(crate) fn drop_changed(&mut self) -> Vec<(u32, String)> {
        let mut told: Vec<(u32, String)> = Vec::new();
        for group in self.groups.iter().filter(|group| group.binary.has_just_lost_its_name()) {
            let name = group.binary.name();
            log::warn!("{name} was replaced or deleted on disk: names are those of the file that runs");
        }
        let held = self.keeper.vouch();
        let vouch = |group: &Group| held.clone().and_then(|()| group.binary.vouch_for_all());
        drop(self.silence_where(&mut |group| match vouch(group) {
            Ok(()) => false,
            Err(why) => {
                if !told.iter().any(|(pid, _)| *pid == group.pid.get()) {
                    told.push((group.pid.get(), why));
                }
                true
            }
        }));
        told
    }
}

impl LockProbes {
    /// Removes processes whose PID a new process was born with. Processes that run another program go through
    /// [`LockProbes::add`].
    pub(crate) fn remove_stale(&mut self, news: &[NewProgram]) {
        let is_after = |new: &NewProgram, watched: &Watched| {
            new.began == Began::Born && new.pid == watched.pid.get() && watched.since_ns < new.at_ns
        };
        let over: Vec<u32> = self
            .watched
            .iter()
            .filter(|watched| news.iter().any(|new| is_after(new, watched)))
            .map(|watched| watched.pid.get())
            .collect();
        if !over.is_empty() {
            drop(self.silence(&|pid| over.contains(&pid)));
        }
    }

    /// Removes the probes of processes whose C library's files have been written to, or of all if the process that holds the
    /// links has ended. Notes that operations are missing from `time_ns` on. Returns the processes, and why.
    pub(crate) fn drop_changed(&mut self, time_ns: u64, notes: &mut Vec<Note>) -> Vec<(u32, String)> {
        let mut told = Vec::new();
        let held = self.keeper.vouch();
        for watched in &self.watched {
            let changed = || watched.files.iter().find_map(|(file, _)| file.file.vouch_for_all().err());
            let why = held.clone().err().or_else(changed);
            told.extend(why.map(|why| (watched.pid.get(), why)));
        }
        if told.is_empty() {
            return told;
        }
        let is_gone = |pid: u32| told.iter().any(|(gone, _)| *gone == pid);
        let off = self.families().filter(|(_, pid, _)| is_gone(*pid));
        notes.extend(off.map(|(_, pid, family)| off_note(time_ns, pid, family, None)));
        drop(self.silence(&is_gone));
        told
    }
}
