//! Settings that user space makes for the kernel programs, and counters that the kernel programs keep for user space.
//! Settings and counters are shared memory or read-only globals, and not records.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// Number of possible process ids (`PID_MAX_LIMIT` on 64 bit), which is the size of the filter's bitmap in bits.
pub const PID_LIMIT: u32 = 1 << 22;

/// Largest number of rings to which the kernel programs write. There is one ring for each CPU, unless there are more
/// CPUs than this. A CPU writes to ring `cpu % Settings::rings`.
pub const MAX_RINGS: usize = 1024;

/// Largest number of `uprobe_multi` links of one process that have a generation of their own (see [`Cookie`]).
pub const MAX_GROUPS: usize = 256;

/// Largest number of open frames, of different functions, that the programs remember for one thread. Calls in deeper
/// frames are recorded, too, but their recursion is not folded: each recursive call has records of its own.
pub const MAX_OPEN_FRAMES: usize = 128;

/// Logarithm of the length of a rate window in nanoseconds. The rate limit counts calls in windows of 2^27 ns (134 ms).
pub const RATE_WINDOW_SHIFT: u32 = 27;

/// If all functions together have more calls than this on one CPU in one rate window (244,000 a second), the limit for
/// each single function becomes lower (see [`CROWDED_SHIFT`]). So the functions that are called most are cut off first.
/// Otherwise a program with thousands of functions could fill the rings although no single function is called too
/// often, and scheduler events would be lost, too.
pub const CROWDED_CALLS: u64 = 1 << 15;

/// While all functions together have too many calls, the limit of each function is 2^5 = 32 times lower.
pub const CROWDED_SHIFT: u32 = 5;

