//! Copied stack bytes become frames, by the unwind tables of what a process has mapped.

use super::tables::Tables;
use crate::symbols::{ElfFile, contained};
use crate::target::Code;
use engine::event::MOST_FRAMES;
use framehop::Unwinder as _;
use framehop::x86_64::{CacheX86_64, UnwindRegsX86_64, UnwinderX86_64};
use framehop::{ExplicitModuleSectionInfo, Module};
use probe_abi::RawCopy;
use rustc_hash::FxHashMap;
use std::cell::Cell;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::sync::Arc;

/// Most binaries whose tables are kept, and most bytes of them together.
const MOST_BINARIES: usize = 512;
const MOST_BYTES: usize = 512 << 20;

/// Which file it is: device, inode, size, time of the last change.
type FileKey = (u64, u64, u64, i64, i64);

/// A binary's tables, and which file offsets lie at which linked addresses.
#[derive(Clone, Debug)]
struct Binary {
    tables: Tables,
    segments: Vec<crate::symbols::Segment>,
}

/// Tables of all binaries, shared by all processes that have them mapped.
pub struct Binaries {
    known: FxHashMap<FileKey, Option<Arc<Binary>>>,
    bytes: usize,
    cache: CacheX86_64,
}

/// The unwinder of one process.
#[derive(Default)]
pub struct Unwinding {
    unwinder: UnwinderX86_64<Arc<[u8]>>,
    added: FxHashMap<u64, Code>,
    /// Code that keeps frame pointers: first address and length.
    pub keeping: Vec<[u64; 2]>,
}

/// A stack.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unwound {
    /// The innermost frame first.
    pub frames: Vec<u64>,
    /// It goes up to the thread's first function.
    pub whole: bool,
    /// Bytes of the copy that were needed.
    pub reach: usize,
    /// It would go on behind the copy.
    pub beyond: bool,
}

impl Default for Binaries {
    fn default() -> Binaries {
        Binaries { known: FxHashMap::default(), bytes: 0, cache: CacheX86_64::new() }
    }
}

impl Binaries {
    fn of(&mut self, path: &Path) -> Option<Arc<Binary>> {
        if path.as_os_str().is_empty() {
            return None;
        }
        let found = std::fs::metadata(path).ok()?;
        let key = (found.dev(), found.ino(), found.len(), found.ctime(), found.ctime_nsec());
        if let Some(known) = self.known.get(&key) {
            return known.clone();
        }
        if self.known.len() >= MOST_BINARIES || self.bytes >= MOST_BYTES {
            return None;
        }
        let binary = contained(|| {
            let elf = ElfFile::open(path).ok()?;
            let tables = Tables::of(&elf)?;
            Some(Arc::new(Binary { tables, segments: elf.segments.clone() }))
        });
        let binary = binary.flatten();
        let bytes =
            binary.as_ref().map_or(0, |binary| binary.tables.frames.len() + binary.tables.search.len());
        self.bytes = self.bytes.saturating_add(bytes);
        self.known.insert(key, binary.clone());
        binary
    }
}

impl Binary {
    /// What has to be added to linked addresses where this file offset is mapped at this address.
    fn bias(&self, start: u64, file_offset: u64) -> Option<u64> {
        const PAGE: u64 = 4096;
        let segment = self.segments.iter().find(|segment| {
            let from = segment.offset & !(PAGE - 1);
            segment.executable
                && (from..segment.offset.saturating_add(segment.file_size)).contains(&file_offset)
        })?;
        let linked = segment.address.wrapping_add(file_offset).wrapping_sub(segment.offset);
        Some(start.wrapping_sub(linked))
    }
}

impl Unwinding {
    /// The process has this code now.
    pub fn know(&mut self, code: &[Code], binaries: &mut Binaries) {
        let gone: Vec<u64> =
            self.added.values().filter(|old| !code.contains(old)).map(|old| old.start).collect();
        for start in gone {
            self.unwinder.remove_module(start);
            self.added.remove(&start);
            self.keeping.retain(|[keeping, _]| *keeping != start);
        }
        for code in code {
            if self.added.contains_key(&code.start) {
                continue;
            }
            let Some(binary) = binaries.of(&code.open_path) else { continue };
            let Some(bias) = binary.bias(code.start, code.file_offset) else { continue };
            let Tables { frames, frames_at, search, keeps_frame_pointers } = binary.tables.clone();
            if keeps_frame_pointers {
                self.keeping.push([code.start, code.end.saturating_sub(code.start)]);
            }
            let end = |bytes: &[u8]| frames_at.saturating_add(bytes.len() as u64);
            let sections = ExplicitModuleSectionInfo {
                eh_frame_svma: Some(frames_at..end(&frames)),
                eh_frame_hdr_svma: Some(frames_at..end(&search)),
                eh_frame: Some(frames),
                eh_frame_hdr: Some(search),
                ..ExplicitModuleSectionInfo::default()
            };
            let module = Module::new(code.path.clone(), code.start..code.end, bias, sections);
            self.unwinder.add_module(module);
            self.added.insert(code.start, code.clone());
        }
    }

    /// The frames of a copied stack.
    pub fn unwind(&self, raw: &RawCopy, binaries: &mut Binaries) -> Unwound {
        let bytes = raw.bytes.get(..raw.count as usize).unwrap_or_default();
        let (reach, beyond) = (Cell::new(0), Cell::new(false));
        let mut read = |address: u64| {
            let at = address.checked_sub(raw.from).and_then(|at| usize::try_from(at).ok()).ok_or(())?;
            let Some(word) = bytes.get(at..).and_then(|rest| rest.first_chunk::<8>()) else {
                beyond.set(true);
                return Err(());
            };
            reach.set(reach.get().max(at + 8));
            Ok(u64::from_le_bytes(*word))
        };
        let registers = UnwindRegsX86_64::new(raw.instruction_pointer, raw.stack_pointer, raw.frame_pointer);
        let cache = &mut binaries.cache;
        let unwound = contained(|| {
            let mut frames = Vec::new();
            let mut unwinding =
                self.unwinder.iter_frames(raw.instruction_pointer, registers, cache, &mut read);
            // One more than is kept: then it is known to go on.
            while frames.len() <= MOST_FRAMES {
                match unwinding.next() {
                    Ok(Some(frame)) => frames.push(frame.address()),
                    Ok(None) => return Unwound { frames, whole: true, ..Unwound::default() },
                    Err(_) => break,
                }
            }
            Unwound { frames, ..Unwound::default() }
        });
        let unwound = unwound
            .unwrap_or_else(|| Unwound { frames: vec![raw.instruction_pointer], ..Unwound::default() });
        Unwound { reach: reach.get(), beyond: beyond.get(), ..unwound }
    }
}
