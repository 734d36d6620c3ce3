//! A session's description: who recorded, which command, and where, when and how.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::{SystemTime, UNIX_EPOCH};

/// The first chunk of a session. Later versions may add fields; readers ignore fields that they do not know.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Meta {
    /// Version of the longpole that wrote the session.
    pub longpole_version: String,
    /// [`probe_abi::ABI_VERSION`] of the records.
    pub abi_version: u32,
    /// Release of the kernel, as `uname -r` prints it.
    pub kernel_release: String,
    /// Instruction set, e.g. `x86_64`.
    pub machine: String,
    /// Host name.
    pub host: String,
    /// Number of CPUs online.
    pub cpu_count: u32,
    /// Relates the records' clock to the calendar.
    pub clock: ClockAnchor,
    /// The command that longpole started, or the command of the first recorded process. May be empty.
    pub command: Vec<String>,
    /// The processes that were recorded from the beginning on.
    pub pids: Vec<u32>,
    /// Options of the recording, e.g. `children` → `true`.
    pub options: BTreeMap<String, String>,
}

/// One instant as shown by two clocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ClockAnchor {
    /// The time of `CLOCK_MONOTONIC`, in nanoseconds.
    pub monotonic_ns: u64,
    /// The time of `CLOCK_REALTIME`, in nanoseconds since 1970.
    pub realtime_ns: u64,
}

impl ClockAnchor {
    /// The present instant. The caller passes the monotonic time; this function reads the calendar's clock.
    pub fn now(monotonic_ns: u64) -> ClockAnchor {
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        ClockAnchor { monotonic_ns, realtime_ns: u64::try_from(since_1970.as_nanos()).unwrap_or(u64::MAX) }
    }
}

impl Meta {
    /// Describes this machine and this longpole. The caller fills in `command`, `pids` and `options`.
    pub fn of_this_machine(clock: ClockAnchor) -> Meta {
        Meta {
            longpole_version: env!("CARGO_PKG_VERSION").to_string(),
            abi_version: probe_abi::ABI_VERSION,
            kernel_release: kernel_text("/proc/sys/kernel/osrelease"),
            machine: std::env::consts::ARCH.to_string(),
            host: kernel_text("/proc/sys/kernel/hostname"),
            cpu_count: online_cpus(),
            clock,
            command: Vec::new(),
            pids: Vec::new(),
            options: BTreeMap::new(),
        }
    }
}

fn kernel_text(path: &str) -> String {
    std::fs::read_to_string(path).map(|text| text.trim().to_string()).unwrap_or_default()
}

/// Number of all online CPUs of the machine, not only of those on which longpole may run.
pub fn online_cpus() -> u32 {
    let text = kernel_text("/sys/devices/system/cpu/online");
    let count: u32 = text
        .split(',')
        .filter_map(|part| {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let (first, last) = (first.parse::<u32>().ok()?, last.parse::<u32>().ok()?);
            last.checked_sub(first)?.checked_add(1)
        })
        .sum();
    match count {
        0 => std::thread::available_parallelism().map_or(0, |n| u32::try_from(n.get()).unwrap_or(u32::MAX)),
        count => count,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_metadata_describes_this_machine() {
        let meta = Meta::of_this_machine(ClockAnchor::now(5));
        assert_eq!(meta.abi_version, probe_abi::ABI_VERSION);
        assert!(meta.cpu_count >= 1);
        assert!(!meta.kernel_release.is_empty());
        assert_eq!(meta.clock.monotonic_ns, 5);
        assert!(meta.clock.realtime_ns > 1_600_000_000_000_000_000);
    }

    #[test]
    fn unknown_fields_of_metadata_are_ignored_and_missing_ones_default() {
        let meta: Meta = serde_json::from_str(r#"{"host":"h","of_a_later_version":[1]}"#).expect("meta");
        assert_eq!(meta, Meta { host: "h".into(), ..Meta::default() });
    }
}
