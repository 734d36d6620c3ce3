//! What works on this machine, and how to fix what does not: the [`machine`] is read, the [`checks`] judge it.

mod checks;
mod machine;

pub use checks::{Check, check};
pub use machine::{Btf, Machine};

/// Whether everything that recording needs is there.
pub fn all_required(checks: &[Check]) -> bool {
    checks.iter().all(|check| check.ok || !check.required)
}
