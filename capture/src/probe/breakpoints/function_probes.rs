//! Probes on functions of the target.
//!
//! Functions of one process are divided into a few groups, and the functions of a group into links that are small enough
//! that no thread waits for one (`batched_attach`). Each link has the entries and exits of its functions. A
//! link is never changed. To remove probes from some functions, new links without them are attached, then the
//! valid generation of the group's slot is switched, then the old links are closed. While both exist, the
//! kernel programs accept only hits of links of the valid generation.

use std::{
    collections::BTreeSet,
    num::NonZeroU32,
    sync::{Arc, atomic::Ordering},
};

use aya::Ebpf;
use probe_abi::MAX_GROUPS;

use super::batched_attach;
use super::function_groups::{Group, Slot, links_for_one, split};
use super::function_links::{SmallLink, attach_some};
use super::link_keeper::LinkKeeper;
use crate::probe::error::{ProbeError, ProbeErrorKind};
use crate::probe::kernel::{Shared, function_program};
use crate::probe::options::ProbeFunction;
use crate::probe::overhead::calibrate;

/// The kernel program at the entries and exits of functions.
pub(crate) const PROGRAM: &str = "function_probe";

/// The function probes of all recorded processes.
pub(crate) struct FunctionProbes {
    pub(super) shared: Arc<Shared>,
    pub(super) groups: Vec<Group>,
    slots: Vec<Slot>,
    pub(super) keeper: Arc<LinkKeeper>,
    refused: Vec<u32>,
    got: Vec<u32>,
    /// Functions that are disabled in all processes: see [`FunctionProbes::disable`].
    disabled: BTreeSet<u32>,
    version: u64,
    /// Functions below this number have counters; the counters after them count other things.
    number_limit: u32,
}

impl FunctionProbes {
    pub(crate) fn new(shared: Arc<Shared>, keeper: Arc<LinkKeeper>, number_limit: u32) -> FunctionProbes {
        FunctionProbes {
            shared,
            groups: Vec::new(),
            slots: vec![Slot::default(); MAX_GROUPS],
            keeper,
            refused: Vec::new(),
            got: Vec::new(),
            disabled: BTreeSet::new(),
            version: 0,
            number_limit,
        }
    }

    /// Attaches probes to `functions` of process `pid` as it was at `chosen_ns`, except functions that were called too
    /// often in another process.
    pub(crate) fn add(
        &mut self,
        ebpf: &mut Ebpf,
        pid: u32,
        chosen_ns: u64,
        mut functions: Vec<ProbeFunction>,
    ) -> Result<(), ProbeError> {
        functions
            .retain(|function| self.shared.function(function.id).is_none_or(|counters| counters.cut_ns == 0));
        self.refused.extend(without_counters(&mut functions, self.number_limit));
        let pid = NonZeroU32::new(pid).ok_or_else(|| {
            ProbeError::new(ProbeErrorKind::Target, "process 0 cannot be probed", "give the PID of a process")
        })?;
        let free: Vec<usize> =
            (0..).zip(&self.slots).filter(|(_, slot)| !slot.taken).map(|(slot, _)| slot).collect();
        let groups = split(functions, links_for_one(free.len()));
        // All or nothing: probes on half of a process's functions would be taken for all of them.
        if groups.len() > free.len() {
            return Err(ProbeError::new(
                ProbeErrorKind::Failed,
                format!("no room for the probes of process {pid}: too many processes have probes"),
                "record fewer processes at once, or leave out --exact",
            ));
        }
        let had = self.groups.len();
        for ((binary, functions), slot) in groups.into_iter().zip(free) {
            let slot_byte = u8::try_from(slot).unwrap_or(u8::MAX);
            let generation = self.slots.get(slot).map_or(0, |slot| slot.generation);
            let (disabled, functions) =
                functions.into_iter().partition(|function| self.disabled.contains(&function.id));
            let links = Vec::new();
            let mut group =
                Group { pid, chosen_ns, binary, slot: slot_byte, generation, functions, disabled, links };
            if let Err(error) = self.replace(ebpf, &mut group) {
                self.remove_from(had);
                return Err(error);
            }
            if let Some(slot) = self.slots.get_mut(slot) {
                slot.taken = true;
            }
            self.groups.push(group);
            self.version = self.version.wrapping_add(1);
        }
        let groups = self.groups.get(had..).unwrap_or_default().iter();
        self.got.extend(groups.flat_map(|group| &group.functions).map(|function| function.id));
        Ok(())
    }

