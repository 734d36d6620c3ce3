//! The files in which a process may name code that it generates at run time: `/tmp/perf-PID.map`, and the jitdump file
//! that it has mapped. Root folder and PID are the process's own, which differ from longpole's in a container. The root
//! folder and the dump stay open from the first sample in such code on, since some runtimes write their file only when
//! they end.

use super::history::JitHistory;
use super::{jit_dump, perf_map};
use crate::target::{Module, Process};
use rustix::fd::OwnedFd;
use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat, openat2};
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{BufReader, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};
use symbols::open_plain;

/// A file's time and a process's start time come from different clocks, which may differ by this much.
const CLOCKS_DIFFER: Duration = Duration::from_secs(5);

/// Largest number of sizes of a map that are kept.
const MOST_SIZES: usize = 4096;

/// The perf map and the jitdump of one process.
#[derive(Debug)]
pub struct JitFiles {
    pid: u32,
    root: OwnedFd,
    map: PathBuf,
    /// The process's user, as last read.
    user: u32,
    start_ticks: Option<u64>,
    began: Option<SystemTime>,
    dump: Option<File>,
    sizes: Sizes,
}

/// Sizes of a map file, as it grew.
#[derive(Debug, Default)]
struct Sizes {
    /// Sizes, ascending, each with the time at which it was last seen (`CLOCK_MONOTONIC` nanoseconds).
    all: Vec<(u64, u64)>,
    /// Least time between two entries, ns; the last entry may be closer.
    step_ns: u64,
}

impl Sizes {
    fn see(&mut self, size: u64, now_ns: u64) {
        let Sizes { all, step_ns } = self;
        let (last, before) = (all.last().copied(), all.iter().rev().nth(1).copied());
        let is_close = before.is_some_and(|(_, before_ns)| now_ns.saturating_sub(before_ns) < *step_ns);
        match last {
            // The map was written again from its beginning, so the times of its lines are unknown.
            Some((last, _)) if size < last => all.clear(),
            Some((last, _)) if size == last || is_close => drop(all.pop()),
            _ => {}
        }
        all.push((size, now_ns));
        if all.len() > MOST_SIZES {
            let (first_ns, count) = (all.first().map_or(0, |(_, seen_ns)| *seen_ns), all.len() as u64);
            *step_ns = 2 * now_ns.saturating_sub(first_ns) / count;
            let mut kept = 0;
            all.retain(|_| {
                kept += 1;
                kept % 2 == 1
            });
        }
    }

    /// Time at which the map was last seen without this place, ns; 0: the first check already found the place.
    fn before(&self, place: u64) -> u64 {
        let with_it = self.all.partition_point(|(size, _)| *size <= place);
        with_it.checked_sub(1).and_then(|without| self.all.get(without)).map_or(0, |(_, seen_ns)| *seen_ns)
    }
}

/// The state of map and dump, to notice changes: bytes, and the modification time in seconds and nanoseconds.
pub type Stamp = [Option<(u64, i64, i64)>; 2];

impl JitFiles {
    /// The files of a running process.
    pub fn of(process: &Process) -> Option<JitFiles> {
        let folder = PathBuf::from(format!("/proc/{}", process.pid));
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = openat(CWD, folder.join("root"), flags, Mode::empty()).ok()?;
        let own = process.namespace_pids.last().copied().unwrap_or(process.pid);
        Some(JitFiles {
            pid: process.pid,
            root,
            map: PathBuf::from(format!("/tmp/perf-{own}.map")),
            user: std::fs::metadata(&folder).ok()?.uid(),
            start_ticks: process.start_ticks(),
            began: process.began(),
            dump: None,
            sizes: Sizes::default(),
        })
    }

    /// Opens the process's jitdump file, if its mapped modules include one.
    pub fn hold_dump(&mut self, modules: &[Module]) {
        if self.dump.is_none() {
            let dump = modules.iter().find(|module| is_dump(module.name()));
            self.dump = dump.and_then(|dump| open_plain(&dump.open_path).ok());
        }
    }

    /// The present state of the files.
    pub fn stamp(&self) -> Stamp {
        let of = |file: &File| file.metadata().ok().map(|data| (data.len(), data.mtime(), data.mtime_nsec()));
        [self.open().as_ref().and_then(of), self.dump.as_ref().and_then(of)]
    }

    /// Notes how large the map is now: lines appended later are newer than `now_ns`.
    pub fn see_growth(&mut self, now_ns: u64) {
        if let Some(size) = self.open().and_then(|file| file.metadata().ok()).map(|data| data.len()) {
            self.sizes.see(size, now_ns);
        }
    }

