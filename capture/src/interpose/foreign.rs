//! Processes in which the library stays out of the way although it is loaded: `probe-preload`'s own rules,
//! checked from outside.

use super::shared::{MEMORY_NAME, filters_of};
use std::path::{Path, PathBuf};

/// Whether the library will not record in this process: it came to a filter of system calls that longpole has not, has a
/// clock of its own, or cannot tell. A filter that came later does not matter: the library is there by then.
pub fn cannot_come_up(pid: u32) -> bool {
    let folder = PathBuf::from(format!("/proc/{pid}"));
    if has_own_clock(&folder) {
        return true;
    }
    let more_filters = filters_of(&pid.to_string()) > filters_of("self");
    let cannot_tell = !folder.join("root/proc/self/status").exists();
    (more_filters || cannot_tell) && !has_memory(&folder)
}

/// A time namespace whose clock is not the one of the kernel's records.
fn has_own_clock(folder: &Path) -> bool {
    // The first one's inode (include/linux/proc_ns.h). Kernels without them have no such file.
    std::fs::read_link(folder.join("ns/time")).is_ok_and(|name| name != Path::new("time:[4026531834]"))
}

/// Whether it has mapped the shared memory.
fn has_memory(folder: &Path) -> bool {
    let maps = std::fs::read(folder.join("maps")).unwrap_or_default();
    let name = format!("/memfd:{MEMORY_NAME}");
    maps.windows(name.len()).any(|window| window == name.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_like_this_one_can() {
        assert!(!cannot_come_up(std::process::id()));
        assert!(!has_own_clock(Path::new("/nonexistent")));
        assert!(!has_memory(Path::new("/proc/self")));
    }
}
