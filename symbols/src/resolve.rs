//! One question and one answer: what lies at these addresses of this binary? Both are serializable.

use super::build_id::BuildId;
use super::error::SymbolError;
use super::functions::{ModuleFunctions, functions_of, unnamed};
use super::locator::Locator;
use super::name;
use engine::event::FunctionFact;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::PathBuf;

/// What lies at these places of a binary?
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Request {
    /// The file to read.
    pub binary: PathBuf,
    /// What people call it; the file's own name if not given.
    #[serde(default)]
    pub module: Option<String>,
    /// The build-id it has to have, if known: another file of the same name answers nothing.
    #[serde(default)]
    pub build_id: Option<BuildId>,
    /// The places.
    pub places: Vec<Place>,
}

/// A place in a binary.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Place {
    /// Offset in the file, as probes and /proc maps count.
    FileOffset(u64),
    /// Address as linked, as `nm` and `addr2line` count.
    Address(u64),
}

/// One location for each place asked for, in the same order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    /// What people call the binary.
    pub module: String,
    /// The binary's build-id.
    pub build_id: Option<BuildId>,
    /// The locations.
    pub locations: Vec<Location>,
}

/// What lies at a place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Location {
    /// The function's name, or `module+0xoffset`. Never guessed.
    pub name: String,
    /// The symbol that holds the place.
    pub symbol: Result<SymbolHit, Reason>,
    /// Functions inlined there, innermost first; the last one is the function itself.
    pub frames: Result<Vec<Frame>, Reason>,
    /// It lies in a loop that only waits.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub waits: bool,
    /// That loop tries to take a lock, and keeps the CPU.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub tries: bool,
}

/// A symbol that holds a place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SymbolHit {
    /// Readable name.
    pub name: String,
    /// Distance from its start, bytes.
    pub distance: u64,
}

/// A function at a source line.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Frame {
    /// Readable name.
    pub function: Option<String>,
    /// Source file.
    pub file: Option<String>,
    /// Line, from 1.
    pub line: Option<u32>,
    /// Column, from 1; 0 is the left edge.
    pub column: Option<u32>,
}

/// Why something about a place is not known.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// The binary cannot be read; the text says why.
    Unreadable(String),
    /// The file is not the one that was meant.
    BuildIdDiffers {
        /// What the file has.
        found: Option<BuildId>,
    },
    /// The binary has no code at this place.
    NotCode,
    /// The binary is stripped.
    NoSymbols,
    /// No symbol holds this place.
    NoSymbolForAddress,
    /// Neither the binary nor a separate debug file has debug information.
    NoDebugInformation,
    /// The debug information lies in other files (`-gsplit-dwarf`), which are not there.
    SplitDebugInformation,
    /// The debug information says nothing about this place.
    NoLineForAddress,
    /// The debug information contradicts itself.
    BadDebugInformation,
    /// There is more debug information than is read.
    TooLarge,
    /// The process has nothing at this address that could be found.
    NotMapped,
    /// The kernel does not tell where its functions are.
    KernelHidden,
}

impl From<gimli::Error> for Reason {
    fn from(_: gimli::Error) -> Reason {
        Reason::BadDebugInformation
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::Unreadable(why) => f.write_str(why),
            Reason::BuildIdDiffers { found: Some(found) } => {
                write!(f, "the file now has another build-id ({found})")
            }
            Reason::BuildIdDiffers { found: None } => f.write_str("the file now has no build-id"),
            Reason::NotCode => f.write_str("the file has no code there"),
            Reason::NoSymbols => f.write_str("stripped: it has no symbols"),
            Reason::NoSymbolForAddress => f.write_str("no symbol holds this address"),
            Reason::NoDebugInformation => f.write_str("no debug information: compile with -g"),
            Reason::SplitDebugInformation => f.write_str(
                "its debug information is split off (-gsplit-dwarf), and the .dwo or .dwp file is not there",
            ),
            Reason::NoLineForAddress => f.write_str("its debug information does not cover this address"),
            Reason::BadDebugInformation => f.write_str("its debug information contradicts itself"),
            Reason::NotMapped => f.write_str("the process has no code there that is known"),
            Reason::KernelHidden => {
                f.write_str("the kernel hides its addresses: run as root, or set kernel.kptr_restrict to 0")
            }
            Reason::TooLarge => f.write_str("its debug information is too large"),
        }
    }
}

/// Answers a request. Never fails as a whole: what is not known says why, place by place.
pub fn resolve(request: &Request) -> Answer {
    let given = request.module.as_deref().map(|module| name::safe_within(module, 255));
    let mut module = match functions_of(&request.binary) {
        Ok(module) => module,
        Err(error) => return nothing(request, given, &error),
    };
    if let Some(given) = given {
        module.rename(&given);
    }
    let mut answer = locate(&module, &request.places);
    if request.build_id.is_some() && request.build_id.as_ref() != module.build_id() {
        let reason = Reason::BuildIdDiffers { found: module.build_id().cloned() };
        for (location, place) in answer.locations.iter_mut().zip(&request.places) {
            *location = unknown(module.module(), *place, reason.clone());
        }
    }
    answer
}

/// As [`resolve`] for a module that is already read.
pub fn locate(module: &ModuleFunctions, places: &[Place]) -> Answer {
    let located = Locator::with(module, |locator| locator.locate(places));
    let (module, build_id) = (located.module.clone(), located.build_id.clone());
    Answer { module, build_id, locations: located.locations() }
}

/// Fills in `file:line` of functions of this module (the others are left alone): the place of the function's own
/// opening line, not of what is inlined there.
pub fn locate_functions<'a>(
    module: &ModuleFunctions,
    functions: impl IntoIterator<Item = &'a mut FunctionFact>,
) {
    Locator::with(module, |locator| locate_with(locator, functions));
}

/// As [`locate_functions`] with a locator that is there.
pub fn locate_with<'a>(locator: &mut Locator<'_>, functions: impl IntoIterator<Item = &'a mut FunctionFact>) {
    let module = locator.module().to_owned();
    let mut own: Vec<&mut FunctionFact> =
        functions.into_iter().filter(|function| function.module == module).collect();
    let places: Vec<Place> = own.iter().map(|function| Place::FileOffset(function.offset)).collect();
    for (function, location) in own.iter_mut().zip(locator.locate(&places).locations()) {
        function.location = location.line();
    }
}

impl Location {
    /// `file:line` of the function itself, not of what is inlined there.
    pub fn line(&self) -> Option<String> {
        let frame = self.frames.as_ref().ok()?.last()?;
        Some(format!("{}:{}", frame.file.as_deref()?, frame.line?))
    }
}

fn nothing(request: &Request, module: Option<String>, error: &SymbolError) -> Answer {
    let module = module.unwrap_or_else(|| {
        let file_name = request.binary.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
        name::safe_within(&file_name, 255)
    });
    let reason = Reason::Unreadable(error.to_string());
    let locations = request.places.iter().map(|&place| unknown(&module, place, reason.clone())).collect();
    Answer { module, build_id: None, locations }
}

fn unknown(module: &str, place: Place, reason: Reason) -> Location {
    let (Place::FileOffset(at) | Place::Address(at)) = place;
    Location {
        name: unnamed(module, at),
        symbol: Err(reason.clone()),
        frames: Err(reason),
        waits: false,
        tries: false,
    }
}
