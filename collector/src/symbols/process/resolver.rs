//! Address → function, line and inline chain, for any address of any process: its program and libraries, code that it made
//! while it runs, the vDSO, the kernel.

use super::code_map::CodeMap;
use super::kernel::{KernelSymbols, is_kernel};
use super::made_code::MadeCode;
use crate::file_key::FileKey;
use crate::symbols::located::Located;
use crate::symbols::{Location, Parser, Parsers, Place, Reason, Summary, SymbolError, SymbolHit};
use crate::target::{Module, Process, mapped, vdso};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Most processes remembered.
const MOST_PROCESSES: usize = 1024;
/// Most binaries kept open.
const MOST_BINARIES: usize = 128;
/// A process's mappings and its own map of code are read again at most this often.
const READ_AGAIN: Duration = Duration::from_millis(200);

/// What lies at an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resolved {
    /// The binary it lies in, `[vdso]`, `vmlinux` or a kernel module, `[jit]` for code that the process made; empty if nothing
    /// is known to lie there.
    pub module: String,
    /// Its names. `name` is `module+0xoffset`, or the address, where there is none.
    pub location: Location,
}

/// See the module.
pub struct Resolver {
    parsers: Parsers,
    processes: HashMap<u32, Space>,
    binaries: HashMap<FileKey, Binary>,
    vdso: Option<Result<Parser, String>>,
    kernel: Option<KernelSymbols>,
}

struct Binary {
    parser: Result<Parser, String>,
}

/// What one process has mapped.
struct Space {
    start_ticks: Option<u64>,
    modules: Arc<[Module]>,
    vdso: Option<(u64, u64)>,
    made: CodeMap,
    /// Why its own map of code is not believed.
    made_refused: Option<String>,
    read: Instant,
}

impl Resolver {
    /// Reads binaries as `parsers` do.
    pub fn new(parsers: Parsers) -> Resolver {
        Resolver { parsers, processes: HashMap::new(), binaries: HashMap::new(), vdso: None, kernel: None }
    }

    /// Forgets a process: it has ended, or runs another program.
    pub fn forget(&mut self, pid: u32) {
        self.processes.remove(&pid);
    }

    /// What lies at each of these addresses of a process, in the same order. An address is taken as it is: whoever asks for
    /// the place of a call by its return address subtracts one before.
    pub fn resolve(&mut self, pid: u32, addresses: &[u64]) -> Vec<Resolved> {
        let mut found: Vec<Option<Resolved>> = vec![None; addresses.len()];
        let user = addresses.iter().any(|&address| !is_kernel(address));
        if user {
            self.look_at(pid, addresses);
        }
        let mut groups: HashMap<Where, Vec<usize>> = HashMap::new();
        for (index, &address) in addresses.iter().enumerate() {
            if is_kernel(address) {
                found[index] = Some(self.in_kernel(address));
            } else if let Some(place) = self.processes.get(&pid).and_then(|space| space.place(address)) {
                groups.entry(place).or_default().push(index);
            }
        }
        for (place, indices) in groups {
            let addresses: Vec<u64> = indices.iter().map(|&index| addresses[index]).collect();
            for (index, resolved) in indices.iter().zip(self.in_place(pid, place, &addresses)) {
                found[*index] = Some(resolved);
            }
        }
        found
            .into_iter()
            .zip(addresses)
            .map(|(found, &address)| found.unwrap_or_else(|| nowhere(address)))
            .collect()
    }

    /// What each binary looked into so far is known by: for what is said about missing debug information.
    pub fn summaries(&mut self) -> Vec<Result<Summary, String>> {
        let parsers = self.binaries.values_mut();
        parsers
            .map(|binary| match &mut binary.parser {
                Ok(parser) => parser.summary().map_err(|error| error.to_string()),
                Err(why) => Err(why.clone()),
            })
            .collect()
    }

    /// Why a process's own map of code is not used, if there is one that is refused.
    pub fn map_refused(&self, pid: u32) -> Option<&str> {
        self.processes.get(&pid)?.made_refused.as_deref()
    }

    /// Reads a process's mappings, anew if an address lies nowhere and some time has passed.
    fn look_at(&mut self, pid: u32, addresses: &[u64]) {
        if let Some(space) = self.processes.get(&pid) {
            let known = |&address: &u64| is_kernel(address) || space.place(address).is_some();
            if addresses.iter().all(known) || space.read.elapsed() < READ_AGAIN {
                return;
            }
        }
        let Ok(process) = Process::open(pid) else { return };
        let start_ticks = process.start_ticks();
        let old = self.processes.get(&pid);
        // One that is ending has nothing mapped any more: what was known stays.
        let Ok(modules) = mapped(&process) else { return };
        if modules.is_empty() && old.is_some_and(|old| old.start_ticks == start_ticks) {
            return;
        }
        let files = MadeCode::of(&process).map(|mut files| {
            files.hold_dump(&modules);
            files.read(&|_, _| true)
        });
        let (made, made_refused) = match files {
            Some(Ok(map)) => (map, None),
            Some(Err(why)) => (CodeMap::default(), Some(why)),
            None => (CodeMap::default(), None),
        };
        if self.processes.len() >= MOST_PROCESSES {
            self.processes.clear();
        }
        let vdso = vdso(&process);
        let read = Instant::now();
        let space = Space { start_ticks, modules: modules.into(), vdso, made, made_refused, read };
        self.processes.insert(pid, space);
    }

