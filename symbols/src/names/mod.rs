//! Names of functions: demangles them, makes them safe to print, finds which name a user means, and decides whether a
//! function belongs to the program or to a runtime.

pub(crate) mod name;
mod name_match;
pub(crate) mod origin;
mod rust_v0;

pub use name::{
    MAX_NAME_BYTES, MAX_RAW_BYTES, demangled, is_unsafe, safe, safe_bytes, safe_path, safe_within,
};
pub use name_match::{NameMatch, listed, match_name};

pub(crate) use name_match::{is_pattern, match_whole_name};
