//! The part of longpole that runs inside a launched program: put before libc (`LD_PRELOAD`), it wraps libc's
//! synchronization functions and writes one [`probe_abi::Operation`] for each call into memory that longpole shares
//! (see [`probe_abi::interpose`] for the layout and the protocol).
//!
//! Every thread of the program gets here, at any moment. So nothing is allocated, locked or
//! waited for, and `errno` keeps the value of libc's function. A signal handler may interrupt between any two
//! instructions, and may itself call a wrapped function. A call may be left by `longjmp`, an exception or
//! cancellation. It may come before anything has been set up, and in a child that has just been forked. If
//! recording is not possible, the call simply goes through.

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

// The prebuilt parts of Rust's core library need this function. It continues unwinding (8 is `_URC_CONTINUE_UNWIND`).
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

/// Nothing here should panic; if it does, the program must not continue with half a call.
#[cfg(all(not(test), panic = "abort"))]
#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    system::trap()
}
