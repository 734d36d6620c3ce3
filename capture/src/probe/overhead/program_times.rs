//! How long the kernel programs have run, according to the kernel's statistics.

use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};

use aya::Ebpf;

use crate::probe::sources::{counters, requests};

/// Time of the programs that run for network interrupts and packets, and of all others, nanoseconds. Two kinds of
/// programs are not included: those on functions, since their hits are counted, and those that count requests.
pub(super) fn kernel_programs_ns(ebpf: &Ebpf) -> (u64, u64) {
    let (mut network_ns, mut others_ns) = (0u64, 0u64);
    for program in counters::program_costs(ebpf) {
        match &*program.name {
            "function_probe" | "operation_probe" => {}
            // These programs are not attached all the time: their cost is computed from the number of messages.
            _ if requests::counts_only(&program) => {}
            "softirq_entry" | "napi_poll" | "netif_receive_skb" | "net_dev_start_xmit" => {
                network_ns = network_ns.saturating_add(program.total_ns);
            }
            _ => others_ns = others_ns.saturating_add(program.total_ns),
        }
    }
    (network_ns, others_ns)
}

/// Makes the kernel count the time of BPF programs until this is dropped; `None` if it refuses
/// (CAP_SYS_ADMIN is needed).
pub(super) fn statistics_on() -> Option<OwnedFd> {
    const ENABLE_STATS: libc::c_int = 32;
    // `union bpf_attr` for `BPF_ENABLE_STATS`: a type, and `BPF_STATS_RUN_TIME` is 0.
    let request = [0u32; 2];
    // SAFETY: the kernel reads 8 bytes of `request`, which outlives the call.
    let descriptor =
        unsafe { libc::syscall(libc::SYS_bpf, ENABLE_STATS, request.as_ptr(), size_of_val(&request)) };
    let descriptor = i32::try_from(descriptor).ok().filter(|descriptor| *descriptor >= 0)?;
    // SAFETY: a new descriptor with no other owner.
    let on = unsafe { OwnedFd::from_raw_fd(descriptor) };
    debug_assert_eq!(on.as_raw_fd(), descriptor);
    Some(on)
}
