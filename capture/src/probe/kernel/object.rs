//! The kernel programs' object file, embedded in this binary.

use std::sync::OnceLock;

use object::{File, Object as _, ObjectSection as _};
use probe_abi::{ABI_STAMP, ABI_STAMP_SECTION};

use crate::probe::error::{ProbeError, ProbeErrorKind};

#[cfg(longpole_probe)]
const OBJECT: &[u8] = aya::include_bytes_aligned!(env!("LONGPOLE_PROBE_OBJECT"));
#[cfg(not(longpole_probe))]
const OBJECT: &[u8] = &[];

/// Whether this longpole was built with kernel programs; without, it can only read recordings.
pub const fn has_programs() -> bool {
    cfg!(longpole_probe)
}

/// Checks that this longpole contains kernel programs, and that they were built with the same `probe-abi`.
///
/// # Errors
///
/// There are no programs, or they were built with another version.
pub fn check_programs() -> Result<(), ProbeError> {
    object().map(|_| ())
}

/// The object file, checked.
pub(crate) fn object() -> Result<&'static [u8], ProbeError> {
    static CHECKED: OnceLock<Result<(), ProbeError>> = OnceLock::new();
    if has_programs() {
        return CHECKED.get_or_init(|| check(OBJECT)).clone().map(|()| OBJECT);
    }
    Err(ProbeError::new(
        ProbeErrorKind::ReplayOnly,
        "this longpole was built without its kernel programs: it can read recordings, but cannot record",
        "run ./x embed to make the kernel programs for this architecture, then build again",
    ))
}

/// Checks the version. Programs of another version would be refused by the verifier with a long message about registers, or
/// would write records that mean something else.
fn check(object: &[u8]) -> Result<(), ProbeError> {
    let stamp = File::parse(object)
        .ok()
        .and_then(|file| file.section_by_name(ABI_STAMP_SECTION)?.data().ok().map(<[u8]>::to_vec));
    if stamp.as_deref() == Some(&ABI_STAMP) {
        return Ok(());
    }
    Err(ProbeError::new(
        // An error of this kind makes tests fail, where others make them skip: such a build is a mistake.
        ProbeErrorKind::Failed,
        "the kernel programs in this longpole were built from other sources than the rest of it",
        "run ./x embed to make the kernel programs from the sources, then build again",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_embedded_kernel_programs_have_this_version() {
        if !has_programs() {
            println!("SKIP the_embedded_kernel_programs_have_this_version: no kernel programs in this build");
            return;
        }
        assert_eq!(check(OBJECT), Ok(()));
    }

    /// An object file of another version gives this error instead of the verifier's with a hint about the kernel.
    #[test]
    fn kernel_programs_of_another_version_are_an_error_with_a_hint() {
        if !has_programs() {
            println!(
                "SKIP kernel_programs_of_another_version_are_an_error_with_a_hint: no kernel programs in this build"
            );
            return;
        }
        let place = OBJECT.windows(ABI_STAMP.len()).position(|bytes| bytes == ABI_STAMP).expect("a stamp");
        let mut other_hash = OBJECT.to_vec();
        other_hash[place + ABI_STAMP.len() - 1] ^= 1;
        let mut other_version = OBJECT.to_vec();
        other_version[place + 8] ^= 1;
        for bytes in [&other_hash[..], &other_version, b"", b"no object file"] {
            let error = check(bytes).expect_err("another version");
            assert_eq!(error.kind, ProbeErrorKind::Failed);
            assert!(error.hint.contains("./x embed"), "{error:?}");
        }
    }
}
