//! How long a thread of longpole keeps a CPU that other threads want.

/// The smallest slice that the kernel's scheduler grants, a fraction of its default (3 ms on two CPUs). A thread with
/// less work finishes within the slice; a thread with more work lets others run in between (`/kernel/sched/syscalls.c`,
/// `__setparam_fair`, Linux 6.12).
const TURN_NS: u64 = 100_000;

/// The first version of the kernel's `sched_attr`.
#[repr(C)]
struct Attributes {
    size: u32,
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    runtime: u64,
    deadline: u64,
    period: u64,
}

/// `SCHED_FLAG_KEEP_POLICY`.
const KEEP_POLICY: u64 = 0x08;

/// Gives the calling thread, and threads that it starts later, a short time slice: another thread that wants the CPU
/// waits at most until the end of that slice. The share of CPU time does not change. Kernels before 6.12 do not support
/// this and change nothing.
pub fn take_short_turns() {
    let nice = rustix::process::getpriority_process(None).unwrap_or(0);
    let attributes = Attributes {
        size: size_of::<Attributes>() as u32,
        policy: 0,
        flags: KEEP_POLICY,
        nice,
        priority: 0,
        runtime: TURN_NS,
        deadline: 0,
        period: 0,
    };
    // SAFETY: it reads `attributes`, which has the size that it contains, and changes this thread only.
    let failed = unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, 0) } != 0;
    if failed {
        log::debug!("turns stay as they are: {}", std::io::Error::last_os_error());
    }
}
