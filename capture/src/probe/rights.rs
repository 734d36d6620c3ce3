//! Checks whether this process may capture at all, before anything is attempted, so that the error names what is
//! missing instead of the first thing that failed.

use super::error::{ProbeError, ProbeErrorKind};

use std::os::unix::fs::MetadataExt as _;

use crate::rights::{CAP_BPF, CAP_PERFMON, Refusal, Rights};

/// Capabilities for loading and attaching programs.
const NEEDED: [(u32, &str); 2] = [(CAP_BPF, "CAP_BPF"), (CAP_PERFMON, "CAP_PERFMON")];

/// An error that names the missing capabilities, if the rights of this process are known to be insufficient.
pub fn check_capabilities() -> Result<(), ProbeError> {
    check(&Rights::read())
}

fn check(rights: &Rights) -> Result<(), ProbeError> {
    let missing: Vec<&str> =
        NEEDED.into_iter().filter(|(number, _)| !rights.has(*number)).map(|(_, name)| name).collect();
    let why = match refusal(rights) {
        Refusal::Guarded => return Ok(()),
        Refusal::UserNamespace => "the capabilities of a user namespace do not count".to_owned(),
        Refusal::NotRoot | Refusal::OutsideGroup(_) | Refusal::WeakRoot => {
            format!("{} missing", missing.join(" and "))
        }
    };
    let message = format!("no permission to load kernel programs: {why}");
    Err(ProbeError::new(ProbeErrorKind::Permission, message, hint(rights)))
}

/// Fails in another PID namespace than the first: the programs know processes by their PIDs in the first one only.
pub(super) fn check_namespace() -> Result<(), ProbeError> {
    // The kernel gives its first PID namespace this inode number (include/linux/proc_ns.h).
    const FIRST: u64 = 0xEFFF_FFFC;
    match std::fs::metadata("/proc/self/ns/pid") {
        Ok(namespace) if namespace.ino() != FIRST => Err(ProbeError::new(
            ProbeErrorKind::Unsupported,
            "longpole runs in its own PID namespace, where processes have other numbers than in the kernel",
            "run longpole outside the container, or start the container with --pid=host",
        )),
        _ => Ok(()),
    }
}

/// What the user can do about a system call that was refused.
pub(super) fn refused_hint() -> String {
    hint(&Rights::read())
}

fn refusal(rights: &Rights) -> Refusal {
    rights.refusal(&NEEDED.map(|(number, _)| number))
}

fn hint(rights: &Rights) -> String {
    refusal(rights).hint(
        "all capabilities are there, so the reason is kernel lockdown, a security module, or the system call filter of a container or sandbox: run longpole outside these; `longpole doctor` lists every check",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::rights::CAP_SYS_ADMIN;

    fn rights(bits: u64) -> Rights {
        Rights {
            root: false,
            capabilities: Some(bits),
            first_user_namespace: Some(true),
            group_to_join: None,
        }
    }

    #[test]
    fn missing_capabilities_are_named() {
        let said = |bits: u64| check(&rights(bits)).err().map(|error| error.message);
        let missing = |names: &str| Some(format!("no permission to load kernel programs: {names} missing"));
        assert_eq!(said(0), missing("CAP_BPF and CAP_PERFMON"));
        assert_eq!(said(1 << CAP_BPF), missing("CAP_PERFMON"));
        assert_eq!(said(1 << CAP_BPF | 1 << CAP_PERFMON), None);
        assert_eq!(said(1 << CAP_SYS_ADMIN), None);
        assert_eq!(check(&Rights { capabilities: None, ..rights(0) }), Ok(()));
    }

    /// Without this check longpole would start the command, fail with a map's name, and tell root to become root.
    #[test]
    fn root_of_a_user_namespace_is_refused_with_a_hint() {
        let inside = Rights { root: true, first_user_namespace: Some(false), ..rights(u64::MAX) };
        let error = check(&inside).expect_err("capabilities that do not count");
        assert!(error.message.contains("user namespace") && error.hint.contains("on the host"), "{error:?}");
    }
}
