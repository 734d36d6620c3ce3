//! Why a file cannot be read as a session at all. Damage after the header is not an error, but a [`super::Damage`].

use std::io;

/// Why a file cannot be read as a session.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// Opening or reading failed.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// The file is empty.
    #[error("the file is empty")]
    Empty,
    /// The file does not begin as a session does.
    #[error("this is not a longpole session")]
    Foreign,
    /// The file ends inside its header.
    #[error("the session is cut after {bytes} bytes, within its header")]
    HeaderCut {
        /// Length of the file, in bytes.
        bytes: u64,
    },
    /// The file header's checksum is wrong.
    #[error("the session's header is damaged")]
    HeaderCorrupt,
    /// A newer longpole has written the file, in a format with another major version.
    #[error("the session has format version {major}, this longpole reads version 1")]
    Newer {
        /// The file's major version.
        major: u16,
    },
    /// The records have a layout that this longpole does not read.
    #[error("the session's records have layout {found}, this longpole knows layout {known}")]
    Layout {
        /// The file's [`probe_abi::ABI_VERSION`].
        found: u32,
        /// The version that this longpole reads.
        known: u32,
    },
}

impl SessionError {
    /// What the user can do about the error.
    pub fn hint(&self) -> &'static str {
        match self {
            SessionError::Io(error) => match error.kind() {
                io::ErrorKind::NotFound => "check the name; `longpole record -o FILE` makes a recording",
                io::ErrorKind::PermissionDenied => {
                    "a recording belongs to the user who made it: run as that user or with sudo"
                }
                io::ErrorKind::IsADirectory => "give a file in it",
                _ => "check the file and its disk",
            },
            SessionError::Empty | SessionError::HeaderCut { .. } => {
                "record again: the recording ended before anything was saved"
            }
            SessionError::Foreign => {
                "give a file made by `longpole record`, or a program JSON ({\"format\":\"longpole-program\",…})"
            }
            SessionError::HeaderCorrupt => "copy the file again from where it was recorded",
            SessionError::Newer { .. } => "use the longpole that recorded it, or a newer one",
            SessionError::Layout { found, known } => {
                if found > known {
                    "use the longpole that recorded it, or a newer one"
                } else {
                    "use the longpole that recorded it"
                }
            }
        }
    }
}
