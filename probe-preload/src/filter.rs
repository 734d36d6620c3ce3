//! A program that lets the kernel filter its system calls (seccomp) may be killed for one of ours: from then on no bell
//! is rung in it, and longpole comes by more often instead.
//!
//! Filters come from an ancestor, which the kernel tells when the program starts (longpole's own do not count: it makes
//! that call itself), or from the program, through libc's `prctl` and `syscall`: both are looked at on their way. A
//! program that makes the system call by instructions of its own is not noticed; only Go's runtime is known to do so,
//! and it takes no lock of libc's.

use crate::real::{self, Real};
use crate::{process, ring, system};
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

static FILTERED: AtomicBool = AtomicBool::new(false);

/// Whether system calls may be forbidden here.
#[inline(always)]
pub fn is_filtered() -> bool {
    FILTERED.load(Ordering::Relaxed)
}

/// When the program starts: `known` filters are longpole's own. One who cannot tell is taken for filtered.
pub fn look_at_start(known: u64) {
    if system::filters().is_none_or(|filters| filters > known) {
        FILTERED.store(true, Ordering::Relaxed);
    }
}

/// A filter is about to come: what has to be asked of the kernel is asked before.
fn comes() {
    if FILTERED.swap(true, Ordering::Relaxed) {
        return;
    }
    // This thread gets its ring, for which it has to know its number.
    ring::prepare();
    if let Some(shared) = process::shared() {
        shared.falls_silent();
    }
}

static PRCTL: Real = Real::new(c"prctl");
static SYSCALL: Real = Real::new(c"syscall");
/// Where to go on, as soon as that is known.
static BEHIND_PRCTL: AtomicUsize = AtomicUsize::new(0);
static BEHIND_SYSCALL: AtomicUsize = AtomicUsize::new(0);

const PR_SET_SECCOMP: u32 = 22;
#[cfg(target_arch = "x86_64")]
const SYS_SECCOMP: u32 = 317;
#[cfg(target_arch = "aarch64")]
const SYS_SECCOMP: u32 = 277;

extern "C" fn before_prctl(option: u32) -> usize {
    before(option == PR_SET_SECCOMP, &PRCTL, &BEHIND_PRCTL)
}

extern "C" fn before_syscall(number: u32) -> usize {
    before(number == SYS_SECCOMP, &SYSCALL, &BEHIND_SYSCALL)
}

fn before(is_filter: bool, real: &Real, behind: &AtomicUsize) -> usize {
    let errno = real::errno();
    let address = real.get();
    behind.store(address, Ordering::Relaxed);
    if is_filter {
        comes();
    }
    real::set_errno(errno);
    address
}

/// Finds what is behind both, before a first call from a signal handler, or between vfork and exec.
pub fn find() {
    for (real, behind) in [(&PRCTL, &BEHIND_PRCTL), (&SYSCALL, &BEHIND_SYSCALL)] {
        behind.store(real.get(), Ordering::Relaxed);
    }
}

/// `watch!(NAME, NUMBER, BEHIND, BEFORE)`: a function of libc with any number of arguments, which is jumped to with all
/// of them where they were. `BEFORE` is asked first if the first argument is that number.
macro_rules! watch {
    ($name:literal, $number:path, $behind:path, $before:path) => {
        #[cfg(all(not(test), target_arch = "x86_64"))]
        core::arch::global_asm!(
            concat!(".pushsection .text.longpole.", $name, ",\"ax\",@progbits"),
            concat!(".globl ", $name),
            concat!(".type ", $name, ",@function"),
            concat!($name, ":"),
            ".cfi_startproc",
            "endbr64",
            "mov r11, qword ptr [rip + {behind}]",
            "cmp edi, {number}",
            "je 2f",
            "test r11, r11",
            "je 2f",
            "jmp r11",
            "2:",
            // With the return address that makes eight words: the stack is aligned for the call.
            "push rdi", ".cfi_adjust_cfa_offset 8",
            "push rsi", ".cfi_adjust_cfa_offset 8",
            "push rdx", ".cfi_adjust_cfa_offset 8",
            "push rcx", ".cfi_adjust_cfa_offset 8",
            "push r8", ".cfi_adjust_cfa_offset 8",
            "push r9", ".cfi_adjust_cfa_offset 8",
            "push rax", ".cfi_adjust_cfa_offset 8",
            "call {before}",
            "mov r11, rax",
            "pop rax", ".cfi_adjust_cfa_offset -8",
            "pop r9", ".cfi_adjust_cfa_offset -8",
            "pop r8", ".cfi_adjust_cfa_offset -8",
            "pop rcx", ".cfi_adjust_cfa_offset -8",
            "pop rdx", ".cfi_adjust_cfa_offset -8",
            "pop rsi", ".cfi_adjust_cfa_offset -8",
            "pop rdi", ".cfi_adjust_cfa_offset -8",
            "jmp r11",
            ".cfi_endproc",
            concat!(".size ", $name, ", . - ", $name),
            ".popsection",
            number = const $number,
            behind = sym $behind,
            before = sym $before,
        );
        #[cfg(all(not(test), target_arch = "aarch64"))]
        core::arch::global_asm!(
            concat!(".pushsection .text.longpole.", $name, ",\"ax\",@progbits"),
            concat!(".globl ", $name),
            concat!(".type ", $name, ",@function"),
            concat!($name, ":"),
            ".cfi_startproc",
            "hint #34",
            "adrp x16, {behind}",
            "ldr x16, [x16, :lo12:{behind}]",
            "cmp w0, #{number}",
            "b.eq 2f",
            "cbz x16, 2f",
            "br x16",
            "2:",
            "stp x29, x30, [sp, #-80]!",
            ".cfi_def_cfa_offset 80",
            ".cfi_offset x29, -80",
            ".cfi_offset x30, -72",
            "stp x0, x1, [sp, #16]",
            "stp x2, x3, [sp, #32]",
            "stp x4, x5, [sp, #48]",
            "stp x6, x7, [sp, #64]",
            "bl {before}",
            "mov x16, x0",
            "ldp x0, x1, [sp, #16]",
            "ldp x2, x3, [sp, #32]",
            "ldp x4, x5, [sp, #48]",
            "ldp x6, x7, [sp, #64]",
            "ldp x29, x30, [sp], #80",
            ".cfi_def_cfa_offset 0",
            ".cfi_restore x29",
            ".cfi_restore x30",
            "br x16",
            ".cfi_endproc",
            concat!(".size ", $name, ", . - ", $name),
            ".popsection",
            number = const $number,
            behind = sym $behind,
            before = sym $before,
        );
    };
}

watch!("prctl", PR_SET_SECCOMP, BEHIND_PRCTL, before_prctl);
watch!("syscall", SYS_SECCOMP, BEHIND_SYSCALL, before_syscall);
