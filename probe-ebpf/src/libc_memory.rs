//! Reads a process's own memory for records of operations: its mutexes, `errno`, results.

use aya_ebpf::helpers::bpf_probe_read_user;
use probe_abi::{LibcSite, MutexLayout, OperationFlags, OutcomeFrom};

use crate::kernel::Task;

const EINVAL: i32 = 22;

#[inline(always)]
pub fn read_half(address: u64) -> Option<u32> {
    // SAFETY: the helper checks the address itself.
    unsafe { bpf_probe_read_user(address as usize as *const u32) }.ok()
}

#[inline(always)]
pub fn read_word(address: u64) -> Option<u64> {
    // SAFETY: the helper checks the address itself.
    unsafe { bpf_probe_read_user(address as usize as *const u64) }.ok()
}

/// The kind of a mutex, as `OperationFlags` bits.
#[inline(always)]
pub fn kind(site: *const LibcSite, mutex: u64) -> u16 {
    // SAFETY: a map value.
    let layout = unsafe { (*site).layout };
    if layout == MutexLayout::Glibc as u32 {
        let Some(kind) = read_half(mutex.wrapping_add(16)) else { return 0 };
        let mut flags = match kind & 3 {
            1 => OperationFlags::RECURSIVE,
            2 => OperationFlags::ERROR_CHECK,
            3 => OperationFlags::ADAPTIVE,
            _ => 0,
        };
        flags |= if kind & 16 != 0 { OperationFlags::ROBUST } else { 0 };
        flags |= if kind & 32 != 0 { OperationFlags::INHERIT } else { 0 };
        flags |= if kind & 64 != 0 { OperationFlags::PROTECT } else { 0 };
        flags |= if kind & 128 != 0 { OperationFlags::SHARED } else { 0 };
        flags | OperationFlags::KIND_KNOWN
    } else if layout == MutexLayout::Musl as u32 {
        let Some(kind) = read_half(mutex) else { return 0 };
        let mut flags = match kind & 3 {
            1 => OperationFlags::RECURSIVE,
            2 => OperationFlags::ERROR_CHECK,
            _ => 0,
        };
        flags |= if kind & 4 != 0 { OperationFlags::ROBUST } else { 0 };
        flags |= if kind & 8 != 0 { OperationFlags::INHERIT } else { 0 };
        flags |= if kind & 128 != 0 { OperationFlags::SHARED } else { 0 };
        flags | OperationFlags::KIND_KNOWN
    } else {
        0
    }
}

/// A result in the encoding of [`Operation::outcome`].
#[inline(always)]
pub fn outcome(site: *const LibcSite, base: u64, from: OutcomeFrom, result: u64) -> i32 {
    match from {
        OutcomeFrom::Error => result as i32,
        OutcomeFrom::Errno if result as i32 == -1 => errno(site, base).unwrap_or(-1),
        OutcomeFrom::Errno => result as i32,
        OutcomeFrom::Pointer if result == 0 => errno(site, base).unwrap_or(-1),
        OutcomeFrom::Pointer | OutcomeFrom::Nothing => 0,
        OutcomeFrom::C11 => match result as i32 {
            0 => 0,
            1 => 16,
            3 => 12,
            4 => 110,
            _ => EINVAL,
        },
    }
}

#[inline(always)]
fn errno(site: *const LibcSite, base: u64) -> Option<i32> {
    // SAFETY: a map value.
    let known = unsafe { (*site).errno_known };
    // SAFETY: a map value.
    let slot = unsafe { (*site).errno_slot };
    // SAFETY: a map value.
    let distance = unsafe { (*site).errno_distance };
    if known == 0 {
        return None;
    }
    let distance = if slot == 0 { distance as u64 } else { read_word(base.wrapping_add(slot))? };
    let place = Task::current().thread_pointer()?.wrapping_add(distance);
    read_half(place).map(|errno| errno as i32)
}
