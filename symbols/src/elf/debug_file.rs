//! Finds a binary's separate debug file, by build-id or else by debug link and checksum. A file that does not belong to
//! the binary is refused with a reason.

use super::debug_link::{checksum, debug_link};
use super::elf_file::ElfFile;
use super::files::{Candidate, FileRequest, Files, search};
use crate::names::safe_path;

/// Largest number of refusals that are reported.
const MAX_REFUSED: usize = 8;

/// The result of a search for a debug file.
#[derive(Debug, Default)]
pub struct Search {
    /// The debug file.
    pub found: Option<ElfFile>,
    /// For each file that was found but does not belong to the binary: its path, and the reason.
    pub refused: Vec<String>,
}

impl Search {
    /// Notes why a file was refused. The same text is noted only once.
    pub fn refuse(&mut self, text: String) {
        if self.refused.len() < MAX_REFUSED && !self.refused.contains(&text) {
            self.refused.push(text);
        }
    }
}

/// Searches for the binary's debug file.
pub fn find(elf: &ElfFile, files: &mut dyn Files) -> Search {
    let mut outcome = Search::default();
    if let Some(id) = &elf.build_id {
        let request = FileRequest::BuildId(id.clone());
        outcome.found = search(files, &request, |candidate| check(elf, candidate, None, &mut outcome));
    }
    if outcome.found.is_none()
        && let Some(link) = debug_link(elf)
    {
        let request = FileRequest::DebugLink(link.name.clone());
        outcome.found =
            search(files, &request, |candidate| check(elf, candidate, Some(link.checksum), &mut outcome));
    }
    outcome
}

/// Whether a file belongs to the binary: by build-id if both have one, otherwise by checksum.
fn check(elf: &ElfFile, candidate: Candidate, sum: Option<u32>, outcome: &mut Search) -> Option<ElfFile> {
    let path = safe_path(&candidate.path);
    let debug = match elf.open_companion(candidate.file, &candidate.path) {
        Ok(debug) => debug,
        Err(error) => {
            outcome.refuse(format!("{path} is refused: {error}"));
            return None;
        }
    };
    if debug.is_x86_64 != elf.is_x86_64 {
        outcome.refuse(format!("{path} is refused: it is for another processor"));
        return None;
    }
    match (&elf.build_id, &debug.build_id) {
        (Some(own), Some(other)) if own == other => return Some(debug),
        (Some(own), Some(other)) => {
            outcome.refuse(format!("{path} is refused: its build-id is {other}, not {own}"));
            return None;
        }
        _ => {}
    }
    // A debug link may lead back to the binary itself, which has no debug sections. Then it names no debug file, and
    // there is nothing to report.
    let is_itself = debug.section(b".debug_info").is_none() && debug.section(b".symtab").is_none();
    match sum {
        Some(_) if is_itself => None,
        Some(sum) if checksum(debug.file()) == Some(sum) => Some(debug),
        Some(sum) => {
            outcome.refuse(format!("{path} is refused: its checksum is not {sum:08x}"));
            None
        }
        None => {
            outcome.refuse(format!("{path} is refused: it has no build-id"));
            None
        }
    }
}
