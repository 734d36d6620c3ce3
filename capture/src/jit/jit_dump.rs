//! jitdump: the binary file in which JIT compilers tell perf of their code, with lines. They map its first page executable,
//! which is how it is found among a process's mappings.
//!
//! Layout: the kernel's `tools/perf/Documentation/jitdump-specification.txt`, version 1.

use super::code_map::{Code, CodeLine, JitCodeMap};
use std::collections::HashMap;
use std::io::Read;
use symbols::{demangled, safe_bytes};

/// Most bytes read.
const MOST_BYTES: u64 = 1 << 30;
/// Largest record: code and all.
const MOST_RECORD: usize = 64 << 20;
/// Most lines kept of all code together.
const MOST_LINES: usize = 4_000_000;

/// Reads a dump up to the first damage; `None` if it is not one.
pub fn read(source: impl Read) -> Option<JitCodeMap> {
    let mut source = source.take(MOST_BYTES);
    let mut head = [0u8; 40];
    source.read_exact(&mut head).ok()?;
    if u32_at(&head, 0)? != 0x4a69_5444 || u32_at(&head, 4)? != 1 {
        return None;
    }
    // The header may have grown.
    let more = u64::from(u32_at(&head, 8)?).checked_sub(head.len() as u64)?;
    std::io::copy(&mut source.by_ref().take(more), &mut std::io::sink()).ok()?;
    let mut dump = Dump::default();
    let mut record = Vec::new();
    loop {
        let mut head = [0u8; 16];
        if source.read_exact(&mut head).is_err() {
            return Some(dump.map);
        }
        let (Some(kind), Some(size)) = (u32_at(&head, 0), u32_at(&head, 4)) else { return Some(dump.map) };
        let Some(size) = (size as usize).checked_sub(head.len()).filter(|&size| size <= MOST_RECORD) else {
            return Some(dump.map);
        };
        record.clear();
        let read = source.by_ref().take(size as u64).read_to_end(&mut record);
        if read.unwrap_or(0) < size {
            return Some(dump.map);
        }
        if dump.record(kind, &record).is_none() {
            dump.map.refused = dump.map.refused.saturating_add(1);
        }
    }
}

#[derive(Default)]
struct Dump {
    map: JitCodeMap,
    /// Lines come before the code that they belong to.
    lines: HashMap<u64, Vec<CodeLine>>,
    line_count: usize,
}

impl Dump {
    fn record(&mut self, kind: u32, body: &[u8]) -> Option<()> {
        match kind {
            // Code: pid, tid (u32), vma, address, size, number (u64), name, bytes.
            0 => {
                let (address, size) = (u64_at(body, 16)?, u64_at(body, 24)?);
                let text = body.get(40..)?.split(|&byte| byte == 0).next()?;
                let code = Code {
                    start: address,
                    end: address.checked_add(size)?,
                    name: demangled(&String::from_utf8_lossy(text.get(..text.len().min(16_000))?)),
                    lines: self.lines.remove(&address).unwrap_or_default().into(),
                };
                self.map.add(code);
            }
            // Moved: pid, tid, vma, old address, new address.
            1 => self.map.moved(u64_at(body, 16)?, u64_at(body, 24)?),
            // Lines: address, count, then for each address, line and discriminator (i32), file.
            2 => {
                let (address, count) = (u64_at(body, 0)?, u64_at(body, 8)?);
                let mut lines: Vec<CodeLine> = Vec::new();
                let mut at = 16usize;
                for _ in 0..count {
                    if self.line_count >= MOST_LINES {
                        break;
                    }
                    let (place, line) = (u64_at(body, at)?, u32_at(body, at.checked_add(8)?)?);
                    let text = body.get(at.checked_add(16)?..)?.split(|&byte| byte == 0).next()?;
                    at = at.checked_add(16 + text.len() + 1)?;
                    // A byte 255 stands for the file before.
                    let file = match (text, lines.last()) {
                        ([0xff], Some((_, before, _))) => before.clone(),
                        _ => safe_bytes(text),
                    };
                    lines.push((place.saturating_sub(address), file, line));
                    self.line_count += 1;
                }
                lines.sort_by_key(|(place, ..)| *place);
                self.lines.insert(address, lines);
            }
            _ => {}
        }
        Some(())
    }
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(kind: u32, body: &[u8]) -> Vec<u8> {
        let mut bytes = kind.to_le_bytes().to_vec();
        bytes.extend((body.len() as u32 + 16).to_le_bytes());
        bytes.extend([0; 8]);
        bytes.extend(body);
        bytes
    }

    fn numbers(all: &[u64]) -> Vec<u8> {
        all.iter().flat_map(|number| number.to_le_bytes()).collect()
    }

    fn dump() -> Vec<u8> {
        let mut bytes = Vec::new();
        for number in [0x4a69_5444u32, 1, 40, 62, 0, 7] {
            bytes.extend(number.to_le_bytes());
        }
        bytes.extend([0; 16]);
        let mut lines = numbers(&[0x1000, 2]);
        for (place, line, file) in [(0x1000u64, 4u32, &b"a.java\0"[..]), (0x1010, 9, b"\xff\0")] {
            lines.extend(place.to_le_bytes());
            lines.extend(line.to_le_bytes());
            lines.extend([0; 4]);
            lines.extend(file);
        }
        bytes.extend(record(2, &lines));
        let mut load = numbers(&[0, 0, 0x1000, 0x20, 1]);
        load.extend(b"Shop.add\0code");
        bytes.extend(record(0, &load));
        bytes.extend(record(1, &numbers(&[0, 0, 0x1000, 0x5000, 0x20, 1])));
        bytes.extend(record(3, &[]));
        bytes
    }

    #[test]
    fn code_with_lines_that_moved() {
        let map = read(&dump()[..]).expect("a dump");
        let code = map.at(0x5015).expect("code");
        assert_eq!(code.name, "Shop.add");
        let frame = code.frame(0x5015).expect("a line");
        assert_eq!((frame.file.as_deref(), frame.line), (Some("a.java"), Some(9)));
        assert!(map.at(0x1000).is_none());
    }

    #[test]
    fn damage_ends_it() {
        let good = dump();
        for cut in 0..good.len() {
            let _ = read(&good[..cut]);
        }
        let mut random = 0x0123_4567_89ab_cdefu64;
        for _ in 0..3_000 {
            let mut bytes = good.clone();
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            let at = (random >> 20) as usize % bytes.len();
            bytes[at] = random as u8;
            let _ = read(&bytes[..]);
        }
        assert!(read(&b"not a dump, but forty bytes long, at least."[..]).is_none());
    }
}
