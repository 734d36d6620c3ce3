//! The control groups of a process, of both versions, from its own group up to the last visible one.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Component, Path, PathBuf};

/// The version of control groups, which determines the names of their files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::target) enum Version {
    One,
    Two,
}

/// The folders of the process's group and of the groups above it, as far as they can limit what `controller` (`cpu`,
/// `memory`) controls.
pub(super) fn folders(pid: u32, controller: &str) -> Vec<(PathBuf, Version)> {
    let groups = std::fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap_or_default();
    folders_in(&groups, &std::fs::read("/proc/self/mountinfo").unwrap_or_default(), controller)
}

/// The same by the texts of a process's `cgroup` file and of `mountinfo`.
pub(in crate::target) fn folders_in(
    groups: &str,
    mounts: &[u8],
    controller: &str,
) -> Vec<(PathBuf, Version)> {
    let lines = mounts.split(|&byte| byte == b'\n');
    let hierarchies: Vec<Hierarchy> = lines.filter_map(|line| Hierarchy::parse(line, controller)).collect();
    groups.lines().flat_map(|line| folders_of(line, controller, &hierarchies)).collect()
}

/// A mounted tree of control groups.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Hierarchy {
    version: Version,
    /// The group that lies at `mounted`.
    root: PathBuf,
    mounted: PathBuf,
}

impl Hierarchy {
    /// Parses a line of `mountinfo`; `None` if it is not such a tree for the controller.
    fn parse(line: &[u8], controller: &str) -> Option<Hierarchy> {
        let mut fields = line.split(|&byte| byte == b' ');
        let (root, mounted) = (fields.nth(3)?, fields.next()?);
        let mut fields = fields.skip_while(|field| *field != b"-").skip(1);
        let (kind, options) = (fields.next()?, fields.nth(1)?);
        let version = match kind {
            b"cgroup2" => Version::Two,
            b"cgroup"
                if options.split(|&byte| byte == b',').any(|option| option == controller.as_bytes()) =>
            {
                Version::One
            }
            _ => return None,
        };
        let path = |text: &[u8]| PathBuf::from(OsStr::from_bytes(text));
        Some(Hierarchy { version, root: path(root), mounted: path(mounted) })
    }
}

/// The folders of a process's group and of the groups above it, from a line of the process's `cgroup` file.
fn folders_of(line: &str, controller: &str, hierarchies: &[Hierarchy]) -> Vec<(PathBuf, Version)> {
    let mut fields = line.splitn(3, ':');
    let (Some(number), Some(controllers), Some(group)) = (fields.next(), fields.next(), fields.next()) else {
        return Vec::new();
    };
    let version = match (number, controllers) {
        ("0", "") => Version::Two,
        (_, controllers) if controllers.split(',').any(|name| name == controller) => Version::One,
        _ => return Vec::new(),
    };
    let mut folders = Vec::new();
    for hierarchy in hierarchies.iter().filter(|hierarchy| hierarchy.version == version) {
        let Ok(below) = Path::new(group).strip_prefix(&hierarchy.root) else { continue };
        // The group lies above the visible groups.
        if below.components().any(|part| part == Component::ParentDir) {
            continue;
        }
        let mounted = &hierarchy.mounted;
        folders.extend(below.ancestors().map(|part| (mounted.join(part), version)));
    }
    folders
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hierarchy(version: Version, root: &str, mounted: &str) -> Hierarchy {
        Hierarchy { version, root: root.into(), mounted: mounted.into() }
    }

    #[test]
    fn control_groups_are_found_where_they_are_mounted() {
        let parse = |line: &str| Hierarchy::parse(line.as_bytes(), "memory");
        let one = parse("35 31 0:32 / /sys/fs/cgroup/memory rw,relatime shared:9 - cgroup cgroup rw,memory");
        assert_eq!(one, Some(hierarchy(Version::One, "/", "/sys/fs/cgroup/memory")));
        let two = parse("41 31 0:38 /a /sys/fs/cgroup rw - cgroup2 cgroup2 rw,nsdelegate");
        assert_eq!(two, Some(hierarchy(Version::Two, "/a", "/sys/fs/cgroup")));
        for other in ["", "32 31 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu", "1 2 3 4 5 6 7"] {
            assert_eq!(parse(other), None, "{other}");
        }
        let all = [one, two].map(|found| found.expect("parsed"));
        let folders = |line: &str| -> Vec<String> {
            folders_of(line, "memory", &all).iter().map(|(folder, _)| folder.display().to_string()).collect()
        };
        let memory = ["/sys/fs/cgroup/memory/x/y", "/sys/fs/cgroup/memory/x", "/sys/fs/cgroup/memory/"];
        assert_eq!(folders("4:memory:/x/y"), memory);
        assert_eq!(folders("0::/a/b"), ["/sys/fs/cgroup/b", "/sys/fs/cgroup/"]);
        for unseen in ["0::/c", "0::/a/../..", "3:cpu,cpuacct:/x", "nonsense", ""] {
            assert!(folders(unseen).is_empty(), "{unseen}");
        }
    }
}
