//! Finds which function and line is at places of a binary whose symbols have been read.

use super::locator::Locator;
use crate::answer::{Location, Place};
use crate::elf::ModuleFunctions;
use engine::event::FunctionFact;

/// Finds a location for each place, in the same order. The search as a whole cannot fail: each location says why a part
/// of it is unknown.
pub fn locate(module: &ModuleFunctions, places: &[Place]) -> Vec<Location> {
    Locator::with(module, |locator| locator.locate(places)).locations()
}

/// Fills in `file:line` of functions of this module; other functions do not change. The line is where the function
/// itself begins, even if another function is inlined at its start.
pub fn locate_functions<'a>(
    module: &ModuleFunctions,
    functions: impl IntoIterator<Item = &'a mut FunctionFact>,
) {
    Locator::with(module, |locator| locate_with(locator, functions));
}

/// Like [`locate_functions`], with an existing locator.
pub fn locate_with<'a>(locator: &mut Locator<'_>, functions: impl IntoIterator<Item = &'a mut FunctionFact>) {
    let module = locator.module().to_owned();
    let mut own: Vec<&mut FunctionFact> =
        functions.into_iter().filter(|function| function.module == module).collect();
    let places: Vec<Place> = own.iter().map(|function| Place::FileOffset(function.offset)).collect();
    for (function, location) in own.iter_mut().zip(locator.locate(&places).locations()) {
        function.location = location.line();
    }
}
