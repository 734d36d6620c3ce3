//! What a sampled stack shows of a wait or of a waking in a word: the innermost function that is not of the C
//! library, since that it slept in `read` is known anyway.

use crate::program::{Function, Program};

/// The function, by the program's names.
pub(super) fn function_of(program: &Program, stack: u32) -> Option<&str> {
    let functions = || {
        let places = program.samples.stack(stack).map(|(_, place)| place.function);
        places.filter_map(|function| program.functions.get(function.0 as usize))
    };
    let own = functions().find(|function| !is_of_the_system(function));
    own.or_else(|| functions().next()).map(|function| function.name.as_str())
}

fn is_of_the_system(function: &Function) -> bool {
    const STARTS: [&str; 8] = ["libc.", "libc-", "libpthread", "ld-", "libstdc++", "libc++", "libgcc_s", "["];
    let module = function.module.as_deref().unwrap_or("[");
    // Code without a name says nothing that a waiting call does not say.
    function.name.starts_with('[') || STARTS.iter().any(|start| module.starts_with(start))
}
