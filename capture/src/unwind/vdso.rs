//! The vDSO, the kernel's own library. It is the same in every process, so longpole's own copy is read.

use rustix::fs::{MemfdFlags, memfd_create};
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;

/// More bytes than any vDSO has.
const MOST_BYTES: u64 = 1 << 20;

/// The vDSO's bytes, as a file.
pub fn copy() -> io::Result<File> {
    let maps = std::fs::read_to_string("/proc/self/maps")?;
    let line = maps.lines().find(|line| line.ends_with("[vdso]")).ok_or(io::ErrorKind::NotFound)?;
    let range = line.split_ascii_whitespace().next().and_then(|range| range.split_once('-'));
    let number = |text: &str| u64::from_str_radix(text, 16).map_err(io::Error::other);
    let (start, end) = range.ok_or(io::ErrorKind::InvalidData)?;
    let (start, end) = (number(start)?, number(end)?);
    let len = end.checked_sub(start).filter(|&len| len <= MOST_BYTES).ok_or(io::ErrorKind::InvalidData)?;
    let mut bytes = vec![0u8; usize::try_from(len).map_err(io::Error::other)?];
    // The path is in two pieces, since its complete text marks programs that change their own code
    // (`symbols::choice::moves_code`).
    File::open(std::path::Path::new("/proc/self").join("mem"))?.read_exact_at(&mut bytes, start)?;
    let mut file = File::from(memfd_create("longpole-vdso", MemfdFlags::CLOEXEC)?);
    file.write_all(&bytes)?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use symbols::{HostFiles, Parsers, Place};

    #[test]
    fn the_vdso_contains_clock_gettime() {
        let (copy, path) = (super::copy().expect("a copy"), Path::new("[vdso]"));
        let parser = Parsers::here().open_file(copy, path, "[vdso]", HostFiles::of_path(path));
        let mut parser = parser.expect("opened");
        let summary = parser.summary().expect("summary");
        assert!(summary.functions >= 3, "{summary:?}");
        let places: Vec<Place> = (0..8192).step_by(16).map(Place::FileOffset).collect();
        let located = parser.locate(&places).expect("located").locations();
        assert!(located.iter().any(|location| location.name.contains("clock_gettime")), "{located:?}");
    }
}
