//! Notes: named records in sections and segments of an ELF file.

/// A note of an ELF file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Note<'a> {
    /// The meaning of the description, a number that the owner defines.
    pub(super) kind: u32,
    /// The owner's name, including its final NUL.
    pub(super) owner: &'a [u8],
    /// The description, in a form that `kind` decides.
    pub(super) data: &'a [u8],
}

/// The notes in these bytes. The iterator ends at the first incomplete note.
pub(super) fn notes(mut bytes: &[u8]) -> impl Iterator<Item = Note<'_>> {
    // The layout of a note: the owner's size, the description's size and the kind (3 × u32), then owner and
    // description, each padded to 4 bytes.
    std::iter::from_fn(move || {
        let header = bytes.first_chunk::<12>()?;
        let word =
            |at: usize| u32::from_le_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
        let (owner_bytes, data_bytes, kind) = (word(0) as usize, word(4) as usize, word(8));
        let owner = bytes.get(12..)?.get(..owner_bytes)?;
        let data_at = 12usize.checked_add(owner_bytes.checked_next_multiple_of(4)?)?;
        let data = bytes.get(data_at..)?.get(..data_bytes)?;
        let next = data_at.checked_add(data_bytes.checked_next_multiple_of(4)?)?;
        bytes = bytes.get(next..).unwrap_or_default();
        Some(Note { kind, owner, data })
    })
}
