//! Reads the kernel's structs at offsets that the user side has looked up.

use core::mem::offset_of;

use aya_ebpf::helpers::{
    bpf_probe_read_kernel, bpf_probe_read_user,
    generated::{bpf_get_current_task_btf, bpf_probe_read_kernel_str, bpf_task_pt_regs},
};

use probe_abi::{Call, CpuCounters, Exit};

use crate::{memory, ring, settings::setting};

/// A `task_struct` that the kernel passed to the program as a typed pointer.
#[derive(Clone, Copy)]
pub struct Task(pub *const u8);

/// A `pt_regs` that the kernel passed to the program as a typed pointer.
#[derive(Clone, Copy)]
pub struct Registers(pub *const u8);

/// The address of a `sock`.
#[derive(Clone, Copy)]
pub struct Socket(pub *const u8);

/// Reads a field `offset` bytes into a kernel struct.
///
/// # Safety
///
/// `base` is a pointer whose type the verifier knows, and `offset` is that of one of the type's fields from
/// [`setting!`]. The verifier checks both, and the kernel turns a fault into a zero.
#[inline(always)]
unsafe fn field<T: Copy>(base: *const u8, offset: u32) -> T {
    // SAFETY: as the caller promises. Volatile: other CPUs write these fields.
    unsafe { core::ptr::read_volatile(base.wrapping_add(offset as usize).cast::<T>()) }
}

/// Reads a pointer `offset` bytes into a kernel struct; null if that fails.
///
/// A helper reads it: for a pointer that a program loads itself, the verifier checks how far it can be trusted. To do so it
/// searches the names of all types of the kernel, which takes milliseconds.
#[inline(always)]
fn pointer(base: *const u8, offset: u32) -> *const u8 {
    let from = base.wrapping_add(offset as usize).cast::<*const u8>();
    // SAFETY: the helper checks the address itself.
    unsafe { bpf_probe_read_kernel(from) }.unwrap_or(core::ptr::null())
}

/// Reads a field `offset` bytes into the struct at a [`pointer`].
#[inline(always)]
fn behind<T: Copy>(pointer: *const u8, offset: u32) -> Option<T> {
    // SAFETY: the helper checks the address itself.
    unsafe { bpf_probe_read_kernel(pointer.wrapping_add(offset as usize).cast::<T>()) }.ok()
}

impl Task {
    /// The thread that runs on this CPU.
    #[inline(always)]
    pub fn current() -> Task {
        // SAFETY: the helper has no arguments and returns a trusted pointer.
        Task(unsafe { bpf_get_current_task_btf() }.cast())
    }

    /// Thread id.
    #[inline(always)]
    pub fn tid(self) -> u32 {
        // SAFETY: a task and an offset of `task_struct`.
        unsafe { field(self.0, setting!(task_pid)) }
    }

    /// Process id.
    #[inline(always)]
    pub fn pid(self) -> u32 {
        // SAFETY: a task and an offset of `task_struct`.
        unsafe { field(self.0, setting!(task_tgid)) }
    }

    /// The thread's state: bits `TASK_*` (include/linux/sched.h).
    #[inline(always)]
    pub fn state(self) -> u32 {
        // SAFETY: a task and an offset of `task_struct`.
        unsafe { field(self.0, setting!(task_state)) }
    }

    /// Time at which the thread was created, `CLOCK_MONOTONIC` nanoseconds.
    #[inline(always)]
    pub fn start_ns(self) -> u64 {
        // SAFETY: a task and an offset of `task_struct`.
        unsafe { field(self.0, setting!(task_start_time)) }
    }

    /// Its nice value and CPUs as encoded by [`Exit::placed`]. With a CPU beyond those, the CPUs are unknown.
    #[inline(always)]
    pub fn placement(self) -> u32 {
        let (priority_at, mask_at) = (setting!(task_static_prio), setting!(task_cpus_mask));
        if priority_at == 0 || mask_at == 0 {
            return 0;
        }
        // SAFETY: a task and an offset of `task_struct`.
        let priority: u32 = unsafe { field(self.0, priority_at) };
        // SAFETY: a task and an offset of `task_struct`.
        let allowed: u32 = unsafe { field(self.0, setting!(task_cpus_allowed)) };
        // SAFETY: a task and an offset of `task_struct`.
        let mask: u64 = unsafe { field(self.0, mask_at) };
        let (mut counted, mut cpu) = (0, 0);
        while cpu < Exit::CPUS {
            counted += (mask >> cpu) as u32 & 1;
            cpu += 1;
        }
        Exit::placed(priority, if counted == allowed { mask as u32 } else { 0 })
    }

