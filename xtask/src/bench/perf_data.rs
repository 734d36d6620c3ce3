//! Writes addresses as a recording of perf, for `perf script`. The format is that of Linux's
//! tools/perf/Documentation/perf.data-file-format.txt. One process has the binary mapped where it is linked, with one
//! sample for each address.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::command;

const PROCESS: u32 = 4_242;
const MAPPED: u32 = 1;
const NAMED: u32 = 3;
const SAMPLED: u32 = 9;
/// Each sample has the address, and the process and thread.
const SAMPLE_TYPE: u64 = 1 | 1 << 1;
/// Records are about the program's own code.
const USER: u16 = 2;
const HEADER_BYTES: u64 = 104;
/// Size of `struct perf_event_attr` in its version 5, in bytes.
const ATTRIBUTE_BYTES: u64 = 112;

/// Writes the addresses that are in `binary`. `addresses` is a text file with one hexadecimal number in each line.
pub fn write(binary: &Path, addresses: &Path, output: &Path) -> Result<()> {
    let mut records = Vec::new();
    let mut name = PROCESS.to_le_bytes().repeat(2);
    name.extend(b"bench\0\0\0");
    record(&mut records, NAMED, &name);
    for Segment { address, bytes, offset } in code(binary)? {
        let mut mapping = PROCESS.to_le_bytes().repeat(2);
        for number in [address, bytes, offset] {
            mapping.extend(number.to_le_bytes());
        }
        mapping.extend(binary.as_os_str().as_encoded_bytes());
        mapping.resize((mapping.len() + 1).next_multiple_of(8), 0);
        record(&mut records, MAPPED, &mapping);
    }
    for line in fs::read_to_string(addresses)?.lines() {
        let digits = line.trim().trim_start_matches("0x");
        let address = u64::from_str_radix(digits, 16).with_context(|| format!("no address: {line}"))?;
        let mut sample = address.to_le_bytes().to_vec();
        sample.extend(PROCESS.to_le_bytes().repeat(2));
        record(&mut records, SAMPLED, &sample);
    }
    let mut file = b"PERFILE2".to_vec();
    let ids = HEADER_BYTES;
    let attributes = (ids, ATTRIBUTE_BYTES + 16);
    let data = (attributes.0 + attributes.1, records.len() as u64);
    for number in [HEADER_BYTES, attributes.1, attributes.0, attributes.1, data.0, data.1, 0, 0, 0, 0, 0, 0] {
        file.extend(number.to_le_bytes());
    }
    let mut event = [0; ATTRIBUTE_BYTES as usize];
    let mut put = |at: usize, bytes: &[u8]| event[at..at + bytes.len()].copy_from_slice(bytes);
    // The event is a software clock.
    put(0, &1u32.to_le_bytes());
    put(4, &(ATTRIBUTE_BYTES as u32).to_le_bytes());
    put(16, &1u64.to_le_bytes());
    put(24, &SAMPLE_TYPE.to_le_bytes());
    file.extend(event);
    // Records have no event ids, because there is only one event.
    file.extend([ids, 0].map(u64::to_le_bytes).concat());
    file.extend(records);
    fs::write(output, file)?;
    Ok(())
}

fn record(records: &mut Vec<u8>, kind: u32, content: &[u8]) {
    let bytes = u16::try_from(content.len() + 8).unwrap_or(u16::MAX);
    records.extend(kind.to_le_bytes());
    records.extend(USER.to_le_bytes());
    records.extend(bytes.to_le_bytes());
    records.extend(content);
}

/// A stretch of code: its linked address, its size, and its offset in the file.
#[derive(Debug, PartialEq)]
struct Segment {
    address: u64,
    bytes: u64,
    offset: u64,
}

fn code(binary: &Path) -> Result<Vec<Segment>> {
    let text = command::text(Command::new("readelf").arg("-lW").arg(binary))?;
    let found = segments(&text);
    if found.is_empty() {
        bail!("readelf shows no code in {}", binary.display());
    }
    Ok(found)
}

/// The code segments in the output of `readelf -lW`: `LOAD offset address physical bytes memory flags align`.
fn segments(text: &str) -> Vec<Segment> {
    let lines = text.lines().filter_map(|line| {
        let (kind, rest) = line.trim().split_once(' ')?;
        let words: Vec<&str> = rest.split_whitespace().collect();
        let flags = words.get(5..words.len().checked_sub(1)?)?;
        let number = |at: usize| {
            words.get(at).and_then(|word| u64::from_str_radix(word.trim_start_matches("0x"), 16).ok())
        };
        let segment = Segment { address: number(1)?, bytes: number(4)?, offset: number(0)? };
        (kind == "LOAD" && flags.iter().any(|flag| flag.contains('E'))).then_some(segment)
    });
    lines.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_executable_segments_count_as_code() {
        let text = "  Type   Offset   VirtAddr           PhysAddr           FileSiz  MemSiz   Flg Align
  LOAD           0x000000 0x0000000000000000 0x0000000000000000 0x0005f8 0x0005f8 R   0x1000
  LOAD           0x001000 0x0000000000002000 0x0000000000002000 0x000165 0x000165 R E 0x1000
  GNU_STACK      0x000000 0x0000000000000000 0x0000000000000000 0x000000 0x000000 RWE 0x10";
        assert_eq!(segments(text), [Segment { address: 0x2000, bytes: 0x165, offset: 0x1000 }]);
    }
}
