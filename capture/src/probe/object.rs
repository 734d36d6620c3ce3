//! The kernel programs' object file inside this binary.

use std::sync::OnceLock;

use object::{File, Object as _, ObjectSection as _};
use probe_abi::{ABI_STAMP, ABI_STAMP_SECTION};

use super::error::{ProbeError, ProbeErrorKind};

#[cfg(longpole_probe)]
const OBJECT: &[u8] = aya::include_bytes_aligned!(env!("LONGPOLE_PROBE_OBJECT"));
#[cfg(not(longpole_probe))]
const OBJECT: &[u8] = &[];

/// Whether this longpole was built with kernel programs; without, it can only read recordings.
pub const fn has_programs() -> bool {
    cfg!(longpole_probe)
}

/// Whether the kernel programs in this binary can be used: they are there, and were built with the same `probe-abi`.
///
/// # Errors
///
/// They are not, or were not.
pub fn check_programs() -> Result<(), ProbeError> {
    object().map(|_| ())
}

/// The object file.
pub(crate) fn object() -> Result<&'static [u8], ProbeError> {
    static CHECKED: OnceLock<Result<(), ProbeError>> = OnceLock::new();
    if has_programs() {
        return CHECKED.get_or_init(|| check(OBJECT)).clone().map(|()| OBJECT);
    }
    Err(ProbeError::new(
        ProbeErrorKind::ReplayOnly,
        "this longpole was built without its kernel programs: it can read recordings but not make them",
        "./x embed makes them for this architecture, then build again",
    ))
}

/// Programs of another version would be refused by the kernel's verifier with a long story about registers, or would
/// write records that mean something else.
fn check(object: &[u8]) -> Result<(), ProbeError> {
    let stamp = File::parse(object)
        .ok()
        .and_then(|file| file.section_by_name(ABI_STAMP_SECTION)?.data().ok().map(<[u8]>::to_vec));
    if stamp.as_deref() == Some(&ABI_STAMP) {
        return Ok(());
    }
    Err(ProbeError::new(
        // Not one of those for which tests are skipped: it was built by mistake.
        ProbeErrorKind::Failed,
        "the kernel programs in this longpole were built from other sources than the rest of it",
        "./x embed makes them from the sources, then build again",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_programs_inside_fit() {
        if !has_programs() {
            println!("SKIP the_programs_inside_fit: no kernel programs in this build");
            return;
        }
        assert_eq!(check(OBJECT), Ok(()));
    }

    /// An object file from before a change of `probe-abi` gave an error of the verifier, and a hint at the kernel.
    #[test]
    fn programs_of_another_version_are_told_to_be_rebuilt() {
        if !has_programs() {
            println!(
                "SKIP programs_of_another_version_are_told_to_be_rebuilt: no kernel programs in this build"
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