    /// Attaches probes to `functions` of process `pid` except those that already have probes. `insist`: also to
    /// functions that were called too often; their calls are counted again.
    pub(crate) fn add_more(
        &mut self,
        ebpf: &mut Ebpf,
        pid: u32,
        chosen_ns: u64,
        mut functions: Vec<ProbeFunction>,
        insist: bool,
    ) -> Result<(), ProbeError> {
        let known: BTreeSet<u32> = self
            .groups
            .iter()
            .filter(|group| group.pid.get() == pid)
            .flat_map(|group| group.functions.iter().chain(&group.disabled))
            .map(|function| function.id)
            .collect();
        functions.retain(|function| !known.contains(&function.id));
        for function in functions.iter().filter(|_| insist) {
            self.shared.forgive(function.id);
        }
        if functions.is_empty() {
            return Ok(());
        }
        self.add(ebpf, pid, chosen_ns, functions)
    }

    /// Attaches new links for the group's functions, makes their generation valid and closes the old links.
    fn replace(&mut self, ebpf: &mut Ebpf, group: &mut Group) -> Result<(), ProbeError> {
        let program = function_program(ebpf, PROGRAM)?;
        // 0 is no generation: it marks an empty slot.
        let generation = group.generation.checked_add(1).unwrap_or(1);
        let mut links = Vec::new();
        let mut refused = Vec::new();
        group.vouch()?;
        for few in batched_attach::in_small_groups(&group.functions, ProbeFunction::points) {
            attach_some(&self.keeper, program, group, generation, few, &mut links, &mut refused)?;
        }
        // If the file was written to in the meantime, breakpoints may be in changed code.
        group.vouch()?;
        if let Some(valid) = self.shared.generations.word(usize::from(group.slot)) {
            valid.store(u64::from(generation), Ordering::SeqCst);
        }
        group.generation = generation;
        group.functions.retain(|function| !refused.contains(&function.id));
        self.refused.extend(refused);
        group.links = links;
        self.version = self.version.wrapping_add(1);
        Ok(())
    }

    /// Removes the probes of the functions for which `hot` is true, permanently. On an error the old probes stay.
    pub(crate) fn remove_probes(
        &mut self,
        ebpf: &mut Ebpf,
        hot: &dyn Fn(u32) -> bool,
    ) -> Result<(), ProbeError> {
        self.change(ebpf, &mut |group| {
            let before = group.functions.len();
            group.functions.retain(|function| !hot(function.id));
            group.disabled.retain(|function| !hot(function.id));
            group.functions.len() != before
        })
    }

    /// Removes the probes of these functions, also for new processes, until they are enabled again. Errors as in
    /// `remove_probes`.
    pub(crate) fn disable(&mut self, ebpf: &mut Ebpf, numbers: &BTreeSet<u32>) -> Result<(), ProbeError> {
        self.disabled.extend(numbers);
        self.change(ebpf, &mut |group| {
            let is_over = |function: &mut ProbeFunction| numbers.contains(&function.id);
            let before = group.disabled.len();
            group.disabled.extend(group.functions.extract_if(.., is_over));
            group.disabled.len() != before
        })
    }

