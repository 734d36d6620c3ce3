//! Makes an input of the targets `session` and `report` from a recording: the same file with its chunks unpacked, since bytes
//! changed in packed data rarely unpack. usage: plain RECORDING FILE

use std::error::Error;
use std::fs;

/// Bytes of the headers of file and chunk: `recording/src/v1/mod.rs` describes them.
const FILE_HEADER: usize = 20;
const CHUNK_HEADER: usize = 44;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [from, to] = arguments.as_slice() else { return Err("usage: plain RECORDING FILE".into()) };
    let file = fs::read(from)?;
    let (header, mut rest) = file.split_at_checked(FILE_HEADER).ok_or("no recording")?;
    let mut plain = header.to_vec();
    while let Some((header, after)) = rest.split_at_checked(CHUNK_HEADER) {
        let number =
            |at: usize| u32::from_le_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
        let (stored, raw) = (number(8) as usize, number(12) as usize);
        let (payload, after) = after.split_at_checked(stored).ok_or("a chunk is cut")?;
        let is_packed = header[6] & 1 == 1;
        let payload = if is_packed { zstd::bulk::decompress(payload, raw)? } else { payload.to_vec() };
        let mut header = header.to_vec();
        header[6] &= !1;
        header[8..12].copy_from_slice(&u32::try_from(payload.len())?.to_le_bytes());
        plain.extend(header);
        plain.extend(payload);
        rest = after;
    }
    // The targets put the checksums right.
    fs::write(to, plain)?;
    Ok(())
}
