//! Probes on the synchronization functions in the C libraries of processes.
//!
//! Each process has a few links for each file of its C library (`batched_attach`). Operations of one family are counted
//! together and lose their probes together: a recording with acquisitions and without releases would be false. Links need no
//! generations: a call is written when it returns, so a second hit of the same return finds it written already.

use std::{
    collections::{BTreeMap, BTreeSet},
    io,
    num::NonZeroU32,
    os::fd::BorrowedFd,
    sync::{Arc, atomic::Ordering},
};

use aya::{
    Ebpf,
    maps::{HashMap, MapData},
};
use engine::event::Note;
use probe_abi::{FunctionCounters, LibcProcess, LibcSite, MAX_LIBC_SITES, MAX_OWN_RANGES, SyncFamily};

use super::batched_attach;
use super::libc_files::{LibcFile, LibcProbes};
use super::libc_points::{kernel_device, off_note, points, sites_of};
use super::link_keeper::{HeldLink, LinkKeeper};
use super::link_process::Point;
use crate::probe::error::{ProbeError, ProbeErrorKind};
use crate::probe::kernel::{Shared, function_program};

/// Number of processes that can have probes on their C library at the same time.
pub(crate) const MOST_PROCESSES: usize = 256;
/// Number of counters of one process: one for each family, and spare ones.
pub(crate) const COUNTERS_PER_PROCESS: usize = 8;
/// Counters of all processes.
pub(crate) const COUNTERS: usize = MOST_PROCESSES * COUNTERS_PER_PROCESS;
const _: () = assert!(SyncFamily::ALL.len() <= COUNTERS_PER_PROCESS);
const _: () = assert!(COUNTERS <= u16::MAX as usize);

/// Name of the kernel program at these probes.
pub(crate) const PROGRAM: &str = "operation_probe";

/// All probes on C libraries.
pub(crate) struct LockProbes {
    shared: Arc<Shared>,
    /// Number of the first function counters that belong to C libraries.
    first_counters: u32,
    pub(super) watched: Vec<Watched>,
    /// For each file: number of its first site.
    sites: BTreeMap<u32, u16>,
    next_site: usize,
    slots: Vec<bool>,
    pub(super) keeper: Arc<LinkKeeper>,
    got: Vec<u32>,
    /// Processes about whose library nothing is decided yet, and the time since which their operations are missing.
    undecided: BTreeMap<u32, u64>,
    version: u64,
}

/// A process that has probes on its C library.
pub(crate) struct Watched {
    pub(super) pid: NonZeroU32,
    /// Time since which the process has probes, ns.
    pub(super) since_ns: u64,
    slot: usize,
    pub(super) files: Vec<(LibcFile, Vec<HeldLink>)>,
    /// Families that lost their probes, and the times at which they did.
    off: BTreeMap<SyncFamily, u64>,
}

/// The fact that a process runs another program than before.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Executed {
    /// Whether the leading thread of the process started the program.
    pub by_leader: bool,
    /// Time at which the program was started, ns.
    pub at_ns: u64,
}

impl LockProbes {
    pub(crate) fn new(shared: Arc<Shared>, keeper: Arc<LinkKeeper>, first_counters: u32) -> LockProbes {
        LockProbes {
            shared,
            first_counters,
            watched: Vec::new(),
            sites: BTreeMap::new(),
            next_site: 0,
            slots: vec![false; MOST_PROCESSES],
            keeper,
            got: Vec::new(),
            undecided: BTreeMap::new(),
            version: 0,
        }
    }

    /// Notes that a process's operations are missing from `since_ns` on, until [`LockProbes::add`] decides about its
    /// library.
    pub(crate) fn wait_for_trial(&mut self, pid: u32, since_ns: u64) {
        self.undecided.insert(pid, since_ns);
    }

    /// The undecided processes, each with the time since which its operations are missing.
    pub(crate) fn take_undecided(&mut self) -> BTreeMap<u32, u64> {
        std::mem::take(&mut self.undecided)
    }

