//! Says which symbols of a binary are missing, and how the user can get them.

use super::service::SymbolSummary;
use crate::answer::Reason;
use crate::elf::SymbolSource;
use crate::names::name;
use engine::event::ModuleFact;
use memchr::memmem::Finder;
use std::io::Read;
use std::path::Path;

/// Largest number of package lists (of installed files) that are searched.
const MOST_LISTS: usize = 20_000;
/// Size of the largest package list that is searched, in bytes.
const MOST_BYTES: u64 = 8 << 20;

impl SymbolSummary {
    /// One sentence that says which symbols are missing, without the module's name. `None` if none are missing. `path`
    /// is the binary's path.
    pub fn missing(&self, path: &str) -> Option<String> {
        let mut parts: Vec<String> = Vec::new();
        let names = match &self.source {
            SymbolSource::None => Some("no function has a name"),
            SymbolSource::DynamicSymbols => Some("only exported functions have names"),
            SymbolSource::PackedTable => Some("functions by the symbol table packed into it"),
            SymbolSource::GoTable => None,
            SymbolSource::SymbolTable | SymbolSource::DebugFile(_) => Some("functions by symbol table only"),
        };
        match &self.no_lines {
            None if matches!(self.source, SymbolSource::None | SymbolSource::DynamicSymbols) => {
                parts.extend(names.map(str::to_owned));
            }
            None => {}
            Some(Reason::NoDebugInformation) => {
                parts.push("no debug info".to_owned());
                parts.push(fix(path));
                parts.extend(names.map(str::to_owned));
            }
            Some(reason) => {
                parts.push(format!("no lines: {reason}"));
                parts.extend(names.map(str::to_owned));
            }
        }
        if self.supplement_missing {
            parts.push("some names are in a supplementary debug file that is missing".to_owned());
        }
        parts.extend(self.refused.iter().cloned());
        (!parts.is_empty()).then(|| parts.join("; "))
    }

    /// The module as a fact for a recording.
    pub fn fact(&self, path: &str) -> ModuleFact {
        ModuleFact {
            name: self.module.clone(),
            path: name::safe(path),
            build_id: self.build_id.as_ref().map(ToString::to_string),
            missing: self.missing(path),
            own_locks: match (self.is_go, self.is_rust) {
                (true, _) => Some("Go".to_owned()),
                (_, true) => Some("Rust".to_owned()),
                _ => None,
            },
        }
    }
}

/// How the user can get debug information for the binary at `path`, as a sentence.
fn fix(path: &str) -> String {
    match package_of(Path::new("/var/lib/dpkg/info"), path) {
        Some(package) => format!("install {package}-dbgsym (or -dbg), or try --debuginfod"),
        None => "build it with -g, or install its debug package".to_owned(),
    }
}

/// The Debian package that a file belongs to. The package's list may name the file with or without `/usr`.
fn package_of(folder: &Path, path: &str) -> Option<String> {
    if !path.starts_with("/usr/")
        && !path.starts_with("/lib")
        && !path.starts_with("/bin/")
        && !path.starts_with("/sbin/")
    {
        return None;
    }
    let lists = std::fs::read_dir(folder).ok()?.flatten().take(MOST_LISTS);
    let mut lists =
        lists.map(|entry| entry.path()).filter(|path| path.extension().is_some_and(|end| end == "list"));
    let path = Finder::new(path.strip_prefix("/usr").unwrap_or(path));
    let mut text = Vec::new();
    let list = lists.find(|list| {
        text.clear();
        let Ok(file) = std::fs::File::open(list) else { return false };
        file.take(MOST_BYTES).read_to_end(&mut text).is_ok() && is_line(&path, &text)
    })?;
    let package = list.file_stem()?.to_str()?;
    Some(name::safe(package.split(':').next().unwrap_or(package)))
}

/// Whether a line of the text is this path, with or without `/usr` at its start.
fn is_line(path: &Finder<'_>, text: &[u8]) -> bool {
    path.find_iter(text).any(|at| {
        let (before, after) = (&text[..at], &text[at + path.needle().len()..]);
        let before = before.strip_suffix(b"/usr").unwrap_or(before);
        matches!(before.last(), None | Some(b'\n')) && matches!(after.first(), None | Some(b'\n'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn summary(source: SymbolSource, no_lines: Option<Reason>) -> SymbolSummary {
        SymbolSummary {
            module: "libfoo.so".into(),
            build_id: None,
            source,
            functions: 3,
            is_go: false,
            is_rust: false,
            moves_code: crate::MovesCode::No,
            no_lines,
            refused: Vec::new(),
            supplement_missing: false,
        }
    }

    #[test]
    fn missing_symbols_are_reported_with_their_fix() {
        let none = Some(Reason::NoDebugInformation);
        let said = |source, reason| summary(source, reason).missing("/opt/libfoo.so");
        assert_eq!(
            said(SymbolSource::SymbolTable, none.clone()).as_deref(),
            Some(
                "no debug info; build it with -g, or install its debug package; functions by symbol table only"
            )
        );
        assert!(said(SymbolSource::None, none).is_some_and(|text| text.ends_with("no function has a name")));
        assert_eq!(said(SymbolSource::DebugFile("/x".into()), None), None);
        assert_eq!(said(SymbolSource::GoTable, None), None);
        let mut refused = summary(SymbolSource::SymbolTable, None);
        refused.refused.push("/x.debug is refused: its build-id is ab, not cd".into());
        assert!(refused.missing("/x").is_some_and(|text| text.contains("build-id is ab")));
    }

    #[test]
    fn the_package_of_a_file_is_found_in_its_list() {
        let folder = tempfile::tempdir().expect("folder");
        std::fs::write(folder.path().join("libfoo1:amd64.list"), "/.\n/usr/lib/libfoo.so.1\n")
            .expect("written");
        let others = "/opt/usr/lib/libbar.so.1\n/usr/lib/libbar.so.1.2\n/opt/lib/libbar.so.1\n";
        std::fs::write(folder.path().join("others.list"), others).expect("written");
        assert_eq!(package_of(folder.path(), "/lib/libfoo.so.1").as_deref(), Some("libfoo1"));
        assert_eq!(package_of(folder.path(), "/usr/lib/libfoo.so.1").as_deref(), Some("libfoo1"));
        assert_eq!(package_of(folder.path(), "/usr/lib/libbar.so.1"), None);
        assert_eq!(package_of(folder.path(), "/home/me/libfoo.so.1"), None);
    }
}
