//! Reads sessions. The file header has the version; the module of that version reads the rest.

use super::v1::{self, FileHeader, FileLimits, Outline};
use super::{SessionError, SessionInfo};
use engine::event::Recording;
use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom};
use std::path::Path;

/// Whether a file that starts with these bytes claims to be a session. 8 bytes are enough. Fewer bytes are accepted if
/// a session begins with them.
pub fn is_session(start: &[u8]) -> bool {
    let length = start.len().min(v1::MAGIC.len());
    length > 0 && start[..length] == v1::MAGIC[..length]
}

/// Reads a session file up to its last complete chunk.
pub fn read(path: &Path) -> Result<(Recording, SessionInfo), SessionError> {
    read_from(BufReader::with_capacity(1 << 20, File::open(path)?))
}

/// Reads a session from any source, from its first byte.
pub fn read_from<R: Read + Seek>(mut source: R) -> Result<(Recording, SessionInfo), SessionError> {
    let (header, file_bytes) = begin(&mut source)?;
    v1::read(source, &header, file_bytes, limits())
}

/// Reads the index of a session, so that a part of the session can be read without the rest. `None` if there is no
/// complete index.
pub fn outline<R: Read + Seek>(mut source: R) -> Result<Option<Outline<R>>, SessionError> {
    let (header, file_bytes) = begin(&mut source)?;
    Ok(Outline::read(source, header, file_bytes, limits())?)
}

fn limits() -> FileLimits {
    FileLimits { events: event_budget(), ..FileLimits::FILE }
}

/// Reads the file header. Also returns the size of the file in bytes.
fn begin<R: Read + Seek>(source: &mut R) -> Result<(FileHeader, u64), SessionError> {
    let file_bytes = source.seek(SeekFrom::End(0))?;
    source.seek(SeekFrom::Start(0))?;
    if file_bytes == 0 {
        return Err(SessionError::Empty);
    }
    let mut start = Vec::with_capacity(FileHeader::BYTES);
    source.by_ref().take(FileHeader::BYTES as u64).read_to_end(&mut start)?;
    if !is_session(&start) {
        return Err(SessionError::Foreign);
    }
    let Ok(start) = <[u8; FileHeader::BYTES]>::try_from(start.as_slice()) else {
        return Err(SessionError::HeaderCut { bytes: file_bytes });
    };
    let header = FileHeader::decode(&start).ok_or(SessionError::HeaderCorrupt)?;
    match header.major {
        1 if header.abi_version != probe_abi::ABI_VERSION => {
            Err(SessionError::Layout { found: header.abi_version, known: probe_abi::ABI_VERSION })
        }
        1 => Ok((header, file_bytes)),
        0 => Err(SessionError::HeaderCorrupt),
        major => Err(SessionError::Newer { major }),
    }
}

/// Largest number of events that may be read: the number that fits into half of the free memory. The engine needs the
/// other half.
fn event_budget() -> u64 {
    const WITHOUT_PROC: u64 = 1 << 26;
    match free_memory() {
        Some(bytes) => (bytes / 2 / size_of::<probe_abi::Record>() as u64).max(1 << 20),
        None => WITHOUT_PROC,
    }
}

/// Memory that the machine could give to programs now, in bytes (`MemAvailable`); `None` if it cannot be read.
pub fn free_memory() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kib = line.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok()?;
    Some(kib.saturating_mul(1024))
}