    /// Attaches probes to a process's C library, unless it has them. Returns whether anything was attached. `executed`:
    /// the process runs another program than before. Probes are on files and also work for the new program, except
    /// after an exec by a thread that is not the leader: a link knows its process by the thread that led it when the
    /// link was made, and that thread is dead after such an exec.
    pub(crate) fn add(
        &mut self,
        ebpf: &mut Ebpf,
        probes: &LibcProbes,
        executed: Option<Executed>,
    ) -> Result<bool, ProbeError> {
        let pid = NonZeroU32::new(probes.pid).ok_or_else(|| {
            ProbeError::new(ProbeErrorKind::Target, "process 0 cannot be probed", "give the PID of a process")
        })?;
        // A new program starts with probes of all families. Families that lost theirs before the exec did so in the previous
        // program; later ones did so in this one, since an exec may be reported late.
        let blames_another = |executed: Executed| {
            !executed.by_leader
                || self.watched.iter().any(|watched| {
                    watched.pid == pid && watched.off.values().any(|&off_ns| off_ns < executed.at_ns)
                })
        };
        if executed.is_some_and(blames_another) {
            drop(self.silence(&|other| other == probes.pid));
        }
        if !probes.files.iter().any(|file| !file.is_loader && !file.functions.functions.is_empty()) {
            return Ok(false);
        }
        self.undecided.remove(&probes.pid);
        let is_unfit = |family: &SyncFamily| probes.unfit.iter().any(|(unfit, _)| unfit == family);
        if SyncFamily::ALL.iter().all(is_unfit) {
            return Ok(false);
        }
        self.write_process(ebpf, probes)?;
        let at = match self.watched.iter().position(|watched| watched.pid == pid) {
            Some(at) => at,
            None => {
                let slot = self.slots.iter().position(|taken| !taken).ok_or_else(|| {
                    ProbeError::new(
                        ProbeErrorKind::Failed,
                        format!(
                            "the locks of process {pid} are not recorded: {MOST_PROCESSES} processes have probes on their \
                             libc already"
                        ),
                        "record fewer processes at once",
                    )
                })?;
                if let Some(taken) = self.slots.get_mut(slot) {
                    *taken = true;
                }
                self.clear_counters(slot);
                let since_ns = crate::probe::now_ns();
                // This time prevents that an unfit family is mistaken for one that lost its probes in a previous
                // program.
                let off = probes.unfit.iter().map(|(family, _)| (*family, u64::MAX)).collect();
                self.watched.push(Watched { pid, since_ns, slot, files: Vec::new(), off });
                self.watched.len() - 1
            }
        };
        let mut is_new = false;
        for file in &probes.files {
            if self.watched[at].files.iter().any(|(known, _)| known.id == file.id) {
                continue;
            }
            let first = self.first_site(file)?;
            let links = {
                let watched = &self.watched[at];
                attach(ebpf, &self.keeper, watched, file, first)
            };
            match links {
                Ok(links) => {
                    self.watched[at].files.push((file.clone(), links));
                    is_new = true;
                }
                Err(error) => {
                    drop(self.silence(&|other| other == probes.pid));
                    return Err(error);
                }
            }
        }
        self.got.push(probes.pid);
        self.version = self.version.wrapping_add(1);
        Ok(is_new)
    }

    /// Writes the facts about a process that the kernel program needs.
    fn write_process(&mut self, ebpf: &mut Ebpf, probes: &LibcProbes) -> Result<(), ProbeError> {
        let mut process = LibcProcess::default();
        for (slot, &(from, to)) in process.own.iter_mut().zip(probes.own.iter().take(MAX_OWN_RANGES)) {
            *slot = [from, to];
        }
        if let Some((device, inode)) = probes.namespace {
            process.namespace_device = kernel_device(device);
            process.namespace_inode = inode;
        }
        const WORDS: usize = size_of::<LibcProcess>() / 8;
        let words: [u64; WORDS] = zerocopy::transmute!(process);
        let mut map = processes(ebpf)?;
        // Without ranges an existing entry is kept: the kernel program may have set the loader's range in it.
        if probes.own.is_empty() && map.get(&probes.pid, 0).is_ok() {
            return Ok(());
        }
        map.insert(&probes.pid, &words, 0)
            .map_err(|error| ProbeError::from_cause(format_args!("process {}", probes.pid), &error))
    }

    fn clear_counters(&self, slot: usize) {
        const WORDS: usize = size_of::<FunctionCounters>() / 8;
        let first = (self.first_counters as usize + slot * COUNTERS_PER_PROCESS) * WORDS;
        for word in first..first + COUNTERS_PER_PROCESS * WORDS {
            if let Some(word) = self.shared.functions.word(word) {
                word.store(0, Ordering::SeqCst);
            }
        }
    }

