//! Watches calls after which the library could not be initialized, or its memory would be a problem, and initializes
//! the library just before such a call. For example, a daemon closes unknown descriptors, leaves the root folder,
//! becomes another user or gives up the right to open files. It often does so before its first synchronization
//! operation.

use crate::real::{self, Real};
use crate::watched::watch::watch;
use crate::{memory, process, system};

fn come_up(real: &Real) -> usize {
    let errno = real::errno();
    process::look();
    let address = real.get();
    real::set_errno(errno);
    address
}

/// `last_moment!(MODULE, "name", …)` watches functions before which the library must be initialized.
macro_rules! last_moment {
    ($($module:ident = $name:literal as $c:literal,)+) => {
        $(
            mod $module {
                pub static REAL: crate::real::Real = crate::real::Real::new($c);

                pub extern "C" fn before() -> usize {
                    super::come_up(&REAL)
                }
            }
            watch!($name, $module::before);
        )+
    };
}

last_moment! {
    root = "chroot" as c"chroot",
    user = "setuid" as c"setuid",
    users = "setreuid" as c"setreuid",
    three_users = "setresuid" as c"setresuid",
    apart = "unshare" as c"unshare",
    elsewhere = "setns" as c"setns",
    range = "close_range" as c"close_range",
    from = "closefrom" as c"closefrom",
}

/// `limits!(MODULE, "name", …)` watches a call that sets a limit of this process, or (`prlimit`) of the process in its
/// first argument.
macro_rules! limits {
    ($($module:ident = $name:literal as $c:literal, $names_process:literal,)+) => {
        $(
            mod $module {
                static REAL: crate::real::Real = crate::real::Real::new($c);

                pub extern "C" fn before(first: usize, second: usize, third: usize) -> usize {
                    let [process, resource, limit] =
                        if $names_process { [first, second, third] } else { [0, first, second] };
                    let address = super::come_up(&REAL);
                    super::limit_comes(process as u32, resource as u32, limit);
                    address
                }
            }
            watch!($name, $module::before);
        )+
    };
}

limits! {
    limit = "setrlimit" as c"setrlimit", false,
    limit_64 = "setrlimit64" as c"setrlimit64", false,
    limit_of = "prlimit" as c"prlimit", true,
    limit_of_64 = "prlimit64" as c"prlimit64", true,
}

/// Makes the shared memory smaller before a limit on this process's address space. The limit also counts the shared
/// memory, of which the program does not know.
fn limit_comes(process: u32, resource: u32, limit: usize) {
    const RLIMIT_AS: u32 = 9;
    if resource != RLIMIT_AS || limit == 0 || process != 0 && process != system::pid() {
        return;
    }
    let errno = real::errno();
    let mut soft = [0; 8];
    // If the program's numbers cannot be read here, the program's own call will fail, too.
    if system::read_own(limit, &mut soft) == soft.len() {
        memory::limit_comes(u64::from_ne_bytes(soft));
    }
    real::set_errno(errno);
}

static LOCK: Real = Real::new(c"mlockall");

extern "C" fn before_lock() -> usize {
    let errno = real::errno();
    memory::lock_comes();
    let address = LOCK.get();
    real::set_errno(errno);
    address
}

watch!("mlockall", before_lock);
