//! The type of results that depend on the tools of this machine.

/// A result, or the reason why this machine cannot produce it.
pub type Provided<T> = std::result::Result<T, String>;
