//! A last line of defence around parsers that are not ours.

use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs a parser of another crate on untrusted data. Should it panic after all (an overflow in a sum of two
/// numbers from the file is enough, since overflow checks are on), the answer is `None` and longpole lives.
pub fn catch_panic<T>(parse: impl FnOnce() -> T) -> Option<T> {
    // The parser's remains are thrown away with it: callers pass in nothing that outlives a failure.
    catch_unwind(AssertUnwindSafe(parse)).ok()
}