    /// Removes the probes of these functions at once, together with those of functions that share a link with one of
    /// them. Attaching new links for the latter would take seconds if there are thousands of functions, in a program
    /// that does nothing but hit probes. All of these functions are disabled; with `for_good`, those in `numbers` lose
    /// their probes forever. Returns all functions that lost their probes.
    pub(crate) fn disable_at_once(&mut self, numbers: &BTreeSet<u32>, for_good: bool) -> BTreeSet<u32> {
        // A function has probes in all processes or in none, so this goes on until no link is shared.
        let mut all = numbers.clone();
        loop {
            let before = all.len();
            for group in &mut self.groups {
                let shares =
                    |link: &mut SmallLink| link.functions.iter().any(|function| all.contains(function));
                let closed: Vec<SmallLink> = group.links.extract_if(.., shares).collect();
                all.extend(closed.into_iter().flat_map(|link| link.functions));
            }
            if all.len() == before {
                break;
            }
        }
        let gone = |function: u32| for_good && numbers.contains(&function);
        for group in &mut self.groups {
            let rest = group.functions.extract_if(.., |function| all.contains(&function.id));
            group.disabled.extend(rest);
            group.disabled.retain(|function| !gone(function.id));
        }
        self.disabled.extend(all.iter().filter(|function| !gone(**function)));
        self.version = self.version.wrapping_add(1);
        all
    }

    /// Attaches probes to disabled functions again. On an error they stay disabled.
    pub(crate) fn enable(&mut self, ebpf: &mut Ebpf, numbers: &BTreeSet<u32>) -> Result<(), ProbeError> {
        self.disabled.retain(|function| !numbers.contains(function));
        self.each(&mut |functions, group| functions.add_links(ebpf, group, numbers))
    }

    /// Attaches links for a group's disabled functions that are in `numbers`. All other links of the group stay.
    fn add_links(
        &mut self,
        ebpf: &mut Ebpf,
        group: &mut Group,
        numbers: &BTreeSet<u32>,
    ) -> Result<(), ProbeError> {
        let woken: Vec<ProbeFunction> =
            group.disabled.extract_if(.., |function| numbers.contains(&function.id)).collect();
        if woken.is_empty() {
            return Ok(());
        }
        let program = function_program(ebpf, PROGRAM)?;
        let had = group.links.len();
        let (mut links, mut refused) = (Vec::new(), Vec::new());
        group.functions.extend(woken.iter().cloned());
        let attached = group
            .vouch()
            .and_then(|()| {
                batched_attach::in_small_groups(&woken, ProbeFunction::points).try_for_each(|few| {
                    attach_some(&self.keeper, program, group, group.generation, few, &mut links, &mut refused)
                })
            })
            .and_then(|()| group.vouch());
        group.links.append(&mut links);
        self.version = self.version.wrapping_add(1);
        if let Err(error) = attached {
            group.links.truncate(had);
            let back = group.functions.extract_if(.., |function| numbers.contains(&function.id));
            group.disabled.extend(back);
            return Err(error);
        }
        group.functions.retain(|function| !refused.contains(&function.id));
        self.refused.extend(refused);
        Ok(())
    }

    /// Attaches new links for every group that `change` changes.
    fn change(
        &mut self,
        ebpf: &mut Ebpf,
        change: &mut dyn FnMut(&mut Group) -> bool,
    ) -> Result<(), ProbeError> {
        self.each(&mut |functions, group| {
            if change(group) { functions.replace(ebpf, group) } else { Ok(()) }
        })
    }

    /// Calls `work` for each group. Groups of processes that have ended are removed.
    fn each(
        &mut self,
        work: &mut dyn FnMut(&mut FunctionProbes, &mut Group) -> Result<(), ProbeError>,
    ) -> Result<(), ProbeError> {
        let (mut kept, mut ended) = (Vec::new(), Vec::new());
        let mut result = Ok(());
        for mut group in std::mem::take(&mut self.groups) {
            match work(self, &mut group) {
                Err(error) if error.kind == ProbeErrorKind::Target => {
                    ended.push(group);
                    continue;
                }
                Err(error) => result = Err(error),
                Ok(()) => {}
            }
            kept.push(group);
        }
        self.groups = kept;
        self.give_up(&ended);
        result
    }

