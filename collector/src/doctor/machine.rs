//! Everything the checks need to know, read from /proc and /sys. Nothing is changed and nothing is loaded into the kernel.

use capture::rights::Rights;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Names of kernel functions and types that show, by being in the kernel's type information, what the kernel can do.
pub const UPROBE_MULTI: &str = "bpf_uprobe_multi_link_attach";
/// See [`UPROBE_MULTI`].
pub const RING_BUFFER: &str = "bpf_ringbuf";
/// Tracepoints that kernel programs are attached to.
pub const TRACEPOINTS: [&str; 13] = [
    "sched_switch",
    "sched_waking",
    "sched_wakeup_new",
    "sched_process_fork",
    "sched_process_exec",
    "sched_process_exit",
    "sched_process_free",
    "task_rename",
    "irq_handler_entry",
    "irq_handler_exit",
    "hrtimer_expire_entry",
    "hrtimer_expire_exit",
    "softirq_entry",
];

/// Properties of a machine that matter to longpole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Machine {
    /// The kernel's release, as `uname -r` prints it.
    pub kernel_release: String,
    /// Instruction set.
    pub architecture: String,
    /// The kernel's type information.
    pub btf: Btf,
    /// Whether kernel programs find the fields of this kernel's structures; otherwise the reason.
    pub structures: Result<(), String>,
    /// Whether the kernel has uprobes.
    pub uprobes: bool,
    /// Capabilities of this process, longpole.
    pub rights: Rights,
    /// Capabilities that longpole's process could get by setcap or sudo, one bit each.
    pub obtainable: u64,
    /// Whether longpole is in the first PID namespace. In another one most processes are invisible, and pids differ.
    pub first_pid_namespace: Option<bool>,
    /// Whether `no_new_privs` is set: then capabilities of files are ignored.
    pub no_new_privileges: bool,
    /// The kernel's setting `kernel.perf_event_paranoid`; `None`: it cannot be read.
    pub perf_event_paranoid: Option<i32>,
    /// Kernel lockdown: `none`, `integrity` or `confidentiality`.
    pub lockdown: Option<String>,
    /// The kind of container that this seems to be.
    pub container: Option<String>,
    /// Whether longpole's binary contains kernel programs that fit it; otherwise the reason.
    pub programs: Result<(), String>,
    /// Whether launched commands can preload the library that records their operations; otherwise the reason.
    pub library: Result<(), String>,
    /// Path of longpole's binary, for commands that users copy.
    pub executable: PathBuf,
}

/// The kernel's type information (/sys/kernel/btf/vmlinux).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Btf {
    /// The kernel has no type information.
    Missing,
    /// The type information exists but cannot be read.
    Unreadable(String),
    /// The names, of those that longpole needs, that the type information contains.
    Names(Vec<&'static str>),
}

impl Machine {
    /// Reads this machine.
    pub fn read() -> Machine {
        let status = text("/proc/self/status");
        Machine {
            kernel_release: text("/proc/sys/kernel/osrelease").trim().to_string(),
            architecture: std::env::consts::ARCH.to_string(),
            btf: btf(Path::new("/sys/kernel/btf/vmlinux")),
            structures: capture::probe::check_kernel().map_err(|error| error.message),
            uprobes: Path::new("/sys/bus/event_source/devices/uprobe").exists(),
            rights: Rights::read(),
            // A kernel without that line limits no capability.
            obtainable: capabilities(&status, "CapBnd:").unwrap_or(u64::MAX),
            // The first PID namespace's inode number (include/linux/proc_ns.h).
            first_pid_namespace: is_inode("/proc/self/ns/pid", 0xEFFF_FFFC),
            no_new_privileges: field(&status, "NoNewPrivs:") == Some("1"),
            perf_event_paranoid: text("/proc/sys/kernel/perf_event_paranoid").trim().parse().ok(),
            lockdown: lockdown(&text("/sys/kernel/security/lockdown")),
            container: container(),
            programs: capture::probe::check_programs().map_err(|error| error.message),
            library: capture::interpose::check_library(),
            executable: std::env::current_exe().unwrap_or_else(|_| PathBuf::from("longpole")),
        }
    }
}