    /// Number of a file's first site. Writes the sites of a file that is new.
    fn first_site(&mut self, file: &LibcFile) -> Result<u16, ProbeError> {
        if let Some(&first) = self.sites.get(&file.id) {
            return Ok(first);
        }
        let first = self.next_site;
        let sites = sites_of(file);
        let end = first + sites.len();
        let (Ok(number), true) = (u16::try_from(first), end <= MAX_LIBC_SITES) else {
            return Err(ProbeError::new(
                ProbeErrorKind::Failed,
                "no room for the probes of another C library",
                "record fewer different containers at once",
            ));
        };
        const WORDS: usize = size_of::<LibcSite>() / 8;
        for (at, site) in (first..).zip(sites) {
            let words: [u64; WORDS] = zerocopy::transmute!(site);
            for (offset, word) in words.into_iter().enumerate() {
                if let Some(place) = self.shared.libc_sites.word(at * WORDS + offset) {
                    place.store(word, Ordering::SeqCst);
                }
            }
        }
        self.next_site = end;
        self.sites.insert(file.id, number);
        Ok(number)
    }

    /// Processes that have probes on their C library.
    pub(crate) fn processes(&self) -> impl Iterator<Item = u32> {
        self.watched.iter().map(|watched| watched.pid.get())
    }

    /// Families that have probes: number of the family's counters, process, family.
    pub(crate) fn families(&self) -> impl Iterator<Item = (u32, u32, SyncFamily)> {
        self.watched.iter().flat_map(|watched| {
            let on = SyncFamily::ALL.into_iter().filter(|family| !watched.off.contains_key(family));
            on.map(|family| {
                let number = watched.slot * COUNTERS_PER_PROCESS + family as usize;
                (self.first_counters + number as u32, watched.pid.get(), family)
            })
        })
    }

    /// Whether the counters with this number belong to a C library.
    pub(crate) fn is_counters(&self, number: u32) -> bool {
        number >= self.first_counters
    }

    /// Changes whenever [`LockProbes::families`] may have changed.
    pub(crate) fn version(&self) -> u64 {
        self.version
    }

    /// Permanently removes the probes of families for whose counters' number `hot` is true, and notes that their
    /// operations are missing from `time_ns` on. On an error the old probes stay.
    pub(crate) fn remove_probes(
        &mut self,
        ebpf: &mut Ebpf,
        time_ns: u64,
        hot: &dyn Fn(u32) -> bool,
        notes: &mut Vec<Note>,
    ) {
        let hot: Vec<(u32, SyncFamily)> = self
            .families()
            .filter(|(number, ..)| hot(*number))
            .map(|(_, pid, family)| (pid, family))
            .collect();
        if let Err(error) = self.take_off(ebpf, time_ns, &hot) {
            log::warn!("synchronization functions called too often keep their probes: {error}");
        }
        notes.extend(hot.into_iter().map(|(pid, family)| off_note(time_ns, pid, family, None)));
    }

    fn take_off(
        &mut self,
        ebpf: &mut Ebpf,
        time_ns: u64,
        hot: &[(u32, SyncFamily)],
    ) -> Result<(), ProbeError> {
        let mut result = Ok(());
        self.version = self.version.wrapping_add(1);
        let mut watched = std::mem::take(&mut self.watched);
        for one in &mut watched {
            let before = one.off.len();
            let own = hot.iter().filter(|(pid, _)| *pid == one.pid.get());
            one.off.extend(own.map(|(_, family)| (*family, time_ns)));
            if one.off.len() == before {
                continue;
            }
            for place in 0..one.files.len() {
                let file = one.files[place].0.clone();
                let first = self.sites.get(&file.id).copied().unwrap_or(0);
                match attach(ebpf, &self.keeper, one, &file, first) {
                    Ok(links) => one.files[place].1 = links,
                    Err(error) => result = Err(error),
                }
            }
        }
        self.watched = watched;
        result
    }

    /// Removes the processes for which `gone` is true, and returns them. Their probes exist until the returned values
    /// are dropped.
    pub(crate) fn silence(&mut self, gone: &dyn Fn(u32) -> bool) -> Vec<Watched> {
        let (silent, kept): (Vec<Watched>, _) =
            std::mem::take(&mut self.watched).into_iter().partition(|watched| gone(watched.pid.get()));
        self.watched = kept;
        self.version = self.version.wrapping_add(1);
        for watched in &silent {
            if let Some(taken) = self.slots.get_mut(watched.slot) {
                *taken = false;
            }
        }
        silent
    }

