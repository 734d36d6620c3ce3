//! Offsets in the running kernel's data that the kernel programs read.

use probe_abi::Settings;
use zerocopy::{FromBytes as _, IntoBytes as _};

use super::btf::{self, Btf};
use crate::boot_cache;
use crate::probe::error::{ProbeError, ProbeErrorKind};

/// Name of the layout in the cache, which keeps it until the next boot.
const KEPT: &str = "kernel-layout";

/// Facts about the running kernel that are needed before anything is loaded into it.
pub(crate) struct KernelLayout {
    /// Offsets for the programs.
    pub(crate) settings: Settings,
    /// Whether idle CPUs search only sometimes for threads that wait on other CPUs (since Linux 6.19, and in stable
    /// kernels: "sched/fair: Proportional newidle balance").
    pub(crate) idle_asks_by_chance: bool,
    /// The type ids of the tracepoints.
    pub(crate) tracepoints: aya::Btf,
}

/// Whether this kernel has what the programs need; the error names the first thing that is missing.
///
/// # Errors
///
/// The kernel's type information is missing, cannot be read, or lacks something.
pub fn check_kernel() -> Result<(), ProbeError> {
    KernelLayout::read().map(|_| ())
}

impl KernelLayout {
    /// The layout from the cache, or from the running kernel's type information if this boot's layout is not cached.
    pub(crate) fn read() -> Result<KernelLayout, ProbeError> {
        match boot_cache::read(KEPT).and_then(|bytes| KernelLayout::of_bytes(&bytes)) {
            Some(kept) => Ok(kept),
            None => KernelLayout::find(),
        }
    }

    /// Decodes the cached bytes, which [`KernelLayout::find`] has made.
    fn of_bytes(bytes: &[u8]) -> Option<KernelLayout> {
        let (settings, rest) = Settings::read_from_prefix(bytes).ok()?;
        let (&by_chance, tracepoints) = rest.split_first()?;
        let tracepoints = aya::Btf::parse(tracepoints, aya::Endianness::default()).ok()?;
        Some(KernelLayout { settings, idle_asks_by_chance: by_chance != 0, tracepoints })
    }

    fn find() -> Result<KernelLayout, ProbeError> {
        let data = btf::of_kernel().map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => ProbeError::new(
                ProbeErrorKind::Unsupported,
                "this kernel has no type information (/sys/kernel/btf/vmlinux)",
                "use a kernel built with CONFIG_DEBUG_INFO_BTF=y, as all large distributions do",
            ),
            _ => ProbeError::from_cause("cannot read /sys/kernel/btf/vmlinux", &error),
        })?;
        let btf = Btf::parse(&data).ok_or_else(|| {
            ProbeError::new(
                ProbeErrorKind::Unsupported,
                "the kernel's type information is in an unknown format",
                "",
            )
        })?;
        let by_chance = btf.member("sched_domain", "newidle_ratio").is_some();
        let bytes = [layout(&btf)?.as_bytes(), &[u8::from(by_chance)], &btf.tracepoints()].concat();
        let found = KernelLayout::of_bytes(&bytes).ok_or_else(|| {
            ProbeError::new(ProbeErrorKind::Failed, "the kernel's type information is not understood", "")
        })?;
        boot_cache::keep(KEPT, &bytes);
        Ok(found)
    }
}