fn text(path: &str) -> String {
    std::fs::read_to_string(path).unwrap_or_default()
}

fn field<'a>(status: &'a str, name: &str) -> Option<&'a str> {
    status.lines().find_map(|line| line.strip_prefix(name)).map(str::trim)
}

fn capabilities(status: &str, name: &str) -> Option<u64> {
    u64::from_str_radix(field(status, name)?, 16).ok()
}

fn is_inode(path: &str, inode: u64) -> Option<bool> {
    std::fs::metadata(path).ok().map(|metadata| metadata.ino() == inode)
}

fn btf(path: &Path) -> Btf {
    match std::fs::read(path) {
        Ok(bytes) => Btf::Names(names_in(&bytes)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Btf::Missing,
        Err(error) => Btf::Unreadable(error.to_string()),
    }
}

/// Which of the names that longpole needs the type information contains. Its names are C strings, so each is between
/// two NULs.
fn names_in(btf: &[u8]) -> Vec<&'static str> {
    let strings: std::collections::HashSet<&[u8]> = btf.split(|byte| *byte == 0).collect();
    let plain = [UPROBE_MULTI, RING_BUFFER].into_iter().filter(|name| strings.contains(name.as_bytes()));
    let tracepoints =
        TRACEPOINTS.into_iter().filter(|name| strings.contains(format!("btf_trace_{name}").as_bytes()));
    plain.chain(tracepoints).collect()
}

/// The active mode of the kernel's lockdown: `none [integrity] confidentiality` → `integrity`.
fn lockdown(text: &str) -> Option<String> {
    let (_, rest) = text.split_once('[')?;
    rest.split_once(']').map(|(chosen, _)| chosen.to_string())
}

fn container() -> Option<String> {
    if Path::new("/run/.containerenv").exists() {
        return Some("podman".into());
    }
    if Path::new("/.dockerenv").exists() {
        return Some("docker".into());
    }
    // Only root may read this file. systemd-nspawn and LXC write their names there.
    let environment = std::fs::read("/proc/1/environ").unwrap_or_default();
    environment
        .split(|byte| *byte == 0)
        .find_map(|variable| variable.strip_prefix(b"container="))
        .map(|name| String::from_utf8_lossy(name).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernel_names_are_found_only_as_whole_strings() {
        let bytes =
            b"\0bpf_ringbuf_notify\0btf_trace_sched_switch\0sched_waking\0bpf_uprobe_multi_link_attach\0";
        assert_eq!(names_in(bytes), [UPROBE_MULTI, "sched_switch"]);
    }

    #[test]
    fn the_active_lockdown_is_the_one_in_brackets() {
        assert_eq!(lockdown("none [integrity] confidentiality\n").as_deref(), Some("integrity"));
        assert_eq!(lockdown("[none] integrity confidentiality\n").as_deref(), Some("none"));
        assert_eq!(lockdown(""), None);
    }

    #[test]
    fn capabilities_are_read_from_the_fields_of_a_status_file() {
        let status = "Name:\tx\nCapEff:\t000001ffffffffff\nNoNewPrivs:\t0\n";
        assert_eq!(field(status, "CapEff:"), Some("000001ffffffffff"));
        assert_eq!(field(status, "CapBnd:"), None);
        assert_eq!(capabilities(status, "CapEff:"), Some((1 << 41) - 1));
        assert_eq!(capabilities(status, "CapBnd:"), None);
    }

    #[test]
    fn this_machine_is_read_with_its_release_and_pid_namespace() {
        let machine = Machine::read();
        assert!(!machine.kernel_release.is_empty());
        assert!(machine.first_pid_namespace.is_some());
    }
}
