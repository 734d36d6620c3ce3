//! What is missing of a session that could not be read to its end.

use std::fmt;

/// Where reading a session stopped, and what is in the unread rest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// Why reading stopped.
    pub kind: DamageKind,
    /// Offset of the first byte that was not read.
    pub at_byte: u64,
    /// Bytes of the file from there to its end.
    pub unread_bytes: u64,
    /// Whole chunks found in the unread bytes.
    pub unread_chunks: u64,
    /// Events in these chunks, by their headers.
    pub unread_events: u64,
}

/// Why reading stopped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DamageKind {
    /// The file ends after a whole chunk but has no end of the recording: the writer was killed.
    NoEnd,
    /// The file ends in the middle of a chunk.
    Cut {
        /// Bytes that are missing of that chunk, at least.
        missing_bytes: u64,
    },
    /// A chunk is not as it was written.
    Corrupt {
        /// How this was noticed.
        reason: &'static str,
    },
    /// The file has bytes after the end of the recording.
    Trailing,
    /// The rest would not fit into memory.
    TooLarge,
}

impl fmt::Display for Damage {
    /// One sentence without a full stop.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            DamageKind::NoEnd => {
                write!(
                    f,
                    "the recording was not finished and ends at byte {}: later events are missing",
                    self.at_byte
                )?;
            }
            DamageKind::Cut { missing_bytes } => {
                write!(
                    f,
                    "the session is cut: its last chunk lacks at least {missing_bytes} bytes; \
                     read up to byte {}, the {} after it are unusable",
                    self.at_byte,
                    bytes(self.unread_bytes)
                )?;
            }
            DamageKind::Corrupt { reason } => {
                write!(
                    f,
                    "the session is damaged at byte {} ({reason}): the last {} are not read",
                    self.at_byte,
                    bytes(self.unread_bytes)
                )?;
            }
            DamageKind::Trailing => {
                write!(f, "{} after the end of the recording were ignored", bytes(self.unread_bytes))?;
            }
            DamageKind::TooLarge => {
                write!(
                    f,
                    "the session does not fit into memory: read up to byte {}, the last {} are not read",
                    self.at_byte,
                    bytes(self.unread_bytes)
                )?;
            }
        }
        match (self.unread_chunks, self.unread_events) {
            (0, _) => Ok(()),
            (1, events) => write!(f, ", among them 1 whole chunk with {events} events"),
            (chunks, events) => write!(f, ", among them {chunks} whole chunks with {events} events"),
        }
    }
}

fn bytes(count: u64) -> String {
    if count == 1 { "1 byte".into() } else { format!("{count} bytes") }
}
