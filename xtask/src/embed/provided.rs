//! Results that depend on what this machine has.

/// A result, or the reason why this machine cannot produce it.
pub type Provided<T> = std::result::Result<T, String>;
