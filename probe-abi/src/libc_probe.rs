//! Probes on libc's synchronization functions: what a probe tells its program that it is, and what the program has
//! to know about the process.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// What a probe on a function of libc tells the program that it is: the 64-bit cookie of its link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LibcCookie {
    /// Which part of the call it sees.
    pub part: Part,
    /// The function that is called. Of no meaning for [`Part::Leave`] and [`Part::Ran`]: they belong to the
    /// call that has its frame there.
    pub function: LibcFunction,
    /// Number of its [`LibcSite`].
    pub site: u16,
    /// Number of the counters of the process's functions of this family ([`crate::FunctionCounters`]), counted from
    /// [`crate::Settings::first_libc_counters`].
    pub counters: u16,
}

/// A function of libc that does a synchronization operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LibcFunction {
    /// A [`crate::SyncOperation`] as a number; all are below 256.
    pub operation: u8,
    /// Where the record's object comes from.
    pub object: ObjectFrom,
    /// Where the record's second object comes from.
    pub second: SecondFrom,
    /// What its result means.
    pub outcome: OutcomeFrom,
    /// Its object is a mutex that it is to look at.
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
            /// All of them.
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
    /// What a probe sees of a call.
    Part {
        /// Its first instruction.
        Enter = 0,
        /// A `ret` that it may come back through.
        Leave = 1,
        /// The call of the routine of `once`.
        Ran = 2,
        /// Its `ret`, where its first instruction can hold no probe: the object is still in its register.
        Whole = 3,
        /// Its first instruction; it does not come back.
        Gone = 4,
        /// The first instruction of the loader, which is the first of all of a program.
        Loader = 5,
    } otherwise Leave
}

small! {
    /// See [`LibcFunction::object`].
    ObjectFrom {
        /// The first argument.
        Argument = 0,
        /// 0.
        Nothing = 1,
        /// The word that the first argument points to, once the call has come back with 0.
        Created = 2,
        /// The result.
        Result = 3,
    } otherwise Nothing
}

small! {
    /// See [`LibcFunction::second`].
    SecondFrom {
        /// 0.
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
    /// See [`LibcFunction::outcome`].
    OutcomeFrom {
        /// It is the outcome.
        Error = 0,
        /// −1: the outcome is in `errno`.
        Errno = 1,
        /// A null pointer: likewise. Other pointers: 0.
        Pointer = 2,
        /// One of C11's `thrd_*`.
        C11 = 3,
        /// There is none: 0.
        Nothing = 4,
    } otherwise Nothing
}

impl LibcCookie {
    /// As the kernel carries it.
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

/// Most functions that can have probes, in all C libraries together.
pub const MAX_LIBC_SITES: usize = 16_384;

/// Where a function is, and what its library is like. The user side writes it before its first probe. Addresses are as
/// linked.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct LibcSite {
    /// Its first instruction.
    pub entry: u64,
    /// The library's code, from here
    pub text_from: u64,
    /// up to here: what this calls is no call of the program. Both are 0 for a program with its libc inside.
    pub text_to: u64,
    /// The word that holds the distance from a thread's pointer to its `errno`; 0: see the next.
    pub errno_slot: u64,
    /// That distance, if there is no such word.
    pub errno_distance: i64,
    /// 1 if `errno` can be found.
    pub errno_known: u32,
    /// How mutexes look: a [`MutexLayout`] as a number.
    pub layout: u32,
}

/// Most ranges of [`LibcProcess::own`].
pub const MAX_OWN_RANGES: usize = 6;

/// What the program knows about a process with probes on its libc.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct LibcProcess {
    /// Addresses (from, up to) of code that is libc's own in further files: what it calls is no call of the program. The
    /// first is the loader's, which the program itself sets when a new program starts; then the others are none.
    pub own: [[u64; 2]; MAX_OWN_RANGES],
    /// The device of its PID namespace as the kernel numbers devices, where that is not the first one.
    pub namespace_device: u64,
    /// The inode of its PID namespace; 0: it is in the first one.
    pub namespace_inode: u64,
}

/// See [`LibcSite::layout`].
#[repr(u32)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MutexLayout {
    /// Not known: nothing is looked at.
    #[default]
    Unknown = 0,
    /// glibc on 64 bits (sysdeps/nptl/bits/struct_mutex.h): lock word, count, owner, users, kind.
    Glibc = 1,
    /// musl (include/alltypes.h.in, src/internal/pthread_impl.h): type, lock word with the owner, waiters.
    Musl = 2,
}

/// Calls that the program can keep in progress for one thread: nested are those in the routine of `once` and in
/// signal handlers.
pub const MAX_OPEN_OPERATIONS: usize = 8;

/// A thread's calls in progress, the outermost first. The user side reads the remaining ones at the end.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct OpenOperations {
    /// How many.
    pub depth: u64,
    /// The thread's process (tgid).
    pub pid: u64,
    /// The first `depth` of these count.
    pub open: [OpenOperation; MAX_OPEN_OPERATIONS],
}

/// A call in progress; most fields are those of [`crate::Operation`].
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct OpenOperation {
    /// Stack pointer at the function's first instruction: the address of the return address.
    pub stack_pointer: u64,
    /// That return address.
    pub caller: u64,
    /// When it began.
    pub began_ns: u64,
    /// The first argument, if the object comes from there.
    pub object: u64,
    /// The second object.
    pub second: u64,
    /// The [`LibcCookie`] of the function.
    pub cookie: u64,
    /// How far its library is from where it was linked to.
    pub base: u64,
    /// What is known of its flags.
    pub flags: u64,
}

impl OpenOperations {
    /// None.
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
    fn a_cookie_survives_the_kernel() {
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
    fn every_operation_fits_into_a_cookie() {
        assert!(crate::SyncOperation::ALL.iter().all(|&operation| (operation as u16) < 256));
    }
}
