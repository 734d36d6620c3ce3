//! The mappings of each process, and which place in which binary an address is.

use capture::target::{Module, Process, mapped};
use std::cell::RefCell;
use std::collections::HashMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::{Duration, Instant};
use symbols::FileKey;
use symbols::{MappedBinary, Parsers, safe, safe_path};

/// Largest number of processes that are remembered.
const MOST_PROCESSES: usize = 4096;
/// Largest number of binaries that are kept open.
const MOST_BINARIES: usize = 256;

/// A binary with its symbols, shared by all processes that run it.
pub type Binary = Rc<RefCell<MappedBinary>>;

/// The place of an address in its binary.
#[derive(Clone)]
pub struct Spot {
    /// The binary.
    pub binary: Binary,
    /// The binary's name, for people.
    pub module: String,
    /// The path of the binary, as the process sees it.
    pub path: String,
    /// The address in the binary, as linked.
    pub linked: u64,
}

/// See the module.
pub struct Spaces {
    parsers: Parsers,
    binaries: HashMap<FileKey, Option<Binary>>,
    processes: HashMap<u32, Space>,
    /// The process at the gate (held before its program starts), and the program that it will run.
    expected: Option<(u32, Binary, String)>,
}

/// The mappings of one process.
#[derive(Clone, Default)]
struct Space {
    /// Time at which the process began to run its program, ns.
    since_ns: u64,
    modules: Rc<[Module]>,
    /// Binaries that were opened, by index in `modules`.
    opened: HashMap<usize, Option<Binary>>,
    read: Option<Instant>,
    /// Whether the process has a new program or mapping since its mappings were read.
    stale: bool,
    /// The main binary with its name and the page where its instructions begin, if it was known before it ran.
    expected: Option<(Binary, String, u32)>,
}

impl Spaces {
    /// No processes yet; `parsers` read the binaries.
    pub fn new(parsers: Parsers) -> Spaces {
        Spaces { parsers, binaries: HashMap::new(), processes: HashMap::new(), expected: None }
    }

    /// Like [`Spaces::new`], with the program that a launched process will run.
    pub fn expecting(launched: Option<(u32, PathBuf)>, parsers: Parsers) -> Spaces {
        let mut spaces = Spaces::new(parsers);
        spaces.expected = launched.and_then(|(pid, path)| {
            let binary = open(&spaces.parsers, &mut spaces.binaries, &path)?;
            let name = path.file_name().map(|name| safe(&name.to_string_lossy())).unwrap_or_default();
            Some((pid, binary, name))
        });
        spaces
    }

    /// A process runs a program from now on; a forked process has that of `like`. `first_page` is where its instructions
    /// begin, if the kernel's record has it. Its mappings are read when an address is asked for or the process has
    /// [settled](Spaces::settle): most programs that others start end before.
    pub fn begin(&mut self, pid: u32, since_ns: u64, like: Option<u32>, first_page: u32) {
        if self.processes.len() >= MOST_PROCESSES {
            self.processes.clear();
        }
        let space = match like.and_then(|parent| self.processes.get(&parent)) {
            Some(parent) => Space { since_ns, ..parent.clone() },
            None => {
                // Only the first program of the process was known in advance.
                let expected = self.expected.take_if(|(expected, ..)| *expected == pid && first_page != 0);
                let is_first = expected.is_some();
                Space {
                    since_ns,
                    modules: if is_first { modules(pid) } else { Rc::default() },
                    opened: HashMap::new(),
                    read: is_first.then(Instant::now),
                    stale: !is_first,
                    expected: expected.map(|(_, binary, name)| (binary, name, first_page)),
                }
            }
        };
        self.processes.insert(pid, space);
    }

    /// Notes that a process has mapped a file.
    pub fn mapped(&mut self, pid: u32) {
        match self.processes.get_mut(&pid) {
            Some(space) => space.stale = true,
            // Processes that started during the recording are known, so this one ran before it.
            None => self.begin(pid, 0, None, 0),
        }
    }

    /// Reads the mappings of a process that has run for a while: when one of its addresses is asked for, it may have ended.
    pub fn settle(&mut self, pid: u32) {
        if self.processes.get(&pid).is_some_and(|space| space.stale) {
            self.again(pid);
        }
    }

    /// The binary and place of an address. If no known mapping has it, the process's mappings are read again, since it may
    /// have loaded a library, but only if the last reading is at least `again_after` ago.
    pub fn find(&mut self, pid: u32, since_ns: u64, address: u64, again_after: Duration) -> Option<Spot> {
        if self.processes.get(&pid).is_none_or(|space| space.since_ns != since_ns) {
            self.begin(pid, since_ns, None, 0);
        }
        self.settle(pid);
        if let Some(spot) = self.look(pid, address) {
            return Some(spot);
        }
        let space = self.processes.get_mut(&pid)?;
        if space.read.is_some_and(|read| read.elapsed() < again_after) {
            return None;
        }
        self.again(pid)?;
        self.look(pid, address)
    }

