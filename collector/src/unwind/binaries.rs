//! Unwind tables of binaries, read by a parser without rights and shared by all processes that have them mapped.

use crate::file_key::FileKey;
use crate::outline::Outline;
use crate::symbols::{Parsers, UnwindRows, vdso_copy};
use crate::target::Code;
use rustc_hash::FxHashMap;
use std::fs::File;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Most binaries whose tables are kept, and most bytes of them together.
const MOST_BINARIES: usize = 512;
const MOST_BYTES: usize = 512 << 20;
/// How long reading one binary's tables may take: samples wait for it.
const PATIENCE: Duration = Duration::from_secs(10);
/// How many binaries are read at once.
const AT_ONCE: usize = 4;
/// The kernel's own library, which is in no file.
pub(super) const VDSO: &str = "[vdso]";

/// A binary's tables, and which file offsets lie at which linked addresses.
#[derive(Debug)]
pub(super) struct Binary {
    pub rows: UnwindRows,
    pub outline: Outline,
}

/// Tables of all binaries, shared by all processes that have them mapped.
pub struct Binaries {
    parsers: Parsers,
    pub(super) known: FxHashMap<FileKey, Option<Arc<Binary>>>,
    bytes: usize,
}

impl Default for Binaries {
    fn default() -> Binaries {
        Binaries::reading_with(Parsers::of_longpole())
    }
}

impl Binaries {
    /// None yet.
    pub fn reading_with(parsers: Parsers) -> Binaries {
        Binaries { parsers: parsers.with_patience(PATIENCE), known: FxHashMap::default(), bytes: 0 }
    }

    /// Reads what is not known yet of these, some at once.
    pub(super) fn read(&mut self, code: &[Code]) {
        let mut wanted: Vec<(FileKey, File, &Code)> = Vec::new();
        for code in code {
            let Some((key, file)) = open(code) else { continue };
            let known = self.known.contains_key(&key) || wanted.iter().any(|(other, ..)| *other == key);
            if !known && self.known.len().saturating_add(wanted.len()) < MOST_BINARIES {
                wanted.push((key, file, code));
            }
        }
        if wanted.is_empty() || self.bytes >= MOST_BYTES {
            return;
        }
        let next = AtomicUsize::new(0);
        let found = Mutex::new(Vec::new());
        let parsers = &self.parsers;
        let work = || {
            while let Some((key, file, code)) = wanted.get(next.fetch_add(1, Ordering::Relaxed)) {
                let binary = read(parsers, file, Path::new(&code.path));
                found.lock().unwrap_or_else(PoisonError::into_inner).push((*key, binary));
            }
        };
        std::thread::scope(|scope| {
            for _ in 1..AT_ONCE.min(wanted.len()) {
                scope.spawn(work);
            }
            work();
        });
        for (key, binary) in found.into_inner().unwrap_or_else(PoisonError::into_inner) {
            let bytes = binary.as_ref().map_or(0, |binary| binary.rows.bytes());
            self.bytes = self.bytes.saturating_add(bytes);
            self.known.insert(key, binary.map(Arc::new));
        }
    }

    pub(super) fn of(&self, code: &Code) -> Option<Arc<Binary>> {
        self.known.get(&key(code)?)?.clone()
    }
}

impl Binary {
    /// What has to be added to linked addresses where a process has it.
    pub fn bias(&self, code: &Code) -> Option<u64> {
        // The kernel's own library is mapped as a whole.
        if code.path == VDSO { Some(code.start) } else { self.outline.bias(code.start, code.file_offset) }
    }
}

fn key(code: &Code) -> Option<FileKey> {
    if code.path == VDSO {
        return Some(FileKey::VDSO);
    }
    if code.open_path.as_os_str().is_empty() {
        return None;
    }
    let found = std::fs::metadata(&code.open_path).ok()?;
    Some(FileKey::of(&found))
}

fn open(code: &Code) -> Option<(FileKey, File)> {
    let key = key(code)?;
    let file = if code.path == VDSO { vdso_copy().ok()? } else { Outline::open(&code.open_path)?.0 };
    Some((key, file))
}

fn read(parsers: &Parsers, file: &File, path: &Path) -> Option<Binary> {
    let outline = Outline::of(file)?;
    match parsers.unwind_rows(file, path) {
        Ok(rows) => rows.map(|rows| Binary { rows, outline }),
        Err(why) => {
            tracing::warn!("stacks cannot be followed through it: {why}");
            None
        }
    }
}
