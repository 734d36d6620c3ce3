//! Facts about binaries.

use serde::{Deserialize, Serialize};

/// A binary, with what is needed to find the file or its debug information later and on other machines.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ModuleFact {
    /// File name, as in [`FunctionFact::module`].
    pub name: String,
    /// Path of the binary, as the process saw it.
    pub path: String,
    /// Its build-id, lower-case hexadecimal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub build_id: Option<String>,
    /// Which of the binary's symbols are missing, and how the user can provide them; `None`: none are missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub missing: Option<String>,
    /// Its language, if that has locks outside the C library: `Go`, `Rust`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub own_locks: Option<String>,
}
