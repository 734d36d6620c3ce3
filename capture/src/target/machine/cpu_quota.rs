//! The limit on CPU time that the control groups of a process set, as for a container.

use super::cgroup::{self, Version};
use std::path::Path;

/// Hundredths of a CPU that the process and others in its control groups may use together; `None`: no limit.
pub fn cpu_quota(pid: u32) -> Option<u32> {
    let folders = cgroup::folders(pid, "cpu").into_iter();
    folders.filter_map(|(folder, version)| quota(version, &folder)).min()
}

/// The limit of one control group. In version two, `cpu.max` is `150000 100000`, microseconds in each period, or `max
/// 100000`.
fn quota(version: Version, folder: &Path) -> Option<u32> {
    let text = |name: &str| std::fs::read_to_string(folder.join(name)).ok();
    let both = match version {
        Version::One => format!("{} {}", text("cpu.cfs_quota_us")?.trim(), text("cpu.cfs_period_us")?.trim()),
        Version::Two => text("cpu.max")?,
    };
    // `max`, or -1 in version one, cannot be parsed, which means no limit.
    let mut numbers = both.split_whitespace().map(str::parse::<u64>);
    let (Some(Ok(quota)), Some(Ok(period))) = (numbers.next(), numbers.next()) else { return None };
    let hundredths = quota.checked_mul(100)?.checked_div(period)?;
    u32::try_from(hundredths).ok().filter(|hundredths| *hundredths > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_s_cpu_quota_is_read_from_either_cgroup_version() {
        let folder = tempfile::tempdir().expect("folder");
        let put = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).expect("written");
        let quota = |version: Version| quota(version, folder.path());
        assert_eq!((quota(Version::One), quota(Version::Two)), (None, None), "no files");
        put("cpu.max", "max 100000\n");
        put("cpu.cfs_quota_us", "-1\n");
        put("cpu.cfs_period_us", "100000\n");
        assert_eq!((quota(Version::One), quota(Version::Two)), (None, None), "no limit");
        put("cpu.max", "150000 100000\n");
        put("cpu.cfs_quota_us", "25000\n");
        assert_eq!((quota(Version::One), quota(Version::Two)), (Some(25), Some(150)));
        for odd in ["", "150000", "1 0", "99999999999999999999 1", "0 100000", "a b"] {
            put("cpu.max", odd);
            assert_eq!(quota(Version::Two), None, "{odd}");
        }
    }
}