    /// Removes all probes from the processes for which `gone` is true.
    pub(crate) fn remove_processes(&mut self, gone: &dyn Fn(u32) -> bool) {
        drop(self.silence(gone));
    }

    /// Removes the groups of the processes for which `gone` is true, and returns them. Hits of their probes no longer
    /// count; the probes exist until the groups are dropped.
    pub(crate) fn silence(&mut self, gone: &dyn Fn(u32) -> bool) -> Vec<Group> {
        self.silence_where(&mut |group| gone(group.pid.get()))
    }

    pub(super) fn silence_where(&mut self, gone: &mut dyn FnMut(&Group) -> bool) -> Vec<Group> {
        let (silent, kept): (Vec<Group>, _) =
            std::mem::take(&mut self.groups).into_iter().partition(|group| gone(group));
        self.groups = kept;
        if !silent.is_empty() {
            self.give_up(&silent);
        }
        silent
    }

    /// Removes the probes of all groups from this index on.
    fn remove_from(&mut self, first: usize) {
        let groups = self.groups.split_off(first.min(self.groups.len()));
        self.give_up(&groups);
    }

    /// Makes the probes of these groups invalid, and frees the groups' slots.
    fn give_up(&mut self, silent: &[Group]) {
        self.version = self.version.wrapping_add(1);
        for group in silent {
            let slot = usize::from(group.slot);
            if let Some(valid) = self.shared.generations.word(slot) {
                valid.store(0, Ordering::SeqCst);
            }
            if let Some(slot) = self.slots.get_mut(slot) {
                *slot = Slot { taken: false, generation: group.generation };
            }
        }
    }

    /// All functions that have probes now, once for each process.
    pub(crate) fn functions(&self) -> impl Iterator<Item = &ProbeFunction> {
        self.groups.iter().flat_map(|group| &group.functions)
    }

    /// Changes whenever the functions with probes may have changed.
    pub(crate) fn version(&self) -> u64 {
        self.version
    }

    /// Processes that have function probes.
    pub(crate) fn processes(&self) -> impl Iterator<Item = u32> {
        self.groups.iter().map(|group| group.pid.get())
    }

    /// Functions with instructions that the kernel refused to probe; empties the list.
    pub(crate) fn take_refused(&mut self) -> Vec<u32> {
        std::mem::take(&mut self.refused)
    }

    /// Whether the kernel refused to probe a function.
    pub(crate) fn has_refused(&self, function: u32) -> bool {
        self.refused.contains(&function)
    }

    /// Functions that got probes in some process; empties the list.
    pub(crate) fn take_probed(&mut self) -> Vec<u32> {
        std::mem::take(&mut self.got)
    }
}

/// Removes the functions whose number has no counters from the list, and returns the numbers. Their hits would be counted
/// as something else, such as operations of a C library, which would lose its probes for them. Longpole's own functions, by
/// which the cost of a hit is measured, need no counters.
fn without_counters(functions: &mut Vec<ProbeFunction>, limit: u32) -> Vec<u32> {
    let others = limit..calibrate::FIRST_NUMBER;
    functions.extract_if(.., |function| others.contains(&function.id)).map(|function| function.id).collect()
}

#[cfg(test)]
mod tests {
    use super::super::function_groups::tests::{binary, function};
    use super::*;

    #[test]
    fn a_function_number_beyond_the_counters_gets_no_probe() {
        let file = binary("a");
        let mut functions: Vec<ProbeFunction> = [6, 9, 7, 8].map(|id| function(id, &file)).into();
        functions.push(function(calibrate::FIRST_NUMBER, &file));
        assert_eq!(without_counters(&mut functions, 8), [9, 8]);
        let left: Vec<u32> = functions.iter().map(|function| function.id).collect();
        assert_eq!(left, [6, 7, calibrate::FIRST_NUMBER]);
    }
}
