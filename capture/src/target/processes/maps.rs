//! Finds the executable files that a process has mapped, and a path by which each one can be opened.

use super::moved_text::{Origin, origin};
use super::proc_text::MapLine;
use super::process::{Process, without_deleted};
use crate::target::error::TargetError;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use symbols::Outline;
use symbols::{BuildId, safe};

/// Largest number of executable files examined in one process.
const MAX_MODULES: usize = 4096;

/// An executable file that a process has mapped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Module {
    /// Path of the file as the process sees it, safe to print.
    pub path: String,
    /// A path that opens the mapped file, even if the file is deleted, replaced or in a container; empty if there is no
    /// such path. The path is invalid once the process has ended, so the file must be opened soon.
    pub open_path: PathBuf,
    /// Major and minor number of the file's device, as the kernel shows it for mappings.
    pub device: (u32, u32),
    /// Inode.
    pub inode: u64,
    /// Address ranges of the file's instructions, in order of address.
    pub ranges: Vec<MappedRange>,
    /// Whether the file is the program and not a library.
    pub is_main: bool,
}

/// An executable mapping of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MappedRange {
    /// First address in the process.
    pub start: u64,
    /// Address after the last.
    pub end: u64,
    /// Offset in the file at which the range begins.
    pub file_offset: u64,
}

impl Module {
    /// File name, for people.
    pub fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or(&self.path)
    }

    /// The offset in the file of an address in the process.
    pub fn file_offset(&self, address: u64) -> Option<u64> {
        let range = self.ranges.iter().find(|range| (range.start..range.end).contains(&address))?;
        range.file_offset.checked_add(address - range.start)
    }

    /// The address in the process of an offset in the file.
    pub fn address(&self, file_offset: u64) -> Option<u64> {
        self.ranges.iter().find_map(|range| {
            let address = range.start.checked_add(file_offset.checked_sub(range.file_offset)?)?;
            (address < range.end).then_some(address)
        })
    }
}

/// The executable files of a process: the program first, then libraries by address. No file is opened.
pub fn mapped(process: &Process) -> Result<Vec<Module>, TargetError> {
    Ok(mapped_in(process, &process.folder().text("maps")?))
}

/// Like [`mapped`], for a given text of /proc/PID/maps.
fn mapped_in(process: &Process, text: &str) -> Vec<Module> {
    let main_path = std::fs::read_link(process.open_path()).map(|path| safe(&path.to_string_lossy())).ok();
    let main_inode = std::fs::metadata(process.open_path()).map(|metadata| metadata.ino()).ok();
    let mut modules = Vec::new();
    for mut module in grouped(text) {
        // Device numbers of files and of mappings differ on some file systems (btrfs, overlayfs).
        let raw_path = module.open_path.clone();
        let has_main_path = main_path.as_ref() == Some(&safe(&unescaped(&raw_path)));
        module.is_main = main_inode == Some(module.inode) && has_main_path;
        module.open_path = open_path(process, &module, &raw_path);
        if module.is_main {
            module.path.clone_from(&process.executable);
        }
        modules.push(module);
    }
    modules.sort_by_key(|module| !module.is_main);
    modules
}

/// A range of executable memory in a process: of a file, of the kernel, or made by the process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Code {
    /// First address in the process.
    pub start: u64,
    /// Address after the last.
    pub end: u64,
    /// Offset in the file at which the range begins.
    pub file_offset: u64,
    /// The file's inode; 0: there is no file.
    pub inode: u64,
    /// Path of the file as the process sees it, or the kernel's name (`[vdso]`), safe to print; empty if there is no
    /// name.
    pub path: String,
    /// A path that opens the file, if the code is from a file; see [`Module::open_path`].
    pub open_path: PathBuf,
}

impl Code {
    /// Whether the process generated the code while it ran: such code lies in memory without a file, or in a file that
    /// is not a binary.
    pub fn is_made(&self) -> bool {
        let in_memory = ["[anon", "//anon", "/dev/zero", "/SYSV", "[heap]", "[stack"];
        self.path.is_empty()
            || in_memory.iter().any(|start| self.path.starts_with(start))
            || (self.path.starts_with("/memfd:") && Outline::open(&self.open_path).is_none())
    }

    /// Build-id of the file, if it has one and may be read.
    pub fn build_id(&self) -> Option<BuildId> {
        if self.open_path.as_os_str().is_empty() {
            return None;
        }
        Outline::open(&self.open_path).and_then(|(_, outline)| outline.build_id)
    }
}

/// All executable memory of a process, in order of address. Files are opened only if memory may be a copy of them.
pub fn code(process: &Process) -> Result<Vec<Code>, TargetError> {
    let text = process.folder().text("maps")?;
    let files = mapped_in(process, &text);
    let lines: Vec<MapLine> = text.lines().filter_map(MapLine::parse).collect();
    // That page has an address of its own, and only the kernel can execute it.
    let executable = lines.iter().enumerate().filter(|(_, map)| map.executable && map.path != "[vsyscall]");
    let mut all: Vec<Code> = executable
        .take(MAX_MODULES)
        .map(|(index, map)| {
            let moved = if map.inode == 0 { origin(process, &lines, index) } else { None };
            if let Some(Origin { of, open_path, file_offset }) = moved {
                let file = files.iter().find(|file| (file.device, file.inode) == (of.device, of.inode));
                let path = || without_deleted(&safe(&unescaped(Path::new(of.path))));
                let is_main =
                    || std::fs::metadata(process.open_path()).is_ok_and(|main| main.ino() == of.inode);
                let path = match file {
                    Some(file) => file.path.clone(),
                    None if is_main() => process.executable.clone(),
                    None => path(),
                };
                return Code {
                    start: map.start,
                    end: map.end,
                    file_offset,
                    inode: of.inode,
                    path,
                    open_path,
                };
            }
            let file = files.iter().find(|file| {
                file.ranges.iter().any(|range| (range.start, range.end) == (map.start, map.end))
            });
            Code {
                start: map.start,
                end: map.end,
                file_offset: map.file_offset,
                inode: map.inode,
                path: file.map_or_else(|| safe(map.path), |file| file.path.clone()),
                open_path: file.map(|file| file.open_path.clone()).unwrap_or_default(),
            }
        })
        .collect();
    all.sort_by_key(|code| code.start);
    Ok(all)
}

