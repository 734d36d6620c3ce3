//! `pthread_once`: records which of the calling threads runs the initialization. libc gets a function of this library
//! instead of the program's routine. That function notes that libc called it and jumps to the program's routine. The
//! jump leaves no frame of this library on the stack, so exceptions pass through.

use crate::export::export;
use crate::real::{Real, find_each};
use crate::records::ring;
use crate::tls::{RAN, ROUTINE, tls};
use core::arch::naked_asm;
use probe_abi::{OperationFlags, SyncOperation};

/// Looks up the functions that every C library has.
pub fn find() {
    find_each!(ONCE);
}

static ONCE: Real = Real::new(c"pthread_once");

extern "C" fn once(control: usize, routine: usize, caller: usize) -> i32 {
    run_once(control, routine, caller, |control, routine| ONCE.call([control, routine]))
}

/// Calls `real` with a routine that notes whether libc has called it.
#[inline(always)]
pub fn run_once(
    control: usize,
    routine: usize,
    caller: usize,
    real: impl FnOnce(usize, usize) -> i32,
) -> i32 {
    let begun = ring::begin(SyncOperation::Once, control, 0, caller);
    if !begun.is_recorded() {
        return real(control, routine);
    }
    let own = tls();
    // The old values are restored afterwards, because the initialization may itself call pthread_once.
    let outer = (own.routine.replace(routine), own.ran.replace(0));
    let result = real(control, started as extern "C" fn() as usize);
    let ran = own.ran.get() != 0;
    own.routine.set(outer.0);
    own.ran.set(outer.1);
    ring::end(begun, result, if ran { OperationFlags::RAN } else { 0 });
    result
}

/// Notes that libc has called this function, and jumps to the program's routine.
#[unsafe(naked)]
extern "C" fn started() {
    #[cfg(target_arch = "x86_64")]
    naked_asm!(
        "endbr64",
        "mov rax, qword ptr [rip + longpole_tls@GOTTPOFF]",
        "mov qword ptr fs:[rax + {ran}], 1",
        "jmp qword ptr fs:[rax + {routine}]",
        ran = const RAN,
        routine = const ROUTINE,
    );
    #[cfg(target_arch = "aarch64")]
    naked_asm!(
        "mrs x9, tpidr_el0",
        "adrp x10, :gottprel:longpole_tls",
        "ldr x10, [x10, :gottprel_lo12:longpole_tls]",
        "add x9, x9, x10",
        "mov x10, #1",
        "str x10, [x9, #{ran}]",
        "ldr x16, [x9, #{routine}]",
        "br x16",
        ran = const RAN,
        routine = const ROUTINE,
    );
}

export!(2, once, ["pthread_once", "__pthread_once"]);

#[cfg(test)]
mod tests {
    use super::*;
    use core::sync::atomic::{AtomicUsize, Ordering};

    static CALLS: AtomicUsize = AtomicUsize::new(0);

    extern "C" fn routine() {
        CALLS.fetch_add(1, Ordering::Relaxed);
    }

    #[test]
    fn the_once_routine_is_called_and_noted() {
        let own = tls();
        own.routine.set(routine as extern "C" fn() as usize);
        own.ran.set(0);
        started();
        assert_eq!((CALLS.load(Ordering::Relaxed), own.ran.get()), (1, 1));
    }
}
