//! Breakpoints with a link each, for kernels without good common links (`uprobe_multi`): before Linux 6.6 there are none, and
//! before 6.10 a common link that is limited to a process misses the hits of all threads but the first.
//!
//! Such a link belongs to a perf event (`perf_event_open`, PMU `uprobe`). Attaching is as fast as with common links. Removing
//! one waits for all CPUs, and many are removed at the same time.

use std::{
    ffi::CStr,
    fs, io,
    os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd},
    sync::OnceLock,
};

use super::link_process::{Attaching, Point};

/// The first kernel whose common links count all threads of a process.
const COMMON_LINKS: (u32, u32) = (6, 10);

/// Whether the kernel is so old that each breakpoint needs a link of its own.
pub(crate) fn are_needed() -> bool {
    static ANSWER: OnceLock<bool> = OnceLock::new();
    *ANSWER.get_or_init(|| {
        let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        version(&release).is_some_and(|version| version < COMMON_LINKS)
    })
}

/// Major and minor version of a kernel release: `6.1.0-50-amd64` → (6, 1).
fn version(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit());
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

/// The object file with programs that can be attached by single links: common links need another kind of program, which the
/// name of its section chooses.
pub(crate) fn with_single_programs(object: &[u8]) -> Vec<u8> {
    const COMMON: &[u8] = b"uprobe.multi\0";
    const DOT: usize = 6;
    let mut changed = object.to_vec();
    let mut at = 0;
    while let Some(found) = object.get(at..).and_then(|rest| position(rest, COMMON)) {
        // The name ends here, and its remaining bytes have no meaning.
        if let Some(dot) = changed.get_mut(at + found + DOT) {
            *dot = 0;
        }
        at += found + COMMON.len();
    }
    changed
}

fn position(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes.windows(wanted.len()).position(|window| window == wanted)
}

/// Attaches each breakpoint. All links that were made are added to `made`, even if a later one fails.
pub(super) fn attach(attaching: &Attaching<'_>, path: &CStr, made: &mut Vec<OwnedFd>) -> io::Result<()> {
    let kind = fs::read_to_string("/sys/bus/event_source/devices/uprobe/type")?;
    let kind: u32 = kind.trim().parse().map_err(|_| io::ErrorKind::InvalidData)?;
    for point in attaching.points {
        let event = event(kind, path, point, attaching.pid)?;
        // The link holds the event.
        made.push(link(attaching, &event, point.cookie)?);
    }
    Ok(())
}

/// Makes a `struct perf_event_attr` of version 5 for a breakpoint at a point of a file in a process, and opens the
/// event.
fn event(kind: u32, path: &CStr, point: &Point, pid: u32) -> io::Result<OwnedFd> {
    const SIZE: u32 = 112;
    const CLOSE_ON_EXEC: libc::c_ulong = 8;
    const NONE: libc::c_int = -1;
    let mut attributes = [0u8; SIZE as usize];
    let mut put = |at: usize, bytes: &[u8]| attributes[at..at + bytes.len()].copy_from_slice(bytes);
    put(0, &kind.to_ne_bytes());
    put(4, &SIZE.to_ne_bytes());
    // The upper half of `config` is the offset of the counter.
    let semaphore = u32::try_from(point.semaphore).map_err(|_| io::Error::from_raw_os_error(libc::EINVAL))?;
    put(8, &(u64::from(semaphore) << 32).to_ne_bytes());
    put(56, &(path.as_ptr().expose_provenance() as u64).to_ne_bytes());
    put(64, &point.offset.to_ne_bytes());
    let pid = i32::try_from(pid).map_err(|_| io::ErrorKind::InvalidInput)?;
    // SAFETY: the attributes contain their length; they and the path that they point to live until the call returns.
    let number = unsafe {
        libc::syscall(libc::SYS_perf_event_open, attributes.as_ptr(), pid, NONE, NONE, CLOSE_ON_EXEC)
    };
    owned(number)
}

/// `union bpf_attr` for `BPF_LINK_CREATE` in the form for `BPF_PERF_EVENT` (include/uapi/linux/bpf.h).
#[repr(C)]
struct CreateLink {
    program: i32,
    event: i32,
    attach_type: u32,
    flags: u32,
    cookie: u64,
}

fn link(attaching: &Attaching<'_>, event: &OwnedFd, cookie: u64) -> io::Result<OwnedFd> {
    const BPF_LINK_CREATE: libc::c_int = 28;
    const BPF_PERF_EVENT: u32 = 41;
    let attributes = CreateLink {
        program: attaching.program.as_raw_fd(),
        event: event.as_raw_fd(),
        attach_type: BPF_PERF_EVENT,
        flags: 0,
        cookie,
    };
    // SAFETY: the attributes live until the call returns, and the kernel does not write to them.
    let number = unsafe {
        libc::syscall(libc::SYS_bpf, BPF_LINK_CREATE, &raw const attributes, size_of::<CreateLink>())
    };
    owned(number)
}

/// The descriptor that a system call has returned.
pub(super) fn owned(number: libc::c_long) -> io::Result<OwnedFd> {
    match i32::try_from(number) {
        // SAFETY: a new descriptor with no other owner.
        Ok(number) if number >= 0 => Ok(unsafe { OwnedFd::from_raw_fd(number) }),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_before_6_10_need_them() {
        assert!(version("6.1.0-50-cloud-amd64\n").is_some_and(|version| version < COMMON_LINKS));
        assert!(version("6.9.12").is_some_and(|version| version < COMMON_LINKS));
        assert!(version("6.10-rc1").is_some_and(|version| version >= COMMON_LINKS));
        assert_eq!(version("odd"), None);
    }

    #[test]
    fn names_of_sections_are_cut_off_where_the_kind_of_link_begins() {
        let object = b"\0uprobe.multi\0x\0.reluprobe.multi\0uprobe.multiple\0";
        assert_eq!(with_single_programs(object), b"\0uprobe\0multi\0x\0.reluprobe\0multi\0uprobe.multiple\0");
    }

    #[test]
    fn a_process_that_is_not_there_is_an_error() {
        let point = Point { offset: 0x40, cookie: 0, semaphore: 0 };
        let error = event(1, c"/proc/self/exe", &point, u32::MAX >> 1).expect_err("nobody has this number");
        assert!(error.raw_os_error().is_some_and(|code| code > 0), "{error}");
    }
}