/// The settings: a read-only global of the kernel programs, fixed when they are loaded. Offsets are in bytes from the
/// start of the kernel's struct, according to the running kernel's own type information (BTF). All flags are 0 or 1.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct Settings {
    /// Process id of longpole itself, which is never tracked.
    pub own_pid: u32,
    /// 1: the children of tracked processes are tracked from their first instant.
    pub children: u32,
    /// Number of rings.
    pub rings: u32,
    /// Number of bytes in a ring above which the ring wakes its reader.
    pub ring_wake_bytes: u32,
    /// Number of calls of one function in one rate window after which the function is cut off. 0: never.
    pub calls_per_window: u32,
    /// Number of open probed calls of one thread above which nested calls are not recorded (2001, section 3.2). 0: all
    /// calls are recorded. At most [`MAX_OPEN_FRAMES`].
    pub max_depth: u32,
    /// 1: the next field is known, so the programs can determine in which context (thread or interrupt) they run.
    pub preempt_count_known: u32,
    /// Distance in bytes from a CPU's run queue (`runqueues`) to its pre-emption counter, as an `i32`. Run queue and
    /// counter are per-CPU variables, so the distance is the same on all CPUs.
    pub preempt_count_distance: u32,
    /// 1: the tracepoint `sched_process_exit` has the argument `group_dead` (Linux 6.16).
    pub exit_has_group_dead: u32,
    /// Offset of `task_struct.pid`.
    pub task_pid: u32,
    /// Offset of `task_struct.tgid`.
    pub task_tgid: u32,
    /// Offset of `task_struct.__state`.
    pub task_state: u32,
    /// Offset of `task_struct.start_time`.
    pub task_start_time: u32,
    /// Offset of `task_struct.static_prio`; 0: not known.
    pub task_static_prio: u32,
    /// Offset of `task_struct.cpus_mask`; 0: not known.
    pub task_cpus_mask: u32,
    /// Offset of `task_struct.nr_cpus_allowed`.
    pub task_cpus_allowed: u32,
    /// Offset of `task_struct.comm`.
    pub task_comm: u32,
    /// Offset of `task_struct.signal`.
    pub task_signal: u32,
    /// Offset of `signal_struct.live.counter`.
    pub signal_live: u32,
    /// Offset of `task_struct.pending.signal`.
    pub task_pending: u32,
    /// Offset of `task_struct.blocked`.
    pub task_blocked: u32,
    /// Offset of `signal_struct.shared_pending.signal`.
    pub signal_shared_pending: u32,
    /// Offset of `task_struct.se.cfs_rq`.
    pub task_cfs_rq: u32,
    /// Offset of `task_struct.se.sum_exec_runtime`; 0 if this, the previous or the next field is not known.
    pub task_ran: u32,
    /// Offset of `task_struct.se.prev_sum_exec_runtime`.
    pub task_ran_before: u32,
    /// Offset of `task_struct.prio`.
    pub task_priority: u32,
    /// Offset of `task_struct.thread_info.status`.
    pub task_status: u32,
    /// Offset of `task_struct.mm`.
    pub task_mm: u32,
    /// Offset of `mm_struct.start_code`.
    pub mm_start_code: u32,
    /// 1: the fields up to `dentry_parent` are known, so the programs can find out what a descriptor refers to.
    pub descriptors_known: u32,
    /// Offset of `task_struct.files`.
    pub task_files: u32,
    /// Offset of `files_struct.fdt`.
    pub files_fdt: u32,
    /// Offset of `fdtable.max_fds`.
    pub fdt_max_fds: u32,
    /// Offset of `fdtable.fd`.
    pub fdt_fd: u32,
    /// Offset of `file.f_inode`.
    pub file_inode: u32,
    /// Offset of `file.f_path.dentry`.
    pub file_dentry: u32,
    /// Offset of `inode.i_mode`.
    pub inode_mode: u32,
    /// Offset of `inode.i_rdev`.
    pub inode_rdev: u32,
    /// Offset of `inode.i_sb`.
    pub inode_sb: u32,
    /// Offset of `inode.i_ino`.
    pub inode_ino: u32,
    /// Offset of `super_block.s_dev`.
    pub sb_dev: u32,
    /// Offset of `super_block.s_magic`.
    pub sb_magic: u32,
    /// Offset of `dentry.d_name.name`.
    pub dentry_name: u32,
    /// Offset of `dentry.d_parent`.
    pub dentry_parent: u32,
    /// Offset of `file.private_data`; 0: not known.
    pub file_private: u32,
    /// Offset of `socket.sk`; 0 if this, or one of the other offsets in a socket, is not known.
    pub socket_sk: u32,
    /// Offset of `timerfd_ctx.tintv`; 0 if this, the next field or `file_private` is not known.
    pub timerfd_interval: u32,
    /// Offset of `timerfd_ctx.settime_flags`.
    pub timerfd_flags: u32,
    /// Offset of `net_device.type`.
    pub net_device_type: u32,
    /// Offset of `task_struct.thread.fsbase`, the thread pointer; 0: not known.
    pub task_thread_pointer: u32,
    /// The function counters from this number on belong to libc's functions.
    pub first_libc_counters: u32,
    /// Offset of `sock.__sk_common.skc_portpair`: the peer's port in network byte order, and the socket's own port. 0
    /// if this or one of the next five offsets is not known.
    pub sock_ports: u32,
    /// Offset of `sock.__sk_common.skc_daddr`.
    pub sock_daddr: u32,
    /// Offset of `sock.__sk_common.skc_family`.
    pub sock_family: u32,
    /// Offset of `sock.sk_type`.
    pub sock_type: u32,
    /// Offset of `sock.sk_protocol`; 0 if this or one of the next three offsets is not known.
    pub sock_protocol: u32,
    /// Offset of `tcp_sock.write_seq`.
    pub tcp_write_seq: u32,
    /// Offset of `tcp_sock.copied_seq`.
    pub tcp_copied_seq: u32,
    /// Offset of `tcp_sock.tcp_wstamp_ns`.
    pub tcp_departure: u32,
    /// 1: each request on a TCP connection is recorded at both ends of the connection ([`crate::Exchange`]).
    pub exchanges: u32,
    /// 1: the programs read the contexts that threads publish ([`crate::ThreadContext`]).
    pub thread_contexts: u32,
    /// Offset of `unix_sock.addr`.
    pub unix_addr: u32,
    /// Offset of `unix_sock.peer`.
    pub unix_peer: u32,
    /// Offset of `cfs_rq.rq`.
    pub cfs_rq_rq: u32,
    /// Offset of `pt_regs.sp`.
    pub regs_sp: u32,
    /// Offset of `pt_regs.ip`.
    pub regs_ip: u32,
    /// Offset of `pt_regs.bp`.
    pub regs_bp: u32,
    /// A [`crate::Sampling`] as a number.
    pub sampling: u32,
    /// Shortest time between two stacks of a thread that are taken when it sleeps, and between two that are taken when
    /// it wakes other threads, in nanoseconds.
    pub sample_period_ns: u32,
    /// Number of pieces of a stack to copy; at most [`crate::COPY_PIECES`].
    pub copy_pieces: u32,
    /// Offset of `pt_regs.orig_ax`, which contains the system call's number.
    pub regs_number: u32,
    /// Offsets in `pt_regs` of the first and the second argument of a system call.
    pub regs_arguments: [u32; 2],
}

