//! Names of the kernel's functions, from `/proc/kallsyms`.

use crate::symbols::name;
use std::io::{BufRead, BufReader, Read};

/// Most symbols kept; a distribution's kernel with modules has some 300,000.
const MOST_SYMBOLS: usize = 4_000_000;
/// Where kernel addresses begin.
const FIRST: u64 = 1 << 63;
/// Farthest from a symbol's start that an address is believed to belong to it.
const FARTHEST: u64 = 1 << 20;

/// Whether an address is the kernel's.
pub fn is_kernel(address: u64) -> bool {
    address >= FIRST
}

/// Functions by address.
#[derive(Debug, Default)]
pub struct KernelSymbols {
    /// Address, place of the name in `names`, place of the module's.
    all: Vec<(u64, u32, u32)>,
    names: Vec<u8>,
}

impl KernelSymbols {
    /// The running kernel's. Empty if it does not tell (`kernel.kptr_restrict`).
    pub fn running() -> KernelSymbols {
        std::fs::File::open("/proc/kallsyms").map(KernelSymbols::read).unwrap_or_default()
    }

    /// Out of the text of `/proc/kallsyms`: address, type, name, module in brackets.
    pub fn read(source: impl Read) -> KernelSymbols {
        let mut symbols = KernelSymbols::default();
        symbols.names.push(0);
        let (mut module, mut module_at) = (String::new(), 0u32);
        for line in BufReader::with_capacity(1 << 16, source).lines().map_while(Result::ok) {
            if symbols.all.len() >= MOST_SYMBOLS || symbols.names.len() > 1 << 30 {
                break;
            }
            let mut words = line.split_ascii_whitespace();
            let (Some(address), Some(kind), Some(name)) = (words.next(), words.next(), words.next()) else {
                continue;
            };
            let Ok(address) = u64::from_str_radix(address, 16) else { continue };
            if !matches!(kind, "T" | "t" | "W" | "w") || !is_kernel(address) {
                continue;
            }
            let own = words.next().unwrap_or_default().trim_matches(['[', ']']);
            if own != module {
                module = own.to_owned();
                module_at = if own.is_empty() { 0 } else { symbols.text(own) };
            }
            let name_at = symbols.text(name);
            symbols.all.push((address, name_at, module_at));
        }
        symbols.all.sort_by_key(|&(address, ..)| address);
        symbols
    }

    fn text(&mut self, text: &str) -> u32 {
        let at = u32::try_from(self.names.len()).unwrap_or(0);
        self.names.extend(text.bytes().take(512));
        self.names.push(0);
        at
    }

    /// Whether the kernel tells no addresses.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Name, distance from its start, and module (`vmlinux` for the kernel itself) of an address.
    pub fn at(&self, address: u64) -> Option<(String, u64, String)> {
        let behind = self.all.partition_point(|&(start, ..)| start <= address);
        let last = behind.checked_sub(1)?;
        let start = self.all.get(last)?.0;
        let distance = address.checked_sub(start).filter(|&distance| distance < FARTHEST)?;
        // Of several names the first one listed.
        let first = self.all.partition_point(|&(other, ..)| other < start);
        let &(_, name, module) = self.all.get(first)?;
        let text = |at: u32| name::safe_bytes(crate::symbols::elf_file::text_at(&self.names, at, 512));
        let module = if module == 0 { "vmlinux".to_owned() } else { text(module) };
        Some((text(name), distance, module))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_modules() {
        let text = b"ffffffff81000000 T _stext\nffffffff81000000 t first\nffffffff81000400 t futex_wait\n\
            ffffffff81000500 D data\nffffffffc0000000 t ext4_read\t[ext4]\n0000000000000000 T hidden\n\
            ffffffffc0000100 t ext4_write\t[ext4]\n";
        let symbols = KernelSymbols::read(&text[..]);
        let at = |address| {
            symbols.at(address).map(|(name, distance, module)| format!("{module}:{name}+{distance}"))
        };
        assert_eq!(at(0xffff_ffff_8100_0004).as_deref(), Some("vmlinux:_stext+4"));
        assert_eq!(at(0xffff_ffff_8100_0510).as_deref(), Some("vmlinux:futex_wait+272"));
        assert_eq!(at(0xffff_ffff_c000_0101).as_deref(), Some("ext4:ext4_write+1"));
        assert_eq!(at(0xffff_ffff_80ff_ffff), None);
        assert_eq!(at(0xffff_ffff_f000_0000), None, "far from everything");
        assert!(KernelSymbols::read(&b"0000000000000000 T hidden\n"[..]).is_empty());
    }
}
