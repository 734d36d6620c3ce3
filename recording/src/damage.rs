//! Describes the damage of a session file that could not be read to its end.

use std::fmt;

/// Where reading a session file stopped, and what the unread bytes contain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// Why reading stopped.
    pub kind: DamageKind,
    /// Offset of the first byte that was not read.
    pub at_byte: u64,
    /// Number of bytes from `at_byte` to the end of the file.
    pub unread_bytes: u64,
    /// Number of complete chunks in the unread bytes.
    pub unread_chunks: u64,
    /// Number of events in these chunks, according to the chunks' headers.
    pub unread_events: u64,
}

/// Why reading a session file stopped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DamageKind {
    /// The file ends after a complete chunk, but the end of the recording is missing: the writer was killed.
    NoEnd,
    /// The file ends in the middle of a chunk.
    Cut {
        /// Number of bytes of that chunk that are missing, at least.
        missing_bytes: u64,
    },
    /// The content of a chunk differs from what was written.
    Corrupt {
        /// How the difference was noticed.
        reason: &'static str,
    },
    /// The file has bytes after the end of the recording.
    Trailing,
    /// There is not enough memory for the content of the remaining chunks.
    TooLarge,
}

impl fmt::Display for Damage {
    /// Writes one sentence without a full stop.
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