/// Executable mappings of files, grouped by file, in order of their first address. `open_path` is still the path in the
/// form in which the kernel writes it.
pub(in crate::target) fn grouped(maps: &str) -> Vec<Module> {
    let mut modules: Vec<Module> = Vec::new();
    for map in maps.lines().filter_map(MapLine::parse) {
        if !map.executable || map.inode == 0 {
            continue;
        }
        let range = MappedRange { start: map.start, end: map.end, file_offset: map.file_offset };
        let same_file = |module: &Module| (module.device, module.inode) == (map.device, map.inode);
        match modules.iter().position(same_file) {
            Some(at) => modules[at].ranges.push(range),
            None if modules.len() >= MAX_MODULES => break,
            None => modules.push(Module {
                path: without_deleted(&safe(&unescaped(Path::new(map.path)))),
                open_path: PathBuf::from(map.path),
                device: map.device,
                inode: map.inode,
                ranges: vec![range],
                is_main: false,
            }),
        }
    }
    modules
}

/// Undoes the only escape in paths of /proc/PID/maps: the kernel writes a newline as `\012`.
fn unescaped(path: &Path) -> String {
    path.to_string_lossy().replace("\\012", "\n")
}

/// The path that opens a module. For the program it is the exe link. For a library it is its entry in `map_files`, which is
/// exact but needs privileges, or else its path below the process's root, if that still has the same inode.
fn open_path(process: &Process, module: &Module, raw_path: &Path) -> PathBuf {
    if module.is_main {
        return process.open_path();
    }
    let folder = PathBuf::from(format!("/proc/{}", process.pid));
    if let Some(range) = module.ranges.first() {
        let exact = folder.join(format!("map_files/{:x}-{:x}", range.start, range.end));
        if std::fs::metadata(&exact).is_ok_and(|found| found.ino() == module.inode) {
            return exact;
        }
    }
    let path = unescaped(raw_path);
    let below_root = path.strip_prefix('/').map(|path| folder.join("root").join(path));
    let is_same = |path: &PathBuf| std::fs::metadata(path).is_ok_and(|found| found.ino() == module.inode);
    below_root.filter(is_same).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAPS: &str = "\
400000-401000 r--p 00000000 fe:01 10 /bin/prog
401000-402000 r-xp 00001000 fe:01 10 /bin/prog
500000-501000 rw-p 00000000 00:00 0
7f0000-7f1000 r-xp 00002000 fe:01 11 /lib/libc.so.6 (deleted)
7f5000-7f6000 r-xp 00005000 fe:01 10 /bin/prog
7ff000-800000 r-xp 00000000 00:00 0 [vdso]
";

    #[test]
    fn mappings_of_one_file_are_one_module() {
        let modules = grouped(MAPS);
        assert_eq!(modules.len(), 2);
        assert_eq!((modules[0].name(), modules[0].ranges.len()), ("prog", 2));
        assert_eq!(modules[1].name(), "libc.so.6");
        assert_eq!(modules[0].file_offset(0x40_1010), Some(0x1010));
        assert_eq!(modules[0].file_offset(0x7f_5004), Some(0x5004));
        assert_eq!(modules[0].file_offset(0x40_2000), None);
    }

    #[test]
    fn a_deleted_program_and_its_libraries_can_still_be_opened() {
        let folder = tempfile::tempdir().unwrap();
        let copy = folder.path().join("sl\neep");
        let sleep = ["/bin/sleep", "/usr/bin/sleep"].iter().find(|path| Path::new(path).exists());
        let Some(sleep) = sleep else {
            println!("SKIP a_deleted_program_and_its_libraries_can_still_be_opened: no sleep");
            return;
        };
        std::fs::copy(sleep, &copy).unwrap();
        let mut child = std::process::Command::new(&copy).arg("100").spawn().unwrap();
        std::fs::remove_file(&copy).unwrap();
        let process = Process::open(child.id()).unwrap();
        // The loader needs a moment to map the C library.
        let modules = loop {
            let modules = mapped(&process).unwrap();
            if modules.iter().any(|module| module.name().starts_with("libc")) {
                break modules;
            }
            std::thread::yield_now();
        };
        let wanted = symbols::ElfFile::open(Path::new(sleep)).unwrap().build_id;
        let opens = |module: &Module| Outline::open(&module.open_path).is_some();
        let (main, libraries) = modules.split_first().unwrap();
        let all_open = opens(main) && libraries.iter().all(opens);
        let build_id = Outline::open(&main.open_path).and_then(|(_, outline)| outline.build_id);
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(all_open, "{modules:?}");
        assert!(main.is_main && main.name() == "sl\u{fffd}eep", "{main:?}");
        assert!(build_id.is_some() && build_id == wanted, "{main:?}");
        assert!(libraries.iter().all(|module| !module.is_main), "{modules:?}");
    }
}