    /// Whether no thread of the thread's process is alive any more.
    #[inline(always)]
    pub fn is_last_of_process(self) -> bool {
        behind::<i32>(pointer(self.0, setting!(task_signal)), setting!(signal_live)) == Some(0)
    }

    /// Whether the thread is in a 32-bit system call; these have other numbers.
    #[inline(always)]
    fn in_32_bit_call(self) -> bool {
        const TS_COMPAT: u32 = 2;
        // SAFETY: a task and an offset of `task_struct`.
        let status: u32 = unsafe { field(self.0, setting!(task_status)) };
        status & TS_COMPAT != 0
    }

    /// Whether a signal that the thread does not block is pending for the thread or for its process. A sleep that
    /// signals can end does not begin while there is one, so when such a thread is woken, the signal did it.
    #[inline(always)]
    pub fn has_signal(self) -> bool {
        // SAFETY: a task and an offset of `task_struct`.
        let own: u64 = unsafe { field(self.0, setting!(task_pending)) };
        // SAFETY: a task and an offset of `task_struct`.
        let blocked: u64 = unsafe { field(self.0, setting!(task_blocked)) };
        let signal = pointer(self.0, setting!(task_signal));
        let shared: u64 = behind(signal, setting!(signal_shared_pending)).unwrap_or(0);
        (own | shared) & !blocked != 0
    }

    /// CPU time since the thread last came to a CPU, nanoseconds; `None` if the kernel does not count that. Only for a
    /// thread that is leaving its CPU, when the count is up to date. `came_with`: the thread's CPU time when it came,
    /// if that was read before the kernel forgot it.
    #[inline(always)]
    pub fn ran_ns(self, came_with: Option<u64>) -> Option<u64> {
        let before = self.ran_before()?;
        // SAFETY: a task and an offset of `task_struct`.
        let ran: u64 = unsafe { field(self.0, setting!(task_ran)) };
        Some(ran.saturating_sub(came_with.unwrap_or(before)))
    }

    /// CPU time of the thread when it last came to a CPU, nanoseconds; `None` if the kernel does not count that.
    #[inline(always)]
    pub fn ran_before(self) -> Option<u64> {
        /// Priorities from this one on belong to the fair scheduler, the only scheduler that stores where a turn began.
        const FAIR: i32 = 100;
        if setting!(task_ran) == 0 {
            return None;
        }
        // SAFETY: a task and an offset of `task_struct`.
        let priority: i32 = unsafe { field(self.0, setting!(task_priority)) };
        // SAFETY: a task and an offset of `task_struct`.
        let before: u64 = unsafe { field(self.0, setting!(task_ran_before)) };
        (priority >= FAIR).then_some(before)
    }

    /// The address of the thread's name, for [`read_name`].
    #[inline(always)]
    pub fn name(self) -> *const u8 {
        self.0.wrapping_add(setting!(task_comm) as usize)
    }

    /// The pre-emption counter of the CPU on which the thread runs. Only for the current thread. The counter's address
    /// never changes, so it is looked up once for each CPU.
    #[inline(always)]
    pub fn preempt_count(self) -> Option<u32> {
        let known = memory::word(ring::this_cpu()?, offset_of!(CpuCounters, preempt_count_at));
        // SAFETY: a word of a map value.
        let mut at = unsafe { memory::load(known) };
        if at == 0 {
            let queue = pointer(self.0, setting!(task_cfs_rq));
            let run_queue: u64 = behind(queue, setting!(cfs_rq_rq))?;
            at = run_queue.wrapping_add_signed(i64::from(setting!(preempt_count_distance) as i32));
            // SAFETY: a word of a map value.
            unsafe { memory::store(known, at) };
        }
        behind(at as usize as *const u8, 0)
    }