/// The counters of one CPU, in shared memory. Only the kernel writes them.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct CpuCounters {
    /// Number of records that this CPU tried to write. The lower 32 bits are the number of the next record.
    pub sequence: u64,
    /// Number of records that did not fit into the ring.
    pub dropped: u64,
    /// Number of recursive calls that were folded: calls inside an open frame of the same function.
    pub folded: u64,
    /// Number of calls of functions that the rate limit had cut off, but that still had their probes.
    pub cut: u64,
    /// Number of calls whose recursion could not be folded, because there were too many open frames or no memory for
    /// them.
    pub unfolded: u64,
    /// Number of hits of a link that was being replaced.
    pub stale: u64,
    /// The thread on this CPU, according to the last switch that the programs saw.
    pub current: u64,
    /// How often a thread left this CPU although the programs had not seen it come to the CPU, where one of the two
    /// threads was recorded. In each case the kernel did not run the program for a switch.
    pub unseen_switches: u64,
    /// The hardware interrupt that this CPU serves now, as a [`crate::Cause`].
    pub hard_cause: u64,
    /// The soft interrupt that this CPU served last, as a [`crate::Cause`].
    pub soft_cause: u64,
    /// Number of the rate window to which `window_calls` belongs.
    pub window: u64,
    /// Calls of all functions in that window.
    pub window_calls: u64,
    /// Number of hits of entry probes, recorded or not.
    pub entries: u64,
    /// Number of hits of exit probes, recorded or not.
    pub exits: u64,
    /// Address of the packet that this CPU's thread sent last over the loopback device. 0 if the packet has been
    /// received or the thread has changed.
    pub sent_packet: u64,
    /// If the thread on this CPU is ending: its CPU time when it came to this CPU, in nanoseconds, plus one. Otherwise
    /// 0.
    pub ending_from: u64,
    /// The thread whose own packet this CPU processes now; 0 if there is none.
    pub own_packet_of: u64,
    /// Number of hits of probes on C libraries, recorded or not.
    pub libc_hits: u64,
    /// Number of records that hits of probes on C libraries wrote.
    pub libc_records: u64,
    /// Number of samples that this CPU tried to write, which is also the number of the next sample.
    pub samples: u64,
    /// Number of samples that did not fit into their ring.
    pub samples_lost: u64,
    /// Time spent on taking samples, in nanoseconds.
    pub samples_ns: u64,
    /// Number of those samples that were taken when a thread slept or woke another one. `samples` includes them.
    pub event_samples: u64,
    /// The part of `samples_ns` that was spent on samples at sleeps and wake-ups, in nanoseconds.
    pub event_samples_ns: u64,
    /// Number of ticks of this CPU's clock in recorded processes.
    pub ticks: u64,
    /// Number of ticks that are missing because the clock is slower than asked for, to keep to the budget.
    pub ticks_left_out: u64,
    /// Number of ticks of this CPU's clock in other processes, without the idle task.
    pub ticks_elsewhere: u64,
    /// While this CPU takes a stack at a sleep or wake-up: the time of that event (`CLOCK_MONOTONIC` nanoseconds).
    pub event_time: u64,
    /// Number of network interrupts: soft interrupts for sending or receiving.
    pub network_interrupts: u64,
    /// Number of times that a recorded thread, interrupted by a network interrupt, woke another recorded thread.
    pub possible_own_packets: u64,
    /// Number of these wake-ups whose packet the interrupted thread itself had sent.
    pub own_packets: u64,
    /// Address of this CPU's pre-emption counter in the kernel; 0 if not looked up yet. The field is the last word of a
    /// cache line, so that the counters of two CPUs share no line.
    pub preempt_count_at: u64,
}

/// The counters of one function, in shared memory. Only the kernel writes them.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct FunctionCounters {
    /// Number of calls, including folded calls and calls after the function was cut off.
    pub calls: u64,
    /// Number of the rate window (time >> [`RATE_WINDOW_SHIFT`]) to which `window_calls` belongs.
    pub window: u64,
    /// Number of calls in that window.
    pub window_calls: u64,
    /// Time at which the rate limit cut the function off (`CLOCK_MONOTONIC` nanoseconds); 0: the function is recorded.
    pub cut_ns: u64,
}

/// The 64-bit cookie of a probe, which tells the program which probe was hit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cookie {
    /// Number of the function in the session's function table.
    pub function: u32,
    /// Whether the probe is on an exit.
    pub exit: bool,
    /// Whether entries and exits are single places instead of a function's, so that no frame has to be open between
    /// them; see [`NO_FRAME`](crate::NO_FRAME).
    pub frameless: bool,
    /// Slot of the link; below [`MAX_GROUPS`].
    pub group: u8,
    /// Generation of the link in its slot. While one link replaces another, both are attached. Only hits of the link
    /// whose generation the slot contains are counted.
    pub generation: u16,
}

impl Cookie {
    /// The cookie as the kernel stores it.
    pub const fn to_bits(self) -> u64 {
        self.function as u64
            | (self.exit as u64) << 32
            | (self.frameless as u64) << 33
            | (self.group as u64) << 40
            | (self.generation as u64) << 48
    }

    /// The inverse of [`Cookie::to_bits`].
    pub const fn from_bits(bits: u64) -> Cookie {
        Cookie {
            function: bits as u32,
            exit: bits >> 32 & 1 != 0,
            frameless: bits >> 33 & 1 != 0,
            group: (bits >> 40) as u8,
            generation: (bits >> 48) as u16,
        }
    }
}

const _: () = assert!(size_of::<Settings>() == 292);
const _: () = assert!(size_of::<CpuCounters>() == 256);
const _: () = assert!(size_of::<FunctionCounters>() == 32);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_cookie_is_read_back_from_its_bits() {
        for function in [0, 1, 0x8000_0001, u32::MAX] {
            for (exit, frameless) in [(false, false), (false, true), (true, false), (true, true)] {
                for (group, generation) in [(0, 0), (7, 1), (255, u16::MAX)] {
                    let cookie = Cookie { function, exit, frameless, group, generation };
                    assert_eq!(Cookie::from_bits(cookie.to_bits()), cookie);
                }
            }
        }
    }
}