    /// Removes the probes of processes that have ended.
    pub(crate) fn reap_exited(&mut self, ebpf: &mut Ebpf) {
        let shared = self.shared.clone();
        let gone = |pid: u32| !shared.is_tracked(pid);
        if !self.processes().any(gone) {
            return;
        }
        let old = self.silence(&gone);
        if let Ok(mut map) = processes(ebpf) {
            for watched in &old {
                let _ = map.remove(&watched.pid.get());
            }
        }
    }

    /// Removes the probes of families that the kernel program has cut off; returns their counters' numbers.
    pub(crate) fn remove_hot(&mut self, ebpf: &mut Ebpf, notes: &mut Vec<Note>) -> BTreeSet<u32> {
        let shared = self.shared.clone();
        let cut = |number: u32| shared.function(number).map_or(0, |counters| counters.cut_ns);
        let hot: BTreeMap<u32, u64> = self
            .families()
            .map(|(number, ..)| (number, cut(number)))
            .filter(|(_, cut_ns)| *cut_ns != 0)
            .collect();
        for (number, cut_ns) in &hot {
            self.remove_probes(ebpf, *cut_ns, &|other| other == *number, notes);
        }
        hot.into_keys().collect()
    }

    /// Returns the processes that got probes on their C library, and empties the list.
    pub(crate) fn take_probed(&mut self) -> Vec<u32> {
        std::mem::take(&mut self.got)
    }
}

type Processes<'a> = HashMap<&'a mut MapData, u32, [u64; size_of::<LibcProcess>() / 8]>;

fn processes(ebpf: &mut Ebpf) -> Result<Processes<'_>, ProbeError> {
    let map = ebpf.map_mut("LIBC_PROCESSES").ok_or_else(|| {
        ProbeError::new(
            ProbeErrorKind::Failed,
            "the kernel programs have no map LIBC_PROCESSES",
            "the object file and this binary are of different versions: build both with ./x build",
        )
    })?;
    HashMap::try_from(map).map_err(|error| ProbeError::from_cause("map LIBC_PROCESSES", &error))
}

/// Attaches all probes for one file in one process. If the kernel refuses an instruction, probes are attached one
/// family at a time.
fn attach(
    ebpf: &mut Ebpf,
    keeper: &Arc<LinkKeeper>,
    watched: &Watched,
    file: &LibcFile,
    first_site: u16,
) -> Result<Vec<HeldLink>, ProbeError> {
    const ENOTSUPP: i32 = 524;
    let program = function_program(ebpf, PROGRAM)?;
    let on: Vec<SyncFamily> =
        SyncFamily::ALL.into_iter().filter(|family| !watched.off.contains_key(family)).collect();
    let vouched = || {
        let points = points(watched.slot, file, first_site, &on, true);
        file.file.vouch(points.iter().map(|(offset, _)| *offset)).map_err(|why| {
            ProbeError::new(
                ProbeErrorKind::Failed,
                why,
                "record the program again when no process writes to its file",
            )
        })
    };
    vouched()?;
    let mut links = Vec::new();
    match attach_families(keeper, program, watched, file, first_site, &on, true) {
        Ok(all) => links.extend(all),
        Err(error) if matches!(error.raw_os_error(), Some(ENOTSUPP | libc::EINVAL | libc::EOPNOTSUPP)) => {
            for (number, family) in on.iter().enumerate() {
                match attach_families(keeper, program, watched, file, first_site, &[*family], number == 0) {
                    Ok(all) => links.extend(all),
                    Err(error) => {
                        log::warn!("{} of {} cannot be probed: {error}", family.name(), file.name);
                    }
                }
            }
        }
        Err(error) => return Err(ProbeError::of_probe(&file.name, watched.pid, &error)),
    }
    // If the file was written to in the meantime, breakpoints may be in changed code.
    vouched()?;
    Ok(links)
}

fn attach_families(
    keeper: &Arc<LinkKeeper>,
    program: BorrowedFd<'_>,
    watched: &Watched,
    file: &LibcFile,
    first_site: u16,
    families: &[SyncFamily],
    with_start: bool,
) -> io::Result<Vec<HeldLink>> {
    let mut points = points(watched.slot, file, first_site, families, with_start);
    // Returns come first: if the beginning of a call is recorded, so is its end.
    points.reverse();
    let mut links = Vec::new();
    for few in batched_attach::in_small_groups(&points, |_| 1) {
        let points = few.iter().map(|(offset, cookie)| Point {
            offset: *offset,
            cookie: cookie.to_bits(),
            semaphore: 0,
        });
        links.push(keeper.attach(program, file.file.file(), watched.pid, points)?);
        batched_attach::pause();
    }
    Ok(links)
}
