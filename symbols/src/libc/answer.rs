//! A C library's functions as a parser without rights sends them. The receiver checks the answer. The receiver itself
//! decides which operation belongs to a function's name. Every place must lie in the file where the file's own headers
//! put it.

use super::functions::{CodePlace, ErrnoPlace, LibcCall, LibcFunctions};
use super::names::known;
use crate::code::UnknownExits;
use crate::elf::Outline;
use probe_abi::MutexLayout;
use serde::{Deserialize, Serialize};

/// Largest number of functions of a library, and of places in a function. glibc has some hundred functions, each with
/// up to ten places.
const MOST_FUNCTIONS: usize = 1024;
const MOST_PLACES: usize = 256;

/// [`LibcFunctions`] in the form that the parser sends.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LibcAnswer {
    functions: Vec<Call>,
    unsure: Vec<(String, UnknownExits)>,
    errno: Option<ErrnoPlace>,
    layout: Layout,
    text: (u64, u64),
    start: Option<CodePlace>,
    is_static: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Call {
    name: String,
    entry: CodePlace,
    entry_is_closed: bool,
    leaves: Vec<CodePlace>,
    ran: Vec<CodePlace>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Layout {
    #[default]
    Unknown,
    Glibc,
    Musl,
}

impl From<LibcFunctions> for LibcAnswer {
    fn from(found: LibcFunctions) -> LibcAnswer {
        let call = |call: LibcCall| Call {
            name: call.name.to_owned(),
            entry: call.entry,
            entry_is_closed: call.entry_is_closed,
            leaves: call.leaves,
            ran: call.ran,
        };
        LibcAnswer {
            functions: found.functions.into_iter().map(call).collect(),
            unsure: found.unsure.into_iter().map(|(name, reason)| (name.to_owned(), reason)).collect(),
            errno: found.errno,
            layout: match found.layout {
                MutexLayout::Unknown => Layout::Unknown,
                MutexLayout::Glibc => Layout::Glibc,
                MutexLayout::Musl => Layout::Musl,
            },
            text: found.text,
            start: found.start,
            is_static: found.is_static,
        }
    }
}

impl LibcAnswer {
    /// The functions, checked against the file's own headers (`outline`); `None` if the answer cannot be true.
    pub fn believed(self, outline: &Outline) -> Option<LibcFunctions> {
        let lies = |place: &CodePlace| outline.code_offset_of(place.address) != Some(place.offset);
        let call = |told: Call| -> Option<LibcCall> {
            let known = known(told.name.as_bytes())?;
            let places = || told.leaves.iter().chain(&told.ran).chain([&told.entry]);
            if places().any(lies) || places().count() > MOST_PLACES {
                return None;
            }
            Some(LibcCall {
                name: known.name,
                operation: known.operation,
                function: known.function(),
                entry: told.entry,
                entry_is_closed: told.entry_is_closed,
                leaves: told.leaves,
                ran: told.ran,
            })
        };
        if self.functions.len() > MOST_FUNCTIONS
            || self.unsure.len() > MOST_FUNCTIONS
            || self.start.as_ref().is_some_and(lies)
            || self.text.0 > self.text.1
            || self.is_static != outline.interpreter.is_none()
        {
            return None;
        }
        let unsure = |(name, reason): (String, UnknownExits)| Some((known(name.as_bytes())?.name, reason));
        Some(LibcFunctions {
            functions: self.functions.into_iter().map(call).collect::<Option<_>>()?,
            unsure: self.unsure.into_iter().map(unsure).collect::<Option<_>>()?,
            errno: self.errno,
            layout: match self.layout {
                Layout::Unknown => MutexLayout::Unknown,
                Layout::Glibc => MutexLayout::Glibc,
                Layout::Musl => MutexLayout::Musl,
            },
            text: self.text,
            start: self.start,
            is_static: self.is_static,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::functions::libc_functions;
    use super::*;
    use std::path::Path;

    #[test]
    fn an_answer_about_libc_is_read_back_and_lies_are_refused() {
        let path = Path::new("/lib/x86_64-linux-gnu/libc.so.6");
        let Some((_, outline)) = Outline::open(path) else {
            println!("SKIP an_answer_about_libc_is_read_back_and_lies_are_refused: no glibc here");
            return;
        };
        let found = libc_functions(path).expect("functions");
        assert!(!found.functions.is_empty());
        let told = LibcAnswer::from(found.clone());
        let json = serde_json::to_string(&told).expect("JSON");
        let told: LibcAnswer = serde_json::from_str(&json).expect("the same");
        assert_eq!(told.clone().believed(&outline), Some(found));
        let lie = |change: &dyn Fn(&mut LibcAnswer)| {
            let mut lie = told.clone();
            change(&mut lie);
            lie.believed(&outline)
        };
        assert_eq!(lie(&|told| told.functions[0].entry.offset += 1), None, "a place of another address");
        assert_eq!(lie(&|told| told.functions[0].leaves.push(CodePlace { address: 0, offset: 0 })), None);
        assert_eq!(lie(&|told| told.functions[0].name = "system".to_owned()), None);
        assert_eq!(lie(&|told| told.start = Some(CodePlace { address: u64::MAX, offset: 0 })), None);
        assert_eq!(lie(&|told| told.is_static = true), None);
        assert_eq!(lie(&|told| told.functions = vec![told.functions[0].clone(); MOST_FUNCTIONS + 1]), None);
    }
}
