//! How long a thread of longpole's keeps a CPU when others want it.

/// What the kernel's scheduler grants at least, and a fraction of what it grants by itself (3 ms on two
/// CPUs): a thread with less to do than that finishes, and one with more lets others run in between
/// (`/kernel/sched/syscalls.c`, `__setparam_fair`, Linux 6.12).
const TURN_NS: u64 = 100_000;

/// The kernel's `sched_attr`, as of its first version.
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

/// From now on the calling thread, and those that it starts, get their share of a CPU in short turns: a
/// thread that waits for that CPU waits for the rest of one turn. The share does not change. Kernels before
/// 6.12 do not support this and change nothing.
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
    // SAFETY: reads `attributes`, which has the size that it says, and changes this thread only.
    let failed = unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, 0) } != 0;
    if failed {
        log::debug!("turns stay as they are: {}", std::io::Error::last_os_error());
    }
}
