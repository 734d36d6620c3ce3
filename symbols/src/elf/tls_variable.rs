//! Finds the place of an exported thread-local variable of a program or library, from the dynamic symbols and
//! relocations.
//!
//! longpole itself reads these tables, as it reads the outline, so this code must be harmless in the same way. The code
//! reads pieces of bounded size, and only compares numbers from the file or adds them with a check.

use super::outline::{Outline, place, read, u16_at, u32_at, u64_at};
use std::fs::File;

/// Largest number of symbols with the same hash that are searched.
const LONGEST_CHAIN: u64 = 4_096;
/// Largest number of bytes of a relocation table that are searched. The largest libraries have about 10 MiB.
const MOST_RELOCATIONS: u64 = 48 << 20;
/// Size of a symbol, and also of a relocation, in bytes.
const SYMBOL: u64 = 24;
const RELOCATION: usize = 24;
/// Number of bytes of relocations that are read at a time, a multiple of a relocation's size.
const AT_ONCE: usize = 2_048 * RELOCATION;

/// A thread-local variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TlsVariable {
    /// Distance of the variable from the start of the file's thread-local block, in bytes.
    pub offset: u64,
    /// Distance of the variable from the thread pointer, in bytes, if the file is a program. The distance may be
    /// negative.
    pub in_program: u64,
    /// The slot into which the loader writes where the variable is.
    pub slot: Option<TlsSlot>,
}

/// A slot in memory that the loader fills in, by its linked address, and what the slot then contains (ELF Handling For
/// Thread-Local Storage).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TlsSlot {
    /// A descriptor of two words: a function, and either the distance from the thread pointer or the address of two
    /// words as in [`TlsSlot::Module`].
    Descriptor(u64),
    /// The distance of the variable from the thread pointer.
    Distance(u64),
    /// Two words: the number of the file's thread-local block, and the variable's distance in the block.
    Module(u64),
    /// Only the number of the file's thread-local block.
    ModuleOnly(u64),
}

impl TlsVariable {
    /// The exported thread-local variable with this name; `None` if the file has none.
    pub fn find(file: &File, outline: &Outline, name: &str) -> Option<TlsVariable> {
        let tables = Tables::of(file, outline)?;
        let (number, offset) = tables.symbol(name)?;
        let (address, size, align) = outline.tls?;
        // The thread pointer is at the end of the block. If the block's start would not be aligned then, the block lies
        // further below (lld, `getTlsTpOffset`).
        let align = if align.is_power_of_two() { align } else { 1 };
        let below = size.wrapping_add(address.wrapping_add(size).wrapping_neg() & (align - 1));
        let slot = tables.slot(number, offset);
        Some(TlsVariable { offset, in_program: offset.wrapping_sub(below), slot })
    }
}

/// The tables to which a file's dynamic section points, as offsets in the file.
struct Tables<'a> {
    file: &'a File,
    hash: u64,
    symbols: u64,
    names: u64,
    /// Offset and size of each relocation table.
    relocations: [Option<(u64, u64)>; 2],
}

