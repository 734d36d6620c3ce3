//! The system calls that a parser may make: to read and map open files, to use memory, to talk to longpole. Opening a
//! file and some other calls return an error, because the standard library tries them now and then. All other calls end
//! the process.

use std::io;

/// System calls that are allowed.
const ALLOWED: [libc::c_long; 34] = [
    libc::SYS_read,
    libc::SYS_pread64,
    libc::SYS_readv,
    libc::SYS_write,
    libc::SYS_writev,
    libc::SYS_close,
    libc::SYS_fstat,
    libc::SYS_newfstatat,
    libc::SYS_statx,
    libc::SYS_lseek,
    libc::SYS_fcntl,
    libc::SYS_ftruncate,
    libc::SYS_memfd_create,
    libc::SYS_munmap,
    libc::SYS_mremap,
    libc::SYS_madvise,
    libc::SYS_brk,
    libc::SYS_sendmsg,
    libc::SYS_sendto,
    libc::SYS_recvmsg,
    libc::SYS_recvfrom,
    libc::SYS_poll,
    libc::SYS_futex,
    libc::SYS_getpid,
    libc::SYS_gettid,
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_sigaltstack,
    libc::SYS_sched_yield,
    libc::SYS_getrandom,
    libc::SYS_clock_gettime,
    libc::SYS_exit,
    libc::SYS_exit_group,
];

/// System calls that return an error.
const REFUSED: [libc::c_long; 8] = [
    libc::SYS_open,
    libc::SYS_openat,
    libc::SYS_readlink,
    libc::SYS_readlinkat,
    libc::SYS_access,
    libc::SYS_sched_getaffinity,
    libc::SYS_ioctl,
    libc::SYS_prctl,
];

const LOAD: u16 = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
const EQUAL: u16 = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
const ANY_BIT: u16 = (libc::BPF_JMP | libc::BPF_JSET | libc::BPF_K) as u16;
const RETURN: u16 = (libc::BPF_RET | libc::BPF_K) as u16;

/// Offsets of fields in `seccomp_data`.
const NUMBER: u32 = 0;
const ARCHITECTURE: u32 = 4;
const ARGUMENTS: u32 = 16;

/// The architecture of the allowed system calls: `AUDIT_ARCH_X86_64`.
const THIS_ARCHITECTURE: u32 = 0xc000_003e;

fn statement(code: u16, k: u32) -> libc::sock_filter {
    libc::sock_filter { code, jt: 0, jf: 0, k }
}

/// Makes a comparison that skips the next `skip` statements if it fails.
fn unless(code: u16, k: u32, skip: u8) -> libc::sock_filter {
    libc::sock_filter { code, jt: 0, jf: skip, k }
}

/// The filter program for the process `pid`.
fn program(pid: i32) -> Vec<libc::sock_filter> {
    let kill = statement(RETURN, libc::SECCOMP_RET_KILL_PROCESS);
    let allow = statement(RETURN, libc::SECCOMP_RET_ALLOW);
    let refuse = statement(RETURN, libc::SECCOMP_RET_ERRNO | libc::EACCES as u32);
    let mut list = vec![
        statement(LOAD, ARCHITECTURE),
        libc::sock_filter { code: EQUAL, jt: 1, jf: 0, k: THIS_ARCHITECTURE },
        kill,
        statement(LOAD, NUMBER),
    ];
    for call in ALLOWED {
        list.extend([unless(EQUAL, call as u32, 1), allow]);
    }
    for call in REFUSED {
        list.extend([unless(EQUAL, call as u32, 1), refuse]);
    }
    // Mapping and protecting memory is allowed if the memory is not made executable.
    for call in [libc::SYS_mmap, libc::SYS_mprotect] {
        list.extend([
            unless(EQUAL, call as u32, 4),
            statement(LOAD, ARGUMENTS + 2 * 8),
            unless(ANY_BIT, libc::PROT_EXEC as u32, 1),
            kill,
            allow,
        ]);
    }
    // `abort()` of the C library sends a signal to its own thread.
    list.extend([
        unless(EQUAL, libc::SYS_tgkill as u32, 3),
        statement(LOAD, ARGUMENTS),
        unless(EQUAL, pid as u32, 1),
        allow,
        kill,
    ]);
    list
}

