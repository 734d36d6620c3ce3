//! Finding `/tmp/perf-PID.map` of a process: in its own root folder and under its own number, which differ from ours in a
//! container.

use super::code_map::CodeMap;
use super::perf_map;
use crate::target::Process;
use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat, openat2};
use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// The code that a process has named in its map; an empty one if there is none. `Err`: why the file is not believed.
pub fn made_code(process: &Process) -> Result<CodeMap, String> {
    let folder = format!("/proc/{}", process.pid);
    let Ok(user) = std::fs::metadata(&folder).map(|metadata| metadata.uid()) else {
        return Ok(CodeMap::default());
    };
    let own = process.namespace_pids.last().copied().unwrap_or(process.pid);
    let name = format!("/tmp/perf-{own}.map");
    let Some(file) = open(&Path::new(&folder).join("root"), Path::new(&name)) else {
        return Ok(CodeMap::default());
    };
    match perf_map::check(&file, user) {
        Ok(()) => Ok(perf_map::read(file)),
        Err(why) => Err(format!("{name} is not used: {why}")),
    }
}

/// No link is followed at the end of the path, and none out of the root on the way.
fn open(root: &Path, path: &Path) -> Option<File> {
    let root = openat(CWD, root, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty()).ok()?;
    let resolve = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    openat2(&root, path, flags, Mode::empty(), resolve).ok().map(File::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_to_another_file_is_not_followed() {
        let folder = tempfile::tempdir().expect("folder");
        std::fs::create_dir(folder.path().join("tmp")).expect("tmp");
        std::fs::write(folder.path().join("tmp/secret"), "10 20 f\n").expect("written");
        std::os::unix::fs::symlink("secret", folder.path().join("tmp/perf-5.map")).expect("linked");
        assert!(open(folder.path(), Path::new("/tmp/perf-5.map")).is_none());
        std::fs::rename(folder.path().join("tmp/secret"), folder.path().join("tmp/perf-6.map"))
            .expect("renamed");
        assert!(open(folder.path(), Path::new("/tmp/perf-6.map")).is_some());
    }
}
