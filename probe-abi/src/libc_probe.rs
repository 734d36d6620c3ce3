//! Probes on libc's synchronization functions. Defines the cookie that tells the kernel program which probe was hit,
//! and the facts that the kernel program needs about the process.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// The 64-bit cookie of a probe on a function of libc, which tells the program which probe was hit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LibcCookie {
    /// The part of the call at which the probe is placed.
    pub part: Part,
    /// The function that is called. Not used for [`Part::Leave`] and [`Part::Ran`], because the stack pointer there
    /// shows which call it is.
    pub function: LibcFunction,
    /// Number of the function's [`LibcSite`].
    pub site: u16,
    /// Index of the [`crate::FunctionCounters`] that all functions of one family share in the process. The index is
    /// relative to [`crate::Settings::first_libc_counters`].
    pub counters: u16,
}

/// A function of libc that does a synchronization operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LibcFunction {
    /// A [`crate::SyncOperation`] as a number below 256.
    pub operation: u8,
    /// The argument or memory from which the record's object is taken.
    pub object: ObjectFrom,
    /// The argument or memory from which the record's second object is taken.
    pub second: SecondFrom,
    /// The meaning of the function's result.
    pub outcome: OutcomeFrom,
    /// Whether the function's object is a mutex whose memory the program must read.
    pub looks_at_mutex: bool,
}

macro_rules! small {
    ($(#[$doc:meta])* $type:ident { $($(#[$item_doc:meta])* $name:ident = $number:literal,)* } otherwise $default:ident) => {
        $(#[$doc])*
        #[repr(u8)]
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $type {
            $($(#[$item_doc])* $name = $number,)*
        }

        impl $type {
            /// Every value.
            pub const ALL: &'static [$type] = &[$($type::$name,)*];

            const fn from_bits(bits: u64) -> $type {
                match bits {
                    $($number => $type::$name,)*
                    _ => $type::$default,
                }
            }
        }
    };
}

small! {
    /// The part of a call at which a probe is placed.
    Part {
        /// The function's first instruction.
        Enter = 0,
        /// A `ret` through which the call may return.
        Leave = 1,
        /// In `once`: the call of the routine that the program passed.
        Ran = 2,
        /// A `ret` of a function whose first instruction can have no probe. The object is still in its register there.
        Whole = 3,
        /// The first instruction of a function that does not return.
        Gone = 4,
        /// The first instruction of the loader, which runs before all other code of a program.
        Loader = 5,
    } otherwise Leave
}

small! {
    /// Where a record's object comes from: see [`LibcFunction::object`].
    ObjectFrom {
        /// The first argument.
        Argument = 0,
        /// There is no object; the record has 0.
        Nothing = 1,
        /// The word to which the first argument points, once the call has returned 0.
        Created = 2,
        /// The result of the call.
        Result = 3,
    } otherwise Nothing
}

small! {
    /// Where a record's second object comes from: see [`LibcFunction::second`].
    SecondFrom {
        /// There is no second object; the record has 0.
        Nothing = 0,
        /// The second argument.
        Mutex = 1,
        /// The third argument, 32 bits.
        Count2 = 2,
        /// The fourth argument, 32 bits.
        Count3 = 3,
    } otherwise Nothing
}

small! {
    /// Where a record's outcome comes from: see [`LibcFunction::outcome`].
    OutcomeFrom {
        /// The result of the call is the outcome.
        Error = 0,
        /// If the result is −1, `errno` has the outcome.
        Errno = 1,
        /// If the result is a null pointer, `errno` has the outcome. For other pointers the outcome is 0.
        Pointer = 2,
        /// The result is one of C11's `thrd_*` constants.
        C11 = 3,
        /// The function has no result; the record has 0.
        Nothing = 4,
    } otherwise Nothing
}

impl LibcCookie {
    /// The cookie as the kernel stores it.
    pub const fn to_bits(self) -> u64 {
        let LibcFunction { operation, object, second, outcome, looks_at_mutex } = self.function;
        self.counters as u64
            | (self.site as u64) << 16
            | (operation as u64) << 40
            | (self.part as u64) << 48
            | (object as u64) << 51
            | (second as u64) << 53
            | (outcome as u64) << 55
            | (looks_at_mutex as u64) << 58
    }

    /// The inverse of [`LibcCookie::to_bits`].
    pub const fn from_bits(bits: u64) -> LibcCookie {
        LibcCookie {
            part: Part::from_bits(bits >> 48 & 7),
            function: LibcFunction {
                operation: (bits >> 40) as u8,
                object: ObjectFrom::from_bits(bits >> 51 & 3),
                second: SecondFrom::from_bits(bits >> 53 & 3),
                outcome: OutcomeFrom::from_bits(bits >> 55 & 7),
                looks_at_mutex: bits >> 58 & 1 != 0,
            },
            site: (bits >> 16) as u16,
            counters: bits as u16,
        }
    }
}

/// Largest number of functions with probes in all C libraries together.
pub const MAX_LIBC_SITES: usize = 16_384;

/// The place of a function, and properties of its library. User space writes this entry before it attaches the
/// function's first probe. Addresses are as linked.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct LibcSite {
    /// The function's first instruction.
    pub entry: u64,
    /// First address of the library's code. Calls from that code are no calls of the program. 0 for a statically linked
    /// program.
    pub text_from: u64,
    /// End of the library's code: the address after its last byte. 0 for a statically linked program.
    pub text_to: u64,
    /// Address of the word that contains the distance from the thread pointer to `errno`. If 0, the next field has the
    /// distance.
    pub errno_slot: u64,
    /// The distance from the thread pointer to `errno` in bytes, if there is no such word.
    pub errno_distance: i64,
    /// 1 if `errno` can be found.
    pub errno_known: u32,
    /// The layout of mutexes: a [`MutexLayout`] as a number.
    pub layout: u32,
}

/// Largest number of ranges in [`LibcProcess::own`].
pub const MAX_OWN_RANGES: usize = 6;

/// Facts about a process with probes on its libc, for the kernel program.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct LibcProcess {
    /// Address ranges (from, up to) of libc's own code in further files. Calls from that code are no calls of the
    /// program. The first range is the loader's. When a new program starts, the kernel program itself sets that range,
    /// and there are no other ranges.
    pub own: [[u64; 2]; MAX_OWN_RANGES],
    /// Device of the process's PID namespace in the kernel's encoding, if it is not the first namespace.
    pub namespace_device: u64,
    /// Inode of the process's PID namespace; 0: the process is in the first namespace.
    pub namespace_inode: u64,
}

/// The layout of mutexes in memory: see [`LibcSite::layout`].
#[repr(u32)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MutexLayout {
    /// The layout is unknown, so mutexes are not read.
    #[default]
    Unknown = 0,
    /// glibc on 64 bits (sysdeps/nptl/bits/struct_mutex.h): lock word, count, owner, users, kind.
    Glibc = 1,
    /// musl (include/alltypes.h.in, src/internal/pthread_impl.h): type, lock word with the owner, waiters.
    Musl = 2,
}

/// Largest number of calls in progress that the program remembers for one thread. Calls nest in the routine of `once`
/// and in signal handlers.
pub const MAX_OPEN_OPERATIONS: usize = 8;

/// A thread's calls in progress, outermost first. At the end of the recording, user space reads the calls that remain.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct OpenOperations {
    /// Number of calls in progress.
    pub depth: u64,
    /// The thread's process (tgid).
    pub pid: u64,
    /// The calls; only the first `depth` are valid.
    pub open: [OpenOperation; MAX_OPEN_OPERATIONS],
}

