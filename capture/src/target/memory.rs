//! How much memory a process may still take: limited by the machine, and by the control groups that it is in,
//! of either version, from its own up to the last visible one.

use recording::free_memory;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Component, Path, PathBuf};

/// Limits from here on mean no limit.
const NO_LIMIT: u64 = 1 << 60;

/// Bytes that this process may still take; `None`: unknown.
pub fn available_bytes(pid: u32) -> Option<u64> {
    let groups = std::fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap_or_default();
    let mounts = std::fs::read("/proc/self/mountinfo").unwrap_or_default();
    let hierarchies: Vec<Hierarchy> =
        mounts.split(|&byte| byte == b'\n').filter_map(Hierarchy::parse).collect();
    let folders = groups.lines().flat_map(|line| folders_of(line, &hierarchies));
    let left = folders.filter_map(|(folder, version)| version.left(&folder));
    left.chain(free_memory()).min()
}

/// Where control groups that limit memory are mounted.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Hierarchy {
    version: Version,
    /// The group that lies at `mounted`.
    root: PathBuf,
    mounted: PathBuf,
}

/// How its files are called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Version {
    One,
    Two,
}

impl Hierarchy {
    /// A line of `mountinfo`.
    fn parse(line: &[u8]) -> Option<Hierarchy> {
        let mut fields = line.split(|&byte| byte == b' ');
        let (root, mounted) = (fields.nth(3)?, fields.next()?);
        let mut fields = fields.skip_while(|field| *field != b"-").skip(1);
        let (kind, options) = (fields.next()?, fields.nth(1)?);
        let version = match kind {
            b"cgroup2" => Version::Two,
            b"cgroup" if options.split(|&byte| byte == b',').any(|option| option == b"memory") => {
                Version::One
            }
            _ => return None,
        };
        let path = |text: &[u8]| PathBuf::from(OsStr::from_bytes(text));
        Some(Hierarchy { version, root: path(root), mounted: path(mounted) })
    }
}

/// The folders of a process's group and of those above, from a line of its `cgroup` file.
fn folders_of(line: &str, hierarchies: &[Hierarchy]) -> Vec<(PathBuf, Version)> {
    let mut fields = line.splitn(3, ':');
    let (Some(number), Some(controllers), Some(group)) = (fields.next(), fields.next(), fields.next()) else {
        return Vec::new();
    };
    let version = match (number, controllers) {
        ("0", "") => Version::Two,
        (_, controllers) if controllers.split(',').any(|name| name == "memory") => Version::One,
        _ => return Vec::new(),
    };
    let mut folders = Vec::new();
    for hierarchy in hierarchies.iter().filter(|hierarchy| hierarchy.version == version) {
        let Ok(below) = Path::new(group).strip_prefix(&hierarchy.root) else { continue };
        // A group above the visible ones.
        if below.components().any(|part| part == Component::ParentDir) {
            continue;
        }
        let mounted = &hierarchy.mounted;
        folders.extend(below.ancestors().map(|part| (mounted.join(part), version)));
    }
    folders
}

impl Version {
    /// Bytes that a group may still take. Its pages of files that were not used lately are reclaimed before
    /// anything else.
    fn left(self, folder: &Path) -> Option<u64> {
        let text = |name: &str| std::fs::read_to_string(folder.join(name)).ok();
        let number = |name: &str| text(name)?.trim().parse::<u64>().ok();
        let (limits, used, inactive): (&[&str], _, _) = match self {
            Version::One => (&["memory.limit_in_bytes"], "memory.usage_in_bytes", "total_inactive_file "),
            Version::Two => (&["memory.max", "memory.high"], "memory.current", "inactive_file "),
        };
        let limit = limits.iter().filter_map(|name| number(name)).min().filter(|limit| *limit < NO_LIMIT)?;
        let stat = text("memory.stat").unwrap_or_default();
        let inactive = stat.lines().find_map(|line| line.strip_prefix(inactive)?.trim().parse::<u64>().ok());
        let used = number(used)?.saturating_sub(inactive.unwrap_or(0));
        Some(limit.saturating_sub(used))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hierarchy(version: Version, root: &str, mounted: &str) -> Hierarchy {
        Hierarchy { version, root: root.into(), mounted: mounted.into() }
    }

    #[test]
    fn groups_are_found_where_they_are_mounted() {
        let parse = |line: &str| Hierarchy::parse(line.as_bytes());
        let one = parse("35 31 0:32 / /sys/fs/cgroup/memory rw,relatime shared:9 - cgroup cgroup rw,memory");
        assert_eq!(one, Some(hierarchy(Version::One, "/", "/sys/fs/cgroup/memory")));
        let two = parse("41 31 0:38 /a /sys/fs/cgroup rw - cgroup2 cgroup2 rw,nsdelegate");
        assert_eq!(two, Some(hierarchy(Version::Two, "/a", "/sys/fs/cgroup")));
        for other in ["", "32 31 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu", "1 2 3 4 5 6 7"] {
            assert_eq!(parse(other), None, "{other}");
        }
        let all = [one, two].map(|found| found.expect("parsed"));
        let folders = |line: &str| -> Vec<String> {
            folders_of(line, &all).iter().map(|(folder, _)| folder.display().to_string()).collect()
        };
        let memory = ["/sys/fs/cgroup/memory/x/y", "/sys/fs/cgroup/memory/x", "/sys/fs/cgroup/memory/"];
        assert_eq!(folders("4:memory:/x/y"), memory);
        assert_eq!(folders("0::/a/b"), ["/sys/fs/cgroup/b", "/sys/fs/cgroup/"]);
        for unseen in ["0::/c", "0::/a/../..", "3:cpu,cpuacct:/x", "nonsense", ""] {
            assert!(folders(unseen).is_empty(), "{unseen}");
        }
    }

    #[test]
    fn a_group_may_take_what_its_limit_leaves() {
        let folder = tempfile::tempdir().expect("folder");
        let put = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).expect("written");
        let left = |version: Version| version.left(folder.path());
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
    fn this_process_may_take_some_but_not_more_than_there_is() {
        let own = available_bytes(std::process::id()).expect("known");
        assert!(own > 1 << 20, "{own}");
        assert!(own / 2 <= free_memory().expect("known"));
    }
}
