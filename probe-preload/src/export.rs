//! Exports the library's functions under libc's names.
//!
//! Each exported function consists of a few instructions. These instructions pass the return address as one more
//! argument and jump to the implementation, which returns to the caller. The stack does not change, so unwinding works.

/// `export!(ARGUMENTS, IMPLEMENTATION, ["name", …])` exports a function. ARGUMENTS is the function's number of
/// arguments. `"label" as "name@VERSION"` exports a name with a symbol version.
macro_rules! export {
    (0, $to:path, $names:tt) => { $crate::export::export!(@ "rdi", "x0", $to, $names); };
    (1, $to:path, $names:tt) => { $crate::export::export!(@ "rsi", "x1", $to, $names); };
    (2, $to:path, $names:tt) => { $crate::export::export!(@ "rdx", "x2", $to, $names); };
    (3, $to:path, $names:tt) => { $crate::export::export!(@ "rcx", "x3", $to, $names); };
    (4, $to:path, $names:tt) => { $crate::export::export!(@ "r8", "x4", $to, $names); };
    (@ $x86:literal, $arm:literal, $to:path, [$($name:literal $(as $versioned:literal)?),+]) => {
        $(
            #[cfg(all(not(test), target_arch = "x86_64"))]
            core::arch::global_asm!(
                concat!(".pushsection .text.longpole.", $name, ",\"ax\",@progbits"),
                concat!(".globl ", $name),
                concat!(".type ", $name, ",@function"),
                $(concat!(".symver ", $name, ", ", $versioned),)?
                concat!($name, ":"),
                ".cfi_startproc",
                "endbr64",
                concat!("mov ", $x86, ", qword ptr [rsp]"),
                "jmp {to}",
                ".cfi_endproc",
                concat!(".size ", $name, ", . - ", $name),
                ".popsection",
                to = sym $to,
            );
            #[cfg(all(not(test), target_arch = "aarch64"))]
            core::arch::global_asm!(
                concat!(".pushsection .text.longpole.", $name, ",\"ax\",@progbits"),
                concat!(".globl ", $name),
                concat!(".type ", $name, ",@function"),
                $(concat!(".symver ", $name, ", ", $versioned),)?
                concat!($name, ":"),
                ".cfi_startproc",
                "hint #34",
                concat!("mov ", $arm, ", x30"),
                "b {to}",
                ".cfi_endproc",
                concat!(".size ", $name, ", . - ", $name),
                ".popsection",
                to = sym $to,
            );
        )+
    };
}
pub(crate) use export;

/// Defines a module for a function that does one operation. The module has the original function, and the
/// implementation that is exported under the names. `result => outcome, flags` computes the recorded outcome and flags
/// from a result.
macro_rules! operation {
    (
        $(#[$doc:meta])*
        $module:ident = $count:tt ($($argument:ident),+), $real:expr, $names:tt,
        $operation:ident, $object:expr, $second:expr, $result:ident => $outcome:expr, $flags:expr
    ) => {
        $(#[$doc])*
        pub mod $module {
            use super::*;

            pub static REAL: $crate::real::Real = $real;

            pub extern "C" fn wrapped($($argument: usize,)+ caller: usize) -> i32 {
                if $crate::records::ring::is_paused() {
                    return REAL.call([$($argument),+]);
                }
                let begun = $crate::records::ring::begin(
                    probe_abi::SyncOperation::$operation,
                    $object,
                    $second as u64,
                    caller,
                );
                let $result = REAL.call([$($argument),+]);
                if begun.is_recorded() {
                    $crate::records::ring::end(begun, $outcome, $flags);
                }
                $result
            }

            $crate::export::export!($count, wrapped, $names);
        }
    };
}
pub(crate) use operation;

/// Looks up the originals of the functions that every C library has, so that a first call in a signal handler does not
/// have to do so. Other functions (such as those of C11) are looked up at their first call, because looking up a
/// function that does not exist allocates memory.
pub fn find_all() {
    crate::operations::mutex::find();
    crate::operations::condition::find();
    crate::operations::rwlock::find();
    crate::operations::barrier::find();
    crate::operations::spin::find();
    crate::operations::semaphore::find();
    crate::operations::once::find();
    crate::operations::thread::find();
    crate::watched::exec::find();
    crate::records::burst::find();
    crate::watched::seccomp::find();
}
