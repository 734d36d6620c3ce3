//! What this machine can or cannot give.

/// A result, or the reason why this machine cannot have it.
pub type Provided<T> = std::result::Result<T, String>;
