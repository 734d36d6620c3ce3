//! Protects longpole against panics in parsers of other crates.

use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs another crate's parser on untrusted data, and returns `None` if it panics. With overflow checks on, adding two
/// numbers from the file is enough for a panic.
pub fn catch_panic<T>(parse: impl FnOnce() -> T) -> Option<T> {
    // Callers pass in nothing that is used after a panic, so no half-changed state can be seen.
    catch_unwind(AssertUnwindSafe(parse)).ok()
}