    /// Reads a process's mappings again. `None`: nothing new is known.
    fn again(&mut self, pid: u32) -> Option<()> {
        let space = self.processes.get_mut(&pid)?;
        let now = modules(pid);
        (space.read, space.stale) = (Some(Instant::now()), false);
        // An ended process has no mappings: the known ones stay. The same program still has its main binary.
        let main = |modules: &[Module]| {
            modules.iter().find(|module| module.is_main).map(|main| (main.device, main.inode))
        };
        if now.is_empty() || (!space.modules.is_empty() && main(&now) != main(&space.modules)) {
            return None;
        }
        space.modules = now;
        space.opened.clear();
        Some(())
    }

    fn look(&mut self, pid: u32, address: u64) -> Option<Spot> {
        let Spaces { parsers, binaries, processes, .. } = self;
        let space = processes.get_mut(&pid)?;
        if let Some((binary, name, first_page)) = &space.expected
            && let Some(linked) = binary.borrow().linked_at(*first_page, address)
        {
            return Some(Spot {
                binary: Rc::clone(binary),
                module: name.clone(),
                path: safe_path(binary.borrow().path()),
                linked,
            });
        }
        let modules = Rc::clone(&space.modules);
        // Data follows the code of its binary, so the nearest module below the address comes first.
        let mut near: Vec<usize> = (0..modules.len()).collect();
        near.retain(|&index| {
            modules[index].ranges.first().is_some_and(|range| range.start <= address.saturating_add(1 << 32))
        });
        near.sort_by_key(|&index| {
            let start = modules[index].ranges.first().map_or(0, |range| range.start);
            (start > address, address.abs_diff(start))
        });
        near.into_iter().take(8).find_map(|index| {
            let module = modules.get(index)?;
            let opened = space.opened.entry(index).or_insert_with(|| open_module(parsers, binaries, module));
            let binary = opened.as_ref()?;
            let range = module.ranges.first()?;
            let placed = binary.borrow();
            let linked = address.wrapping_sub(placed.bias(range.start, range.file_offset)?);
            placed.holds(linked).then(|| Spot {
                binary: Rc::clone(binary),
                module: module.name().to_owned(),
                path: module.path.clone(),
                linked,
            })
        })
    }
}

fn modules(pid: u32) -> Rc<[Module]> {
    Process::open(pid).and_then(|process| mapped(&process)).unwrap_or_default().into()
}

/// Opens a binary by the process's own path while the process lives, later by the file's path, if the same file is
/// still there.
fn open_module(
    parsers: &Parsers,
    binaries: &mut HashMap<FileKey, Option<Binary>>,
    module: &Module,
) -> Option<Binary> {
    open(parsers, binaries, &module.open_path).or_else(|| {
        let path = Path::new(&module.path);
        let found = std::fs::symlink_metadata(path).ok()?;
        let device = (libc::major(found.dev()), libc::minor(found.dev()));
        let is_same = found.is_file() && (device, found.ino()) == (module.device, module.inode);
        is_same.then(|| open(parsers, binaries, path)).flatten()
    })
}

fn open(parsers: &Parsers, binaries: &mut HashMap<FileKey, Option<Binary>>, path: &Path) -> Option<Binary> {
    let found = std::fs::metadata(path).ok()?;
    let key = FileKey::of(&found);
    if let Some(binary) = binaries.get(&key) {
        return binary.clone();
    }
    if binaries.len() >= MOST_BINARIES {
        return None;
    }
    let binary = MappedBinary::open(path, parsers).ok().map(|placed| Rc::new(RefCell::new(placed)));
    binaries.insert(key, binary.clone());
    binary
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The test uses a child, since longpole cannot record itself.
    #[test]
    fn addresses_in_a_child_are_found_in_its_program_and_its_libraries() {
        let sleep = ["/bin/sleep", "/usr/bin/sleep"].iter().find(|path| std::path::Path::new(path).exists());
        let Some(sleep) = sleep else {
            println!("SKIP addresses_in_a_child_are_found_in_its_program_and_its_libraries: no sleep");
            return;
        };
        let mut child = std::process::Command::new(sleep).arg("100").spawn().expect("started");
        let pid = child.id();
        let code = loop {
            let all = modules(pid);
            let libc = all.iter().find(|module| module.name().starts_with("libc"));
            if let Some(range) = libc.and_then(|libc| libc.ranges.first()) {
                break range.start;
            }
            std::thread::yield_now();
        };
        let mut spaces = Spaces::new(Parsers::here());
        let found = spaces.find(pid, 0, code, Duration::ZERO);
        let stack = spaces.find(pid, 0, 0x7fff_ffff_f000, Duration::ZERO);
        let forked = {
            spaces.begin(1, 50, Some(pid), 0);
            spaces.find(1, 50, code, Duration::from_secs(100))
        };
        // The process ends before a name is asked for one of its addresses.
        let mut told = Spaces::new(Parsers::here());
        told.mapped(pid);
        told.settle(pid);
        child.kill().expect("killed");
        child.wait().expect("ended");
        let gone = spaces.find(pid, 0, code, Duration::ZERO);
        let late = told.find(pid, 0, code, Duration::ZERO);
        for spot in [found, forked, gone, late] {
            assert!(spot.is_some_and(|spot| spot.module.starts_with("libc")));
        }
        assert!(stack.is_none());
    }
}
