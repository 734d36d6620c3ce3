//! The checks: pure functions of a [`Machine`].

use super::machine::{Btf, Machine, RING_BUFFER, TRACEPOINTS, UPROBE_MULTI};
use capture::rights::{CAP_BPF, CAP_PERFMON, CAP_SYS_PTRACE, CAP_SYSLOG};
use serde::Serialize;

/// Something that longpole needs or can use.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Check {
    /// Stable word for machines.
    pub id: &'static str,
    /// Whether the machine has the checked feature.
    pub ok: bool,
    /// Whether recording is impossible without the feature.
    pub required: bool,
    /// What the check found.
    pub found: String,
    /// What longpole needs the feature for.
    pub why: &'static str,
    /// The command or change that provides the feature; `None` if the machine has it.
    pub fix: Option<String>,
}

/// The oldest kernel that longpole is tested on (COMPATIBILITY.md).
const OLDEST_KERNEL: (u32, u32) = (6, 1);
/// The first kernel whose uprobe_multi links count all threads of a process.
const GOOD_COMMON_LINKS: (u32, u32) = (6, 10);

/// Checks a machine. Checks and their order are the same on every machine.
pub fn check(machine: &Machine) -> Vec<Check> {
    vec![
        programs(machine),
        architecture(machine),
        kernel(machine),
        btf(machine),
        structures(machine),
        tracepoints(machine),
        ring_buffer(machine),
        uprobes(machine),
        uprobe_multi(machine),
        interpose(machine),
        capability(machine, CAP_BPF),
        capability(machine, CAP_PERFMON),
        capability(machine, CAP_SYS_PTRACE),
        capability(machine, CAP_SYSLOG),
        paranoid(machine),
        lockdown(machine),
        container(machine),
    ]
}

/// A check; its fix is dropped if nothing is missing.
fn verdict(
    id: &'static str,
    ok: bool,
    required: bool,
    found: impl Into<String>,
    why: &'static str,
    fix: impl Into<String>,
) -> Check {
    Check { id, ok, required, found: found.into(), why, fix: (!ok).then(|| fix.into()) }
}

fn programs(machine: &Machine) -> Check {
    verdict(
        "programs",
        machine.programs.is_ok(),
        true,
        match &machine.programs {
            Ok(()) => "kernel programs are built in",
            Err(problem) => problem,
        },
        "without kernel programs, longpole can only analyse recordings made elsewhere",
        "run ./x embed, which makes the kernel programs from their sources, then build again",
    )
}

fn architecture(machine: &Machine) -> Check {
    verdict(
        "architecture",
        machine.architecture == "x86_64",
        true,
        machine.architecture.clone(),
        "the exits of functions are found by decoding x86-64 instructions",
        "record on an x86-64 machine; recordings can be analysed anywhere",
    )
}

/// Major and minor version of a kernel release: `6.18.0-1-amd64` → (6, 18).
fn version(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit());
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

fn is_at_least(machine: &Machine, oldest: (u32, u32)) -> bool {
    version(&machine.kernel_release).is_some_and(|version| version >= oldest)
}

fn kernel(machine: &Machine) -> Check {
    verdict(
        "kernel",
        is_at_least(machine, OLDEST_KERNEL),
        true,
        format!("Linux {}", machine.kernel_release),
        "longpole is not tested on older kernels",
        "boot Linux 6.1 or newer",
    )
}

fn btf(machine: &Machine) -> Check {
    let (ok, found) = match &machine.btf {
        Btf::Names(_) => (true, "/sys/kernel/btf/vmlinux".to_string()),
        Btf::Missing => (false, "no /sys/kernel/btf/vmlinux".to_string()),
        Btf::Unreadable(error) => (false, format!("/sys/kernel/btf/vmlinux: {error}")),
    };
    verdict(
        "btf",
        ok,
        true,
        found,
        "the kernel's description of its structures, without which the programs cannot read the structures",
        "boot a kernel with CONFIG_DEBUG_INFO_BTF=y (distribution kernels have it), and mount sysfs: \
         mount -t sysfs sysfs /sys",
    )
}

fn structures(machine: &Machine) -> Check {
    let found = match &machine.structures {
        Ok(()) => "all needed members were found".to_string(),
        Err(problem) => problem.clone(),
    };
    verdict(
        "structures",
        machine.structures.is_ok(),
        true,
        found,
        "the programs read the state of threads from the kernel's own structures",
        "boot Linux 6.1 or newer with CONFIG_DEBUG_INFO_BTF=y",
    )
}

