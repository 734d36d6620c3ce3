//! Makes system calls by number, without libc. So they do not change `errno` and are no cancellation points.

use core::arch::asm;
use core::ffi::{CStr, c_char};
use core::sync::atomic::AtomicU32;

#[cfg(target_arch = "x86_64")]
mod number {
    pub const READ: usize = 0;
    pub const PREAD: usize = 17;
    pub const FSTAT: usize = 5;
    pub const MMAP: usize = 9;
    pub const MADVISE: usize = 28;
    pub const GETPID: usize = 39;
    pub const GETTID: usize = 186;
    pub const CLOCK_GETTIME: usize = 228;
    pub const READLINKAT: usize = 267;
    pub const OPENAT: usize = 257;
    pub const CLOSE: usize = 3;
    pub const FUTEX: usize = 202;
    pub const MUNMAP: usize = 11;
    pub const PRCTL: usize = 157;
    pub const FACCESSAT: usize = 269;
    pub const GETEUID: usize = 107;
    pub const PRLIMIT: usize = 302;
    pub const PROCESS_VM_READV: usize = 310;
}
#[cfg(target_arch = "aarch64")]
mod number {
    pub const READ: usize = 63;
    pub const PREAD: usize = 67;
    pub const FSTAT: usize = 80;
    pub const MMAP: usize = 222;
    pub const MADVISE: usize = 233;
    pub const GETPID: usize = 172;
    pub const GETTID: usize = 178;
    pub const CLOCK_GETTIME: usize = 113;
    pub const READLINKAT: usize = 78;
    pub const OPENAT: usize = 56;
    pub const CLOSE: usize = 57;
    pub const FUTEX: usize = 98;
    pub const MUNMAP: usize = 215;
    pub const PRCTL: usize = 167;
    pub const FACCESSAT: usize = 48;
    pub const GETEUID: usize = 175;
    pub const PRLIMIT: usize = 261;
    pub const PROCESS_VM_READV: usize = 270;
}

const AT_FDCWD: usize = -100isize as usize;
const PROT_READ_WRITE: usize = 3;
const MAP_SHARED: usize = 0x01;
const MAP_PRIVATE: usize = 0x02;
const MAP_ANONYMOUS: usize = 0x20;
const MAP_NORESERVE: usize = 0x4000;
const MADV_DONTDUMP: usize = 16;
const MADV_WIPEONFORK: usize = 18;
const CLOCK_MONOTONIC: usize = 1;
const FUTEX_WAKE: usize = 1;

/// Size of the smallest page, in bytes. Pages may be larger.
pub const PAGE: usize = 4096;

