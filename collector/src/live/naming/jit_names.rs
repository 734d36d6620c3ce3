//! Names of code that processes make while they run: asked for by address, found in what the processes write about it.

use capture::jit::{JitFiles, JitStamp, is_dump};
use capture::target::{Process, mapped};
use engine::event::{CodeFact, MappingFact, is_jit_code, jit_code};
use std::collections::{BTreeMap, BTreeSet};

/// Most processes whose files are held.
const MOST_PROCESSES: usize = 256;
/// Most addresses of one process that wait for a name: a runtime may publish its code when it ends, or never.
const MOST_WAITING: usize = 1 << 17;

/// The processes that make code.
#[derive(Default)]
pub(super) struct JitNames {
    processes: BTreeMap<u32, Maker>,
}

struct Maker {
    files: JitFiles,
    waiting: BTreeSet<u64>,
    /// The files when they were last read, with nothing new wanted since.
    read: Option<JitStamp>,
    refused: bool,
}

impl JitNames {
    /// Holds the files of processes that make code.
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
            // One that is gone has left nothing by which to find its root.
            let Ok(process) = Process::open(mapping.pid) else { continue };
            if !known && let Some(files) = JitFiles::of(&process) {
                let maker = Maker { files, waiting: BTreeSet::new(), read: None, refused: false };
                self.processes.insert(mapping.pid, maker);
            }
            if let (true, Some(maker)) = (has_dump, self.processes.get_mut(&mapping.pid)) {
                maker.files.hold_dump(&mapped(&process).unwrap_or_default());
            }
        }
    }

    /// A name is wanted for what a process has made at this address.
    pub fn want(&mut self, pid: u32, address: u64) {
        if let Some(maker) = self.processes.get_mut(&pid)
            && maker.waiting.len() < MOST_WAITING
            && maker.waiting.insert(address)
        {
            maker.read = None;
        }
    }

    /// Nothing that waits is wanted any more.
    pub fn forget_wanted(&mut self) {
        for maker in self.processes.values_mut() {
            maker.waiting.clear();
        }
    }

    /// The names that there are by now. The others wait on.
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
        let Maker { files, waiting, read, refused } = self;
        if waiting.is_empty() {
            return Vec::new();
        }
        let now = files.stamp();
        if *read == Some(now) {
            return Vec::new();
        }
        *read = Some(now);
        let is_wanted = |start, end| start < end && waiting.range(start..end).next().is_some();
        let code = match files.read(&is_wanted) {
            Ok(code) => code,
            Err(why) => {
                if !std::mem::replace(refused, true) {
                    log::warn!("{why}");
                }
                return Vec::new();
            }
        };
        let mut facts = Vec::new();
        waiting.retain(|&address| {
            let Some(code) = code.at(address) else { return true };
            let line = code.frame(address).and_then(|frame| Some(format!("{}:{}", frame.file?, frame.line?)));
            facts.push(CodeFact {
                path: jit_code(pid),
                offset: address,
                function: Some(code.name.clone()),
                line,
                ..CodeFact::default()
            });
            false
        });
        facts
    }
}
