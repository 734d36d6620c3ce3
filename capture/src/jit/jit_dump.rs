//! jitdump: the binary file in which JIT compilers describe their code to perf, with lines. They map its first page
//! executable, by which the file is found among a process's mappings.
//!
//! Layout: the kernel's `tools/perf/Documentation/jitdump-specification.txt`, version 1.

use super::history::{self, Code, CodeLine, JitHistory};
use std::collections::HashMap;
use std::io::Read;
use std::sync::Arc;
use symbols::safe_bytes;

/// Largest number of bytes that are read.
const MOST_BYTES: u64 = 1 << 30;
/// Largest record, code included.
const MOST_RECORD: usize = 64 << 20;
/// Largest number of pieces of code that are kept, in case they are moved.
const MOST_PIECES: usize = 4_000_000;
/// A header's flag: times are the CPU's own and cannot be compared with longpole's.
const ARCH_TIMES: u64 = 1;
/// Largest number of lines that are kept for all code together.
const MOST_LINES: usize = 4_000_000;

/// Reads a dump up to the first damaged record; `None` if the file is no dump.
pub fn read(source: impl Read, history: &mut JitHistory<'_>) -> Option<()> {
    let mut source = source.take(MOST_BYTES);
    let mut head = [0u8; 40];
    source.read_exact(&mut head).ok()?;
    if u32_at(&head, 0)? != 0x4a69_5444 || u32_at(&head, 4)? != 1 {
        return None;
    }
    // A newer version's header may be longer.
    let more = u64::from(u32_at(&head, 8)?).checked_sub(head.len() as u64)?;
    std::io::copy(&mut source.by_ref().take(more), &mut std::io::sink()).ok()?;
    let has_times = u64_at(&head, 32)? & ARCH_TIMES == 0;
    let mut dump = Dump { history, pieces: HashMap::new(), lines: HashMap::new(), line_count: 0 };
    let mut record = Vec::new();
    loop {
        let mut head = [0u8; 16];
        if source.read_exact(&mut head).is_err() {
            return Some(());
        }
        let (kind, size, time_ns) = (u32_at(&head, 0)?, u32_at(&head, 4)?, u64_at(&head, 8)?);
        let Some(size) = (size as usize).checked_sub(head.len()).filter(|&size| size <= MOST_RECORD) else {
            return Some(());
        };
        record.clear();
        let read = source.by_ref().take(size as u64).read_to_end(&mut record);
        if read.unwrap_or(0) < size {
            return Some(());
        }
        if dump.record(kind, if has_times { time_ns } else { 0 }, &record).is_none() {
            dump.history.refused = dump.history.refused.saturating_add(1);
        }
    }
}

struct Dump<'a, 'b> {
    history: &'a mut JitHistory<'b>,
    /// Pieces of code by first address.
    pieces: HashMap<u64, Arc<Code>>,
    /// Lines of code that has not come yet: they precede it in the file.
    lines: HashMap<u64, Vec<CodeLine>>,
    line_count: usize,
}

impl Dump<'_, '_> {
    fn record(&mut self, kind: u32, time_ns: u64, body: &[u8]) -> Option<()> {
        match kind {
            // Code: pid, tid (u32), vma, address, size, number (u64), name, bytes.
            0 => {
                let (address, size) = (u64_at(body, 16)?, u64_at(body, 24)?);
                let text = body.get(40..)?.split(|&byte| byte == 0).next()?;
                let code = Code {
                    start: address,
                    end: address.checked_add(size)?,
                    name: history::name(text.get(..text.len().min(16_000))?),
                    lines: self.lines.remove(&address).unwrap_or_default().into(),
                };
                self.add(time_ns, code);
            }
            // Moved: pid, tid, vma, old address, new address.
            1 => {
                let (from, to) = (u64_at(body, 16)?, u64_at(body, 24)?);
                let code = self.pieces.remove(&from)?;
                let end = code.end.wrapping_add(to.wrapping_sub(from));
                self.add(
                    time_ns,
                    Code { start: to, end, name: code.name.clone(), lines: Arc::clone(&code.lines) },
                );
            }
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
                    // A single byte 255 stands for the previous line's file.
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

    fn add(&mut self, time_ns: u64, code: Code) {
        let code = Arc::new(code);
        self.history.add(time_ns, &code);
        if self.pieces.len() < MOST_PIECES {
            self.pieces.insert(code.start, code);
        }
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
    use super::super::history::tests::names;
    use super::*;

    fn record(kind: u32, time_ns: u64, body: &[u8]) -> Vec<u8> {
        let mut bytes = kind.to_le_bytes().to_vec();
        bytes.extend((body.len() as u32 + 16).to_le_bytes());
        bytes.extend(time_ns.to_le_bytes());
        bytes.extend(body);
        bytes
    }

    fn numbers(all: &[u64]) -> Vec<u8> {
        all.iter().flat_map(|number| number.to_le_bytes()).collect()
    }

    fn dump(flags: u64) -> Vec<u8> {
        let mut bytes = Vec::new();
        for number in [0x4a69_5444u32, 1, 40, 62, 0, 7] {
            bytes.extend(number.to_le_bytes());
        }
        bytes.extend(numbers(&[0, flags]));
        let mut lines = numbers(&[0x1000, 2]);
        for (place, line, file) in [(0x1000u64, 4u32, &b"a.java\0"[..]), (0x1010, 9, b"\xff\0")] {
            lines.extend(place.to_le_bytes());
            lines.extend(line.to_le_bytes());
            lines.extend([0; 4]);
            lines.extend(file);
        }
        bytes.extend(record(2, 10, &lines));
        let load = |name: &[u8]| [numbers(&[0, 0, 0x1000, 0x20, 1]), name.to_vec()].concat();
        bytes.extend(record(0, 10, &load(b"Shop.add\0code")));
        bytes.extend(record(1, 20, &numbers(&[0, 0, 0x1000, 0x5000, 0x20, 1])));
        bytes.extend(record(3, 25, &[]));
        bytes.extend(record(0, 30, &load(b"Shop.sum\0code")));
        bytes
    }

    #[test]
    fn a_jitdump_s_names_moves_and_lines_are_read_with_their_times() {
        let wanted = [0x1015, 0x5015].into();
        let mut history = JitHistory::of(&wanted);
        read(&dump(0)[..], &mut history).expect("a dump");
        assert_eq!(names(&history, 0x5015), [(20, "Shop.add")]);
        assert_eq!(names(&history, 0x1015), [(10, "Shop.add"), (30, "Shop.sum")]);
        let (_, code) = &history.at(0x5015)[0];
        let frame = code.frame(0x5015).expect("a line");
        assert_eq!((frame.file.as_deref(), frame.line), (Some("a.java"), Some(9)));
        let mut history = JitHistory::of(&wanted);
        read(&dump(1)[..], &mut history).expect("a dump");
        assert_eq!(names(&history, 0x1015), [(0, "Shop.sum")], "another clock");
    }

    #[test]
    fn a_damaged_jitdump_never_panics_and_another_file_is_none() {
        let wanted = [0x1015, 0x5015].into();
        let read = |bytes: &[u8]| super::read(bytes, &mut JitHistory::of(&wanted));
        let good = dump(0);
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