/// # Safety
/// The caller must meet the requirements of the system call.
unsafe fn call(number: usize, arguments: [usize; 6]) -> isize {
    let [a, b, c, d, e, f] = arguments;
    let result: isize;
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the instruction changes what is declared. The caller is responsible for the kernel's access to memory.
    unsafe {
        asm!(
            "syscall",
            inlateout("rax") number as isize => result,
            in("rdi") a, in("rsi") b, in("rdx") c, in("r10") d, in("r8") e, in("r9") f,
            lateout("rcx") _, lateout("r11") _,
            options(nostack),
        );
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: the instruction changes what is declared. The caller is responsible for the kernel's access to memory.
    unsafe {
        asm!(
            "svc 0",
            in("x8") number,
            inlateout("x0") a => result,
            in("x1") b, in("x2") c, in("x3") d, in("x4") e, in("x5") f,
            options(nostack),
        );
    }
    result
}

/// The PID of this process, in its own PID namespace.
pub fn pid() -> u32 {
    // SAFETY: getpid has no arguments and accesses no memory.
    unsafe { call(number::GETPID, [0; 6]) as u32 }
}

/// The id of this thread, in its own PID namespace.
pub fn tid() -> u32 {
    // SAFETY: gettid has no arguments and accesses no memory.
    unsafe { call(number::GETTID, [0; 6]) as u32 }
}

/// Whether this process is in the machine's first PID namespace, and whether it is in the first time namespace. `None`
/// if /proc does not show that, or if the kernel has no such namespaces.
pub fn in_first_namespaces() -> [Option<bool>; 2] {
    // The kernel gives the first namespaces these inode numbers (include/linux/proc_ns.h).
    [is_link(c"/proc/self/ns/pid", b"pid:[4026531836]"), is_link(c"/proc/self/ns/time", b"time:[4026531834]")]
}

fn is_link(path: &CStr, expected: &[u8]) -> Option<bool> {
    let mut name = [0u8; 32];
    let arguments = [AT_FDCWD, path.as_ptr() as usize, name.as_mut_ptr() as usize, name.len(), 0, 0];
    // SAFETY: readlinkat reads a path that ends with a NUL, and writes at most the size of the buffer.
    let length = unsafe { call(number::READLINKAT, arguments) };
    let name = usize::try_from(length).ok().and_then(|length| name.get(..length))?;
    Some(name.len() == expected.len() && name.iter().zip(expected).all(|(a, b)| a == b))
}

/// Whether the kernel ends this thread for reading the time stamp counter (`PR_SET_TSC`). Programs inherit this state.
pub fn has_lost_the_clock() -> bool {
    const PR_GET_TSC: usize = 25;
    const PR_TSC_SIGSEGV: i32 = 2;
    let mut mode = 0i32;
    // SAFETY: prctl writes one number, for which there is room. Kernels without this option do not change it.
    unsafe { call(number::PRCTL, [PR_GET_TSC, (&raw mut mode) as usize, 0, 0, 0, 0]) };
    mode == PR_TSC_SIGSEGV
}

/// Whether this process may lock this much memory, because it belongs to root or has a large enough limit.
pub fn may_lock(bytes: u64) -> bool {
    const RLIMIT_MEMLOCK: usize = 8;
    // SAFETY: geteuid has no arguments and accesses no memory.
    let user = unsafe { call(number::GETEUID, [0; 6]) };
    user == 0 || soft_limit(RLIMIT_MEMLOCK).is_some_and(|limit| limit >= bytes)
}

/// The limit of this process's address space, in bytes. `u64::MAX` if no limit is known.
pub fn most_addresses() -> u64 {
    const RLIMIT_AS: usize = 9;
    soft_limit(RLIMIT_AS).unwrap_or(u64::MAX)
}

fn soft_limit(resource: usize) -> Option<u64> {
    let mut limit = [0u64; 2];
    // SAFETY: prlimit writes two numbers, for which there is room.
    let failed = unsafe { call(number::PRLIMIT, [0, resource, 0, (&raw mut limit) as usize, 0, 0]) };
    (failed == 0).then_some(limit[0])
}

/// Copies memory of this process that may be unmapped, and returns the number of copied bytes. The kernel reads the
/// memory, so no instruction of the library can fault. The result is also 0 if the kernel lacks the system call or
/// forbids it.
pub fn read_own(address: usize, room: &mut [u8]) -> usize {
    let to = [room.as_mut_ptr() as usize, room.len()];
    let from = [address, room.len()];
    let arguments = [pid() as usize, to.as_ptr() as usize, 1, from.as_ptr() as usize, 1, 0];
    // SAFETY: process_vm_readv writes at most the size of the buffer, and reads only mapped memory.
    usize::try_from(unsafe { call(number::PROCESS_VM_READV, arguments) }).unwrap_or(0)
}

/// Whether a readable file with this name exists.
pub fn is_readable(path: *const c_char) -> bool {
    const R_OK: usize = 4;
    // SAFETY: faccessat reads a path that ends with a NUL, or fails.
    unsafe { call(number::FACCESSAT, [AT_FDCWD, path as usize, R_OK, 0, 0, 0]) == 0 }
}

/// A file that is open for reading. It is closed when this value is dropped.
pub struct Open(usize);

impl Open {
    /// Opens a file. Returns at once even for a pipe or device, because the file is opened without blocking.
    pub fn file(path: *const c_char) -> Option<Open> {
        const O_NONBLOCK: usize = 0o4000;
        const O_CLOEXEC: usize = 0o2000000;
        // SAFETY: openat reads a path that ends with a NUL, or fails.
        let fd = unsafe { call(number::OPENAT, [AT_FDCWD, path as usize, O_CLOEXEC | O_NONBLOCK, 0, 0, 0]) };
        usize::try_from(fd).ok().map(Open)
    }

    /// Fills the buffer with the file's bytes from this offset on, and returns the number of bytes.
    pub fn read_at(&self, offset: u64, room: &mut [u8]) -> usize {
        let (to, most) = (room.as_mut_ptr() as usize, room.len());
        // SAFETY: pread writes at most the size of the buffer.
        let length = unsafe { call(number::PREAD, [self.0, to, most, offset as usize, 0, 0]) };
        usize::try_from(length).unwrap_or(0)
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        close(self.0 as i32);
    }
}

/// Opens the file behind another process's descriptor, for reading and writing. `None` if this process may not do so.
pub fn open_of(pid: u32, fd: u32) -> Option<i32> {
    const O_RDWR: usize = 2;
    const O_CLOEXEC: usize = 0o2000000;
    let mut path = [0u8; 48];
    let mut length = 0;
    let mut put = |text: &[u8]| {
        for &byte in text {
            if let Some(place) = path.get_mut(length) {
                *place = byte;
                length += 1;
            }
        }
    };
    let number = |mut number: u32, before: &[u8], put: &mut dyn FnMut(&[u8])| {
        let mut digits = [0u8; 10];
        let mut first = digits.len();
        loop {
            first = first.saturating_sub(1);
            if let Some(digit) = digits.get_mut(first) {
                *digit = b'0' + (number % 10) as u8;
            }
            number /= 10;
            if number == 0 {
                break;
            }
        }
        put(before);
        put(digits.get(first..).unwrap_or_default());
    };
    number(pid, b"/proc/", &mut put);
    number(fd, b"/fd/", &mut put);
    let arguments = [AT_FDCWD, path.as_ptr() as usize, O_RDWR | O_CLOEXEC, 0, 0, 0];
    // SAFETY: openat reads a path, of which at most 34 of 48 bytes are not NUL.
    let result = unsafe { call(number::OPENAT, arguments) };
    i32::try_from(result).ok().filter(|&fd| fd >= 0)
}

/// Closes a descriptor that the library opened.
pub fn close(fd: i32) {
    // SAFETY: close gets a number that no other code uses.
    unsafe { call(number::CLOSE, [fd as usize, 0, 0, 0, 0, 0]) };
}

/// Number of seccomp filters of this thread; `None` if /proc does not show it. Makes only system calls that the loader
/// makes, too, so a filter does not forbid them.
pub fn filters() -> Option<u64> {
    const O_CLOEXEC: usize = 0o2000000;
    let path = c"/proc/self/status".as_ptr() as usize;
    // SAFETY: openat reads a path that ends with a NUL.
    let fd = i32::try_from(unsafe { call(number::OPENAT, [AT_FDCWD, path, O_CLOEXEC, 0, 0, 0]) }).ok()?;
    if fd < 0 {
        return None;
    }
    let mut line = FilterLine::default();
    // Small enough that the compiler clears it without a call of memset.
    let mut part = [0u8; 128];
    loop {
        let arguments = [fd as usize, part.as_mut_ptr() as usize, part.len(), 0, 0, 0];
        // SAFETY: read writes at most the size of the buffer.
        let length = unsafe { call(number::READ, arguments) };
        let Some(bytes) = usize::try_from(length).ok().and_then(|length| part.get(..length)) else { break };
        if bytes.is_empty() || bytes.iter().any(|&byte| line.take(byte)) {
            break;
        }
    }
    close(fd);
    line.number
}

/// Finds the line with the number of filters in text that is passed byte by byte.
#[derive(Default)]
struct FilterLine {
    /// Number of bytes of the line's beginning that have just been read, counting the end of the previous line.
    seen: usize,
    number: Option<u64>,
}

impl FilterLine {
    /// Takes the next byte. Returns whether the number is complete.
    fn take(&mut self, byte: u8) -> bool {
        const BEGINNING: &[u8] = b"\nSeccomp_filters:";
        match BEGINNING.get(self.seen) {
            Some(&expected) if byte == expected => self.seen += 1,
            Some(_) => self.seen = usize::from(byte == b'\n'),
            None if byte.is_ascii_digit() => {
                let number = self.number.unwrap_or(0);
                self.number = Some(number.saturating_mul(10).saturating_add(u64::from(byte - b'0')));
            }
            None => return byte == b'\n',
        }
        false
    }
}

/// Device, inode and size (bytes) of an open file; `None` if the descriptor is not open.
pub fn status(fd: i32) -> Option<(u64, u64, u64)> {
    // `struct stat` has at most 144 bytes; device, inode and size are at the same places on both architectures.
    let mut stat = [0u64; 32];
    // SAFETY: fstat writes one `struct stat`, for which there is room.
    let result = unsafe { call(number::FSTAT, [fd as usize, stat.as_mut_ptr() as usize, 0, 0, 0, 0]) };
    (result == 0).then_some((stat[0], stat[1], stat[6]))
}

/// Maps a complete file, so that all processes that map it share the memory.
pub fn map_shared(fd: i32, bytes: usize) -> Option<*mut u8> {
    let flags = MAP_SHARED | MAP_NORESERVE;
    // SAFETY: the kernel chooses the address of a new mapping, so no existing mapping changes.
    let address = unsafe { call(number::MMAP, [0, bytes, PROT_READ_WRITE, flags, fd as usize, 0]) };
    let address = mapped(address)?;
    // The mapping should not be in core dumps of the target. If the call fails, it is.
    // SAFETY: the range is the mapping that was just made.
    unsafe { call(number::MADVISE, [address as usize, bytes, MADV_DONTDUMP, 0, 0, 0]) };
    Some(address)
}

/// Maps private memory filled with 0.
pub fn map_private(bytes: usize) -> Option<*mut u8> {
    let flags = MAP_PRIVATE | MAP_ANONYMOUS;
    // SAFETY: the kernel chooses the address of a new mapping, so no existing mapping changes.
    mapped(unsafe { call(number::MMAP, [0, bytes, PROT_READ_WRITE, flags, usize::MAX, 0]) })
}

/// # Safety
///
/// The range must be a mapping of this library, or a part of one, that nothing uses any more.
pub unsafe fn unmap(address: usize, bytes: usize) {
    // SAFETY: by the contract of this function.
    unsafe { call(number::MUNMAP, [address, bytes, 0, 0, 0, 0]) };
}

/// Maps a page that the kernel sets to 0 in the child after every fork.
pub fn map_wiped_on_fork() -> Option<*mut u8> {
    let address = map_private(PAGE)?;
    // SAFETY: the range is the mapping that was just made.
    let result = unsafe { call(number::MADVISE, [address as usize, PAGE, MADV_WIPEONFORK, 0, 0, 0]) };
    (result == 0).then_some(address)
}

fn mapped(result: isize) -> Option<*mut u8> {
    // Results in the last page of addresses are error numbers.
    (result > 0 || result < -(PAGE as isize)).then_some(result as *mut u8)
}

/// The present time of `CLOCK_MONOTONIC` in nanoseconds, by a system call.
pub fn clock_ns() -> u64 {
    let mut time = [0u64; 2];
    let arguments = [CLOCK_MONOTONIC, time.as_mut_ptr() as usize, 0, 0, 0, 0];
    // SAFETY: clock_gettime writes one `struct timespec` of two words, for which there is room.
    unsafe { call(number::CLOCK_GETTIME, arguments) };
    time[0].wrapping_mul(1_000_000_000).wrapping_add(time[1])
}

/// Wakes one thread, of any process, that waits for this word. Returns the number of threads woken.
pub fn wake(word: &AtomicU32) -> usize {
    let arguments = [word.as_ptr() as usize, FUTEX_WAKE, 1, 0, 0, 0];
    // SAFETY: FUTEX_WAKE gets the address of an existing number and changes nothing.
    usize::try_from(unsafe { call(number::FUTEX, arguments) }).unwrap_or(0)
}

/// Ends the process.
#[cfg(all(not(test), panic = "abort"))]
pub fn trap() -> ! {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the instruction raises SIGILL and does not return.
    unsafe {
        asm!("ud2", options(noreturn))
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: the instruction raises SIGTRAP. If execution continues after it, the loop below never ends.
    unsafe {
        asm!("2: brk 1", "b 2b", options(noreturn))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn system_calls_of_the_library_return_the_kernel_s_answers() {
        assert_eq!(pid(), std::process::id());
        let file = std::fs::File::open("/proc/self/exe").expect("exe");
        use std::os::{fd::AsRawFd, unix::fs::MetadataExt};
        let metadata = file.metadata().expect("metadata");
        assert_eq!(status(file.as_raw_fd()), Some((metadata.dev(), metadata.ino(), metadata.size())));
        assert_eq!(status(-1), None);
        let again = open_of(std::process::id(), 1_000_000);
        assert_eq!(again, None);
        let memory = std::fs::File::options().read(true).write(true).open("/dev/null").expect("a file");
        let again = open_of(std::process::id(), memory.as_raw_fd() as u32).expect("opened again");
        assert_eq!(status(again), status(memory.as_raw_fd()));
        close(again);
        assert_eq!(status(again), None);
        assert_eq!(map_shared(-1, PAGE), None);
        assert_eq!(wake(&AtomicU32::new(1)), 0, "nobody waits");
        assert_eq!(filters(), filters_of(&std::fs::read_to_string("/proc/self/status").expect("status")));
        let before = clock_ns();
        assert!(clock_ns() >= before && before > 0);
    }

    fn filters_of(text: &str) -> Option<u64> {
        let mut line = FilterLine::default();
        let _ = text.bytes().any(|byte| line.take(byte));
        line.number
    }

    #[test]
    fn the_number_of_seccomp_filters_is_read_from_its_line() {
        let text = "Name:\tSeccomp_filters:\nSeccomp:\t2\nSeccomp_filters:\t12\nSpeculation:\t7\n";
        assert_eq!(filters_of(text), Some(12));
        assert_eq!(filters_of("\n\nSeccomp_filters:\t0\n"), Some(0));
        assert_eq!(filters_of("x\nSeccomp_filters:\n"), None);
        assert_eq!(filters_of("x\nSeccomp:\t2\n"), None);
    }
}