    /// The address of the thread's open files, for the helper that reads kernel memory.
    #[inline(always)]
    pub fn files(self) -> u64 {
        pointer(self.0, setting!(task_files)) as usize as u64
    }

    /// Number of the page at which the instructions of the thread's program begin, low 32 bits; 0 if unknown.
    #[inline(always)]
    pub fn first_page(self) -> u32 {
        if setting!(mm_start_code) == 0 {
            return 0;
        }
        let memory = pointer(self.0, setting!(task_mm));
        behind::<u64>(memory, setting!(mm_start_code)).map_or(0, |start| (start >> 12) as u32)
    }

    /// Whether the thread has given up its memory because it is ending. From then on its CPU has the mappings of the
    /// previous process.
    #[inline(always)]
    pub fn has_no_memory(self) -> bool {
        if setting!(task_mm) == 0 {
            return false;
        }
        pointer(self.0, setting!(task_mm)).is_null()
    }

    /// The thread pointer, if this kernel's offset of it is known. A change by user space without a system call since
    /// the thread last came to a CPU is invisible.
    #[inline(always)]
    pub fn thread_pointer(self) -> Option<u64> {
        let offset = setting!(task_thread_pointer);
        if offset == 0 {
            return None;
        }
        // SAFETY: a task and an offset of `task_struct`.
        Some(unsafe { field(self.0, offset) })
    }

    /// The registers with which the thread last entered the kernel from user space.
    #[inline(always)]
    pub fn registers(self) -> Registers {
        // SAFETY: the helper takes a task pointer from the kernel and returns a typed pointer to its `pt_regs`.
        Registers(unsafe { bpf_task_pt_regs(self.0.cast_mut().cast()) } as usize as *const u8)
    }

    /// The system call in which the thread is.
    #[inline(always)]
    pub fn call(self) -> Call {
        let registers = self.registers();
        let number = registers.call_number();
        // Interrupts and faults leave a negative number.
        if (number as i32) < 0 || self.in_32_bit_call() {
            return Call::NONE;
        }
        Call { number, argument1: registers.argument::<1>() as u32, argument0: registers.argument::<0>() }
    }

    /// The first argument of the system call in which the thread is.
    #[inline(always)]
    pub fn first_argument(self) -> u64 {
        self.registers().argument::<0>()
    }

    /// Low half of the second argument of the system call in which the thread is.
    #[inline(always)]
    pub fn second_argument(self) -> u32 {
        self.registers().argument::<1>() as u32
    }

    /// Number of the system call in which the thread is, or that of [`Call::NONE`].
    #[inline(always)]
    pub fn call_number(self) -> u32 {
        let number = self.registers().call_number();
        if (number as i32) < 0 || self.in_32_bit_call() { Call::NONE.number } else { number }
    }
}

impl Socket {
    /// The address family, `AF_*`.
    #[inline(always)]
    pub fn family(self) -> u16 {
        behind(self.0, setting!(sock_family)).unwrap_or(0)
    }

    /// Whether bytes arrive in order and without message borders (`SOCK_STREAM`).
    #[inline(always)]
    pub fn is_stream(self) -> bool {
        const SOCK_STREAM: u16 = 1;
        behind(self.0, setting!(sock_type)) == Some(SOCK_STREAM)
    }

    /// The peer's port in network byte order, and in the higher half the socket's own port. For a Unix socket the value
    /// has no meaning.
    #[inline(always)]
    pub fn ports(self) -> u32 {
        behind(self.0, setting!(sock_ports)).unwrap_or(0)
    }

    /// Its own port, in host byte order.
    #[inline(always)]
    pub fn port(self) -> u16 {
        (self.ports() >> 16) as u16
    }

    /// The peer's port, in host byte order.
    #[inline(always)]
    pub fn peer_port(self) -> u16 {
        u16::from_be(self.ports() as u16)
    }

    /// The peer's IPv4 address in memory order.
    #[inline(always)]
    pub fn peer_address(self) -> u32 {
        behind(self.0, setting!(sock_daddr)).unwrap_or(0)
    }

