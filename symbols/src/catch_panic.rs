//! Protects longpole from panics in parsers of other crates.

use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs another crate's parser on untrusted data, and returns `None` if the parser panics. For example, in a build with
/// overflow checks, two numbers from a hostile file can overflow an addition.
pub fn catch_panic<T>(parse: impl FnOnce() -> T) -> Option<T> {
    // `AssertUnwindSafe` is right: no caller uses anything that the closure borrowed after a panic.
    catch_unwind(AssertUnwindSafe(parse)).ok()
}
