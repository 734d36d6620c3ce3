//! The rights of this process, and why the kernel may have refused something all the same.

mod file_group;

use std::os::unix::fs::MetadataExt;

pub use file_group::give_up_others;

/// Numbers of include/uapi/linux/capability.h.
pub const CAP_SYS_PTRACE: u32 = 19;
/// See [`CAP_SYS_PTRACE`].
pub const CAP_SYS_ADMIN: u32 = 21;
/// See [`CAP_SYS_PTRACE`].
pub const CAP_SYSLOG: u32 = 34;
/// See [`CAP_SYS_PTRACE`].
pub const CAP_PERFMON: u32 = 38;
/// See [`CAP_SYS_PTRACE`].
pub const CAP_BPF: u32 = 39;

/// Inode number that the kernel gives to the first user namespace (include/linux/proc_ns.h).
const FIRST_USER_NAMESPACE: u64 = 0xEFFF_FFFD;

/// The rights of longpole's process, read from /proc.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rights {
    /// The effective user is 0, in any namespace.
    pub root: bool,
    /// Effective capabilities, one bit for each. `None`: unknown.
    pub capabilities: Option<u64>,
    /// Whether the process is in the first user namespace. Capabilities in another one count neither for BPF nor for
    /// processes outside of it. `None`: unknown.
    pub first_user_namespace: Option<bool>,
    /// The group of longpole's file, if only its members have the file's capabilities and this user is not a member.
    pub group_to_join: Option<u32>,
}

/// Why the kernel refuses an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// An ordinary user without the capabilities.
    NotRoot,
    /// An ordinary user outside of this group, whose members have the capabilities of longpole's file.
    OutsideGroup(u32),
    /// The user is root without the capabilities, as in a container.
    WeakRoot,
    /// The rights of the process are limited to its user namespace.
    UserNamespace,
    /// No right is missing, so something else refuses: a security module, lockdown, the filter of a sandbox.
    Guarded,
}

impl Rights {
    /// Reads the rights of this process from /proc.
    pub fn read() -> Rights {
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let first = std::fs::metadata("/proc/self/ns/user").ok();
        Rights {
            first_user_namespace: first.map(|metadata| metadata.ino() == FIRST_USER_NAMESPACE),
            group_to_join: file_group::to_join(),
            ..Rights::of(&status)
        }
    }

    /// The rights in a text of /proc/PID/status.
    fn of(status: &str) -> Rights {
        let field = |name: &str| status.lines().find_map(|line| line.strip_prefix(name));
        let capabilities = field("CapEff:").and_then(|text| u64::from_str_radix(text.trim(), 16).ok());
        // The fields are real, effective, saved and file system user.
        let effective_user = field("Uid:").and_then(|text| text.split_whitespace().nth(1));
        Rights {
            root: effective_user == Some("0"),
            capabilities,
            first_user_namespace: None,
            group_to_join: None,
        }
    }

    /// Whether a capability is effective, or unknown, since then trying will show. `CAP_SYS_ADMIN` implies the two that
    /// were split off from it, as in the kernel
    /// (`bpf_capable`, `perfmon_capable`).
    pub fn has(&self, number: u32) -> bool {
        let Some(capabilities) = self.capabilities else { return true };
        let has = |number: u32| capabilities >> number & 1 == 1;
        has(number) || (matches!(number, CAP_BPF | CAP_PERFMON) && has(CAP_SYS_ADMIN))
    }

    /// Why an operation that needs these capabilities was refused.
    pub fn refusal(&self, needed: &[u32]) -> Refusal {
        if self.first_user_namespace == Some(false) {
            Refusal::UserNamespace
        } else if needed.iter().all(|number| self.has(*number)) {
            Refusal::Guarded
        } else if self.root {
            Refusal::WeakRoot
        } else if let Some(group) = self.group_to_join {
            Refusal::OutsideGroup(group)
        } else {
            Refusal::NotRoot
        }
    }
}

impl Refusal {
    /// What the user can do about the refusal; `guarded` is the hint for [`Refusal::Guarded`].
    pub fn hint(self, guarded: &str) -> String {
        match self {
            Refusal::NotRoot => {
                "run longpole as root (`sudo longpole ...`), or once: sudo setcap \
                 cap_bpf,cap_perfmon,cap_sys_ptrace+ep on the longpole binary (anyone who may run longpole can then trace all users' processes); `longpole doctor` lists every check"
            }
            Refusal::OutsideGroup(group) => {
                return format!(
                    "run longpole as root (`sudo longpole ...`), or join the group that may record (`sudo usermod -aG {} \
                     $USER`) and log in again",
                    file_group::name(group)
                );
            }
            Refusal::WeakRoot => {
                "this root user lacks capabilities, as in a container: run longpole on the host, or start the \
                 container with --pid=host --cap-add BPF --cap-add PERFMON --cap-add SYS_PTRACE"
            }
            Refusal::UserNamespace => {
                "longpole runs in a user namespace (unshare, a rootless container), whose root has no rights outside: run longpole on the host, with sudo"
            }
            Refusal::Guarded => guarded,
        }
        .to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NEEDED: [u32; 2] = [CAP_BPF, CAP_SYS_PTRACE];

    fn rights(user: u32, capabilities: u64) -> Rights {
        let status = format!("Name:\tx\nUid:\t7\t{user}\t7\t7\nCapEff:\t{capabilities:016x}\n");
        Rights { first_user_namespace: Some(true), ..Rights::of(&status) }
    }

    #[test]
    fn a_user_outside_of_the_files_group_learns_how_to_join_it() {
        let outside = Rights { group_to_join: Some(4_000_000), ..rights(1000, 0) };
        assert_eq!(outside.refusal(&NEEDED), Refusal::OutsideGroup(4_000_000));
        assert!(outside.refusal(&NEEDED).hint("guarded").contains("usermod -aG 4000000 $USER"));
    }

    /// Root must not be advised to run longpole as root.
    #[test]
    fn the_hint_of_a_refusal_fits_its_cause() {
        let hint = |rights: Rights| rights.refusal(&NEEDED).hint("guarded");
        assert!(hint(rights(1000, 0)).starts_with("run longpole as root"));
        assert!(hint(rights(0, 0)).contains("--cap-add SYS_PTRACE"));
        assert!(hint(rights(0, 1 << CAP_BPF)).contains("container"));
        assert_eq!(hint(rights(0, u64::MAX)), "guarded");
        assert_eq!(hint(rights(1000, 1 << CAP_SYS_ADMIN | 1 << CAP_SYS_PTRACE)), "guarded");
        for capabilities in [0, u64::MAX] {
            let inside = Rights { first_user_namespace: Some(false), ..rights(0, capabilities) };
            let hint = hint(inside);
            assert!(hint.contains("user namespace") && !hint.contains("as root"), "{hint}");
        }
    }

    #[test]
    fn unknown_rights_count_as_present() {
        let unknown = Rights::of("");
        assert_eq!((unknown.root, unknown.capabilities), (false, None));
        assert!(unknown.has(CAP_BPF));
        assert!(!rights(0, 0).has(CAP_BPF));
    }
}
