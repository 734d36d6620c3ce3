//! The kind of thing that a sleeping thread's descriptor refers to. It is read when the thread goes to sleep in a call
//! with a descriptor, so that other calls cost no more.

use aya_ebpf::helpers::bpf_probe_read_kernel;
use probe_abi::{Call, Descriptor};

use crate::{kernel::Task, settings::setting};

/// `S_IFMT` and the file types (`include/uapi/linux/stat.h`).
const TYPE: u16 = 0o170_000;
const PIPE: u16 = 0o010_000;
const CHARACTER_DEVICE: u16 = 0o020_000;
const DIRECTORY: u16 = 0o040_000;
const BLOCK_DEVICE: u16 = 0o060_000;
const SOCKET: u16 = 0o140_000;

/// `ANON_INODE_FS_MAGIC` and `PID_FS_MAGIC` (`include/uapi/linux/magic.h`).
const ANONYMOUS: u64 = 0x0904_1934;
const PROCESSES: u64 = 0x5049_4446;

/// The kind of thing to which the descriptor in this call's first argument refers.
#[inline(always)]
pub fn descriptor(task: Task, call: Call) -> Descriptor {
    if setting!(descriptors_known) == 0 || !Descriptor::is_first_argument_of(call.number) {
        return Descriptor::Unknown;
    }
    // Such a call accepts only one kind of descriptor, as in event loops, so the file need not be read.
    if let Some(told) = Descriptor::told_by(call.number) {
        return told;
    }
    look(task, call.argument0 as u32).unwrap_or(Descriptor::Unknown)
}

#[inline(always)]
fn look(task: Task, number: u32) -> Option<Descriptor> {
    let table: u64 = read(task.files(), setting!(files_fdt))?;
    let count: u32 = read(table, setting!(fdt_max_fds))?;
    if number >= count {
        return None;
    }
    let files: u64 = read(table, setting!(fdt_fd))?;
    let file: u64 = read(files.wrapping_add(u64::from(number) * 8), 0)?;
    let inode: u64 = read(file, setting!(file_inode))?;
    let mode: u16 = read(inode, setting!(inode_mode))?;
    Some(match mode & TYPE {
        PIPE => Descriptor::Pipe,
        SOCKET => Descriptor::Socket,
        DIRECTORY => Descriptor::File,
        BLOCK_DEVICE => Descriptor::Device,
        CHARACTER_DEVICE => {
            let device: u32 = read(inode, setting!(inode_rdev))?;
            // Terminals: 4 real and serial ones, 5 the controlling one and the console, 136 to 143 pseudo ones, 166 and
            // 188 those on USB, 204 further serial ones (Documentation/admin-guide/devices.txt).
            match device >> 20 {
                4 | 5 | 136..=143 | 166 | 188 | 204 => Descriptor::Terminal,
                _ => Descriptor::Device,
            }
        }
        // Some kernels give files without a file system the type of regular files.
        _ => {
            let super_block: u64 = read(inode, setting!(inode_sb))?;
            match read(super_block, setting!(sb_magic))? {
                ANONYMOUS => anonymous(file)?,
                PROCESSES => Descriptor::Process,
                _ => Descriptor::File,
            }
        }
    })
}

/// The kind of an anonymous file, from the name that the kernel gives it; the first eight bytes are enough.
#[inline(always)]
fn anonymous(file: u64) -> Option<Descriptor> {
    let entry: u64 = read(file, setting!(file_dentry))?;
    let name: u64 = read(entry, setting!(dentry_name))?;
    let start: u64 = read(name, 0)?;
    const fn word(text: &[u8; 8]) -> u64 {
        u64::from_le_bytes(*text)
    }
    Some(if start == word(b"[eventfd") {
        Descriptor::Event
    } else if start == word(b"[timerfd") {
        timer(file)
    } else if start == word(b"[signalf") {
        Descriptor::Signal
    } else if start == word(b"[eventpo") {
        Descriptor::Epoll
    } else if start == word(b"[io_urin") {
        Descriptor::Ring
    } else if start == word(b"inotify\0") || start == word(b"[fanotif") {
        Descriptor::Notify
    } else if start == word(b"[pidfd]\0") {
        Descriptor::Process
    } else {
        Descriptor::Other
    })
}

/// The timer ends at absolute times: `TFD_TIMER_ABSTIME` (`include/uapi/linux/timerfd.h`).
const ABSOLUTE: u16 = 1;

/// A timer's kind: whether its end is fixed, whatever its reader does before.
#[inline(always)]
fn timer(file: u64) -> Descriptor {
    if setting!(file_private) == 0 {
        return Descriptor::Timer;
    }
    let Some(timer) = read::<u64>(file, setting!(file_private)) else { return Descriptor::Timer };
    let interval: Option<u64> = read(timer, setting!(timerfd_interval));
    let flags: Option<u16> = read(timer, setting!(timerfd_flags));
    let repeats = interval.is_some_and(|interval| interval != 0);
    if repeats || flags.is_some_and(|flags| flags & ABSOLUTE != 0) {
        Descriptor::Deadline
    } else {
        Descriptor::Timer
    }
}

/// Reads a member of a struct of the kernel.
#[inline(always)]
fn read<T>(base: u64, offset: u32) -> Option<T> {
    let from = base.wrapping_add(u64::from(offset)) as usize as *const T;
    // SAFETY: the helper checks the address itself.
    unsafe { bpf_probe_read_kernel(from) }.ok()
}