/// A call in progress. Most fields are those of [`crate::Operation`].
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct OpenOperation {
    /// Stack pointer at the function's first instruction, which is the address of the return address.
    pub stack_pointer: u64,
    /// The return address.
    pub caller: u64,
    /// Time at which the call began (`CLOCK_MONOTONIC` nanoseconds).
    pub began_ns: u64,
    /// The first argument, if the object is taken from there.
    pub object: u64,
    /// The second object.
    pub second: u64,
    /// The [`LibcCookie`] of the function.
    pub cookie: u64,
    /// Distance of the library in memory from the address for which it was linked, in bytes.
    pub base: u64,
    /// The operation's flags that are known so far.
    pub flags: u64,
}

impl OpenOperations {
    /// No calls.
    pub const NONE: OpenOperations = OpenOperations {
        depth: 0,
        pid: 0,
        open: [OpenOperation {
            stack_pointer: 0,
            caller: 0,
            began_ns: 0,
            object: 0,
            second: 0,
            cookie: 0,
            base: 0,
            flags: 0,
        }; MAX_OPEN_OPERATIONS],
    };
}

const _: () = assert!(size_of::<LibcSite>() == 48);
const _: () = assert!(MAX_OPEN_OPERATIONS.is_power_of_two());
const _: () = assert!(size_of::<LibcProcess>() == 112);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_libc_cookie_is_read_back_from_its_bits() {
        for (counters, site) in [(0, 0), (1_792, 255), (u16::MAX, u16::MAX)] {
            for &part in Part::ALL {
                for (&object, &second) in ObjectFrom::ALL.iter().zip(SecondFrom::ALL) {
                    for &outcome in OutcomeFrom::ALL {
                        let looks_at_mutex = site == 255;
                        let function =
                            LibcFunction { operation: 92, object, second, outcome, looks_at_mutex };
                        let cookie = LibcCookie { part, function, site, counters };
                        assert_eq!(LibcCookie::from_bits(cookie.to_bits()), cookie);
                    }
                }
            }
        }
    }

    #[test]
    fn every_operation_s_number_fits_into_a_cookie() {
        assert!(crate::SyncOperation::ALL.iter().all(|&operation| (operation as u16) < 256));
    }
}