/// A required check of a kernel feature.
fn feature(id: &'static str, there: bool, what: &str, why: &'static str, fix: &str) -> Check {
    let found = if there { what.to_owned() } else { format!("no {what}") };
    verdict(id, there, true, found, why, fix)
}

fn has(machine: &Machine, name: &str) -> bool {
    matches!(&machine.btf, Btf::Names(names) if names.contains(&name))
}

fn tracepoints(machine: &Machine) -> Check {
    let missing: Vec<&str> = TRACEPOINTS.into_iter().filter(|name| !has(machine, name)).collect();
    let found = if missing.is_empty() {
        format!("all {} are there", TRACEPOINTS.len())
    } else {
        format!("missing: {}", missing.join(", "))
    };
    verdict(
        "tracepoints",
        missing.is_empty(),
        true,
        found,
        "tracepoints show which thread runs, waits or wakes another, and for which lock",
        "boot a kernel with CONFIG_TRACEPOINTS=y, CONFIG_FTRACE_SYSCALLS=y and CONFIG_DEBUG_INFO_BTF=y",
    )
}

fn ring_buffer(machine: &Machine) -> Check {
    feature(
        "ring_buffer",
        has(machine, RING_BUFFER),
        "BPF ring buffers",
        "the kernel passes events to longpole through ring buffers",
        "boot Linux 5.8 or newer with CONFIG_BPF_SYSCALL=y",
    )
}

fn uprobes(machine: &Machine) -> Check {
    verdict(
        "uprobes",
        machine.uprobes,
        true,
        if machine.uprobes { "the kernel has uprobes" } else { "the kernel has no uprobes" },
        "uprobes show when a thread enters and leaves a function; --exact and --functions need uprobes",
        "boot a kernel with CONFIG_UPROBE_EVENTS=y",
    )
}

fn uprobe_multi(machine: &Machine) -> Check {
    let found = match (has(machine, UPROBE_MULTI), is_at_least(machine, GOOD_COMMON_LINKS)) {
        (true, true) => "many breakpoints share a link",
        (true, false) => {
            "links of many breakpoints miss threads in this kernel: each breakpoint gets its own link"
        }
        (false, _) => "no links of many breakpoints: each breakpoint gets its own link",
    };
    verdict(
        "uprobe_multi",
        has(machine, UPROBE_MULTI) && is_at_least(machine, GOOD_COMMON_LINKS),
        false,
        found,
        "with --exact and --functions, common links are removed in milliseconds, and other links in seconds",
        "boot Linux 6.10 or newer with CONFIG_UPROBES=y and CONFIG_BPF_EVENTS=y",
    )
}

fn interpose(machine: &Machine) -> Check {
    let (ok, found) = match &machine.library {
        Ok(()) => (true, "commands start with the library in front of their libc".to_owned()),
        Err(why) => (false, format!("the library in front of a command's libc: {why}")),
    };
    verdict(
        "interpose",
        ok,
        false,
        found,
        "lock operations of launched commands are recorded from inside, a hundred times cheaper than by probes",
        "run ./x embed, which makes the library, and make one of /tmp, /var/tmp and /dev/shm writable and not mounted noexec; until then probes on the C library record the same",
    )
}

fn has_capability(machine: &Machine, number: u32) -> bool {
    machine.rights.has(number) && machine.rights.first_user_namespace != Some(false)
}

fn capability(machine: &Machine, number: u32) -> Check {
    let (id, name, why, required) = match number {
        CAP_BPF => ("cap_bpf", "CAP_BPF", "loading programs into the kernel", true),
        CAP_PERFMON => ("cap_perfmon", "CAP_PERFMON", "programs that trace, and probes on functions", true),
        CAP_SYS_PTRACE => {
            ("cap_sys_ptrace", "CAP_SYS_PTRACE", "reading the memory maps of other users' processes", false)
        }
        _ => ("cap_syslog", "CAP_SYSLOG", "names of kernel functions where kptr_restrict hides them", false),
    };
    let ok = has_capability(machine, number);
    let found = match (ok, machine.rights.first_user_namespace) {
        (true, _) => format!("{name} is effective"),
        (false, Some(false)) => format!("{name} has no effect: this is not the first user namespace"),
        (false, _) => format!("no {name}"),
    };
    verdict(id, ok, required, found, why, capability_fix(machine, required))
}

