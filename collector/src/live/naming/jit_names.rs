//! Names code that processes generate at run time, by address, from the files that the processes write about it.

use capture::jit::{JitFiles, JitStamp, is_dump};
use capture::probe::now_ns;
use capture::target::{Process, mapped};
use engine::event::{CodeFact, MappingFact, is_jit_code, jit_code};
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

/// Largest number of processes whose files are kept open.
const MOST_PROCESSES: usize = 256;
/// Largest number of addresses of one process that wait for names: a runtime may publish its code only at its end, or
/// never.
const MOST_WANTED: usize = 1 << 17;
/// Time between two checks of the maps' sizes, with few maps.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// Each further group of this number of maps makes the pause longer by the same time.
const FEW: u32 = 16;

/// The processes that make code at run time.
#[derive(Default)]
pub(super) struct JitNames {
    processes: BTreeMap<u32, Maker>,
    looked: Option<Instant>,
}

struct Maker {
    files: JitFiles,
    /// Addresses that need names. They stay, because other code may be there later.
    wanted: BTreeSet<u64>,
    /// For each address: how many of its names were passed on. An address may get several names, one after another.
    told: BTreeMap<u64, usize>,
    /// State of the files when they were last read; `None` if an address was added since.
    read: Option<JitStamp>,
    refused: bool,
}

impl JitNames {
    /// Keeps the files of processes that make code open.
    pub fn hold(&mut self, mappings: &[MappingFact]) {
        for mapping in mappings {
            let has_dump = mapping.path.rsplit('/').next().is_some_and(is_dump);
            if !is_jit_code(&mapping.path) && !has_dump {
                continue;
            }
            if !self.processes.contains_key(&mapping.pid) && self.processes.len() >= MOST_PROCESSES {
                continue;
            }
            let known = self.processes.contains_key(&mapping.pid);
            if known && !has_dump {
                continue;
            }
            // After a process has ended, its root directory can no longer be found.
            let Ok(process) = Process::open(mapping.pid) else { continue };
            if !known && let Some(files) = JitFiles::of(&process) {
                let (wanted, told) = (BTreeSet::new(), BTreeMap::new());
                let mut maker = Maker { files, wanted, told, read: None, refused: false };
                maker.files.see_growth(now_ns());
                self.looked.get_or_insert_with(Instant::now);
                self.processes.insert(mapping.pid, maker);
            }
            if let (true, Some(maker)) = (has_dump, self.processes.get_mut(&mapping.pid)) {
                maker.files.hold_dump(&mapped(&process).unwrap_or_default());
            }
        }
    }

    /// Asks for the name of the code that a process has made at this address.
    pub fn want(&mut self, pid: u32, address: u64) {
        if let Some(maker) = self.processes.get_mut(&pid)
            && maker.wanted.len() < MOST_WANTED
            && maker.wanted.insert(address)
        {
            maker.read = None;
        }
    }

    /// Forgets all addresses.
    pub fn forget_wanted(&mut self) {
        for maker in self.processes.values_mut() {
            maker.wanted.clear();
            maker.told.clear();
        }
    }

    /// Time of the next check of the maps' sizes ([`JitNames::see_growth`]); `None`: there are no maps.
    pub fn next_look(&self) -> Option<Instant> {
        let count = u32::try_from(self.processes.len()).unwrap_or(u32::MAX);
        let every = LOOK_EVERY.saturating_mul(1 + count / FEW);
        self.looked.map(|looked| looked + every)
    }

    /// Notes how large maps are, if that is due: their lines have no times of their own.
    pub fn see_growth(&mut self) {
        let now = Instant::now();
        if self.next_look().is_some_and(|at| at <= now) {
            self.looked = Some(now);
            self.processes.values_mut().for_each(|maker| maker.files.see_growth(now_ns()));
        }
    }

    /// Names found since the last call.
    pub fn name(&mut self) -> Vec<CodeFact> {
        let mut facts = Vec::new();
        for (pid, maker) in &mut self.processes {
            facts.extend(maker.name(*pid));
        }
        facts
    }
}

impl Maker {
    fn name(&mut self, pid: u32) -> Vec<CodeFact> {
        let Maker { files, wanted, told, read, refused } = self;
        if wanted.is_empty() {
            return Vec::new();
        }
        let now = files.stamp();
        if *read == Some(now) {
            return Vec::new();
        }
        *read = Some(now);
        let history = match files.read(wanted) {
            Ok(history) => history,
            Err(why) => {
                if !std::mem::replace(refused, true) {
                    log::warn!("{why}");
                }
                return Vec::new();
            }
        };
        let mut facts = Vec::new();
        for &address in wanted.iter() {
            let versions = history.at(address);
            let told = told.entry(address).or_default();
            for (number, (since_ns, code)) in versions.iter().enumerate().skip(*told) {
                let line =
                    code.frame(address).and_then(|frame| Some(format!("{}:{}", frame.file?, frame.line?)));
                facts.push(CodeFact {
                    path: jit_code(pid),
                    offset: address,
                    // A runtime may write an entry after the code has run.
                    since_ns: if number == 0 { 0 } else { *since_ns },
                    function: Some(code.name.clone()),
                    line,
                    ..CodeFact::default()
                });
            }
            *told = versions.len();
        }
        facts
    }
}
