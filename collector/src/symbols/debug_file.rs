//! A binary's separate debug file, in the places where distributions and debuggers put it.

use super::build_id::BuildId;
use super::elf_file::{ElfFile, text_at};
use std::path::{Path, PathBuf};

/// Where distributions install debug files.
const DEBUG_ROOT: &str = "/usr/lib/debug";

/// The separate debug file whose build-id equals the binary's. A binary without build-id has none: a name alone
/// proves nothing.
pub fn find(elf: &ElfFile) -> Option<ElfFile> {
    let build_id = elf.build_id.as_ref()?;
    candidates(elf, build_id)
        .into_iter()
        .filter_map(|path| ElfFile::open(&path).ok())
        .find(|debug| debug.build_id.as_ref() == Some(build_id) && debug.is_x86_64 == elf.is_x86_64)
}

fn candidates(elf: &ElfFile, build_id: &BuildId) -> Vec<PathBuf> {
    let hex = build_id.to_string();
    let mut paths = Vec::new();
    if let (Some(start), Some(rest)) = (hex.get(..2), hex.get(2..))
        && !rest.is_empty()
    {
        paths.push(Path::new(DEBUG_ROOT).join(".build-id").join(start).join(format!("{rest}.debug")));
    }
    if let Some(name) = debug_link(elf)
        && let Ok(binary) = std::fs::canonicalize(elf.path())
        && let Some(folder) = binary.parent()
    {
        paths.push(folder.join(&name));
        paths.push(folder.join(".debug").join(&name));
        if let Ok(below) = folder.strip_prefix("/") {
            paths.push(Path::new(DEBUG_ROOT).join(below).join(&name));
        }
    }
    paths
}

/// The plain file name in `.gnu_debuglink`. Anything with a path in it is refused.
fn debug_link(elf: &ElfFile) -> Option<String> {
    let section = elf.section(b".gnu_debuglink")?;
    let bytes = elf.section_bytes(section, "the debug link", 4096).ok()?;
    let name = std::str::from_utf8(text_at(&bytes, 0, 255)).ok()?;
    (!name.is_empty() && name != "." && name != ".." && !name.contains('/')).then(|| name.to_owned())
}
