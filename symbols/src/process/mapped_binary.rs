//! A binary that a process has in memory. Finds what is at addresses of that process.

use super::parser::{Parser, Parsers};
use crate::answer::{Frame, Location, Place};
use crate::elf::{HostFiles, Outline, Segment, open_plain};
use crate::error::SymbolError;
use std::fs::File;
use std::path::{Path, PathBuf};

/// The symbols of one binary. The file stays open, because the process may end before the symbols are read.
#[derive(Debug)]
pub struct MappedBinary {
    file: File,
    path: PathBuf,
    outline: Outline,
    /// Places of the binary's debug files, collected while the process exists.
    files: Option<HostFiles>,
    parsers: Parsers,
    parser: Option<Parser>,
}

/// The caller and the line of a call, as far as known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CallPlace {
    /// The function that makes the call, if it has a name.
    pub function: Option<String>,
    /// `file:line` of the call.
    pub location: Option<String>,
}

impl MappedBinary {
    /// Opens a binary. Its symbols are read at the first question.
    pub fn open(path: &Path, parsers: &Parsers) -> Result<MappedBinary, SymbolError> {
        let file = open_plain(path)?;
        let outline = Outline::of(&file).ok_or_else(|| SymbolError::not_elf(path, "it has no ELF header"))?;
        let (files, path) = (Some(HostFiles::of(path)), path.to_owned());
        Ok(MappedBinary { file, path, outline, files, parsers: parsers.clone(), parser: None })
    }

    /// See [`Outline::bias`].
    pub fn bias(&self, start: u64, file_offset: u64) -> Option<u64> {
        self.outline.bias(start, file_offset)
    }

    /// The linked address of an address in a process. `first_page` has the low 32 bits of the number of the page that
    /// contains the binary's first instructions. `None` if the address is not in this binary.
    pub fn linked_at(&self, first_page: u32, address: u64) -> Option<u64> {
        const PAGE_BITS: u32 = 12;
        let first = self.segments_with_code().map(|segment| segment.address).min()?;
        // User addresses have 47 bits, so page numbers have 35 bits, of which the upper three are missing. All eight
        // possible numbers are tried.
        (0..8u64).find_map(|top| {
            let page = top << 32 | u64::from(first_page);
            let bias = (page << PAGE_BITS).wrapping_sub(first >> PAGE_BITS << PAGE_BITS);
            let linked = address.wrapping_sub(bias);
            self.holds(linked).then_some(linked)
        })
    }

    fn segments_with_code(&self) -> impl Iterator<Item = &Segment> {
        self.outline.segments.iter().filter(|segment| segment.executable)
    }

    /// Whether a linked address lies in one of the binary's loaded segments.
    pub fn holds(&self, linked: u64) -> bool {
        let inside = |from: u64, size: u64| linked.checked_sub(from).is_some_and(|at| at < size);
        self.outline.segments.iter().any(|segment| inside(segment.address, segment.memory_size))
    }

    /// The path by which the binary was opened.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The binary's build-id, as text.
    pub fn build_id(&self) -> Option<String> {
        self.outline.build_id.as_ref().map(ToString::to_string)
    }

    /// Starts a parser for the symbols, if there is none yet. `name` is the binary's name in messages.
    pub fn read(&mut self, name: &str) -> Result<(), SymbolError> {
        if let Some(files) = self.files.take() {
            let path = &self.path;
            let file = self.file.try_clone();
            let file = file.map_err(|source| SymbolError::Open { path: path.to_owned(), source })?;
            self.parser = Some(self.parsers.open_file(file, path, name, files)?);
        }
        Ok(())
    }

    /// The variable at a linked address.
    pub fn variable(&mut self, linked: u64) -> Option<String> {
        self.parser.as_mut()?.variables(&[linked]).ok()?.pop()?
    }