    fn in_place(&mut self, pid: u32, place: Where, addresses: &[u64]) -> Vec<Resolved> {
        let Some(space) = self.processes.get(&pid) else {
            return addresses.iter().map(|&address| nowhere(address)).collect();
        };
        match place {
            Where::Made => addresses.iter().map(|&address| made(&space.made, address)).collect(),
            Where::Vdso => {
                let start = space.vdso.map_or(0, |(start, _)| start);
                let places: Vec<Place> = addresses
                    .iter()
                    .map(|address| Place::FileOffset(address.saturating_sub(start)))
                    .collect();
                let vdso = self.vdso.get_or_insert_with(|| super::vdso::open(&self.parsers));
                located(vdso, "[vdso]", &places)
            }
            Where::Module(index) => {
                let modules = Arc::clone(&space.modules);
                let Some(module) = modules.get(index) else { return Vec::new() };
                let places: Vec<Place> = addresses
                    .iter()
                    .map(|&address| Place::FileOffset(module.file_offset(address).unwrap_or(u64::MAX)))
                    .collect();
                let binary = self.binary(module);
                located(&mut binary.parser, module.name(), &places)
            }
        }
    }

    fn binary(&mut self, module: &Module) -> &mut Binary {
        let key = match std::fs::metadata(&module.open_path) {
            Ok(found) => FileKey::of(&found),
            // Gone with its process: known only if it was opened before.
            Err(_) => FileKey::gone(module.inode),
        };
        if self.binaries.len() >= MOST_BINARIES && !self.binaries.contains_key(&key) {
            self.binaries.clear();
        }
        let parsers = &self.parsers;
        self.binaries.entry(key).or_insert_with(|| {
            let parser = parsers.open(&module.open_path, module.name());
            Binary { parser: parser.map_err(|error: SymbolError| error.to_string()) }
        })
    }

    fn in_kernel(&mut self, address: u64) -> Resolved {
        let kernel = self.kernel.get_or_insert_with(KernelSymbols::running);
        let Some((name, distance, module)) = kernel.at(address) else {
            let reason = if kernel.is_empty() { Reason::KernelHidden } else { Reason::NoSymbolForAddress };
            let location = Location {
                name: format!("{address:#x}"),
                symbol: Err(reason),
                frames: Err(Reason::NoDebugInformation),
                waits: false,
                tries: false,
            };
            return Resolved { module: "vmlinux".to_owned(), location };
        };
        let symbol = Ok(SymbolHit { name: name.clone(), distance });
        Resolved {
            module,
            location: Location {
                name,
                symbol,
                frames: Err(Reason::NoDebugInformation),
                waits: false,
                tries: false,
            },
        }
    }
}

/// Where in a process an address lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Where {
    Module(usize),
    Made,
    Vdso,
}

impl Space {
    /// Files first: a process's own map of code cannot give its libraries other names.
    fn place(&self, address: u64) -> Option<Where> {
        if let Some(index) = self.modules.iter().position(|module| module.file_offset(address).is_some()) {
            return Some(Where::Module(index));
        }
        if self.vdso.is_some_and(|(start, end)| (start..end).contains(&address)) {
            return Some(Where::Vdso);
        }
        self.made.at(address).map(|_| Where::Made)
    }
}

fn made(map: &CodeMap, address: u64) -> Resolved {
    let Some(code) = map.at(address) else { return nowhere(address) };
    let symbol = Ok(SymbolHit { name: code.name.clone(), distance: address.saturating_sub(code.start) });
    let frames = code.frame(address).map(|frame| vec![frame]).ok_or(Reason::NoDebugInformation);
    Resolved {
        module: "[jit]".to_owned(),
        location: Location { name: code.name.clone(), symbol, frames, waits: false, tries: false },
    }
}

fn nowhere(address: u64) -> Resolved {
    let location = Location {
        name: format!("{address:#x}"),
        symbol: Err(Reason::NotMapped),
        frames: Err(Reason::NotMapped),
        waits: false,
        tries: false,
    };
    Resolved { module: String::new(), location }
}

fn located(parser: &mut Result<Parser, String>, module: &str, places: &[Place]) -> Vec<Resolved> {
    let answer = match parser {
        Ok(parser) => parser.locate(places).map_err(|error| error.to_string()),
        Err(why) => Err(why.clone()),
    };
    let locations = match answer {
        Ok(located) => Located::locations(&located),
        Err(why) => places.iter().map(|&place| unreadable(module, place, &why)).collect(),
    };
    locations.into_iter().map(|location| Resolved { module: module.to_owned(), location }).collect()
}

fn unreadable(module: &str, place: Place, why: &str) -> Location {
    let (Place::FileOffset(at) | Place::Address(at)) = place;
    let reason = Reason::Unreadable(why.to_owned());
    Location {
        name: crate::symbols::unnamed(module, at),
        symbol: Err(reason.clone()),
        frames: Err(reason),
        waits: false,
        tries: false,
    }
}
