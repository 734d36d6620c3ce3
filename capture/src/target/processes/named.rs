//! Finds processes by name.

use std::fs;
use std::path::Path;

/// Processes with this name, in order of PIDs, without longpole itself. The name may be the kernel's name of the
/// process (cut to 15 characters), or the last part of the path with which it was started.
pub fn named(name: &str) -> Vec<u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten();
    let pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok());
    let mut found: Vec<u32> = pids
        .filter(|pid| *pid != std::process::id() && is_named(Path::new(&format!("/proc/{pid}")), name))
        .collect();
    found.sort_unstable();
    found
}

fn is_named(process: &Path, name: &str) -> bool {
    let read = |file: &str| fs::read(process.join(file)).unwrap_or_default();
    fits(&read("comm"), &read("cmdline"), name)
}

fn fits(comm: &[u8], command_line: &[u8], name: &str) -> bool {
    let first = command_line.split(|byte| *byte == 0).next().unwrap_or_default();
    let started_as = first.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
    !name.is_empty()
        && (comm.strip_suffix(b"\n").unwrap_or(comm) == name.as_bytes() || started_as == name.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::{fits, named};

    #[test]
    fn a_process_is_found_by_the_kernel_s_name_or_its_first_argument() {
        assert!(fits(b"redis-server\n", b"/usr/bin/redis-server *:6379\0", "redis-server"));
        assert!(fits(b"a-name-that-is-\n", b"./a-name-that-is-long\0x\0", "a-name-that-is-long"));
        assert!(fits(b"python3\n", b"python3\0serve.py\0", "python3"));
        assert!(!fits(b"python3\n", b"python3\0serve.py\0", "serve.py"));
        assert!(!fits(b"\n", b"", ""));
    }

    #[test]
    fn a_name_that_no_process_has_finds_none() {
        assert!(named("no process has such a name").is_empty());
    }
}
