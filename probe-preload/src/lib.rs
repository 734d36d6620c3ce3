//! The part of longpole that runs inside a launched program. The loader loads it before libc (`LD_PRELOAD`), and it
//! wraps libc's synchronization functions. For each call it writes one [`probe_abi::Operation`] into memory that
//! longpole shares (see [`probe_abi::interpose`] for the layout and the protocol).
//!
//! Every thread of the program may run this code at any moment. So the code allocates nothing, takes no lock, waits for
//! nothing, and keeps the `errno` of libc's function. A signal handler may interrupt between any two instructions, and
//! may itself call a wrapped function. A call may be left by `longjmp`, an exception or cancellation. A call may also
//! come before anything is initialized, or in a child that has just been forked. If recording is not possible, a call
//! only runs libc's function.

#![no_std]
#![cfg_attr(test, expect(dead_code, reason = "tests export nothing, or they would run on it themselves"))]

#[cfg(test)]
extern crate std;

#[cfg(not(all(any(target_arch = "x86_64", target_arch = "aarch64"), target_os = "linux")))]
compile_error!("probe-preload knows the instructions and system calls of x86-64 and AArch64 Linux only");

mod clock;
mod descriptor;
mod export;
mod memory;
mod operations;
mod process;
mod real;
mod records;
mod system;
mod tls;
mod watched;

// The prebuilt parts of Rust's core library refer to this function. The function continues unwinding (8 is
// `_URC_CONTINUE_UNWIND`).
#[cfg(all(not(test), panic = "abort"))]
core::arch::global_asm!(
    ".pushsection .text.longpole.personality,\"ax\",@progbits",
    ".hidden rust_eh_personality",
    ".globl rust_eh_personality",
    ".type rust_eh_personality,@function",
    "rust_eh_personality:",
    #[cfg(target_arch = "x86_64")]
    "mov eax, 8",
    #[cfg(target_arch = "aarch64")]
    "mov w0, #8",
    "ret",
    ".size rust_eh_personality, . - rust_eh_personality",
    ".popsection",
);

/// No code here should panic. If some code does, the program must not continue in the middle of a call, so it is ended.
#[cfg(all(not(test), panic = "abort"))]
#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    system::trap()
}
