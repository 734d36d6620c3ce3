//! Build-ids: the number that a linker gives a binary. Files with the same build-id belong together.

use super::notes::notes;
use serde::{Deserialize, Serialize};
use std::fmt;

/// A GNU build-id: 1 to 64 bytes, 20 usually. Text form: lower-case hexadecimal.
#[derive(Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct BuildId(Vec<u8>);

/// The error for text that is not a build-id.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a build-id: 2 to 128 hexadecimal digits are needed")]
pub struct NotABuildId;

impl BuildId {
    /// Largest number of bytes of a build-id that is accepted.
    pub const MAX_BYTES: usize = 64;

    /// The build-id of these bytes; `None` if there are no bytes or too many.
    pub fn new(bytes: &[u8]) -> Option<BuildId> {
        (!bytes.is_empty() && bytes.len() <= BuildId::MAX_BYTES).then(|| BuildId(bytes.to_vec()))
    }

    /// The first GNU build-id in a note section or segment.
    pub fn in_notes(bytes: &[u8]) -> Option<BuildId> {
        let kind = object::elf::NT_GNU_BUILD_ID.0;
        let own = notes(bytes).find(|note| note.kind == kind && note.owner == b"GNU\0");
        BuildId::new(own?.data)
    }

    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Display for BuildId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for BuildId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BuildId({self})")
    }
}

impl From<BuildId> for String {
    fn from(id: BuildId) -> String {
        id.to_string()
    }
}

impl TryFrom<String> for BuildId {
    type Error = NotABuildId;

    fn try_from(text: String) -> Result<BuildId, NotABuildId> {
        if !text.len().is_multiple_of(2) || text.len() > BuildId::MAX_BYTES * 2 {
            return Err(NotABuildId);
        }
        let digit = |byte: u8| char::from(byte).to_digit(16).map(|digit| digit as u8);
        let bytes: Option<Vec<u8>> = text
            .as_bytes()
            .as_chunks::<2>()
            .0
            .iter()
            .map(|pair| Some(digit(pair[0])? << 4 | digit(pair[1])?))
            .collect();
        bytes.as_deref().and_then(BuildId::new).ok_or(NotABuildId)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_build_id_is_found_after_another_note() {
        let mut notes = Vec::new();
        for (name, kind, data) in [(&b"Go\0"[..], 4u32, &b"abcde"[..]), (b"GNU\0", 3, &[0xde, 0xad, 0x01])] {
            notes.extend((name.len() as u32).to_le_bytes());
            notes.extend((data.len() as u32).to_le_bytes());
            notes.extend(kind.to_le_bytes());
            for part in [name, data] {
                notes.extend(part);
                notes.resize(notes.len().next_multiple_of(4), 0);
            }
        }
        let id = BuildId::in_notes(&notes).unwrap();
        assert_eq!(id.to_string(), "dead01");
        assert_eq!(BuildId::try_from("DEAD01".to_owned()), Ok(id));
        for cut in 0..notes.len() {
            let _ = BuildId::in_notes(&notes[..cut]);
        }
        assert_eq!(BuildId::in_notes(&[0xff; 64]), None);
    }

    #[test]
    fn a_build_id_that_is_no_hexadecimal_text_is_refused() {
        for bad in ["", "0", "0g", &"00".repeat(65)] {
            assert_eq!(BuildId::try_from(bad.to_owned()), Err(NotABuildId), "{bad}");
        }
    }
}
