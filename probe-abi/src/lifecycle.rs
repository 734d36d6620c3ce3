//! Records of threads and processes: their beginning, changes and end.

use crate::Header;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// `sched_process_fork`: the header's thread has created `child_tid`. The child is a new thread if `child_pid` is the
/// header's `pid`, and otherwise a new process.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct Fork {
    /// `tid` and `pid` are the parent's.
    pub header: Header,
    /// The new thread.
    pub child_tid: u32,
    /// The new thread's process.
    pub child_pid: u32,
    /// The child's start time (`task_struct.start_time`, `CLOCK_MONOTONIC` nanoseconds); 0 if not known.
    pub child_start_ns: u64,
    /// The child's name as the kernel stores it, padded with NUL.
    pub comm: [u8; 16],
}

/// `sched_process_exec`: the header's process runs a new program. Its other threads have ended.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct Exec {
    /// `tid` and `pid` are those after the exec.
    pub header: Header,
    /// `tid` before the exec. The id differs from the header's if another thread than the leader called exec.
    pub old_tid: u32,
    /// Number of the memory page at which the program's instructions begin (`mm_struct.start_code` >> 12, low 32 bits);
    /// 0 if not known. For a process that ends soon, nothing else shows where its program was.
    pub first_page: u32,
    /// The new name, NUL padded.
    pub comm: [u8; 16],
}

/// `sched_process_exit`: the header's thread ends. The thread still runs in the kernel for a moment.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct Exit {
    /// `tid` and `pid` are those of the thread that ends.
    pub header: Header,
    /// 1 if the thread was the last one of its process, else 0.
    pub last_of_process: u32,
    /// Nice value and allowed CPUs of the thread, see [`Exit::nice`] and [`Exit::cpus`]; 0 if not known.
    pub placement: u32,
}

impl Exit {
    /// Number of CPUs that fit into [`Exit::placement`].
    pub const CPUS: u32 = 24;

    /// Encodes [`Exit::placement`] from a static priority (`task_struct.static_prio`) and the CPUs that the thread may
    /// use, as bits.
    pub const fn placed(static_priority: u32, cpus: u32) -> u32 {
        (static_priority & 0xff) | (cpus << 8)
    }

    /// The thread's last nice value, −20 to 19; `None` if not known.
    pub const fn nice(&self) -> Option<i8> {
        // The static priority of nice value 0 is MAX_RT_PRIO + 20 (include/linux/sched/prio.h).
        match self.placement & 0xff {
            priority @ 100..=139 => Some((priority as i8 as i16 - 120) as i8),
            _ => None,
        }
    }

    /// The CPUs that the thread was last allowed to use, as bits. `None` if not known, or if one of them is not below
    /// [`Exit::CPUS`].
    pub const fn cpus(&self) -> Option<u32> {
        match self.placement >> 8 {
            0 => None,
            cpus => Some(cpus),
        }
    }
}

/// `task_rename`: the thread `renamed_tid`, mostly the header's thread, has a new name.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct Rename {
    /// `tid` and `pid` are those of the thread that made the change.
    pub header: Header,
    /// The renamed thread.
    pub renamed_tid: u32,
    /// The renamed thread's process.
    pub renamed_pid: u32,
    /// The new name, NUL padded.
    pub comm: [u8; 16],
}

const _: () = assert!(size_of::<Fork>() == 56);
const _: () = assert!(size_of::<Exec>() == 48);
const _: () = assert!(size_of::<Exit>() == 32);
const _: () = assert!(size_of::<Rename>() == 48);
