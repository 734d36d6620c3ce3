//! Decides whether running programs can be recorded here, without asking longpole itself.

use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;
use std::time::Duration;

use crate::{process, workload};

/// The needed capabilities CAP_PERFMON and CAP_BPF, with their bit numbers (capability.h).
const NEEDED: [(u32, &str); 2] = [(38, "CAP_PERFMON"), (39, "CAP_BPF")];

/// The reason why live tests cannot run, or `None` if they can and must.
pub fn cannot_record() -> Option<&'static str> {
    static ANSWER: OnceLock<Option<String>> = OnceLock::new();
    ANSWER.get_or_init(decide).as_deref()
}

fn decide() -> Option<String> {
    let embedded =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../capture/embedded").join(std::env::consts::ARCH);
    if !embedded.join("probe-ebpf.o").exists() {
        return Some(format!("no kernel programs for {}: ./x embed makes them", std::env::consts::ARCH));
    }
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    if let Some(name) = missing_capability(&status) {
        return Some(format!("no {name}: run as root"));
    }
    if !Path::new("/sys/kernel/btf/vmlinux").exists() {
        return Some("this kernel has no BTF (/sys/kernel/btf/vmlinux)".into());
    }
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    if version(&release).is_none_or(|version| version < (6, 1)) {
        return Some(format!("kernel {} is older than 6.1 (COMPATIBILITY.md)", release.trim()));
    }
    let asker = match workload::build("bpf_allowed.c") {
        Ok(asker) => asker,
        Err(workload::Problem::NoCompiler(reason)) => return Some(reason),
        // If a source does not compile, the tests must not be skipped: they run and show the error.
        Err(workload::Problem::Broken(_)) => return None,
    };
    let answer = process::run(&mut Command::new(asker), Duration::from_secs(60)).ok()?;
    (answer.code != Some(0)).then(|| format!("the kernel refuses bpf(2) here: {}", answer.stdout.trim()))
}

fn missing_capability(status: &str) -> Option<&'static str> {
    let effective = status
        .lines()
        .find_map(|line| line.strip_prefix("CapEff:"))
        .and_then(|text| u64::from_str_radix(text.trim(), 16).ok())
        .unwrap_or(0);
    NEEDED.iter().find(|(bit, _)| effective & (1 << bit) == 0).map(|(_, name)| *name)
}

fn version(release: &str) -> Option<(u32, u32)> {
    let mut parts = release.trim().split(['.', '-']);
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_capabilities_are_found_by_their_bits() {
        assert_eq!(missing_capability("Name:\tx\nCapEff:\t000001ffffffffff\n"), None);
        assert_eq!(missing_capability("CapEff:\t000000c000000000\n"), None);
        assert_eq!(missing_capability("CapEff:\t0000004000000000\n"), Some("CAP_BPF"));
        assert_eq!(missing_capability(""), Some("CAP_PERFMON"));
    }

    #[test]
    fn kernel_versions_compare_as_numbers() {
        assert!(version("6.18.44-fc").is_some_and(|version| version >= (6, 1)));
        assert!(version("5.15.0-91-generic").is_some_and(|version| version < (6, 1)));
        assert_eq!(version("odd"), None);
    }
}
