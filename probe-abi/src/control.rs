//! Settings that user space makes for the kernel programs, and counters that the programs keep for user space:
//! read-only globals and shared memory, not records.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// Highest process id a kernel can give out (`PID_MAX_LIMIT` on 64 bit): size of the filter's bitmap in bits.
pub const PID_LIMIT: u32 = 1 << 22;

/// Largest number of rings to which the kernel programs can write: one for each CPU, unless there are more CPUs. A CPU
/// writes to ring `cpu % Settings::rings`.
pub const MAX_RINGS: usize = 1024;

/// Largest number of `uprobe_multi` links of one process that have a generation of their own (see [`Cookie`]).
pub const MAX_GROUPS: usize = 256;

/// Largest number of frames of different functions that the programs keep open for one thread. Calls in deeper frames
/// are recorded, too, but their recursion is not folded.
pub const MAX_OPEN_FRAMES: usize = 128;

/// The rate limit counts calls in windows of 2^27 ns (134 ms).
pub const RATE_WINDOW_SHIFT: u32 = 27;

/// Calls of all functions on one CPU in one rate window (244,000 a second) from which on all calls together are too
/// many, however few each function has. Then the functions called most are cut off first (see [`CROWDED_SHIFT`]).
/// Otherwise a program with thousands of functions would fill the rings before any of them is hot, and scheduler events
/// would get lost with the calls.
pub const CROWDED_CALLS: u64 = 1 << 15;

/// While there are too many calls together, the limit of each function is 2^5 = 32 times lower.
pub const CROWDED_SHIFT: u32 = 5;

/// A read-only global of the kernel programs, fixed when they are loaded. Offsets are bytes from the start of the
/// kernel's struct, from the type information of the running kernel. All flags are 0 or 1.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct Settings {
    /// longpole's own process: never tracked.
    pub own_pid: u32,
    /// 1: processes made by tracked processes are tracked from their first instant.
    pub children: u32,
    /// Number of rings.
    pub rings: u32,
    /// If a ring contains more bytes than this, it wakes its reader.
    pub ring_wake_bytes: u32,
    /// Number of calls of one function in one rate window after which the function is cut off; 0 = never.
    pub calls_per_window: u32,
    /// Number of open probed calls of one thread from which on calls nested inside are not recorded (2001, section
    /// 3.2); 0 = all are recorded. At most [`MAX_OPEN_FRAMES`].
    pub max_depth: u32,
    /// 1: the next field is known, so contexts can be determined.
    pub preempt_count_known: u32,
    /// Distance in bytes from a CPU's run queue (`runqueues`) to its pre-emption counter, as an `i32`. Both are per-CPU
    /// variables, so the distance is the same on all CPUs.
    pub preempt_count_distance: u32,
    /// 1: `sched_process_exit` has the argument `group_dead` (Linux 6.16).
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
    /// Offset of `task_struct.se.sum_exec_runtime`; 0 if one of these three is not known.
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
    /// 1: the fields up to `dentry_parent` are known, so it can be determined what descriptors refer to.
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
    /// Offset of `socket.sk`; 0 if this or one of a socket's own offsets is unknown.
    pub socket_sk: u32,
    /// Offset of `timerfd_ctx.tintv`; 0 if this, the next one or `file_private` is unknown.
    pub timerfd_interval: u32,
    /// Offset of `timerfd_ctx.settime_flags`.
    pub timerfd_flags: u32,
    /// Offset of `net_device.type`.
    pub net_device_type: u32,
    /// Offset of `task_struct.thread.fsbase`, the thread pointer; 0: not known.
    pub task_thread_pointer: u32,
    /// Function counters from this number on belong to libc's functions.
    pub first_libc_counters: u32,
    /// Offset of `sock.__sk_common.skc_portpair`: the peer's port in network byte order, and the socket's own port; 0
    /// if one of these six offsets is unknown.
    pub sock_ports: u32,
    /// Offset of `sock.__sk_common.skc_daddr`.
    pub sock_daddr: u32,
    /// Offset of `sock.__sk_common.skc_family`.
    pub sock_family: u32,
    /// Offset of `sock.sk_type`.
    pub sock_type: u32,
    /// Offset of `sock.sk_protocol`; 0: this or one of the next three is not known.
    pub sock_protocol: u32,
    /// Offset of `tcp_sock.write_seq`.
    pub tcp_write_seq: u32,
    /// Offset of `tcp_sock.copied_seq`.
    pub tcp_copied_seq: u32,
    /// Offset of `tcp_sock.tcp_wstamp_ns`.
    pub tcp_departure: u32,
    /// 1: each request of a TCP connection is recorded at both of its ends ([`crate::Exchange`]).
    pub exchanges: u32,
    /// 1: contexts of threads are looked at ([`crate::ThreadContext`]).
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
    /// Least time between two stacks of a thread taken when it sleeps, and between two stacks taken when it wakes other
    /// threads, nanoseconds.
    pub sample_period_ns: u32,
    /// Pieces of a stack to copy; at most [`crate::COPY_PIECES`].
    pub copy_pieces: u32,
    /// Offset of `pt_regs.orig_ax`: the system call's number.
    pub regs_number: u32,
    /// `pt_regs` of system call arguments 1 and 2.
    pub regs_arguments: [u32; 2],
}