/// Installs the filter. No process can remove it later.
pub fn install(pid: i32) -> io::Result<()> {
    let mut list = program(pid);
    let program = libc::sock_fprog {
        len: u16::try_from(list.len()).map_err(io::Error::other)?,
        filter: list.as_mut_ptr(),
    };
    // SAFETY: the program lives until the call returns; the kernel copies and checks it.
    let result = unsafe { libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Interprets the filter program as the kernel would, and returns its result.
    fn verdict(pid: i32, architecture: u32, number: libc::c_long, arguments: [u64; 6]) -> u32 {
        let mut data = [0u8; 64];
        data[0..4].copy_from_slice(&(number as u32).to_le_bytes());
        data[4..8].copy_from_slice(&architecture.to_le_bytes());
        for (index, argument) in arguments.iter().enumerate() {
            data[16 + 8 * index..24 + 8 * index].copy_from_slice(&argument.to_le_bytes());
        }
        let (mut at, mut value) = (0usize, 0u32);
        let list = program(pid);
        loop {
            let step = list[at];
            at += 1;
            match step.code {
                LOAD => {
                    let from = step.k as usize;
                    value = u32::from_le_bytes(data[from..from + 4].try_into().expect("4 bytes"));
                }
                EQUAL => at += usize::from(if value == step.k { step.jt } else { step.jf }),
                ANY_BIT => at += usize::from(if value & step.k != 0 { step.jt } else { step.jf }),
                RETURN => return step.k,
                other => panic!("unknown code {other}"),
            }
        }
    }

    #[test]
    fn the_parser_s_filter_allows_listed_system_calls_only() {
        let of = |number, arguments| verdict(77, THIS_ARCHITECTURE, number, arguments);
        let none = [0; 6];
        let (allow, kill) = (libc::SECCOMP_RET_ALLOW, libc::SECCOMP_RET_KILL_PROCESS);
        for call in [libc::SYS_read, libc::SYS_munmap, libc::SYS_sendmsg, libc::SYS_exit_group] {
            assert_eq!(of(call, none), allow, "{call}");
        }
        for call in [
            libc::SYS_execve,
            libc::SYS_socket,
            libc::SYS_connect,
            libc::SYS_ptrace,
            libc::SYS_clone,
            libc::SYS_fork,
            libc::SYS_kill,
            libc::SYS_bpf,
            libc::SYS_process_vm_readv,
            libc::SYS_setuid,
            libc::SYS_unlink,
            libc::SYS_openat2,
        ] {
            assert_eq!(of(call, none), kill, "{call}");
        }
        assert_eq!(of(libc::SYS_openat, none) & 0xffff_0000, libc::SECCOMP_RET_ERRNO);
        assert_eq!(of(libc::SYS_mmap, [0, 0, 3, 0, 0, 0]), allow);
        assert_eq!(of(libc::SYS_mmap, [0, 0, 5, 0, 0, 0]), kill);
        assert_eq!(of(libc::SYS_mprotect, [0, 0, 1, 0, 0, 0]), allow);
        assert_eq!(of(libc::SYS_mprotect, [0, 0, 7, 0, 0, 0]), kill);
        assert_eq!(of(libc::SYS_tgkill, [77, 0, 0, 0, 0, 0]), allow);
        assert_eq!(of(libc::SYS_tgkill, [1, 0, 0, 0, 0, 0]), kill);
        assert_eq!(verdict(77, 0x4000_0003, libc::SYS_read, none), kill, "32-bit calls have other numbers");
    }
}
