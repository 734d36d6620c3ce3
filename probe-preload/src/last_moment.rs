//! What a program does that would keep the library from coming up later, or make its memory a burden: it comes up just
//! before. A daemon closes what it does not know, leaves the root folder, becomes somebody else or gives up the right to open files before it does its first
//! synchronization operation.

use crate::real::{self, Real};
use crate::watch::watch;
use crate::{memory, process};

fn come_up(real: &Real) -> usize {
    let errno = real::errno();
    process::look();
    let address = real.get();
    real::set_errno(errno);
    address
}

/// `last_moment!(MODULE, "name", …)`
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
    limit = "setrlimit" as c"setrlimit",
    limit_64 = "setrlimit64" as c"setrlimit64",
    limit_of = "prlimit" as c"prlimit",
    limit_of_64 = "prlimit64" as c"prlimit64",
    range = "close_range" as c"close_range",
    from = "closefrom" as c"closefrom",
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
