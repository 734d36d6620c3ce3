//! libc's own functions, which this library's functions call. Each is looked up at its first use, or all of them when
//! the library is initialized.
//!
//! The library links nothing of libc: if the target's libc lacked a symbol version, the target could not start. The few
//! functions that are needed at the beginning are weak references, and missing ones are not used.

use core::ffi::{CStr, c_char, c_void};
use core::mem::transmute;
use core::sync::atomic::{AtomicUsize, Ordering};

/// The address of a symbol in any loaded library; 0 if no library has the symbol.
macro_rules! weak {
    ($name:literal) => {{
        let address: usize;
        #[cfg(target_arch = "x86_64")]
        // SAFETY: this reads an entry of the library's GOT, which the loader has filled.
        unsafe {
            core::arch::asm!(
                concat!(".weak ", $name),
                concat!("mov {0}, qword ptr [rip + ", $name, "@GOTPCREL]"),
                out(reg) address,
                options(pure, readonly, nostack, preserves_flags),
            );
        }
        #[cfg(target_arch = "aarch64")]
        // SAFETY: this reads an entry of the library's GOT, which the loader has filled.
        unsafe {
            core::arch::asm!(
                concat!(".weak ", $name),
                concat!("adrp {0}, :got:", $name),
                concat!("ldr {0}, [{0}, :got_lo12:", $name, "]"),
                out(reg) address,
                options(pure, readonly, nostack, preserves_flags),
            );
        }
        address
    }};
}

/// `RTLD_NEXT`: the search begins in the libraries after the calling one.
const NEXT: *mut c_void = usize::MAX as *mut c_void;
const ENOSYS: i32 = 38;

/// A text with a NUL at its end, stored in place. For a pointer, the loader would have to relocate it in each program
/// that starts, and to copy its page.
#[derive(Clone, Copy)]
struct Inline<const N: usize>([u8; N]);

impl<const N: usize> Inline<N> {
    const EMPTY: Inline<N> = Inline([0; N]);

    const fn of(text: &CStr) -> Inline<N> {
        let text = text.to_bytes_with_nul();
        assert!(text.len() <= N, "a longer name than any so far");
        let mut bytes = [0; N];
        let mut i = 0;
        while i < text.len() {
            bytes[i] = text[i];
            i += 1;
        }
        Inline(bytes)
    }

    fn text(&self) -> *const c_char {
        self.0.as_ptr().cast()
    }

    fn is_empty(&self) -> bool {
        self.0.first().is_none_or(|&byte| byte == 0)
    }
}

/// An original function of libc, and its address once it is known.
pub struct Real {
    address: AtomicUsize,
    name: Inline<28>,
    /// The version of the symbol, if the C library has several versions that differ.
    version: Inline<12>,
}

/// `find_each!(A, B, …)` looks up these functions, one after the other. A list of them in data would need relocations.
macro_rules! find_each {
    ($($real:path),+ $(,)?) => {
        $($real.find();)+
    };
}
pub(crate) use find_each;

impl Real {
    /// The function in its default version or only version.
    pub const fn new(name: &'static CStr) -> Real {
        Real { address: AtomicUsize::new(0), name: Inline::of(name), version: Inline::EMPTY }
    }

    /// The function in this version. If the C library has no versions or lacks this one, the function in its default
    /// version.
    #[cfg(any(test, target_arch = "x86_64"))]
    pub const fn of_version(name: &'static CStr, version: &'static CStr) -> Real {
        Real { address: AtomicUsize::new(0), name: Inline::of(name), version: Inline::of(version) }
    }

    /// The function's address. If the C library lacks the function, the address of a function that returns `ENOSYS`.
    #[inline(always)]
    pub fn get(&self) -> usize {
        let address = self.address.load(Ordering::Relaxed);
        if address == 0 { self.find() } else { address }
    }

    /// Calls the function. The function must have this number of arguments, none of them larger than a register, and
    /// return an `int`. The arguments must come from a call of the same function.
    #[inline(always)]
    pub fn call<const N: usize>(&self, arguments: [usize; N]) -> i32
    where
        [usize; N]: Arguments,
    {
        arguments.pass_to(self.get())
    }

    /// Looks up the function. Several threads may do this at once, and so may a signal handler, or a memory allocator
    /// that dlsym calls. All of them get the same result.
    #[cold]
    #[inline(never)]
    pub fn find(&self) -> usize {
        let errno = errno();
        let mut found = if self.version.is_empty() { 0 } else { look_up_version(&self.name, &self.version) };
        if found == 0 {
            found = look_up(&self.name);
        }
        if found == 0 {
            found = missing as extern "C" fn() -> i32 as usize;
        }
        self.address.store(found, Ordering::Relaxed);
        set_errno(errno);
        found
    }
}

/// The arguments of a C function that returns an `int`.
pub trait Arguments {
    /// Calls the function at an address that [`Real::get`] has returned.
    fn pass_to(self, function: usize) -> i32;
}

