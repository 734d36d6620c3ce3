//! The preload library, embedded in this binary.

#[cfg(longpole_preload)]
const LIBRARY: &[u8] = include_bytes!(env!("LONGPOLE_PRELOAD_LIBRARY"));
#[cfg(not(longpole_preload))]
const LIBRARY: &[u8] = &[];

/// Whether this longpole was built with the library.
pub const fn has_library() -> bool {
    cfg!(longpole_preload)
}

/// The library's file.
pub(super) fn library() -> &'static [u8] {
    LIBRARY
}