fn capability_fix(machine: &Machine, required: bool) -> String {
    let names =
        if required { "cap_bpf,cap_perfmon" } else { "cap_bpf,cap_perfmon,cap_sys_ptrace,cap_syslog" };
    let executable = quoted(&machine.executable.to_string_lossy());
    let obtainable = [CAP_BPF, CAP_PERFMON].iter().all(|number| machine.obtainable >> number & 1 == 1);
    if machine.rights.first_user_namespace == Some(false) {
        format!("sudo {executable} ... outside this user namespace")
    } else if !obtainable {
        let caps: String =
            names.split(',').map(|name| format!(" --cap-add {}", name[4..].to_ascii_uppercase())).collect();
        format!("start the container with: {} run --pid=host{caps} ...", container_tool(machine))
    } else if machine.no_new_privileges {
        format!("sudo {executable} ... (no_new_privs is set here: capabilities of files are ignored)")
    } else if required && machine.rights.group_to_join.is_some() {
        machine.rights.refusal(&[CAP_BPF, CAP_PERFMON]).hint("")
    } else {
        // The text warns: the capabilities apply to every user who may run the file.
        format!(
            "sudo setcap {names}+ep {executable}   (then anyone who may run that file can trace all users' processes; or run longpole with sudo)"
        )
    }
}

fn container_tool(machine: &Machine) -> &'static str {
    if machine.container.as_deref() == Some("podman") { "podman" } else { "docker" }
}

/// A path as a word of a shell command.
fn quoted(path: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+".contains(c);
    if path.chars().all(plain) { path.to_string() } else { format!("'{}'", path.replace('\'', r"'\''")) }
}

fn paranoid(machine: &Machine) -> Check {
    let capable = has_capability(machine, CAP_PERFMON);
    let (ok, found) = match machine.perf_event_paranoid {
        Some(level) if capable => (true, format!("{level}, which CAP_PERFMON overrides")),
        Some(level) => (level <= -1, format!("{level}")),
        None => (capable, "cannot be read".to_string()),
    };
    verdict(
        "perf_event_paranoid",
        ok,
        false,
        found,
        "above -1 the kernel lets only CAP_PERFMON sample other processes",
        // The fix is the capability: lowering the level would affect all users.
        capability_fix(machine, true),
    )
}

fn lockdown(machine: &Machine) -> Check {
    let level = machine.lockdown.as_deref();
    verdict(
        "lockdown",
        level != Some("confidentiality"),
        true,
        level.unwrap_or("not in use"),
        "in confidentiality mode no program may read kernel memory",
        "boot without lockdown=confidentiality on the kernel's command line",
    )
}

