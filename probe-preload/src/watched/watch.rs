//! Watches functions of libc: runs a check before each call. The arguments stay in their registers, and the code then
//! jumps to the original function, so no frame of the library is on the stack.

/// `watch!("name", BEFORE)` calls `BEFORE` with the first three arguments. `BEFORE` returns the address at which to
/// continue. `watch!("name", BEFORE, if NUMBER or NUMBER, BEHIND)` calls `BEFORE` only if the first argument is one of
/// these numbers, or while `BEHIND` is 0. `BEHIND` contains the address at which to continue otherwise.
macro_rules! watch {
    ($name:literal, $before:path) => {
        $crate::watched::watch::watch!(@ $name, $before, ["", "", "", "", "", ""], ["", "", "", "", "", "", ""], );
    };
    ($name:literal, $before:path, if $number:ident or $other:ident, $behind:ident) => {
        $crate::watched::watch::watch!(
            @ $name, $before,
            [
                "mov r11, qword ptr [rip + {behind}]",
                "cmp edi, {number}\n je 2f",
                "cmp edi, {other}\n je 2f",
                "test r11, r11\n je 2f",
                "jmp r11",
                "2:"
            ],
            [
                "adrp x16, {behind}",
                "ldr x16, [x16, :lo12:{behind}]",
                "cmp w0, #{number}\n b.eq 2f",
                "cmp w0, #{other}\n b.eq 2f",
                "cbz x16, 2f",
                "br x16",
                "2:"
            ],
            number = const $number, other = const $other, behind = sym $behind
        );
    };
    (
        @ $name:literal, $before:path, [$($x86:literal),*], [$($arm:literal),*], $($operands:tt)*
    ) => {
        #[cfg(all(not(test), target_arch = "x86_64"))]
        core::arch::global_asm!(
            concat!(".pushsection .text.longpole.", $name, ",\"ax\",@progbits"),
            concat!(".globl ", $name),
            concat!(".type ", $name, ",@function"),
            concat!($name, ":"),
            ".cfi_startproc",
            "endbr64",
            $($x86,)*
            // Together with the return address these are eight words, so the stack is aligned for the call.
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
            before = sym $before,
            $($operands)*
        );
        #[cfg(all(not(test), target_arch = "aarch64"))]
        core::arch::global_asm!(
            concat!(".pushsection .text.longpole.", $name, ",\"ax\",@progbits"),
            concat!(".globl ", $name),
            concat!(".type ", $name, ",@function"),
            concat!($name, ":"),
            ".cfi_startproc",
            "hint #34",
            $($arm,)*
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
            before = sym $before,
            $($operands)*
        );
    };
}
pub(crate) use watch;
