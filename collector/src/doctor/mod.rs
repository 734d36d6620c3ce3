//! The command `doctor`: what works on this machine, and how the user can fix what does not. [`machine`] reads the
//! machine, [`checks`] judges it.

mod checks;
mod machine;

pub use checks::{Check, check};
pub use machine::{Btf, Machine};

/// Whether the machine has everything that recording needs.
pub fn all_required(checks: &[Check]) -> bool {
    checks.iter().all(|check| check.ok || !check.required)
}
