//! Errors for a process that cannot be watched: a message in one line, and a hint.

use crate::rights::Refusal;

/// A process that cannot be watched.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TargetError {
    /// There is no process with this number.
    #[error("no process with PID {pid}")]
    NoSuchProcess {
        /// The PID asked for.
        pid: u32,
    },
    /// The process has ended, but its parent has not waited for it yet.
    #[error("process {pid} is a zombie: it has already ended")]
    Zombie {
        /// The PID asked for.
        pid: u32,
    },
    /// The process ended while longpole was attaching to it.
    #[error("process {pid} ended while longpole was attaching to it")]
    ExitedDuringAttach {
        /// The PID asked for.
        pid: u32,
    },
    /// The kernel refuses access to the process.
    #[error("no permission to watch process {pid}: cannot read {what}")]
    NoPermission {
        /// The PID asked for.
        pid: u32,
        /// The file that was refused.
        what: String,
        /// The kernel's probable reason.
        why: Refusal,
    },
    /// The process runs no user code.
    #[error("process {pid} is a kernel thread: it has no program to watch")]
    KernelThread {
        /// The PID asked for.
        pid: u32,
    },
    /// The process is longpole itself.
    #[error("process {pid} is longpole itself")]
    OwnProcess {
        /// The PID asked for.
        pid: u32,
    },
    /// The number is that of a thread that is not the leader of its process.
    #[error("{tid} is a thread of process {pid}")]
    IsThread {
        /// The number asked for.
        tid: u32,
        /// The thread's process.
        pid: u32,
    },
    /// /proc holds something that is not understood.
    #[error("cannot read {what} of process {pid}")]
    Unreadable {
        /// The PID asked for.
        pid: u32,
        /// The file that cannot be read, and why.
        what: String,
    },
}

impl TargetError {
    /// What the user can do about the error.
    pub fn hint(&self) -> String {
        match self {
            TargetError::NoSuchProcess { pid } => match super::processes::namespace::with_inner_pid(*pid)[..] {
                [] => "list processes with `ps -e`".into(),
                [outer] => format!(
                    "process {outer} has the number {pid} in its own PID namespace (container): `-p {outer}`"
                ),
                [first, ..] => format!(
                    "several processes have the number {pid} in PID namespaces of their own (containers), {first} for \
                     example: give the number that `ps -e` shows here"
                ),
            },
            TargetError::Zombie { .. } => "record the program from its start: `longpole record -- CMD`".into(),
            TargetError::ExitedDuringAttach { .. } => {
                "for short programs use `longpole record -- CMD`, which starts them".into()
            }
            TargetError::NoPermission { why, .. } => why.hint(
                "longpole has all rights, so a security module (Landlock, SELinux, AppArmor) or longpole's own sandbox protects this process: run longpole outside the sandbox",
            ),
            TargetError::KernelThread { .. } => "give the PID of a program".into(),
            TargetError::OwnProcess { .. } => "give the PID of another program".into(),
            TargetError::IsThread { pid, .. } => format!("watch the whole process with `-p {pid}`"),
            TargetError::Unreadable { .. } => {
                "check that /proc is mounted: `mount -t proc proc /proc`".into()
            }
        }
    }
}