    /// The places of the calls that return to these linked addresses, in the same order. A line in a header of the
    /// standard library is not the program's. A call there gets the line at which the header's code is inlined, or no
    /// line.
    pub fn calls(&mut self, returns: &[u64]) -> Vec<CallPlace> {
        let places: Vec<Place> =
            returns.iter().map(|linked| Place::Address(linked.wrapping_sub(1))).collect();
        match self.parser.as_mut().map(|parser| parser.locate(&places)) {
            Some(Ok(located)) => located.locations().iter().map(call_place).collect(),
            _ => vec![CallPlace::default(); returns.len()],
        }
    }
}

/// A call's function and line. Frames in headers of the standard library are skipped, because they are not the
/// program's.
pub fn call_place(location: &Location) -> CallPlace {
    let frames = location.frames.as_deref().unwrap_or_default();
    let own = frames.iter().find(|frame| !is_standard(frame));
    if own.is_none() && !frames.is_empty() {
        return CallPlace::default();
    }
    let function = own.and_then(|frame| frame.function.clone());
    let named = function.or_else(|| location.symbol.as_ref().ok().map(|hit| hit.name.clone()));
    let line = own.and_then(|frame| Some(format!("{}:{}", frame.file.as_deref()?, frame.line?)));
    CallPlace { function: named, location: line }
}

fn is_standard(frame: &Frame) -> bool {
    frame.file.as_deref().is_some_and(|file| {
        ["/usr/include/", "/usr/lib/", "/rustc/"].iter().any(|start| file.starts_with(start))
            || file.contains("/include/c++/")
            || file.contains("/lib/rustlib/src/")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_in_a_standard_header_has_the_place_of_its_caller() {
        let frame = |file: &str, function: &str| Frame {
            function: Some(function.into()),
            file: Some(file.into()),
            line: Some(7),
            column: None,
        };
        let place = |frames: Vec<Frame>| {
            call_place(&Location {
                name: "f".into(),
                symbol: Err(crate::Reason::NoSymbols),
                frames: Ok(frames),
                waits: false,
                tries: false,
            })
        };
        let header = || frame("/usr/include/c++/12/bits/gthr-default.h", "__gthread_mutex_lock");
        let own = place(vec![header(), frame("/home/me/hash.cpp", "insert")]);
        assert_eq!(own.location.as_deref(), Some("/home/me/hash.cpp:7"));
        assert_eq!(own.function.as_deref(), Some("insert"));
        assert_eq!(place(vec![header()]), CallPlace::default());
    }

    #[test]
    fn this_test_s_own_function_is_found_where_it_runs() {
        let maps = std::fs::read_to_string("/proc/self/maps").expect("maps");
        let here = this_test_s_own_function_is_found_where_it_runs as fn() as usize as u64;
        let exe = std::fs::read_link("/proc/self/exe").expect("link");
        let mut placed =
            MappedBinary::open(Path::new("/proc/self/exe"), &Parsers::here()).expect("this test");
        placed.read("test").expect("symbols");
        let line = maps
            .lines()
            .find(|line| line.contains(" r-xp ") && line.ends_with(exe.to_str().expect("UTF-8")))
            .expect("code");
        let number = |text: &str| u64::from_str_radix(text, 16).expect("number");
        let (start, _) = line.split_once('-').expect("range");
        let offset = line.split_ascii_whitespace().nth(2).expect("offset");
        let bias = placed.bias(number(start), number(offset)).expect("a segment");
        let linked = here.wrapping_sub(bias);
        assert!(placed.holds(linked));
        // The page number, as in the kernel's record of an `exec`.
        let first = placed.segments_with_code().map(|segment| segment.address).min().expect("code");
        let first_page = (first.wrapping_add(bias) >> 12) as u32;
        assert_eq!(placed.linked_at(first_page, here), Some(linked));
        assert_eq!(placed.linked_at(first_page, 0x7fff_ffff_f000), None);
        let calls = placed.calls(&[linked + 1]);
        let name = calls[0].function.as_deref().unwrap_or_default();
        assert!(name.contains("this_test_s_own_function_is_found_where_it_runs"), "{calls:?}");
        assert!(!placed.holds(linked.wrapping_add(1 << 40)));
        assert_eq!(placed.bias(0x1000, u64::MAX), None);
    }
}
