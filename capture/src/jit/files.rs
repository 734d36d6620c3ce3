//! Where a process may name the code that it makes while it runs: `/tmp/perf-PID.map`, in its own root folder
//! and under its own number, which differ from ours in a container, and the jitdump file that it has mapped.
//! Both are held from the first sample in such code on, since some runtimes write theirs when they end.

use super::code_map::JitCodeMap;
use super::{jit_dump, perf_map};
use crate::target::{Module, Process};
use rustix::fd::OwnedFd;
use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat, openat2};
use std::fs::File;
use std::io::{BufReader, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};
use symbols::open_plain;

/// A file's time and a process's are not read from one clock.
const CLOCKS_DIFFER: Duration = Duration::from_secs(5);

/// See the module.
#[derive(Debug)]
pub struct JitFiles {
    pid: u32,
    root: OwnedFd,
    map: PathBuf,
    /// The process's user, as of the last look.
    user: u32,
    start_ticks: Option<u64>,
    began: Option<SystemTime>,
    dump: Option<File>,
}

/// What tells one state of the files from another: sizes and times.
pub type Stamp = [Option<(u64, i64, i64)>; 2];

impl JitFiles {
    /// Of a process that is there.
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
        })
    }

    /// It has a jitdump file among these, which are what it has mapped.
    pub fn hold_dump(&mut self, modules: &[Module]) {
        if self.dump.is_none() {
            let dump = modules.iter().find(|module| is_dump(module.name()));
            self.dump = dump.and_then(|dump| open_plain(&dump.open_path).ok());
        }
    }

    /// What the files are like now.
    pub fn stamp(&self) -> Stamp {
        let of = |file: &File| file.metadata().ok().map(|data| (data.len(), data.mtime(), data.mtime_nsec()));
        [self.open().as_ref().and_then(of), self.dump.as_ref().and_then(of)]
    }

    /// The code that it has named; from the map, only pieces in the wanted range of addresses. Names from the
    /// dump come before those from the map. `Err`: why the map is not trusted.
    pub fn read(&mut self, wanted: &dyn Fn(u64, u64) -> bool) -> Result<JitCodeMap, String> {
        let map = match self.open() {
            Some(file) => self.believed(file).map(|file| perf_map::read(file, wanted)),
            None => Ok(JitCodeMap::default()),
        };
        let dump = self.dump.as_mut().and_then(|file| {
            file.seek(SeekFrom::Start(0)).ok()?;
            jit_dump::read(BufReader::with_capacity(1 << 20, file))
        });
        match (map, dump) {
            (map, None) => map,
            (Err(_), Some(dump)) => Ok(dump),
            (Ok(mut map), Some(dump)) => {
                map.add_all(dump);
                Ok(map)
            }
        }
    }

    fn believed(&mut self, file: File) -> Result<File, String> {
        // A server may have given up its rights since.
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

    /// No link is followed at the end of the path, and none out of the root on the way.
    fn open(&self) -> Option<File> {
        let resolve = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        openat2(&self.root, &self.map, flags, Mode::empty(), resolve).ok().map(File::from)
    }
}

/// `jit-PID.dump`
pub fn is_dump(name: &str) -> bool {
    let pid = name.strip_prefix("jit-").and_then(|name| name.strip_suffix(".dump"));
    pid.is_some_and(|pid| !pid.is_empty() && pid.bytes().all(|byte| byte.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    /// One whose root is this folder.
    fn below(folder: &Path, own: u32, began: Option<SystemTime>) -> JitFiles {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = openat(CWD, folder, flags, Mode::empty()).expect("a folder");
        std::fs::create_dir_all(folder.join("tmp")).expect("tmp");
        let user = std::fs::metadata(folder).expect("metadata").uid();
        let map = PathBuf::from(format!("/tmp/perf-{own}.map"));
        JitFiles { pid: u32::MAX, root, map, user, start_ticks: None, began, dump: None }
    }

    #[test]
    fn a_link_to_another_file_is_not_followed() {
        let folder = tempfile::tempdir().expect("folder");
        let mut made = below(folder.path(), 5, None);
        std::fs::write(folder.path().join("tmp/secret"), "10 20 f\n").expect("written");
        std::os::unix::fs::symlink("secret", folder.path().join("tmp/perf-5.map")).expect("linked");
        assert!(made.read(&|_, _| true).expect("no map").at(0x10).is_none());
        let mut made = below(folder.path(), 6, None);
        std::fs::rename(folder.path().join("tmp/secret"), folder.path().join("tmp/perf-6.map"))
            .expect("renamed");
        assert!(made.read(&|_, _| true).expect("a map").at(0x10).is_some());
        assert!(made.read(&|start, _| start != 0x10).expect("a map").at(0x10).is_none(), "nobody wants it");
    }

    /// The number may have been another process's before.
    #[test]
    fn what_is_older_than_the_process_is_another_ones() {
        let folder = tempfile::tempdir().expect("folder");
        let soon = SystemTime::now() + Duration::from_secs(3600);
        let mut made = below(folder.path(), 5, Some(soon));
        assert!(made.read(&|_, _| true).is_ok(), "no map");
        let before = made.stamp();
        std::fs::write(folder.path().join("tmp/perf-5.map"), "10 20 f\n").expect("written");
        assert_ne!(made.stamp(), before);
        assert!(made.read(&|_, _| true).is_err_and(|why| why.contains("older than the process")));
        made.began = Some(SystemTime::now());
        assert!(made.read(&|_, _| true).is_ok());
    }

    #[test]
    fn a_dump_is_known_by_its_name() {
        assert!(
            is_dump("jit-12.dump") && !is_dump("jit-.dump") && !is_dump("jit-x.dump") && !is_dump("jit-1.so")
        );
    }
}
