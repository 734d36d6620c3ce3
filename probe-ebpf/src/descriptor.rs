//! What a sleeping thread's descriptor refers to: its kind, and which file or which other end of a socket. It is read when
//! the thread goes to sleep in a call with a descriptor, so that other calls cost no more.

use core::ffi::c_void;

use aya_ebpf::{
    helpers::{bpf_probe_read_kernel, generated::bpf_probe_read_kernel_str},
    macros::map,
    maps::{HashMap, PerCpuArray},
};
use probe_abi::{Awaited, Call, Descriptor, MAX_AWAITED, RequestKey};

use crate::{
    kernel::{Socket, Task},
    request,
    settings::setting,
};

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

/// What a descriptor refers to.
pub struct Target {
    pub kind: Descriptor,
    /// Its number in [`AWAITED`]; 0: it has none.
    pub number: u32,
}

/// Files and other ends of sockets for which recorded threads have slept, by number.
#[map]
static AWAITED: HashMap<u32, Awaited> = HashMap::with_max_entries(MAX_AWAITED, 0);

/// Room for one of them. It is too large for a program's stack.
#[map]
static NEW_AWAITED: PerCpuArray<Awaited> = PerCpuArray::with_max_entries(1, 0);

/// What the descriptor in this call's first argument refers to.
#[inline(always)]
pub fn descriptor(task: Task, call: Call) -> Target {
    let unknown = Target { kind: Descriptor::Unknown, number: 0 };
    if setting!(descriptors_known) == 0 || !Descriptor::is_first_argument_of(call.number) {
        return unknown;
    }
    // Such a call accepts only one kind of descriptor, as in event loops, so the file need not be read.
    if let Some(kind) = Descriptor::told_by(call.number)
        && !Descriptor::carries(call.number)
    {
        return Target { kind, number: 0 };
    }
    look(task, call.argument0 as u32).unwrap_or(unknown)
}

#[inline(always)]
fn look(task: Task, number: u32) -> Option<Target> {
    let table: u64 = read(task.files(), setting!(files_fdt))?;
    let count: u32 = read(table, setting!(fdt_max_fds))?;
    if number >= count {
        return None;
    }
    let files: u64 = read(table, setting!(fdt_fd))?;
    let file: u64 = read(files.wrapping_add(u64::from(number) * 8), 0)?;
    let inode: u64 = read(file, setting!(file_inode))?;
    let mode: u16 = read(inode, setting!(inode_mode))?;
    let kind = match mode & TYPE {
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
    };
    let number = match kind {
        Descriptor::File | Descriptor::Device => named_file(kind, file, inode),
        Descriptor::Socket => end_of_socket(file),
        _ => None,
    };
    Some(Target { kind, number: number.unwrap_or(0) })
}

/// The number of a file, which gets an entry with its name.
#[inline(always)]
fn named_file(kind: Descriptor, file: u64, inode: u64) -> Option<u32> {
    let own: u64 = read(inode, setting!(inode_ino))?;
    let super_block: u64 = read(inode, setting!(inode_sb))?;
    let number = Awaited::of_file(own, read(super_block, setting!(sb_dev))?);
    if AWAITED.get_ptr(&number).is_some() {
        return Some(number);
    }
    let entry: u64 = read(file, setting!(file_dentry))?;
    let name: u64 = read(entry, setting!(dentry_name))?;
    let parent: u64 = read(entry, setting!(dentry_parent))?;
    let folder: u64 = read(parent, setting!(dentry_name))?;
    let new = NEW_AWAITED.get_ptr_mut(0)?;
    // SAFETY: this CPU's value of a map, which only this program uses, and a program is not interrupted by itself while
    // the kernel switches threads.
    let new = unsafe { &mut *new };
    let none = RequestKey { pid: 0, address: 0, port: 0, family: 0, served: 0 };
    (new.kind, new.socket, new.own_port) = (kind as u32, none, 0);
    text(&mut new.folder, folder);
    text(&mut new.name, name);
    AWAITED.insert(&number, new, 0).ok()?;
    Some(number)
}

/// Copies a text of the kernel, cut to the room for it. What cannot be read becomes zeros.
#[inline(always)]
fn text<const BYTES: usize>(to: &mut [u8; BYTES], from: u64) {
    // SAFETY: the helper checks the address itself, and writes at most this many bytes.
    let _ = unsafe {
        bpf_probe_read_kernel_str(to.as_mut_ptr().cast(), BYTES as u32, from as usize as *const c_void)
    };
}

/// The number of a stream socket's other end, which gets an entry.
#[inline(always)]
fn end_of_socket(file: u64) -> Option<u32> {
    if setting!(socket_sk) == 0 || setting!(file_private) == 0 {
        return None;
    }
    let socket: u64 = read(file, setting!(file_private))?;
    let sock: u64 = read(socket, setting!(socket_sk))?;
    let socket = Socket(sock as usize as *const u8);
    let key = request::key(socket, 0)?;
    let number = Awaited::of_socket(key);
    if AWAITED.get_ptr(&number).is_some() {
        return Some(number);
    }
    let new = NEW_AWAITED.get_ptr_mut(0)?;
    // SAFETY: as in `named_file`.
    let new = unsafe { &mut *new };
    (new.kind, new.socket, new.own_port) = (Descriptor::Socket as u32, key, u32::from(socket.port()));
    (new.folder[0], new.name[0]) = (0, 0);
    AWAITED.insert(&number, new, 0).ok()?;
    Some(number)
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
    if setting!(timerfd_interval) == 0 {
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