    /// Whether the socket is one of TCP whose numbers are known.
    #[inline(always)]
    pub fn is_tcp(self) -> bool {
        const IPPROTO_TCP: u16 = 6;
        let offset = setting!(sock_protocol);
        offset != 0 && behind(self.0, offset) == Some(IPPROTO_TCP)
    }

    /// TCP's numbers of the byte after all that was written, and after all that was read.
    #[inline(always)]
    pub fn written_and_read(self) -> Option<(u32, u32)> {
        Some((behind(self.0, setting!(tcp_write_seq))?, behind(self.0, setting!(tcp_copied_seq))?))
    }

    /// Time at which TCP's last packet left (`CLOCK_MONOTONIC` nanoseconds); with pacing it may be in the future.
    #[inline(always)]
    pub fn departure_ns(self) -> u64 {
        behind(self.0, setting!(tcp_departure)).unwrap_or(0)
    }

    /// For a Unix socket: whether the socket, or the listening socket from which it comes, was given a name.
    #[inline(always)]
    pub fn has_name(self) -> bool {
        !pointer(self.0, setting!(unix_addr)).is_null()
    }

    /// For a Unix socket: whether the socket's peer was given a name.
    #[inline(always)]
    pub fn peer_has_name(self) -> bool {
        let peer = Socket(pointer(self.0, setting!(unix_peer)));
        !peer.0.is_null() && peer.has_name()
    }
}

/// The address of the first word that the current thread waits for in `futex_waitv(2)`, whose list is at `list`. It is read
/// without causing a page fault: the call has just read the list, so it is mostly present.
#[inline(always)]
pub fn first_word(list: u64) -> Option<u64> {
    /// `struct futex_waitv` begins with the expected value; the address follows.
    const ADDRESS: u64 = 8;
    // SAFETY: the helper checks the address itself.
    unsafe { bpf_probe_read_user(list.wrapping_add(ADDRESS) as usize as *const u64) }.ok()
}

impl Registers {
    /// The user-space stack pointer.
    #[inline(always)]
    pub fn stack_pointer(self) -> u64 {
        // SAFETY: a `pt_regs` and an offset of it.
        unsafe { field(self.0, setting!(regs_sp)) }
    }

    /// One of the registers with which `pt_regs` begins ([`probe_abi::REGISTERS`]).
    #[inline(always)]
    pub fn general(self, number: usize) -> u64 {
        // SAFETY: a `pt_regs` and an offset of it.
        unsafe { field(self.0, number as u32 * 8) }
    }

    /// The user-space instruction pointer.
    #[inline(always)]
    pub fn instruction_pointer(self) -> u64 {
        // SAFETY: a `pt_regs` and an offset of it.
        unsafe { field(self.0, setting!(regs_ip)) }
    }

    /// The user-space frame pointer register, which may hold anything.
    #[inline(always)]
    pub fn frame_pointer(self) -> u64 {
        // SAFETY: a `pt_regs` and an offset of it.
        unsafe { field(self.0, setting!(regs_bp)) }
    }

    /// The system call's number; negative if it was no system call.
    #[inline(always)]
    pub fn call_number(self) -> u32 {
        // SAFETY: a `pt_regs` and an offset of it.
        let number: u64 = unsafe { field(self.0, setting!(regs_number)) };
        number as u32
    }

    /// The system call's argument `INDEX`, counted from 0.
    #[inline(always)]
    fn argument<const INDEX: usize>(self) -> u64 {
        // SAFETY: a `pt_regs` and an offset of it.
        unsafe { field(self.0, setting!(regs_arguments[INDEX])) }
    }
}

/// Copies a thread name: up to 15 bytes and NULs up to 16.
#[inline(always)]
pub fn read_name(from: *const u8) -> [u8; 16] {
    let mut name = [0u8; 16];
    // SAFETY: the helper checks the address itself; it writes at most 16 bytes into `name`. A name that cannot be
    // read stays empty, as an unknown name must be.
    let _ = unsafe { bpf_probe_read_kernel_str(name.as_mut_ptr().cast(), 16, from.cast()) };
    name
}
