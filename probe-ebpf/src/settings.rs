//! The read-only global with the user side's settings and the running kernel's struct offsets. The verifier takes
//! its values for constants: disabled paths cost nothing, and offsets are as good as compiled in.

use probe_abi::Settings;

/// The settings. User space sets them before the programs are loaded.
#[unsafe(no_mangle)]
pub static SETTINGS: Settings = Settings {
    own_pid: 0,
    children: 0,
    rings: 0,
    ring_wake_bytes: 0,
    calls_per_window: 0,
    max_depth: 0,
    preempt_count_known: 0,
    preempt_count_distance: 0,
    exit_has_group_dead: 0,
    task_pid: 0,
    task_tgid: 0,
    task_state: 0,
    task_start_time: 0,
    task_static_prio: 0,
    task_cpus_mask: 0,
    task_cpus_allowed: 0,
    task_comm: 0,
    task_signal: 0,
    signal_live: 0,
    task_pending: 0,
    task_blocked: 0,
    signal_shared_pending: 0,
    task_cfs_rq: 0,
    task_ran: 0,
    task_ran_before: 0,
    task_priority: 0,
    task_status: 0,
    task_mm: 0,
    mm_start_code: 0,
    descriptors_known: 0,
    task_files: 0,
    files_fdt: 0,
    fdt_max_fds: 0,
    fdt_fd: 0,
    file_inode: 0,
    file_dentry: 0,
    inode_mode: 0,
    inode_rdev: 0,
    inode_sb: 0,
    inode_ino: 0,
    sb_dev: 0,
    sb_magic: 0,
    dentry_name: 0,
    dentry_parent: 0,
    file_private: 0,
    socket_sk: 0,
    timerfd_interval: 0,
    timerfd_flags: 0,
    net_device_type: 0,
    task_thread_pointer: 0,
    first_libc_counters: 0,
    sock_ports: 0,
    sock_daddr: 0,
    sock_family: 0,
    sock_type: 0,
    sock_protocol: 0,
    tcp_write_seq: 0,
    tcp_copied_seq: 0,
    tcp_departure: 0,
    exchanges: 0,
    thread_contexts: 0,
    unix_addr: 0,
    unix_peer: 0,
    cfs_rq_rq: 0,
    regs_sp: 0,
    regs_ip: 0,
    regs_bp: 0,
    sampling: 0,
    sample_period_ns: 0,
    copy_pieces: 0,
    regs_number: 0,
    regs_arguments: [0; 2],
};

/// One field of [`SETTINGS`], as set by user space.
macro_rules! setting {
    ($($field:tt)+) => {
        $crate::settings::load(&$crate::settings::SETTINGS.$($field)+)
    };
}
pub(crate) use setting;

/// Reads a field of [`SETTINGS`]; for [`setting!`].
#[inline(always)]
pub fn load<T: Copy>(field: &'static T) -> T {
    // SAFETY: a reference is valid to read. It is volatile because the value in the object file is not the one at run
    // time.
    unsafe { core::ptr::read_volatile(field) }
}
