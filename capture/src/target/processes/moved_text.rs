//! Programs that copy their instructions to other memory and map that memory in place of the file, mostly to have huge
//! pages. The kernel then shows no file for the instructions, but adjacent mappings of the file do, and the bytes
//! agree.

use super::proc_text::MapLine;
use super::process::Process;
use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::PathBuf;
use symbols::Outline;

/// Largest number of adjacent mappings without a file that are skipped.
const MOST_PIECES: usize = 16;
/// Bytes compared at each place, and number of places.
const COMPARED: usize = 64;
const PLACES: u64 = 5;

/// The file from which memory without a file was copied.
pub(super) struct Origin<'a> {
    /// A mapping of the file.
    pub of: MapLine<'a>,
    /// A path that opens the file.
    pub open_path: PathBuf,
    /// Offset in the file of the memory's first byte.
    pub file_offset: u64,
}

/// The file from which the instructions in mapping `index` were copied; `None`: they are no copy, or that is unknown. `all`:
/// the process's mappings in order of address.
pub(super) fn origin<'a>(process: &Process, all: &[MapLine<'a>], index: usize) -> Option<Origin<'a>> {
    let code = all.get(index)?;
    let near = [before(all, index), after(all, index)];
    near.into_iter().flatten().find_map(|neighbour| {
        let folder = PathBuf::from(format!("/proc/{}", process.pid));
        let open_path = folder.join(format!("map_files/{:x}-{:x}", neighbour.start, neighbour.end));
        let (file, outline) = Outline::open(&open_path)?;
        let bias = outline.bias_of(neighbour.start, neighbour.file_offset)?;
        let file_offset = outline.code_offset_of(code.start.wrapping_sub(bias))?;
        let memory = File::open(folder.join("mem")).ok()?;
        let is_copy = agree(&file, file_offset, &memory, code.start, code.end.saturating_sub(code.start));
        is_copy.then_some(Origin { of: neighbour, open_path, file_offset })
    })
}

/// The mapping of a file that ends where this mapping begins; mappings without a file may lie between them.
fn before<'a>(all: &[MapLine<'a>], index: usize) -> Option<MapLine<'a>> {
    let lines = all.get(..index)?.iter().rev();
    neighbour(lines, all.get(index)?.start, |line| (line.end, line.start))
}

/// The mapping of a file that begins where this mapping ends; mappings without a file may lie between them.
fn after<'a>(all: &[MapLine<'a>], index: usize) -> Option<MapLine<'a>> {
    neighbour(all.iter().skip(index + 1), all.get(index)?.end, |line| (line.start, line.end))
}

/// The first mapping of a file in a sequence without holes from `edge` on. `ends`: a mapping's near and far end.
fn neighbour<'m, 'a: 'm>(
    lines: impl Iterator<Item = &'m MapLine<'a>>,
    mut edge: u64,
    ends: fn(&MapLine) -> (u64, u64),
) -> Option<MapLine<'a>> {
    for line in lines.take(MOST_PIECES) {
        let (near, far) = ends(line);
        if near != edge {
            return None;
        }
        if line.inode != 0 {
            return Some(*line);
        }
        edge = far;
    }
    None
}

/// Whether memory and file are the same at some places; places beyond the file's end do not count.
fn agree(file: &File, file_offset: u64, memory: &File, start: u64, size: u64) -> bool {
    let (mut in_file, mut in_memory) = ([0; COMPARED], [0; COMPARED]);
    let mut same = 0;
    for place in (0..PLACES).map(|number| size / PLACES * number) {
        let Some(offset) = file_offset.checked_add(place) else { return false };
        if file.read_exact_at(&mut in_file, offset).is_err() {
            continue;
        }
        if memory.read_exact_at(&mut in_memory, start.wrapping_add(place)).is_err() || in_file != in_memory {
            return false;
        }
        same += 1;
    }
    same > 0
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAPS: &str = "\
400000-401000 r--p 00000000 fe:01 10 /bin/prog
401000-500000 r-xp 00000000 00:00 0
500000-600000 r-xp 00000000 00:00 0
600000-601000 r--p 00200000 fe:01 10 /bin/prog
700000-701000 r-xp 00000000 00:00 0
";

    #[test]
    fn the_text_next_to_memory_without_a_file_is_compared() {
        let all: Vec<MapLine> = MAPS.lines().filter_map(MapLine::parse).collect();
        let start = |line: Option<MapLine>| line.map(|line| line.start);
        for index in [1, 2] {
            assert_eq!(start(before(&all, index)), Some(0x40_0000));
            assert_eq!(start(after(&all, index)), Some(0x60_0000));
        }
        assert!(before(&all, 4).is_none() && after(&all, 4).is_none() && before(&all, 0).is_none());
        assert!(after(&all, 9).is_none());
    }

    #[test]
    fn memory_with_other_instructions_is_no_copy_of_the_file() {
        let (mut file, mut memory) =
            (tempfile::tempfile().expect("file"), tempfile::tempfile().expect("file"));
        let mut bytes: Vec<u8> = (0..4096u32).map(|number| (number % 251) as u8).collect();
        std::io::Write::write_all(&mut file, &bytes).expect("written");
        std::io::Write::write_all(&mut memory, &bytes[1000..]).expect("written");
        assert!(agree(&file, 1000, &memory, 0, 3000) && !agree(&file, 1001, &memory, 0, 3000));
        assert!(!agree(&file, 5000, &memory, 0, 3000), "nothing to compare");
        bytes[1000 + 600] ^= 1;
        let mut changed = tempfile::tempfile().expect("file");
        std::io::Write::write_all(&mut changed, &bytes[1000..]).expect("written");
        assert!(!agree(&file, 1000, &changed, 0, 3000));
    }
}
