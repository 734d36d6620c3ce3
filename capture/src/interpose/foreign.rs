//! Recognizes processes in which the preloaded library does not record although it is loaded. These are
//! `probe-preload`'s own rules, checked from outside.

use super::shared::{MEMORY_NAME, filters_of};
use std::path::{Path, PathBuf};

/// Whether the library will not record in this process: the process has more seccomp filters than longpole, has its own
/// clock, or has no `/proc`. If the shared memory is mapped, filters do not matter: they came after the library.
pub fn cannot_come_up(pid: u32) -> bool {
    let folder = PathBuf::from(format!("/proc/{pid}"));
    if has_own_clock(&folder) {
        return true;
    }
    let more_filters = filters_of(&pid.to_string()) > filters_of("self");
    let cannot_tell = !folder.join("root/proc/self/status").exists();
    (more_filters || cannot_tell) && !has_memory(&folder)
}

/// Whether the process is in a time namespace whose clock differs from the clock of the kernel's records.
fn has_own_clock(folder: &Path) -> bool {
    // The inode of the first time namespace (include/linux/proc_ns.h). Kernels without time namespaces lack this file.
    std::fs::read_link(folder.join("ns/time")).is_ok_and(|name| name != Path::new("time:[4026531834]"))
}

/// Whether the process has mapped the shared memory.
fn has_memory(folder: &Path) -> bool {
    let maps = std::fs::read(folder.join("maps")).unwrap_or_default();
    let name = format!("/memfd:{MEMORY_NAME}");
    maps.windows(name.len()).any(|window| window == name.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_like_this_one_can_load_the_library() {
        assert!(!cannot_come_up(std::process::id()));
        assert!(!has_own_clock(Path::new("/proc/self")) && !has_own_clock(Path::new("/nonexistent")));
        assert!(!has_memory(Path::new("/proc/self")));
    }

    /// No process has this number: the kernel allows 4,194,304 at most.
    #[test]
    fn a_process_without_proc_cannot_load_the_library() {
        assert!(cannot_come_up(4_194_305));
    }

    /// A folder in the form of `/proc/PID`, of a process in its own time namespace that has the library.
    #[test]
    fn a_process_s_own_clock_and_the_library_s_memory_are_recognized() {
        let folder = tempfile::tempdir().expect("a folder");
        let folder = folder.path();
        std::fs::create_dir(folder.join("ns")).expect("a folder");
        let clock = |name: &str| {
            let _ = std::fs::remove_file(folder.join("ns/time"));
            std::os::unix::fs::symlink(name, folder.join("ns/time")).expect("a link");
            has_own_clock(folder)
        };
        assert!(clock("time:[4026532741]") && !clock("time:[4026531834]"));
        let maps = |path: &str| {
            let text = format!("7f0000000000-7f0000100000 rw-s 00000000 00:01 1028  {path}\n");
            std::fs::write(folder.join("maps"), text).expect("written");
            has_memory(folder)
        };
        assert!(maps(&format!("/memfd:{MEMORY_NAME} (deleted)")) && !maps("/memfd:other (deleted)"));
    }
}
