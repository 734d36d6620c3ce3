//! Families of system calls in which threads wait, by the calls' numbers on x86-64 (Linux
//! `arch/x86/entry/syscalls/syscall_64.tbl`).

/// What a thread that sleeps in a system call waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CallKind {
    /// A futex.
    Futex,
    /// Data from a descriptor: `read` and its family.
    Read,
    /// Room in a descriptor: `write` and its family.
    Write,
    /// Until data is on a disk: `fsync` and its family.
    Sync,
    /// Data from a socket: `recvfrom` and its family.
    Receive,
    /// Room in a socket: `sendto` and its family.
    Send,
    /// A connection from another process.
    Accept,
    /// A connection to another process.
    Connect,
    /// Any of several descriptors: `poll`, `select`, `epoll_wait` and their families.
    Poll,
    /// Completions: `io_uring_enter`, `io_getevents`.
    Completion,
    /// Until a time, or for some time: `nanosleep`, `clock_nanosleep`.
    Sleep,
    /// The end of a child process.
    Child,
    /// A signal: `pause`, `sigsuspend`, `sigtimedwait`.
    Signal,
    /// A lock on a file.
    FileLock,
    /// Another call, or none.
    Other,
}

/// The family of the call with this number.
pub const fn call_kind(number: u32) -> CallKind {
    match number {
        202 | 449 | 454..=456 => CallKind::Futex,
        0 | 17 | 19 | 295 | 327 | 78 | 217 => CallKind::Read,
        1 | 18 | 20 | 296 | 328 | 40 | 275 | 276 | 278 | 326 => CallKind::Write,
        26 | 74 | 75 | 162 | 277 | 306 => CallKind::Sync,
        45 | 47 | 299 => CallKind::Receive,
        44 | 46 | 307 => CallKind::Send,
        43 | 288 => CallKind::Accept,
        42 => CallKind::Connect,
        7 | 23 | 232 | 270 | 271 | 281 | 441 => CallKind::Poll,
        208 | 333 | 426 => CallKind::Completion,
        35 | 230 => CallKind::Sleep,
        61 | 247 => CallKind::Child,
        34 | 128 | 130 => CallKind::Signal,
        72 | 73 => CallKind::FileLock,
        _ => CallKind::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares with the C library's numbers.
    #[test]
    #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
    fn call_kinds_have_the_c_library_s_numbers() {
        let kinds = [
            (libc::SYS_futex, CallKind::Futex),
            (libc::SYS_futex_waitv, CallKind::Futex),
            (libc::SYS_read, CallKind::Read),
            (libc::SYS_readv, CallKind::Read),
            (libc::SYS_pread64, CallKind::Read),
            (libc::SYS_preadv, CallKind::Read),
            (libc::SYS_preadv2, CallKind::Read),
            (libc::SYS_getdents64, CallKind::Read),
            (libc::SYS_write, CallKind::Write),
            (libc::SYS_writev, CallKind::Write),
            (libc::SYS_pwrite64, CallKind::Write),
            (libc::SYS_pwritev, CallKind::Write),
            (libc::SYS_pwritev2, CallKind::Write),
            (libc::SYS_sendfile, CallKind::Write),
            (libc::SYS_splice, CallKind::Write),
            (libc::SYS_tee, CallKind::Write),
            (libc::SYS_vmsplice, CallKind::Write),
            (libc::SYS_copy_file_range, CallKind::Write),
            (libc::SYS_fsync, CallKind::Sync),
            (libc::SYS_fdatasync, CallKind::Sync),
            (libc::SYS_msync, CallKind::Sync),
            (libc::SYS_sync, CallKind::Sync),
            (libc::SYS_syncfs, CallKind::Sync),
            (libc::SYS_sync_file_range, CallKind::Sync),
            (libc::SYS_recvfrom, CallKind::Receive),
            (libc::SYS_recvmsg, CallKind::Receive),
            (libc::SYS_recvmmsg, CallKind::Receive),
            (libc::SYS_sendto, CallKind::Send),
            (libc::SYS_sendmsg, CallKind::Send),
            (libc::SYS_sendmmsg, CallKind::Send),
            (libc::SYS_accept, CallKind::Accept),
            (libc::SYS_accept4, CallKind::Accept),
            (libc::SYS_connect, CallKind::Connect),
            (libc::SYS_poll, CallKind::Poll),
            (libc::SYS_ppoll, CallKind::Poll),
            (libc::SYS_select, CallKind::Poll),
            (libc::SYS_pselect6, CallKind::Poll),
            (libc::SYS_epoll_wait, CallKind::Poll),
            (libc::SYS_epoll_pwait, CallKind::Poll),
            (libc::SYS_epoll_pwait2, CallKind::Poll),
            (libc::SYS_io_uring_enter, CallKind::Completion),
            (libc::SYS_io_getevents, CallKind::Completion),
            (libc::SYS_nanosleep, CallKind::Sleep),
            (libc::SYS_clock_nanosleep, CallKind::Sleep),
            (libc::SYS_wait4, CallKind::Child),
            (libc::SYS_waitid, CallKind::Child),
            (libc::SYS_pause, CallKind::Signal),
            (libc::SYS_rt_sigsuspend, CallKind::Signal),
            (libc::SYS_rt_sigtimedwait, CallKind::Signal),
            (libc::SYS_fcntl, CallKind::FileLock),
            (libc::SYS_flock, CallKind::FileLock),
            (libc::SYS_getpid, CallKind::Other),
        ];
        for (number, kind) in kinds {
            assert_eq!(call_kind(number as u32), kind, "{number}");
        }
        assert_eq!(call_kind(u32::MAX), CallKind::Other);
    }
}
