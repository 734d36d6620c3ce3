//! Packets over the loopback device. The thread that sends a packet mostly also receives it: at the end of its own
//! system call, in a soft interrupt. A thread that is woken there was woken by the sender. But other packets may
//! be received on the same occasion, and another packet may come in while the thread is in such a call. So
//! the packet itself decides: the one being received must be the one that the thread has sent.

use core::mem::offset_of;

use aya_ebpf::{macros::btf_tracepoint, programs::BtfTracePointContext};
use probe_abi::{Context, CpuCounters};

use crate::{context::context, filter, kernel::Task, memory, ring, settings::setting};

/// The type of the loopback device: `ARPHRD_LOOPBACK` (include/uapi/linux/if_arp.h).
const LOOPBACK: u16 = 772;

/// A packet goes to a device. Arguments: `sk_buff`, `net_device`.
#[btf_tracepoint(function = "net_dev_start_xmit")]
pub fn net_dev_start_xmit(arguments: BtfTracePointContext) -> i32 {
    let sender = Task::current();
    if !filter::is_tracked(sender.pid()) {
        return 0;
    }
    let device: *const u8 = arguments.arg(1);
    let kind = device.wrapping_add(setting!(net_device_type) as usize).cast::<u16>();
    // SAFETY: a `net_device` from the kernel, and an offset in it: the verifier checks both.
    if unsafe { core::ptr::read_volatile(kind) } != LOOPBACK {
        return 0;
    }
    // A packet sent in a soft interrupt is a reply to another process.
    if context(sender, sender.tid()) as u8 != Context::Task as u8 {
        return 0;
    }
    let Some(counters) = ring::this_cpu() else { return 0 };
    // SAFETY: a word of a map value.
    unsafe {
        memory::store(memory::word(counters, offset_of!(CpuCounters, sent_packet)), arguments.arg::<u64>(0));
    }
    0
}

/// A packet is received. Argument: `sk_buff`.
#[btf_tracepoint(function = "netif_receive_skb")]
pub fn netif_receive_skb(arguments: BtfTracePointContext) -> i32 {
    let Some(counters) = ring::this_cpu() else { return 0 };
    let sent = memory::word(counters, offset_of!(CpuCounters, sent_packet));
    let own = memory::word(counters, offset_of!(CpuCounters, own_packet_of));
    // SAFETY: a word of a map value.
    let packet = unsafe { memory::load(sent) };
    let mut sender = 0;
    if packet != 0 && packet == arguments.arg::<u64>(0) {
        sender = u64::from(Task::current().tid());
        // SAFETY: a word of a map value.
        unsafe { memory::store(sent, 0) };
    }
    // SAFETY: a word of a map value.
    unsafe { memory::store(own, sender) };
    0
}

/// A device's packets have been received, at least for now. Packets after this belong to other devices.
#[btf_tracepoint(function = "napi_poll")]
pub fn napi_poll(_: BtfTracePointContext) -> i32 {
    no_packet();
    0
}

/// Notes that this CPU is not receiving a packet that its thread has sent.
#[inline(always)]
pub fn no_packet() {
    if let Some(counters) = ring::this_cpu() {
        let own = memory::word(counters, offset_of!(CpuCounters, own_packet_of));
        // SAFETY: a word of a map value.
        unsafe { memory::store(own, 0) };
    }
}

/// Whether this CPU, in a soft interrupt, is receiving a packet that its thread has sent.
#[inline(always)]
pub fn takes_in_own_packet(tid: u32) -> bool {
    let Some(counters) = ring::this_cpu() else { return false };
    let own = memory::word(counters, offset_of!(CpuCounters, own_packet_of));
    // SAFETY: a word of a map value.
    tid != 0 && unsafe { memory::load(own) } == u64::from(tid)
}
