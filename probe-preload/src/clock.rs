//! Reads `CLOCK_MONOTONIC` through the vDSO, which is found without libc. So reading the clock takes no lock and
//! allocates nothing, and a program with a `clock_gettime` of its own does not change the recorded times.

use crate::descriptor::Text;
use crate::process::clock_function;
use crate::{real, system};
use core::mem::transmute;
use core::sync::atomic::Ordering;

#[cfg(target_arch = "x86_64")]
const NAME: &[u8] = b"__vdso_clock_gettime";
#[cfg(target_arch = "aarch64")]
const NAME: &[u8] = b"__kernel_clock_gettime";

type ClockGettime = extern "C" fn(i32, *mut [u64; 2]) -> i32;

/// The present time in nanoseconds.
#[inline(always)]
pub fn now_ns() -> u64 {
    let function = clock_function().load(Ordering::Relaxed);
    if function == 0 {
        return system::clock_ns();
    }
    // SAFETY: only `find` writes it, and only the vDSO's function of this type.
    let function: ClockGettime = unsafe { transmute(function) };
    let mut time = [0u64; 2];
    function(1, &raw mut time);
    time[0].wrapping_mul(1_000_000_000).wrapping_add(time[1])
}

/// Finds the vDSO's clock function. If there is none, the clock is read by a system call.
pub fn find() {
    const AT_SYSINFO_EHDR: usize = 33;
    let image = real::auxiliary(AT_SYSINFO_EHDR);
    if image == 0 {
        return;
    }
    // SAFETY: the kernel has mapped a complete ELF image there for the life of the process.
    if let Some(address) = unsafe { symbol(image, NAME) } {
        clock_function().store(address, Ordering::Relaxed);
    }
}

/// Reads a number from the image.
///
/// # Safety
/// `at` is the address of readable memory for a `T`.
unsafe fn read<T: Copy>(at: usize) -> T {
    // SAFETY: by the contract of this function.
    unsafe { (at as *const T).read_unaligned() }
}

/// The address of a function in an ELF image that the kernel has mapped.
///
/// # Safety
/// `image` is the address of a complete, well-formed ELF image in memory.
unsafe fn symbol(image: usize, name: &[u8]) -> Option<usize> {
    const PT_LOAD: u32 = 1;
    const PT_DYNAMIC: u32 = 2;
    // SAFETY: `e_phoff` of the header.
    let headers = image + unsafe { read::<u64>(image + 32) } as usize;
    // SAFETY: `e_phnum` of the header.
    let count = unsafe { read::<u16>(image + 56) } as usize;
    let (mut bias, mut dynamic) = (None, None);
    for header in (0..count).map(|i| headers + 56 * i) {
        // SAFETY: `p_type` of a program header.
        let kind = unsafe { read::<u32>(header) };
        // SAFETY: `p_vaddr` of a program header.
        let address = unsafe { read::<u64>(header + 16) } as usize;
        match kind {
            PT_LOAD if bias.is_none() => bias = Some(image.wrapping_sub(address)),
            PT_DYNAMIC => dynamic = Some(address),
            _ => {}
        }
    }
    let bias = bias?;
    let mut entry = bias.wrapping_add(dynamic?);
    let (mut strings, mut symbols, mut hash, mut gnu_hash) = (0, 0, 0, 0);
    loop {
        // SAFETY: `d_tag` of an entry; the last one is 0.
        let tag = unsafe { read::<u64>(entry) };
        // SAFETY: `d_ptr` of the same entry.
        let value = bias.wrapping_add(unsafe { read::<u64>(entry + 8) } as usize);
        match tag {
            0 => break,
            4 => hash = value,
            5 => strings = value,
            6 => symbols = value,
            0x6fff_fef5 => gnu_hash = value,
            _ => {}
        }
        entry += 16;
    }
    let count = match (hash, gnu_hash) {
        (0, 0) => return None,
        // SAFETY: the address of the vDSO's GNU hash table.
        (0, table) => unsafe { gnu_symbols(table) },
        // SAFETY: the second number of the vDSO's hash table is the number of all symbols.
        (table, _) => unsafe { read::<u32>(table + 4) as usize },
    };
    (0..count).find_map(|i| {
        let symbol = symbols + 24 * i;
        // SAFETY: `st_name` of a symbol.
        let text = strings + unsafe { read::<u32>(symbol) } as usize;
        // SAFETY: names in the string table end with a NUL.
        let text = unsafe { Text::new(text as *const core::ffi::c_char) };
        // SAFETY: `st_value` of the symbol.
        let value = unsafe { read::<u64>(symbol + 8) } as usize;
        (text.is(name) && value != 0).then(|| bias.wrapping_add(value))
    })
}

/// The number of symbols according to a GNU hash table: one more than the number of the last symbol in the longest
/// chain.
///
/// # Safety
/// `table` is the address of a GNU hash table.
unsafe fn gnu_symbols(table: usize) -> usize {
    // SAFETY: a table begins with these four numbers.
    let [buckets, first, bloom, _] = unsafe { read::<[u32; 4]>(table) };
    let heads = table + 16 + 8 * bloom as usize;
    // SAFETY: the table has one number for each bucket.
    let head = |i: u32| unsafe { read::<u32>(heads + 4 * i as usize) };
    let Some(mut last) = (0..buckets).map(head).max().filter(|&last| last >= first) else {
        return first as usize;
    };
    let chains = heads + 4 * buckets as usize;
    // SAFETY: the table has one number for each symbol from `first` on. The last number of a chain is odd.
    while unsafe { read::<u32>(chains + 4 * (last - first) as usize) } & 1 == 0 {
        last += 1;
    }
    last as usize + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_vdso_s_clock_is_found_and_agrees_with_the_kernel() {
        find();
        assert_ne!(clock_function().load(Ordering::Relaxed), 0);
        for _ in 0..1000 {
            let (before, now, after) = (system::clock_ns(), now_ns(), system::clock_ns());
            assert!(before <= now && now <= after, "{before} {now} {after}");
        }
    }

    #[test]
    fn symbols_in_a_gnu_hash_table_are_counted() {
        // One bucket has the symbols 1 to 3, one has symbol 4, and one is empty.
        let table: [u32; 14] = [3, 1, 1, 0, 0, 0, 1, 4, 0, 2, 4, 7, 9, 0];
        // SAFETY: `table` is a table as described above.
        assert_eq!(unsafe { gnu_symbols(table.as_ptr() as usize) }, 5);
        // SAFETY: this is a table without buckets.
        assert_eq!(unsafe { gnu_symbols([0u32, 1, 1, 0, 0, 0].as_ptr() as usize) }, 1);
    }
}