    /// The names of code at wanted addresses. Names from the dump take precedence over those from the map. `Err`: why
    /// the map is not trusted.
    pub fn read<'a>(&mut self, wanted: &'a BTreeSet<u64>) -> Result<JitHistory<'a>, String> {
        let mut of_map = JitHistory::of(wanted);
        let map = match self.open() {
            Some(file) => self.believed(file).map(|file| {
                perf_map::read(file, &|place| self.sizes.before(place), &mut of_map);
            }),
            None => Ok(()),
        };
        let mut of_dump = JitHistory::of(wanted);
        let dump = self.dump.as_mut().and_then(|file| {
            file.seek(SeekFrom::Start(0)).ok()?;
            jit_dump::read(BufReader::with_capacity(1 << 20, file), &mut of_dump)
        });
        if dump.is_none() {
            map?;
        }
        Ok(of_dump.or(of_map))
    }

    fn believed(&mut self, file: File) -> Result<File, String> {
        // A server may have changed its user since its start.
        if let Ok(process) = Process::open(self.pid)
            && process.start_ticks() == self.start_ticks
            && let Ok(folder) = std::fs::metadata(format!("/proc/{}", self.pid))
        {
            self.user = folder.uid();
        }
        let refused = |why: String| format!("{} is not used: {why}", self.map.display());
        perf_map::check(&file, self.user).map_err(|why| refused(why.to_string()))?;
        let written = file.metadata().and_then(|data| data.modified()).ok();
        let is_older = |began: SystemTime| written.is_some_and(|written| written + CLOCKS_DIFFER < began);
        if self.began.is_some_and(is_older) {
            return Err(refused("it is older than the process".to_owned()));
        }
        Ok(file)
    }

    /// Opens the map. A link at the end of the path is refused, and links on the way cannot leave the root folder.
    fn open(&self) -> Option<File> {
        let resolve = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        openat2(&self.root, &self.map, flags, Mode::empty(), resolve).ok().map(File::from)
    }
}

/// Whether a file's name is `jit-PID.dump`.
pub fn is_dump(name: &str) -> bool {
    let pid = name.strip_prefix("jit-").and_then(|name| name.strip_suffix(".dump"));
    pid.is_some_and(|pid| !pid.is_empty() && pid.bytes().all(|byte| byte.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::super::history::tests::names;
    use super::*;
    use std::path::Path;

    /// The files of a process whose root is this folder.
    fn below(folder: &Path, own: u32, began: Option<SystemTime>) -> JitFiles {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = openat(CWD, folder, flags, Mode::empty()).expect("a folder");
        std::fs::create_dir_all(folder.join("tmp")).expect("tmp");
        let user = std::fs::metadata(folder).expect("metadata").uid();
        let map = PathBuf::from(format!("/tmp/perf-{own}.map"));
        JitFiles {
            pid: u32::MAX,
            root,
            map,
            user,
            start_ticks: None,
            began,
            dump: None,
            sizes: Sizes::default(),
        }
    }

    #[test]
    fn a_symbolic_link_as_a_perf_map_is_not_followed() {
        let folder = tempfile::tempdir().expect("folder");
        let mut made = below(folder.path(), 5, None);
        std::fs::write(folder.path().join("tmp/secret"), "10 20 f\n").expect("written");
        std::os::unix::fs::symlink("secret", folder.path().join("tmp/perf-5.map")).expect("linked");
        let wanted = [0x10].into();
        assert!(made.read(&wanted).expect("no map").at(0x10).is_empty());
        let mut made = below(folder.path(), 6, None);
        std::fs::rename(folder.path().join("tmp/secret"), folder.path().join("tmp/perf-6.map"))
            .expect("renamed");
        assert_eq!(made.read(&wanted).expect("a map").at(0x10).len(), 1);
    }

    /// The PID may have been another process's before.
    #[test]
    fn a_perf_map_older_than_its_process_is_refused() {
        let folder = tempfile::tempdir().expect("folder");
        let soon = SystemTime::now() + Duration::from_secs(3600);
        let mut made = below(folder.path(), 5, Some(soon));
        let wanted = [0x10].into();
        assert!(made.read(&wanted).is_ok(), "no map");
        let before = made.stamp();
        std::fs::write(folder.path().join("tmp/perf-5.map"), "10 20 f\n").expect("written");
        assert_ne!(made.stamp(), before);
        assert!(made.read(&wanted).is_err_and(|why| why.contains("older than the process")));
        made.began = Some(SystemTime::now());
        assert!(made.read(&wanted).is_ok());
    }

    /// A map has no times: a line that was appended between two checks was added between them.
    #[test]
    fn a_perf_map_s_line_is_dated_by_the_last_look_without_it() {
        let folder = tempfile::tempdir().expect("folder");
        let mut made = below(folder.path(), 5, None);
        let mut text = "10 20 first\n".to_owned();
        let mut write = |more: &str| {
            text.push_str(more);
            std::fs::write(folder.path().join("tmp/perf-5.map"), &text).expect("written");
        };
        write("");
        made.see_growth(100);
        made.see_growth(200);
        write("10 20 second\n");
        made.see_growth(300);
        write("10 20 third\n");
        let wanted = [0x10].into();
        let read = made.read(&wanted).expect("a map");
        assert_eq!(names(&read, 0x10), [(0, "first"), (200, "second"), (300, "third")]);
        let mut sizes = Sizes::default();
        (0..100_000).for_each(|time| sizes.see(time, time));
        assert!(sizes.all.len() <= MOST_SIZES && sizes.before(50_000).abs_diff(50_000) < 100);
        sizes.see(7, 100_001);
        assert_eq!(sizes.before(50_000), 100_001);
    }

    #[test]
    fn a_jitdump_file_is_known_by_its_name() {
        assert!(
            is_dump("jit-12.dump") && !is_dump("jit-.dump") && !is_dump("jit-x.dump") && !is_dump("jit-1.so")
        );
    }
}
