//! How much memory a process may still take: limited by the machine, and by the process's control groups of both
//! versions, from its own group up to the last visible one.

use super::cgroup::{self, Version};
use recording::free_memory;
use std::path::Path;

/// Limits of at least this size mean that there is no limit, bytes.
const NO_LIMIT: u64 = 1 << 60;

/// Bytes that a process may still take; `None`: unknown.
pub fn available_bytes(pid: u32) -> Option<u64> {
    let folders = cgroup::folders(pid, "memory").into_iter();
    let left = folders.filter_map(|(folder, version)| left(version, &folder));
    left.chain(free_memory()).min()
}

/// Bytes that a group may still take. Its inactive file pages count as free: the kernel reclaims them before
/// anything else.
fn left(version: Version, folder: &Path) -> Option<u64> {
    let text = |name: &str| std::fs::read_to_string(folder.join(name)).ok();
    let number = |name: &str| text(name)?.trim().parse::<u64>().ok();
    let (limits, used, inactive): (&[&str], _, _) = match version {
        Version::One => (&["memory.limit_in_bytes"], "memory.usage_in_bytes", "total_inactive_file "),
        Version::Two => (&["memory.max", "memory.high"], "memory.current", "inactive_file "),
    };
    let limit = limits.iter().filter_map(|name| number(name)).min().filter(|limit| *limit < NO_LIMIT)?;
    let stat = text("memory.stat").unwrap_or_default();
    let inactive = stat.lines().find_map(|line| line.strip_prefix(inactive)?.trim().parse::<u64>().ok());
    let used = number(used)?.saturating_sub(inactive.unwrap_or(0));
    Some(limit.saturating_sub(used))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_s_available_memory_is_what_its_limit_leaves() {
        let folder = tempfile::tempdir().expect("folder");
        let put = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).expect("written");
        let left = |version: Version| left(version, folder.path());
        assert_eq!(left(Version::Two), None);
        put("memory.max", "max\n");
        put("memory.current", "1000\n");
        assert_eq!(left(Version::Two), None, "no limit");
        put("memory.max", "5000\n");
        assert_eq!(left(Version::Two), Some(4000));
        put("memory.high", "3000\n");
        put("memory.stat", "anon 700\nfile 300\ninactive_file 200\n");
        assert_eq!(left(Version::Two), Some(2200));
        put("memory.current", "9000\n");
        assert_eq!(left(Version::Two), Some(0));
        put("memory.limit_in_bytes", "9223372036854771712\n");
        put("memory.usage_in_bytes", "700\n");
        assert_eq!(left(Version::One), None);
        put("memory.limit_in_bytes", "1000\n");
        put("memory.stat", "inactive_file 1\ntotal_inactive_file 100\n");
        assert_eq!(left(Version::One), Some(400));
    }

    #[test]
    fn this_process_s_available_memory_is_at_most_what_is_free() {
        let own = available_bytes(std::process::id()).expect("known");
        assert!(own > 1 << 20, "{own}");
        assert!(own / 2 <= free_memory().expect("known"));
    }
}
