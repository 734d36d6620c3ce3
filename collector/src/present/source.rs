//! Lines of source files, if the files exist. File names come from the recorded program, so only regular files of a usual
//! size with a source file's ending are read.

use std::collections::HashMap;
use std::path::Path;

/// A larger file is not a source that a person wrote.
const MOST_BYTES: u64 = 8 << 20;
/// File name endings of sources.
const ENDINGS: [&str; 22] = [
    "c", "cc", "cpp", "cxx", "h", "hh", "hpp", "hxx", "inc", "inl", "rs", "go", "s", "S", "asm", "py",
    "java", "js", "ts", "f90", "zig", "d",
];

/// Files already read, or found to be missing.
#[derive(Debug, Default)]
pub(crate) struct Sources(HashMap<String, Option<String>>);

impl Sources {
    /// The trimmed line of `file:line`; `None` if there is no such file or line.
    pub(super) fn line(&mut self, place: &str) -> Option<String> {
        let (file, line) = place.rsplit_once(':')?;
        let line: usize = line.parse().ok()?;
        let line = self.text(file)?.lines().nth(line.checked_sub(1)?)?.trim();
        (!line.is_empty()).then(|| line.replace('\t', " "))
    }

    /// The text of a file; `None` if it does not exist or is no source.
    pub(crate) fn text(&mut self, file: &str) -> Option<&str> {
        self.0.entry(file.to_owned()).or_insert_with(|| read(Path::new(file))).as_deref()
    }
}

fn read(file: &Path) -> Option<String> {
    let ending = file.extension()?.to_str()?;
    let metadata = std::fs::metadata(file).ok()?;
    if !ENDINGS.contains(&ending) || !file.is_absolute() || !metadata.is_file() || metadata.len() > MOST_BYTES
    {
        return None;
    }
    std::fs::read_to_string(file).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_absolute_paths_of_source_files_are_read() {
        let mut sources = Sources::default();
        assert_eq!(sources.line(&format!("{}:3", file!())), None, "a relative name says nothing");
        let own = concat!(env!("CARGO_MANIFEST_DIR"), "/src/present/source.rs");
        assert_eq!(sources.line(&format!("{own}:1")).as_deref().map(|line| &line[..9]), Some("//! Lines"));
        assert_eq!(sources.line(&format!("{own}:999999")), None);
        assert_eq!(sources.line("/etc/passwd:1"), None);
        assert_eq!(sources.line("/dev/zero:1"), None);
    }
}
