//! The kernel programs' object file inside this binary.

use super::error::{ProbeError, ProbeErrorKind};

#[cfg(longpole_probe)]
const OBJECT: &[u8] = aya::include_bytes_aligned!(env!("LONGPOLE_PROBE_OBJECT"));
#[cfg(not(longpole_probe))]
const OBJECT: &[u8] = &[];

/// Whether this longpole was built with kernel programs; without, it can only read recordings.
pub const fn has_programs() -> bool {
    cfg!(longpole_probe)
}

/// The object file.
pub(crate) fn object() -> Result<&'static [u8], ProbeError> {
    if has_programs() {
        return Ok(OBJECT);
    }
    Err(ProbeError::new(
        ProbeErrorKind::ReplayOnly,
        "this longpole was built without its kernel programs: it can read recordings but not make them",
        "build it with ./x build, which fetches what the kernel programs need",
    ))
}
