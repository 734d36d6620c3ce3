//! What lies at addresses of a binary: answers to requests, and to those from parsers that have read it
//! already.

use super::answer::{Answer, Location, Place, Reason, Request};
use super::error::SymbolError;
use super::functions::{ModuleFunctions, functions_of, unnamed};
use super::locator::Locator;
use super::name;
use engine::event::FunctionFact;

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
