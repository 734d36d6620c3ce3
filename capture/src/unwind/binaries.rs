//! Unwind tables of binaries. A parser without rights reads them, and all processes that have a binary mapped share its
//! tables.

use super::vdso;
use crate::target::Code;
use rustc_hash::FxHashMap;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use symbols::FileKey;
use symbols::Outline;
use symbols::{Parsers, UnwindRows};

/// Largest number of binaries whose tables are kept, and largest total size of the tables, bytes.
const MOST_BINARIES: usize = 512;
const MOST_BYTES: usize = 512 << 20;
/// How long reading the tables of one binary may take, since stacks wait for them.
const PATIENCE: Duration = Duration::from_secs(10);
/// The kernel's own library, which has no file.
pub(super) const VDSO: &str = "[vdso]";

/// The tables of a binary, and its outline, which maps file offsets to linked addresses.
#[derive(Debug)]
pub(super) struct Binary {
    pub rows: UnwindRows,
    pub outline: Outline,
}

/// The tables of all binaries, shared by all processes that have a binary mapped.
pub struct BinaryTables {
    parsers: Parsers,
    pub(super) known: FxHashMap<FileKey, Option<Arc<Binary>>>,
    bytes: usize,
}

impl Default for BinaryTables {
    fn default() -> BinaryTables {
        BinaryTables::reading_with(Parsers::of_longpole())
    }
}

impl BinaryTables {
    /// An empty collection.
    pub fn reading_with(parsers: Parsers) -> BinaryTables {
        BinaryTables { parsers: parsers.with_patience(PATIENCE), known: FxHashMap::default(), bytes: 0 }
    }

    /// The tables of the binary that contains the code. They are read if they are not known yet.
    pub(super) fn read(&mut self, code: &Code) -> Option<Arc<Binary>> {
        let known = self.known.get(&key(code)?).cloned();
        // If the file is replaced in between, the opened file's own key counts.
        known.unwrap_or_else(|| open(code).and_then(|(key, file)| self.read_open(code, key, &file)))
    }

    /// Like [`BinaryTables::read`], for a file that is already open.
    pub(super) fn read_open(&mut self, code: &Code, key: FileKey, file: &File) -> Option<Arc<Binary>> {
        if let Some(known) = self.known.get(&key) {
            return known.clone();
        }
        if self.known.len() >= MOST_BINARIES || self.bytes >= MOST_BYTES {
            return None;
        }
        let binary = read(&self.parsers, file, Path::new(&code.path)).map(Arc::new);
        let bytes = binary.as_ref().map_or(0, |binary| binary.rows.bytes());
        self.bytes = self.bytes.saturating_add(bytes);
        self.known.insert(key, binary.clone());
        binary
    }
}

impl Binary {
    /// The number to add to linked addresses in a process that has mapped the binary.
    pub fn bias(&self, code: &Code) -> Option<u64> {
        // The kernel's own library (vDSO) is mapped from its first byte.
        if code.path == VDSO { Some(code.start) } else { self.outline.bias(code.start, code.file_offset) }
    }
}

pub(super) fn key(code: &Code) -> Option<FileKey> {
    if code.path == VDSO {
        return Some(FileKey::VDSO);
    }
    if code.open_path.as_os_str().is_empty() {
        return None;
    }
    let found = std::fs::metadata(&code.open_path).ok()?;
    Some(FileKey::of(&found))
}

/// Opens the binary in which the code lies.
pub(super) fn open(code: &Code) -> Option<(FileKey, File)> {
    if code.path == VDSO {
        return Some((FileKey::VDSO, vdso::copy().ok()?));
    }
    let file = Outline::open(&code.open_path)?.0;
    let found = file.metadata().ok()?;
    Some((FileKey::of(&found), file))
}

fn read(parsers: &Parsers, file: &File, path: &Path) -> Option<Binary> {
    let outline = Outline::of(file)?;
    match parsers.unwind_rows(file, path) {
        Ok(rows) => rows.map(|rows| Binary { rows, outline }),
        Err(why) => {
            log::warn!("stacks cannot be followed through it: {why}");
            None
        }
    }
}