impl<'a> Tables<'a> {
    fn of(file: &'a File, outline: &Outline) -> Option<Tables<'a>> {
        const NAMES: u64 = 5;
        const SYMBOLS: u64 = 6;
        const RELOCATIONS: (u64, u64) = (7, 8);
        const LATE_RELOCATIONS: (u64, u64) = (23, 2);
        const HASH: u64 = 0x6fff_fef5;
        let entries = outline.dynamic_entries(file);
        let value = |tag: u64| entries.iter().find(|(of, _)| *of == tag).map(|(_, value)| *value);
        let place = |tag| outline.segments.iter().find_map(|segment| place(segment, value(tag)?));
        let table = |(at, size)| Some((place(at)?, value(size)?));
        Some(Tables {
            file,
            hash: place(HASH)?,
            symbols: place(SYMBOLS)?,
            names: place(NAMES)?,
            relocations: [RELOCATIONS, LATE_RELOCATIONS].map(table),
        })
    }

    /// Number and value of the thread-local symbol with this name that the file defines. Uses the hash table
    /// `DT_GNU_HASH`.
    fn symbol(&self, name: &str) -> Option<(u64, u64)> {
        let head = read(self.file, self.hash, 16);
        let [buckets, first, filters] = [0, 4, 8].map(|at| u32_at(&head, at).map(u64::from));
        let (buckets, first, filters) = (buckets.filter(|count| *count > 0)?, first?, filters?);
        let hash = hash(name);
        let list = self.hash.checked_add(16)?.checked_add(filters.checked_mul(8)?)?;
        let bucket = list.checked_add(u64::from(hash).checked_rem(buckets)?.checked_mul(4)?)?;
        let start = u64::from(self.half(bucket)?);
        let chains = list.checked_add(buckets.checked_mul(4)?)?;
        for number in (start.max(1)..).take(LONGEST_CHAIN as usize) {
            let other = self.half(chains.checked_add(number.checked_sub(first)?.checked_mul(4)?)?)?;
            if other | 1 == hash | 1
                && let Some(value) = self.tls_symbol(number, name)
            {
                return Some((number, value));
            }
            if other & 1 != 0 {
                break;
            }
        }
        None
    }

    fn half(&self, at: u64) -> Option<u32> {
        u32_at(&read(self.file, at, 4), 0)
    }

    /// The value of a symbol if it is defined here, thread-local and has this name.
    fn tls_symbol(&self, number: u64, name: &str) -> Option<u64> {
        const THREAD_LOCAL: u8 = 6;
        const UNDEFINED: u16 = 0;
        let symbol = read(self.file, self.symbols.checked_add(number.checked_mul(SYMBOL)?)?, SYMBOL as usize);
        let is_ours = symbol.get(4)? & 0xf == THREAD_LOCAL && u16_at(&symbol, 6)? != UNDEFINED;
        let at = self.names.checked_add(u64::from(u32_at(&symbol, 0)?))?;
        let own = read(self.file, at, name.len() + 1);
        let (last, text) = own.split_last()?;
        (is_ours && *last == 0 && text == name.as_bytes()).then_some(u64_at(&symbol, 8)?)
    }

    /// The slot of the symbol with this number and value. If there are several, the best kind of slot.
    fn slot(&self, number: u64, offset: u64) -> Option<TlsSlot> {
        let mut best: Option<(u8, TlsSlot)> = None;
        for (at, size) in self.relocations.iter().flatten() {
            let size = (*size).min(MOST_RELOCATIONS);
            let mut done = 0;
            while done < size {
                let Some(from) = at.checked_add(done) else { break };
                let left = usize::try_from(size - done).unwrap_or(AT_ONCE);
                let bytes = read(self.file, from, left.min(AT_ONCE));
                for entry in bytes.as_chunks::<RELOCATION>().0 {
                    let found = slot(entry, number, offset);
                    if let Some(found) = found.filter(|(rank, _)| best.is_none_or(|(best, _)| *rank < best)) {
                        best = Some(found);
                    }
                }
                if bytes.len() < RELOCATION {
                    break;
                }
                done += bytes.len() as u64;
            }
        }
        best.map(|(_, slot)| slot)
    }
}

/// The slot that a relocation fills in for this variable, with a rank: the lower the rank, the better. `None` if the
/// relocation is for something else.
fn slot(entry: &[u8], number: u64, offset: u64) -> Option<(u8, TlsSlot)> {
    const MODULE: u64 = 16;
    const DISTANCE: u64 = 18;
    const DESCRIPTOR: u64 = 36;
    let (at, info, addend) = (u64_at(entry, 0)?, u64_at(entry, 8)?, u64_at(entry, 16)?);
    let (symbol, kind) = (info >> 32, info & 0xffff_ffff);
    // A relocation without a symbol refers to a variable of the same file: the addend is that variable's value.
    let is_own = symbol == number && addend == 0 || symbol == 0 && addend == offset;
    match kind {
        DESCRIPTOR if is_own => Some((0, TlsSlot::Descriptor(at))),
        DISTANCE if is_own => Some((1, TlsSlot::Distance(at))),
        MODULE if symbol == number => Some((2, TlsSlot::Module(at))),
        MODULE if symbol == 0 => Some((3, TlsSlot::ModuleOnly(at))),
        _ => None,
    }
}

/// The hash function of GNU's symbol hash tables (Bernstein's).
fn hash(name: &str) -> u32 {
    name.bytes().fold(5381u32, |hash, byte| hash.wrapping_mul(33).wrapping_add(byte.into()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;
    use std::process::Command;

    const NAME: &str = "published_here";

    /// Compiles a library, or a program, with an exported variable.
    fn built(options: &[&str]) -> (tempfile::TempDir, File, Outline) {
        let folder = tempfile::tempdir().expect("folder");
        let source = folder.path().join("source.c");
        let text = format!(
            "__thread long before[9]; __thread int *{NAME}; void set(int *to) {{ {NAME} = to; }}\n\
             int main(void) {{ static int here; set(&here); before[1] = 1; return 0; }}\n"
        );
        std::fs::write(&source, text).expect("written");
        let out = folder.path().join("out");
        let done =
            Command::new("cc").args(options).arg("-o").arg(&out).arg(&source).status().expect("a compiler");
        assert!(done.success());
        let (file, outline) = Outline::open(&out).expect("an ELF file");
        (folder, file, outline)
    }

    #[test]
    fn an_exported_thread_local_variable_is_found_with_the_slot_of_its_place() {
        let slot = |options: &[&str]| {
            let (_folder, file, outline) = built(options);
            let found = TlsVariable::find(&file, &outline, NAME).expect("a variable");
            assert_eq!(TlsVariable::find(&file, &outline, "published_her"), None);
            assert_eq!(TlsVariable::find(&file, &outline, "main"), None, "a function");
            found
        };
        let library = ["-shared", "-fPIC"];
        let old = slot(&[&library[..], &["-mtls-dialect=gnu"]].concat());
        assert!(matches!(old.slot, Some(TlsSlot::Module(_))), "{old:?}");
        let new = slot(&[&library[..], &["-mtls-dialect=gnu2"]].concat());
        assert!(matches!(new.slot, Some(TlsSlot::Descriptor(_))), "{new:?}");
        let early = slot(&[&library[..], &["-ftls-model=initial-exec"]].concat());
        assert!(matches!(early.slot, Some(TlsSlot::Distance(_))), "{early:?}");
        let program = slot(&["-rdynamic"]);
        assert!((program.in_program as i64) < 0 && program.in_program as i64 >= -96, "{program:?}");
        assert_eq!(program.in_program % 8, 0);
    }

    #[test]
    fn files_without_the_variable_and_damaged_ones_have_none() {
        for path in ["/proc/self/exe", "/lib/x86_64-linux-gnu/libc.so.6"].map(Path::new) {
            let Some((file, outline)) = Outline::open(path) else { continue };
            assert_eq!(TlsVariable::find(&file, &outline, NAME), None);
        }
        let (folder, ..) = built(&["-shared", "-fPIC", "-mtls-dialect=gnu2"]);
        let whole = std::fs::read(folder.path().join("out")).expect("read");
        let damaged = folder.path().join("damaged");
        let mut seed = 0x9e37_79b9_7f4a_7c15u64;
        let mut random = |below: usize| {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            (seed % below.max(1) as u64) as usize
        };
        for _ in 0..2_000 {
            let mut bytes = whole.clone();
            for _ in 0..1 + random(6) {
                let at = random(bytes.len().min(8 << 10));
                bytes[at] = [0, 0xff, 0x7f, random(256) as u8][random(4)];
            }
            bytes.truncate(if random(4) == 0 { random(bytes.len()) } else { bytes.len() });
            std::fs::write(&damaged, &bytes).expect("written");
            if let Some((file, outline)) = Outline::open(&damaged) {
                let _ = TlsVariable::find(&file, &outline, NAME);
            }
        }
    }
}
