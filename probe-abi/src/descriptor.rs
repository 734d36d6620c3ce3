//! The kinds of things to which a descriptor can refer.

/// What the descriptor refers to that is a system call's first argument.
#[repr(u32)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Descriptor {
    /// There is no descriptor, or its kind was not checked.
    #[default]
    Unknown = 0,
    /// A regular file or a directory.
    File = 1,
    /// A pipe, named or not.
    Pipe = 2,
    /// A socket of any family.
    Socket = 3,
    /// A descriptor of kind `eventfd`.
    Event = 4,
    /// A terminal, real or pseudo.
    Terminal = 5,
    /// A `timerfd` that expires some time after it was set, or a `timerfd` of unknown kind.
    Timer = 6,
    /// A descriptor of kind `signalfd`.
    Signal = 7,
    /// A descriptor of kind `epoll`.
    Epoll = 8,
    /// Another device, character or block.
    Device = 9,
    /// A descriptor of kind `io_uring`.
    Ring = 10,
    /// `inotify` or `fanotify`
    Notify = 11,
    /// A descriptor of kind `pidfd`.
    Process = 12,
    /// Something else that the kernel has made outside of file systems.
    Other = 13,
    /// A `timerfd` that expires periodically, or that was set to a point in time. If its reader works longer in
    /// between, the timer still expires at the same time.
    Deadline = 14,
}

impl Descriptor {
    /// The kind with this number. A number from a newer writer gives `Unknown`.
    pub const fn from_number(number: u32) -> Descriptor {
        match number {
            1 => Descriptor::File,
            2 => Descriptor::Pipe,
            3 => Descriptor::Socket,
            4 => Descriptor::Event,
            5 => Descriptor::Terminal,
            6 => Descriptor::Timer,
            7 => Descriptor::Signal,
            8 => Descriptor::Epoll,
            9 => Descriptor::Device,
            10 => Descriptor::Ring,
            11 => Descriptor::Notify,
            12 => Descriptor::Process,
            13 => Descriptor::Other,
            14 => Descriptor::Deadline,
            _ => Descriptor::Unknown,
        }
    }

    /// What the first argument of a system call refers to, if the call's number alone shows it. Such a call fails at
    /// once for any other kind of descriptor.
    pub const fn told_by(call: u32) -> Option<Descriptor> {
        match call {
            // connect, accept, sendto, recvfrom, sendmsg, recvmsg, accept4, recvmmsg, sendmmsg.
            42..=47 | 288 | 299 | 307 => Some(Descriptor::Socket),
            // epoll_wait, epoll_pwait, epoll_pwait2.
            232 | 281 | 441 => Some(Descriptor::Epoll),
            // io_uring_enter
            426 => Some(Descriptor::Ring),
            _ => None,
        }
    }

    /// Whether this call sends or receives data through the socket in its first argument: `sendto`, `recvfrom` and
    /// similar calls.
    pub const fn carries(call: u32) -> bool {
        matches!(call, 44..=47 | 299 | 307)
    }

    /// Whether the first argument of this system call is a descriptor that the call may wait for (Linux
    /// `arch/x86/entry/syscalls/syscall_64.tbl`).
    pub const fn is_first_argument_of(call: u32) -> bool {
        matches!(
            call,
            0 | 1
                | 16..=20
                | 40
                | 42..=47
                | 72..=75
                | 78
                | 217
                | 232
                | 275..=278
                | 281
                | 285
                | 288
                | 295
                | 296
                | 299
                | 306
                | 307
                | 326..=328
                | 426
                | 441
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptor_numbers_and_kinds_match_both_ways() {
        for number in 0..=14 {
            assert_eq!(Descriptor::from_number(number) as u32, number);
        }
        assert_eq!(Descriptor::from_number(15), Descriptor::Unknown);
    }

    #[test]
    fn system_calls_with_a_descriptor_as_first_argument_are_known() {
        // read, fsync, recvmsg, epoll_wait, io_uring_enter.
        assert!([0, 74, 47, 232, 426].into_iter().all(Descriptor::is_first_argument_of));
        // Only a call that accepts a single kind of descriptor shows the kind.
        assert!(
            (0..1_000)
                .all(|call| Descriptor::told_by(call).is_none() || Descriptor::is_first_argument_of(call))
        );
        assert_eq!(Descriptor::told_by(232), Some(Descriptor::Epoll));
        assert_eq!(Descriptor::told_by(0), None, "read reads anything");
        // open, poll, select, futex, nanosleep, and no call.
        assert!(![2, 7, 23, 202, 35, u32::MAX].into_iter().any(Descriptor::is_first_argument_of));
    }
}