fn container(machine: &Machine) -> Check {
    let found = match (&machine.container, machine.first_pid_namespace) {
        (Some(container), _) => format!("inside a container ({container})"),
        (None, Some(false)) => "in a PID namespace of its own".to_string(),
        (None, _) => "none".to_string(),
    };
    verdict(
        "container",
        machine.first_pid_namespace != Some(false),
        true,
        found,
        "in a PID namespace of its own longpole and the kernel number processes differently",
        format!(
            "run longpole on the host, or start the container with: {} run --pid=host ...",
            container_tool(machine)
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::all_required;
    use capture::rights::{CAP_SYS_ADMIN, Rights};

    fn capable(bits: u64) -> Rights {
        Rights { root: true, capabilities: Some(bits), first_user_namespace: Some(true), group_to_join: None }
    }

    fn good() -> Machine {
        Machine {
            kernel_release: "6.18.0-1-amd64".into(),
            architecture: "x86_64".into(),
            btf: Btf::Names([UPROBE_MULTI, RING_BUFFER].into_iter().chain(TRACEPOINTS).collect()),
            structures: Ok(()),
            uprobes: true,
            rights: capable(u64::MAX),
            obtainable: u64::MAX,
            first_pid_namespace: Some(true),
            no_new_privileges: false,
            perf_event_paranoid: Some(4),
            lockdown: Some("integrity".into()),
            container: None,
            programs: Ok(()),
            library: Ok(()),
            executable: "/opt/long pole/longpole".into(),
        }
    }

    /// Ids of the failed checks, and whether recording still works.
    fn missing(machine: &Machine) -> (Vec<&'static str>, bool) {
        let checks = check(machine);
        for check in &checks {
            assert_eq!(check.ok, check.fix.is_none(), "{check:?}");
            assert!(!check.found.is_empty() && !check.why.is_empty());
        }
        (checks.iter().filter(|check| !check.ok).map(|check| check.id).collect(), all_required(&checks))
    }

    #[test]
    fn doctor_on_a_good_machine_finds_nothing_missing() {
        assert_eq!(missing(&good()), (vec![], true));
    }

    #[test]
    fn doctor_names_each_missing_requirement() {
        let cases: [(Machine, &[&str], bool); 12] = [
            (Machine { programs: Err("none inside".into()), ..good() }, &["programs"], false),
            (Machine { kernel_release: "5.15.0".into(), ..good() }, &["kernel", "uprobe_multi"], false),
            (Machine { kernel_release: "6.6.13".into(), ..good() }, &["uprobe_multi"], true),
            (
                Machine { btf: Btf::Missing, ..good() },
                &["btf", "tracepoints", "ring_buffer", "uprobe_multi"],
                false,
            ),
            (
                Machine { rights: capable(1 << CAP_BPF | 1 << CAP_PERFMON), ..good() },
                &["cap_sys_ptrace", "cap_syslog"],
                true,
            ),
            (
                Machine { rights: capable(1 << CAP_SYS_ADMIN), ..good() },
                &["cap_sys_ptrace", "cap_syslog"],
                true,
            ),
            (
                Machine { rights: capable(0), ..good() },
                &["cap_bpf", "cap_perfmon", "cap_sys_ptrace", "cap_syslog", "perf_event_paranoid"],
                false,
            ),
            (Machine { lockdown: Some("confidentiality".into()), ..good() }, &["lockdown"], false),
            (Machine { first_pid_namespace: Some(false), ..good() }, &["container"], false),
            (Machine { uprobes: false, ..good() }, &["uprobes"], false),
            (Machine { structures: Err("no member".into()), ..good() }, &["structures"], false),
            (Machine { library: Err("noexec".into()), ..good() }, &["interpose"], true),
        ];
        for (machine, expected, works) in cases {
            assert_eq!(missing(&machine), (expected.to_vec(), works));
        }
    }

    /// Function probes need this; the text has to say that recording works without.
    #[test]
    fn a_check_for_function_probes_only_says_which_options_need_them() {
        let checks = check(&Machine { uprobes: false, ..good() });
        let check = checks.iter().find(|check| check.id == "uprobes").expect("check");
        assert!(!check.ok && check.why.contains("--exact and --functions need uprobes"), "{check:?}");
    }

    #[test]
    fn the_fix_of_a_check_can_be_pasted_into_a_shell() {
        let fix = |machine: &Machine| {
            let checks = check(machine);
            let check = checks.iter().find(|check| check.id == "cap_bpf").expect("check");
            check.fix.clone().expect("a fix")
        };
        let bare = Machine { rights: capable(0), ..good() };
        assert!(fix(&bare).starts_with("sudo setcap cap_bpf,cap_perfmon+ep '/opt/long pole/longpole'"));
        assert!(fix(&bare).contains("can trace all users' processes"));
        let docker = Machine { container: Some("docker".into()), obtainable: 0, ..bare.clone() };
        assert!(fix(&docker).contains("docker run --pid=host --cap-add BPF --cap-add PERFMON"));
        let inside = Rights { first_user_namespace: Some(false), ..capable(u64::MAX) };
        let user = Machine { rights: inside, ..good() };
        assert_eq!(fix(&user), "sudo '/opt/long pole/longpole' ... outside this user namespace");
        let inside = Machine { container: Some("docker".into()), ..bare };
        assert!(fix(&inside).starts_with("sudo setcap"), "a container that gives it to root is no obstacle");
    }

    #[test]
    fn kernel_versions_are_read_from_releases_of_any_form() {
        assert_eq!(version("6.18.0-1-amd64"), Some((6, 18)));
        assert_eq!(version("6.6-rc1"), Some((6, 6)));
        assert_eq!(version("10.0"), Some((10, 0)));
        assert_eq!(version("weird"), None);
    }
}
