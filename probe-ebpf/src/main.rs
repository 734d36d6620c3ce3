//! longpole's kernel programs. One file per event family, with the same names as in `probe-abi`; only `ring`
//! writes records, and only `filter` selects processes. The programs only read the target; it is not slowed on purpose.

#![no_std]
#![no_main]
#![feature(core_intrinsics)]
#![expect(internal_features, reason = "the target's atomic instructions are reachable only as intrinsics")]

mod contention;
mod context;
mod descriptor;
mod filter;
mod function;
mod interrupt;
mod kernel;
mod libc_memory;
mod lifecycle;
mod memory;
mod network;
mod operation;
mod request;
mod ring;
mod sample;
mod sample_ring;
mod sched;
mod settings;
mod thread_context;
mod verifier;

#[cfg(not(test))]
#[panic_handler]
fn panic(_: &core::panic::PanicInfo) -> ! {
    loop {}
}

/// The version of `probe-abi` with which these programs were built. It is checked before the programs are loaded.
#[unsafe(link_section = "longpole_abi")]
#[unsafe(no_mangle)]
static ABI: [u8; 24] = probe_abi::ABI_STAMP;
const _: () = assert!(matches!(probe_abi::ABI_STAMP_SECTION.as_bytes(), b"longpole_abi"));

/// Some helpers are available only to programs that are also under the GPL.
#[unsafe(link_section = "license")]
#[unsafe(no_mangle)]
static LICENSE: [u8; 13] = *b"Dual MIT/GPL\0";
