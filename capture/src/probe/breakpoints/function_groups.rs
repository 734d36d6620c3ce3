//! Divides the functions of a process into groups. Each group has a slot for its valid generation.

use std::{num::NonZeroU32, sync::Arc};

use probe_abi::MAX_GROUPS;
use symbols::binary::Binary;

use super::function_links::SmallLink;
use crate::probe::error::{ProbeError, ProbeErrorKind};
use crate::probe::options::ProbeFunction;

/// Largest number of groups into which the functions of one process are divided.
const LINKS_PER_PROCESS: usize = 8;
/// Number of functions per group from which on one more group is worthwhile: smaller groups are replaced faster.
const FUNCTIONS_PER_LINK: usize = 64;

/// The slot of a group.
#[derive(Clone, Copy, Default)]
pub(super) struct Slot {
    pub(super) taken: bool,
    /// The last generation that was valid here: links of an earlier group may still exist.
    pub(super) generation: u16,
}

/// Functions of one file in one process whose breakpoints share links.
pub(crate) struct Group {
    pub(super) pid: NonZeroU32,
    /// Time at which the process's program was examined, ns.
    pub(super) chosen_ns: u64,
    pub(super) binary: Arc<Binary>,
    pub(super) slot: u8,
    pub(super) generation: u16,
    pub(super) functions: Vec<ProbeFunction>,
    /// Functions that have no probes for now.
    pub(super) disabled: Vec<ProbeFunction>,
    pub(super) links: Vec<SmallLink>,
}

impl Group {
    /// Checks that the group's file is still the one that was read; otherwise fails.
    pub(super) fn vouch(&self) -> Result<(), ProbeError> {
        let places = self.functions.iter().flat_map(ProbeFunction::places);
        self.binary.vouch(places.map(|(place, _)| place)).map_err(|why| {
            ProbeError::new(
                ProbeErrorKind::Failed,
                why,
                "record the program again when no process writes to its file",
            )
        })
    }
}

/// Largest number of groups for one more process. It is one if few slots are free, since recording many processes
/// matters more than replacing links quickly.
pub(super) fn links_for_one(free: usize) -> usize {
    if free > MAX_GROUPS / 4 * 3 { LINKS_PER_PROCESS } else { 1 }
}

/// Sorts functions by file and divides those of each file into as many groups as are worthwhile: at most `links` in
/// total, but at least one for each file.
pub(super) fn split(
    mut functions: Vec<ProbeFunction>,
    links: usize,
) -> Vec<(Arc<Binary>, Vec<ProbeFunction>)> {
    functions.sort_by_key(|function| (Arc::as_ptr(&function.binary), function.entry_offset));
    let same_file = |a: &ProbeFunction, b: &ProbeFunction| Arc::ptr_eq(&a.binary, &b.binary);
    let files = functions.chunk_by(same_file).count().max(1);
    let most = (links / files).max(1);
    let mut groups = Vec::new();
    for file in functions.chunk_by(same_file) {
        let count = file.len().div_ceil(FUNCTIONS_PER_LINK).clamp(1, most);
        for chunk in file.chunks(file.len().div_ceil(count).max(1)) {
            let binary = chunk.first().map(|function| Arc::clone(&function.binary));
            groups.extend(binary.map(|binary| (binary, chunk.to_vec())));
        }
    }
    groups
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(crate) fn binary(name: &str) -> Arc<Binary> {
        Arc::new(Binary::open(std::path::Path::new("/proc/self/exe"), name).expect("own program"))
    }

    pub(crate) fn function(id: u32, binary: &Arc<Binary>) -> ProbeFunction {
        ProbeFunction {
            id,
            pid: None,
            binary: Arc::clone(binary),
            entry_offset: u64::from(id) * 16,
            exit_offsets: Vec::new(),
            entry_stepped: false,
            exits_stepped: false,
            pair: None,
        }
    }

    #[test]
    fn a_process_s_functions_share_a_few_links() {
        let (a, b) = (binary("a"), binary("b"));
        for (count, links) in [(0, 0), (1, 1), (64, 1), (65, 2), (512, 8), (5_000, 8)] {
            let groups = split((0..count).map(|id| function(id, &a)).collect(), LINKS_PER_PROCESS);
            assert_eq!(groups.len(), links, "{count} functions");
            assert_eq!(groups.iter().map(|(_, functions)| functions.len()).sum::<usize>(), count as usize);
        }
        let mut two = (0..600).map(|id| function(id, &a)).collect::<Vec<_>>();
        two.extend((600..603).map(|id| function(id, &b)));
        let groups = split(two.clone(), LINKS_PER_PROCESS);
        assert_eq!(groups.len(), 5);
        assert_eq!(groups.iter().filter(|(binary, _)| binary.name() == "b").count(), 1);
        assert_eq!(split(two, 1).len(), 2);
    }

    /// Processes with many functions must leave slots for further processes.
    #[test]
    fn links_leave_room_for_190_processes_with_thousands_of_functions() {
        let a = binary("a");
        let (mut free, mut processes) = (MAX_GROUPS, 0);
        loop {
            let groups = split((0..4_096).map(|id| function(id, &a)).collect(), links_for_one(free));
            if groups.len() > free {
                break;
            }
            free -= groups.len();
            processes += 1;
        }
        assert!(processes >= 190, "{processes}");
    }
}