macro_rules! arguments {
    ($count:literal, $($name:ident: $kind:ident),+) => {
        impl Arguments for [usize; $count] {
            #[inline(always)]
            fn pass_to(self, function: usize) -> i32 {
                let [$($name),+] = self;
                // SAFETY: the address is that of a function of libc that takes this number of registers.
                let function: extern "C" fn($($kind),+) -> i32 = unsafe { transmute(function) };
                function($($name),+)
            }
        }
    };
}
arguments!(1, a: usize);
arguments!(2, a: usize, b: usize);
arguments!(3, a: usize, b: usize, c: usize);
arguments!(4, a: usize, b: usize, c: usize, d: usize);

extern "C" fn missing() -> i32 {
    ENOSYS
}

/// Looks up a name by dlsym or dlvsym. dlsym finds out from the return address which library calls. So the call must be
/// in this function, and must not be its last action, which could become a jump.
#[inline(never)]
fn look_up(name: &Inline<28>) -> usize {
    let dlsym = weak!("dlsym");
    if dlsym == 0 {
        return 0;
    }
    // SAFETY: libc's dlsym has this type.
    let dlsym: extern "C" fn(*mut c_void, *const c_char) -> usize = unsafe { transmute(dlsym) };
    core::hint::black_box(dlsym(NEXT, name.text()))
}

#[inline(never)]
fn look_up_version(name: &Inline<28>, version: &Inline<12>) -> usize {
    let dlvsym = weak!("dlvsym");
    if dlvsym == 0 {
        return 0;
    }
    type Dlvsym = extern "C" fn(*mut c_void, *const c_char, *const c_char) -> usize;
    // SAFETY: libc's dlvsym has this type.
    let dlvsym: Dlvsym = unsafe { transmute(dlvsym) };
    core::hint::black_box(dlvsym(NEXT, name.text(), version.text()))
}

/// A value from the auxiliary vector that the kernel has passed to the program; 0 if there is no such value.
pub fn auxiliary(kind: usize) -> usize {
    let getauxval = weak!("getauxval");
    if getauxval == 0 {
        return 0;
    }
    // SAFETY: libc's getauxval has this type.
    let getauxval: extern "C" fn(usize) -> usize = unsafe { transmute(getauxval) };
    let errno = errno();
    let value = getauxval(kind);
    set_errno(errno);
    value
}

/// Whether the C library is glibc, so that the layouts of its objects are known.
pub fn is_glibc() -> bool {
    weak!("gnu_get_libc_version") != 0
}

/// Address of the byte in which libc notes whether the process has only one thread (glibc 2.32 and later). 0 if there
/// is no such byte.
#[inline(always)]
pub fn single_threaded() -> usize {
    weak!("__libc_single_threaded")
}

/// Address of libc's variable for the program's environment.
pub fn environment_place() -> Option<*mut *mut c_char> {
    let place = weak!("environ") as *mut *mut c_char;
    (!place.is_null()).then_some(place)
}

/// The program's environment: strings that end with a NUL, and a null pointer at the end. `None` before libc has set
/// it.
pub fn environment() -> Option<*const *const c_char> {
    let place = weak!("environ") as *const *const *const c_char;
    if place.is_null() {
        return None;
    }
    // SAFETY: `place` is libc's variable `environ`.
    let list = unsafe { place.read() };
    (!list.is_null()).then_some(list)
}

fn errno_place() -> Option<*mut i32> {
    let location = weak!("__errno_location");
    if location == 0 {
        return None;
    }
    // SAFETY: the function has this type in glibc and musl.
    let location: extern "C" fn() -> *mut i32 = unsafe { transmute(location) };
    Some(location())
}

/// This thread's `errno`.
pub fn errno() -> i32 {
    // SAFETY: the place belongs to this thread as long as the thread exists.
    errno_place().map_or(0, |place| unsafe { place.read() })
}

/// Sets this thread's `errno`.
pub fn set_errno(value: i32) {
    if let Some(place) = errno_place() {
        // SAFETY: the place belongs to this thread as long as the thread exists.
        unsafe { place.write(value) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looking_up_a_function_keeps_errno() {
        set_errno(4711);
        let real = Real::new(c"pthread_mutex_lock");
        assert_eq!(real.get(), real.get());
        // Two missing functions are compared, because one Rust function may have different addresses in different units
        // of code.
        let none = Real::new(c"longpole_no_such_function");
        assert_eq!(none.get(), Real::new(c"longpole_has_no_function").get());
        assert_ne!(real.get(), none.get());
        assert_eq!(errno(), 4711);
    }

    #[test]
    #[cfg(all(target_arch = "x86_64", target_env = "gnu"))]
    fn two_versions_of_a_function_have_different_addresses() {
        let old = Real::of_version(c"pthread_cond_wait", c"GLIBC_2.2.5");
        let new = Real::of_version(c"pthread_cond_wait", c"GLIBC_2.3.2");
        let unknown = Real::of_version(c"pthread_cond_wait", c"LONGPOLE_1");
        assert_ne!(old.get(), new.get());
        assert_eq!(unknown.get(), new.get());
    }

    #[test]
    fn the_environment_and_the_auxiliary_vector_are_found() {
        assert!(environment().is_some());
        assert_ne!(auxiliary(33), 0);
    }
}