/// Looks up everything the programs need; the error names the first thing that is missing.
fn layout(btf: &Btf<'_>) -> Result<Settings, ProbeError> {
    let member = |name: &str, path: &str| {
        btf.member(name, path).ok_or_else(|| missing(&format!("struct {name} without the member {path}")))
    };
    let switch = "sched_switch";
    if btf.tracepoint_arguments(switch) != Some(4) {
        return Err(missing(
            "a sched_switch tracepoint without the state of the leaving thread (before Linux 5.18)",
        ));
    }
    let mut settings = Settings {
        exit_has_group_dead: u32::from(btf.tracepoint_arguments("sched_process_exit") == Some(2)),
        task_pid: member("task_struct", "pid")?,
        task_tgid: member("task_struct", "tgid")?,
        task_state: member("task_struct", "__state")?,
        task_start_time: member("task_struct", "start_time")?,
        task_comm: member("task_struct", "comm")?,
        task_status: member("task_struct", "thread_info.status")?,
        task_signal: member("task_struct", "signal")?,
        signal_live: member("signal_struct", "live.counter")?,
        task_pending: member("task_struct", "pending.signal")?,
        task_blocked: member("task_struct", "blocked")?,
        signal_shared_pending: member("signal_struct", "shared_pending.signal")?,
        ..Settings::default()
    };
    if let (Some(priority), Some(mask), Some(allowed)) = (
        btf.member("task_struct", "static_prio"),
        btf.member("task_struct", "cpus_mask"),
        btf.member("task_struct", "nr_cpus_allowed"),
    ) {
        (settings.task_static_prio, settings.task_cpus_mask, settings.task_cpus_allowed) =
            (priority, mask, allowed);
    }
    settings.task_thread_pointer = btf.member("task_struct", "thread.fsbase").unwrap_or(0);
    registers(&mut settings, &member)?;
    settings.net_device_type = btf.member("net_device", "type").unwrap_or(0);
    if let (Some(mm), Some(start)) = (btf.member("task_struct", "mm"), btf.member("mm_struct", "start_code"))
    {
        (settings.task_mm, settings.mm_start_code) = (mm, start);
    }
    if let (Some(ran), Some(before), Some(priority)) = (
        btf.member("task_struct", "se.sum_exec_runtime"),
        btf.member("task_struct", "se.prev_sum_exec_runtime"),
        btf.member("task_struct", "prio"),
    ) {
        (settings.task_ran, settings.task_ran_before, settings.task_priority) = (ran, before, priority);
    }
    settings.descriptors_known = u32::from(descriptors(&mut settings, btf).is_some());
    settings.file_private = btf.member("file", "private_data").unwrap_or(0);
    if let (Some(interval), Some(flags)) =
        (btf.member("timerfd_ctx", "tintv"), btf.member("timerfd_ctx", "settime_flags"))
        && settings.file_private != 0
    {
        (settings.timerfd_interval, settings.timerfd_flags) = (interval, flags);
    }
    if let Some(sockets) = sockets(&settings, btf) {
        settings = sockets;
    }
    if let Some(context) = context(btf) {
        (settings.task_cfs_rq, settings.cfs_rq_rq, settings.preempt_count_distance) = context;
        settings.preempt_count_known = 1;
    }
    Ok(settings)
}

/// Finds the offsets from a thread to the files of its descriptors. If one is missing, the kinds of descriptors stay
/// unknown.
fn descriptors(settings: &mut Settings, btf: &Btf<'_>) -> Option<()> {
    settings.task_files = btf.member("task_struct", "files")?;
    settings.files_fdt = btf.member("files_struct", "fdt")?;
    settings.fdt_max_fds = btf.member("fdtable", "max_fds")?;
    settings.fdt_fd = btf.member("fdtable", "fd")?;
    settings.file_inode = btf.member("file", "f_inode")?;
    settings.file_dentry = btf.member("file", "f_path.dentry")?;
    settings.inode_mode = btf.member("inode", "i_mode")?;
    settings.inode_rdev = btf.member("inode", "i_rdev")?;
    settings.inode_sb = btf.member("inode", "i_sb")?;
    settings.inode_ino = btf.member("inode", "i_ino")?;
    settings.sb_dev = btf.member("super_block", "s_dev")?;
    settings.sb_magic = btf.member("super_block", "s_magic")?;
    settings.dentry_name = btf.member("dentry", "d_name.name")?;
    settings.dentry_parent = btf.member("dentry", "d_parent")?;
    Some(())
}

/// Offsets in sockets. If one is missing, no requests are counted.
fn sockets(settings: &Settings, btf: &Btf<'_>) -> Option<Settings> {
    let tcp = |member| btf.member("tcp_sock", member).unwrap_or(0);
    let tcp = [tcp("write_seq"), tcp("copied_seq"), tcp("tcp_wstamp_ns")];
    let protocol = btf.member("sock", "sk_protocol").filter(|_| !tcp.contains(&0)).unwrap_or(0);
    Some(Settings {
        sock_ports: btf.member("sock", "__sk_common.skc_portpair")?,
        sock_daddr: btf.member("sock", "__sk_common.skc_daddr")?,
        sock_family: btf.member("sock", "__sk_common.skc_family")?,
        sock_type: btf.member("sock", "sk_type")?,
        sock_protocol: protocol,
        tcp_write_seq: tcp[0],
        tcp_copied_seq: tcp[1],
        tcp_departure: tcp[2],
        unix_addr: btf.member("unix_sock", "addr")?,
        unix_peer: btf.member("unix_sock", "peer")?,
        socket_sk: btf.member("socket", "sk").unwrap_or(0),
        ..*settings
    })
}

