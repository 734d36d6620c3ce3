//! Short names of waits in system calls, by call and descriptor.

use super::CallKind;
use probe_abi::Descriptor;

/// Short name of a wait in a call of this family, with this kind of descriptor, e.g. `pipe read`.
///
/// `None` for families whose name would not describe the wait.
pub const fn io_name(kind: CallKind, descriptor: Descriptor) -> Option<&'static str> {
    use Descriptor as D;
    Some(match kind {
        CallKind::Read => match descriptor {
            D::File => "file read",
            D::Pipe => "pipe read",
            D::Socket => "socket receive",
            D::Event => "eventfd read",
            D::Terminal => "terminal read",
            D::Timer | D::Deadline => "timerfd read",
            D::Signal => "signalfd read",
            D::Notify => "inotify read",
            D::Device => "device read",
            _ => "read",
        },
        CallKind::Write => match descriptor {
            D::File => "file write",
            D::Pipe => "pipe write",
            D::Socket => "socket send",
            D::Event => "eventfd write",
            D::Terminal => "terminal write",
            D::Device => "device write",
            _ => "write",
        },
        CallKind::Sync => match descriptor {
            D::File => "file sync",
            D::Device => "device sync",
            _ => "sync",
        },
        CallKind::Receive => "socket receive",
        CallKind::Send => "socket send",
        CallKind::Accept => "accept",
        CallKind::Connect => "connect",
        CallKind::Poll => "poll",
        CallKind::Completion => "io_uring",
        CallKind::FileLock => "file lock",
        CallKind::Futex | CallKind::Sleep | CallKind::Child | CallKind::Signal | CallKind::Other => {
            return None;
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_is_named_by_its_call_and_descriptor() {
        assert_eq!(io_name(CallKind::Read, Descriptor::Pipe), Some("pipe read"));
        assert_eq!(io_name(CallKind::Read, Descriptor::Socket), Some("socket receive"));
        assert_eq!(io_name(CallKind::Receive, Descriptor::Unknown), Some("socket receive"));
        assert_eq!(io_name(CallKind::Sync, Descriptor::File), Some("file sync"));
        assert_eq!(io_name(CallKind::Read, Descriptor::Unknown), Some("read"));
        assert_eq!(io_name(CallKind::Futex, Descriptor::Unknown), None);
    }
}