/// The counters of one CPU, in shared memory. Only the kernel writes them.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct CpuCounters {
    /// Records this CPU tried to write; its low 32 bits number the next one.
    pub sequence: u64,
    /// Records that did not fit into the ring.
    pub dropped: u64,
    /// Calls below the first open frame of the same function.
    pub folded: u64,
    /// Calls of functions that the rate limit had cut off, but that still had their probes.
    pub cut: u64,
    /// Calls whose recursion could not be folded: too many open frames, or no memory for them.
    pub unfolded: u64,
    /// Probe hits of a link that was being replaced.
    pub stale: u64,
    /// Thread to which the last switch on this CPU went, according to the programs.
    pub current: u64,
    /// How often a thread left this CPU without having come to it, where one of the two threads was recorded: the
    /// kernel did not run the program for a switch.
    pub unseen_switches: u64,
    /// The hardware interrupt that is being served, as a [`crate::Cause`].
    pub hard_cause: u64,
    /// The soft interrupt that was served last, as a [`crate::Cause`].
    pub soft_cause: u64,
    /// Number of the rate window that `window_calls` belongs to.
    pub window: u64,
    /// Calls of all functions in that window.
    pub window_calls: u64,
    /// Hits of entry probes, recorded or not.
    pub entries: u64,
    /// Hits of exit probes, recorded or not.
    pub exits: u64,
    /// Address of the packet that the thread on this CPU sent last over the loopback device; 0 if it has been received
    /// or the thread has changed.
    pub sent_packet: u64,
    /// If the thread on this CPU is ending: one more than its CPU time when it came to this CPU, nanoseconds. 0 otherwise.
    pub ending_from: u64,
    /// The thread whose own packet this CPU is processing right now; 0: none.
    pub own_packet_of: u64,
    /// Hits of probes on C libraries, recorded or not.
    pub libc_hits: u64,
    /// Records that hits of probes on C libraries wrote.
    pub libc_records: u64,
    /// Samples that this CPU tried to write; numbers the next one.
    pub samples: u64,
    /// Samples that did not fit into their ring.
    pub samples_lost: u64,
    /// Time spent on taking samples, nanoseconds.
    pub samples_ns: u64,
    /// The samples at sleeps and wake-ups, which are among `samples`.
    pub event_samples: u64,
    /// The part of `samples_ns` that was spent on samples at sleeps and wake-ups.
    pub event_samples_ns: u64,
    /// Ticks of this CPU's clock in recorded processes.
    pub ticks: u64,
    /// Further ticks that did not come because the clock is slower than asked for, to keep to the budget.
    pub ticks_left_out: u64,
    /// Ticks of this CPU's clock in other processes, without the idle task.
    pub ticks_elsewhere: u64,
    /// Time of the sleep or wake-up whose stack this CPU is taking right now (`CLOCK_MONOTONIC` nanoseconds).
    pub event_time: u64,
    /// Network interrupts: soft interrupts for sending or receiving.
    pub network_interrupts: u64,
    /// Wake-ups of a recorded thread by another recorded thread in network interrupts.
    pub possible_own_packets: u64,
    /// Number of these wake-ups that were caused by a packet which the waker itself had sent.
    pub own_packets: u64,
    /// Address of this CPU's pre-emption counter in the kernel; 0: not yet looked up. This is the last word of a cache
    /// line, so that no two CPUs share a line.
    pub preempt_count_at: u64,
}

/// The counters of one function number, in shared memory. Only the kernel writes them.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct FunctionCounters {
    /// Number of calls, including folded and cut ones.
    pub calls: u64,
    /// Number of the rate window (time >> [`RATE_WINDOW_SHIFT`]) that `window_calls` belongs to.
    pub window: u64,
    /// Calls in that window.
    pub window_calls: u64,
    /// Time at which the rate limit cut the function off (`CLOCK_MONOTONIC` nanoseconds); 0 = the function is recorded.
    pub cut_ns: u64,
}

/// The 64-bit cookie of a probe, by which the program knows which probe was hit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cookie {
    /// Number of the function in the session's function table.
    pub function: u32,
    /// Whether the probe is on an exit.
    pub exit: bool,
    /// Whether entries and exits are places between which no frame of the function needs to be open; see
    /// [`NO_FRAME`](crate::NO_FRAME).
    pub frameless: bool,
    /// Slot of the link; below [`MAX_GROUPS`].
    pub group: u8,
    /// Generation of the link in its slot. While one link replaces another, both are attached, and only hits of the link whose
    /// generation is in the slot count.
    pub generation: u16,
}

impl Cookie {
    /// The cookie in the form in which the kernel stores it.
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
