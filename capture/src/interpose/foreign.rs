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
        assert!(!has_own_clock(Path::new("/nonexistent")));
        assert!(!has_memory(Path::new("/proc/self")));
    }
}
