//! What lies at places of a binary that has been read.

use super::answer::{Location, Place};
use super::functions::ModuleFunctions;
use super::locator::Locator;
use engine::event::FunctionFact;

/// One location for each place, in the same order. Never fails as a whole: what is not known says why.
pub fn locate(module: &ModuleFunctions, places: &[Place]) -> Vec<Location> {
    Locator::with(module, |locator| locator.locate(places)).locations()
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