/// Offsets from a running thread to its CPU's pre-emption counter: two members to follow, and the distance of the
/// counter from the run queue at their end. Without `CONFIG_FAIR_GROUP_SCHED` there is no such path; contexts are then unknown.
fn context(btf: &Btf<'_>) -> Option<(u32, u32, u32)> {
    let from = btf.per_cpu_offset("runqueues")?;
    let to = match btf.per_cpu_offset("__preempt_count") {
        Some(offset) => offset,
        // Linux 6.2 to 6.14.
        None => btf.per_cpu_offset("pcpu_hot")?.checked_add(btf.member("pcpu_hot", "preempt_count")?)?,
    };
    let distance = i32::try_from(i64::from(to) - i64::from(from)).ok()?;
    Some((btf.member("task_struct", "se.cfs_rq")?, btf.member("cfs_rq", "rq")?, distance as u32))
}

/// Number and arguments of a system call in the saved registers of x86-64.
#[cfg(target_arch = "x86_64")]
fn registers(
    settings: &mut Settings,
    member: &dyn Fn(&str, &str) -> Result<u32, ProbeError>,
) -> Result<(), ProbeError> {
    settings.regs_sp = member("pt_regs", "sp")?;
    settings.regs_ip = member("pt_regs", "ip")?;
    settings.regs_bp = member("pt_regs", "bp")?;
    settings.regs_number = member("pt_regs", "orig_ax")?;
    for (slot, name) in settings.regs_arguments.iter_mut().zip(["di", "si"]) {
        *slot = member("pt_regs", name)?;
    }
    Ok(())
}

/// On other architectures longpole does not record yet.
#[cfg(not(target_arch = "x86_64"))]
fn registers(_: &mut Settings, _: &dyn Fn(&str, &str) -> Result<u32, ProbeError>) -> Result<(), ProbeError> {
    Err(ProbeError::new(ProbeErrorKind::Unsupported, "longpole records on x86-64 only", ""))
}

fn missing(what: &str) -> ProbeError {
    ProbeError::new(
        ProbeErrorKind::Unsupported,
        format!("this kernel has {what}"),
        "longpole needs Linux 6.1 or later with CONFIG_DEBUG_INFO_BTF=y; `longpole doctor` lists the checks",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_running_kernel_s_btf_has_every_member() {
        let data = match btf::of_kernel() {
            Ok(data) => data,
            Err(error) => {
                println!("SKIP the_running_kernel_s_btf_has_every_member: no BTF: {error}");
                return;
            }
        };
        let btf = Btf::parse(&data).expect("understood");
        let settings = layout(&btf).expect("complete");
        // Only plausibility is checked, since offsets differ between kernels.
        assert_ne!(settings.task_pid, settings.task_tgid);
        assert!(settings.task_comm > 0);
        assert_eq!(settings.regs_sp, 152, "part of the kernel's ABI on x86-64");
        assert_eq!(settings.preempt_count_known, 1);
        assert_eq!(settings.descriptors_known, 1);
        assert!(settings.timerfd_flags > settings.timerfd_interval && settings.file_private > 0);
        assert!(settings.mm_start_code > 0 && settings.net_device_type > 0);
        assert_ne!(settings.task_thread_pointer, 0);
        assert_eq!((settings.sock_daddr, settings.sock_ports), (0, 12));
        assert!(settings.unix_addr > settings.sock_type && settings.unix_peer > 0);
        assert!(settings.sock_protocol > 0 && settings.tcp_copied_seq > settings.sock_protocol);
        assert!(settings.socket_sk > 0 && settings.inode_ino > 0 && settings.dentry_parent > 0);
    }

    #[test]
    fn a_missing_kernel_member_is_an_error_with_its_name() {
        // Type information without any type.
        let mut empty = vec![0x9f, 0xeb, 1, 0];
        for word in [24u32, 0, 0, 0, 1] {
            empty.extend(word.to_le_bytes());
        }
        empty.push(0);
        let error = layout(&Btf::parse(&empty).expect("valid, if empty")).expect_err("nothing in it");
        assert_eq!(error.kind, ProbeErrorKind::Unsupported);
        assert!(error.message.contains("sched_switch"), "{error}");
    }
}
