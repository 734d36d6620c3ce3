//! The errors of capturing.

use std::fmt;
use std::num::NonZeroU32;

/// Why capturing is not possible, in one line, and in another line what the user can do about it. The hint may be
/// empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProbeError {
    /// The kind of error, which decides the exit code.
    pub kind: ProbeErrorKind,
    /// What is wrong, with the name of the file, process or program.
    pub message: String,
    /// What the user can do.
    pub hint: String,
}

/// Kinds of errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProbeErrorKind {
    /// This longpole was built without kernel programs.
    ReplayOnly,
    /// The process has not enough rights.
    Permission,
    /// The kernel lacks something.
    Unsupported,
    /// The target has ended or cannot be probed.
    Target,
    /// Anything else that should have worked.
    Failed,
}

impl ProbeError {
    pub(crate) fn new(
        kind: ProbeErrorKind,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) -> ProbeError {
        ProbeError { kind, message: message.into(), hint: hint.into() }
    }

    /// An error with the messages of its causes. If they include a system error code, that code decides the kind.
    pub(crate) fn from_cause(
        what: impl fmt::Display,
        cause: &(dyn std::error::Error + 'static),
    ) -> ProbeError {
        let message = format!("{what}: {}", chain(cause));
        match io_code(cause) {
            Some(libc::EPERM | libc::EACCES) => {
                ProbeError::new(ProbeErrorKind::Permission, message, super::rights::refused_hint())
            }
            Some(libc::ESRCH) => ProbeError::new(ProbeErrorKind::Target, message, "the process has ended"),
            _ => ProbeError::new(
                ProbeErrorKind::Failed,
                message,
                "`longpole doctor` checks what this kernel supports",
            ),
        }
    }

    /// A binary in a process cannot be probed. A file that does not exist any more means that the process has ended.
    pub(crate) fn of_probe(binary: impl fmt::Display, pid: NonZeroU32, cause: &std::io::Error) -> ProbeError {
        let failed = ProbeError::from_cause(format!("cannot probe {binary} in process {pid}"), cause);
        match cause.raw_os_error() {
            Some(libc::ENOENT | libc::ESRCH) => {
                ProbeError::new(ProbeErrorKind::Target, failed.message, "the process has ended")
            }
            _ => failed,
        }
    }
}

impl fmt::Display for ProbeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for ProbeError {}

/// The system error code at the bottom of a chain of causes.
pub(crate) fn io_code(cause: &(dyn std::error::Error + 'static)) -> Option<i32> {
    let mut next = Some(cause);
    while let Some(error) = next {
        if let Some(code) = error.downcast_ref::<std::io::Error>().and_then(std::io::Error::raw_os_error) {
            return Some(code);
        }
        next = error.source();
    }
    None
}

/// The messages of a chain of causes in one line, without repeating what a message already contains. If a text is long,
/// such as the verifier's log in aya's message, only its end is kept.
fn chain(cause: &(dyn std::error::Error + 'static)) -> String {
    const LONGEST: usize = 600;
    let mut text = String::new();
    let mut next = Some(cause);
    while let Some(error) = next {
        let message = error.to_string();
        if !text.contains(&message) {
            if !text.is_empty() {
                text.push_str(": ");
            }
            text.push_str(&message);
        }
        next = error.source();
    }
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match text.char_indices().rev().nth(LONGEST) {
        Some((cut, _)) => format!("… {}", &text[cut..]),
        None => text,
    }
}

/// An error: the kernel programs lack a map that this process uses.
pub(crate) fn no_map(name: &str) -> ProbeError {
    ProbeError::new(
        ProbeErrorKind::Failed,
        format!("the kernel programs have no map {name}"),
        "the object file and this binary are of different versions: build both with ./x build",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refused_call_is_a_permission_error_and_a_missing_process_is_not() {
        let refused = ProbeError::from_cause("attach", &std::io::Error::from_raw_os_error(libc::EPERM));
        assert_eq!(refused.kind, ProbeErrorKind::Permission);
        assert!(refused.hint.contains("longpole doctor") || refused.hint.contains("container"));
        let gone = ProbeError::from_cause("attach", &std::io::Error::from_raw_os_error(libc::ESRCH));
        assert_eq!(gone.kind, ProbeErrorKind::Target);
        let other = ProbeError::from_cause("attach", &std::io::Error::from_raw_os_error(libc::EINVAL));
        assert_eq!(other.kind, ProbeErrorKind::Failed);
    }

    #[test]
    fn a_long_verifier_log_becomes_one_line_with_its_end() {
        let log = format!("{}\nthe last word", "line\n".repeat(10_000));
        let error = ProbeError::from_cause("load", &std::io::Error::other(log));
        assert!(error.message.len() < 1_000);
        assert!(error.message.ends_with("the last word"));
        assert!(!error.message.contains('\n'));
    }
}
