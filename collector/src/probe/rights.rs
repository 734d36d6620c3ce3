//! Whether this process may capture at all, asked before anything is touched, so that the answer names what is
//! missing instead of the first thing that failed.

use super::error::{ProbeError, ProbeErrorKind};

/// Numbers of include/uapi/linux/capability.h.
const CAP_SYS_ADMIN: u32 = 21;
const CAP_PERFMON: u32 = 38;
const CAP_BPF: u32 = 39;

/// An error that names the missing capabilities, if the effective ones of this process are known not to suffice.
/// `CAP_SYS_ADMIN` stands for the other two, as it does in the kernel (`bpf_capable`, `perfmon_capable`).
pub fn check_capabilities() -> Result<(), ProbeError> {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    match effective(&status).map(missing) {
        // What cannot be read is found out by trying.
        None => Ok(()),
        Some(names) if names.is_empty() => Ok(()),
        Some(names) => Err(ProbeError::new(
            ProbeErrorKind::Permission,
            format!("no permission to load kernel programs: {} missing", names.join(" and ")),
            "run as root (`sudo longpole ...`), or once: sudo setcap cap_bpf,cap_perfmon,cap_sys_ptrace+ep on the \
             longpole binary; `longpole doctor` lists every check",
        )),
    }
}

fn effective(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("CapEff:"))?;
    u64::from_str_radix(line.trim(), 16).ok()
}

fn missing(capabilities: u64) -> Vec<&'static str> {
    let has = |number: u32| capabilities & (1 << number) != 0;
    if has(CAP_SYS_ADMIN) {
        return Vec::new();
    }
    [(CAP_BPF, "CAP_BPF"), (CAP_PERFMON, "CAP_PERFMON")]
        .into_iter()
        .filter(|(number, _)| !has(*number))
        .map(|(_, name)| name)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_capabilities_are_named() {
        let status = |bits: u64| format!("Name:\tx\nCapEff:\t{bits:016x}\n");
        let names = |bits: u64| effective(&status(bits)).map(missing);
        assert_eq!(names(0), Some(vec!["CAP_BPF", "CAP_PERFMON"]));
        assert_eq!(names(1 << CAP_BPF), Some(vec!["CAP_PERFMON"]));
        assert_eq!(names(1 << CAP_BPF | 1 << CAP_PERFMON), Some(vec![]));
        assert_eq!(names(1 << CAP_SYS_ADMIN), Some(vec![]));
        assert_eq!(effective("CapEff:\tno number\n"), None);
    }
}
