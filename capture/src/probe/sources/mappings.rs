//! Notices executable files that recorded processes map while they run, such as libraries that are loaded later.
//!
//! The kernel reports each such mapping through `perf_event_open(2)`: a counter that counts nothing, one on each CPU,
//! whose buffer gets a record for every file that is mapped with the right to execute. A process that maps nothing has
//! no cost.

use std::{
    fs::File,
    io,
    os::fd::{AsFd as _, FromRawFd as _},
    sync::atomic::Ordering,
};

use crate::probe::kernel::SharedWords;

/// Pages of data in each buffer; a power of two. Starting a program takes some ten records of 100 bytes.
const PAGES: usize = 16;
const PAGE: usize = 4096;
/// Words in which the kernel stores how far it has written, and longpole how far it has read (`struct
/// perf_event_mmap_page`).
const HEAD_WORD: usize = 1024 / 8;
const TAIL_WORD: usize = 1032 / 8;
const FIRST_WORD: usize = PAGE / 8;
const DATA_WORDS: usize = PAGES * PAGE / 8;
/// `PERF_RECORD_MMAP2` and `PERF_RECORD_LOST`.
const MAPPED: u32 = 10;
const LOST: u32 = 2;
/// Number of words that precede the path in the record of a mapping: header, process and thread, address, length,
/// offset, device, inode, inode generation, protection.
const BEFORE_PATH: usize = 9;
/// Longest path that the kernel writes.
const MAX_PATH: usize = 4096;

/// A file that a process has mapped, or memory without a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NewMapping {
    /// The process; 0: mappings were missed, of any process.
    pub pid: u32,
    /// Time of the mapping (`CLOCK_MONOTONIC` nanoseconds).
    pub time_ns: u64,
    /// First address.
    pub start: u64,
    /// First address after the mapping.
    pub end: u64,
    /// Offset in the file at which the mapping begins.
    pub file_offset: u64,
    /// The file's inode; 0: there is no file.
    pub inode: u64,
    /// Path as the kernel gives it. It is not checked, so it is only a hint.
    pub path: Vec<u8>,
}

/// All CPUs' buffers.
pub(crate) struct Mappings {
    buffers: Vec<Buffer>,
    /// Mappings may have been missed up to this time, on a CPU that had no buffer; `None`: none since the last `take`.
    missed_ns: Option<u64>,
}

struct Buffer {
    cpu: u32,
    words: SharedWords,
    /// Keeps the counter alive.
    _counter: File,
}

impl Mappings {
    /// Watches these CPUs from now on. A CPU that is offline is skipped.
    pub(crate) fn watch(cpus: u32) -> io::Result<Mappings> {
        let mut buffers = Vec::new();
        let mut first_error = None;
        for cpu in 0..cpus {
            match Buffer::open(cpu) {
                Ok(buffer) => buffers.push(buffer),
                Err(error) if error.raw_os_error() == Some(libc::ENODEV) => {}
                Err(error) => first_error = first_error.or(Some(error)),
            }
        }
        match first_error {
            Some(error) => Err(error),
            None => Ok(Mappings { buffers, missed_ns: None }),
        }
    }

    /// Watches CPUs that have come online since, too. Mappings made there until now were missed.
    pub(crate) fn keep_up(&mut self, online: &[u32], now_ns: u64) {
        self.buffers.retain(|buffer| online.contains(&buffer.cpu));
        for &cpu in online {
            if self.buffers.iter().any(|buffer| buffer.cpu == cpu) {
                continue;
            }
            match Buffer::open(cpu) {
                Ok(buffer) => {
                    self.buffers.push(buffer);
                    self.missed_ns = Some(now_ns);
                }
                Err(error) => log::debug!("mappings on CPU {cpu} are not seen: {error}"),
            }
        }
    }

    /// Mappings since the last call, of processes for which `wanted` is true.
    pub(crate) fn take(&mut self, wanted: &dyn Fn(u32) -> bool) -> Vec<NewMapping> {
        let missed = self.missed_ns.take();
        let mut taken: Vec<NewMapping> =
            missed.map(|time_ns| NewMapping { time_ns, ..NewMapping::default() }).into_iter().collect();
        for buffer in &self.buffers {
            buffer.take(wanted, &mut taken);
        }
        taken
    }
}

impl Buffer {
    fn open(cpu: u32) -> io::Result<Buffer> {
        let attributes = attributes();
        let number = i32::try_from(cpu).map_err(|_| io::ErrorKind::InvalidInput)?;
        const CLOSE_ON_EXEC: libc::c_ulong = 8;
        // SAFETY: the attributes are there, and contain their length; the rest are numbers.
        let number = unsafe {
            libc::syscall(libc::SYS_perf_event_open, attributes.as_ptr(), -1, number, -1, CLOSE_ON_EXEC)
        };
        let number = i32::try_from(number).unwrap_or(-1);
        if number < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: a new descriptor with no other owner.
        let counter = unsafe { File::from_raw_fd(number) };
        let words = SharedWords::map(counter.as_fd(), FIRST_WORD + DATA_WORDS)?;
        Ok(Buffer { cpu, words, _counter: counter })
    }

    fn word(&self, at: usize) -> u64 {
        self.words.word(at).map_or(0, |word| word.load(Ordering::Relaxed))
    }

    fn take(&self, wanted: &dyn Fn(u32) -> bool, taken: &mut Vec<NewMapping>) {
        let (Some(head), Some(tail)) = (self.words.word(HEAD_WORD), self.words.word(TAIL_WORD)) else {
            return;
        };
        let head = head.load(Ordering::Acquire);
        let mut at = tail.load(Ordering::Relaxed);
        while at < head {
            let record =
                |word: usize| self.word(FIRST_WORD + ((at / 8) as usize).wrapping_add(word) % DATA_WORDS);
            let header = record(0);
            let words = usize::from((header >> 48) as u16) / 8;
            if words == 0 {
                // Never happens; without a length the next record cannot be found.
                at = head;
                break;
            }
            taken.extend(mapping(words, &record, wanted));
            at = at.saturating_add(words as u64 * 8);
        }
        tail.store(at, Ordering::Release);
    }
}

/// Decodes a record of `words` words; `None` if it is no mapping of a wanted process.
fn mapping(words: usize, record: &dyn Fn(usize) -> u64, wanted: &dyn Fn(u32) -> bool) -> Option<NewMapping> {
    let time_ns = record(words - 1);
    match record(0) as u32 {
        LOST => Some(NewMapping { time_ns, ..NewMapping::default() }),
        MAPPED if words > BEFORE_PATH => {
            let pid = record(1) as u32;
            if !wanted(pid) {
                return None;
            }
            let mut path = Vec::new();
            for word in BEFORE_PATH..(words - 1).min(BEFORE_PATH + MAX_PATH / 8) {
                path.extend_from_slice(&record(word).to_le_bytes());
            }
            path.truncate(path.iter().position(|&byte| byte == 0).unwrap_or(path.len()));
            let (start, file_offset, inode) = (record(2), record(4), record(6));
            let end = start.saturating_add(record(3));
            Some(NewMapping { pid, time_ns, start, end, file_offset, inode, path })
        }
        _ => None,
    }
}

/// Makes a `struct perf_event_attr` of version 5, which every supported kernel knows.
fn attributes() -> [u8; 112] {
    const SOFTWARE: u32 = 1;
    const NOTHING_COUNTED: u64 = 9;
    const WITH_TIME: u64 = 1 << 2;
    // Executable mappings, with inodes (`mmap`, `mmap2`); `sample_id_all`: times in records that are no samples; `use_clockid`.
    const FLAGS: u64 = 1 << 8 | 1 << 18 | 1 << 23 | 1 << 25;
    let mut attributes = [0; 112];
    let mut put = |at: usize, bytes: &[u8]| attributes[at..at + bytes.len()].copy_from_slice(bytes);
    put(0, &SOFTWARE.to_ne_bytes());
    put(4, &112u32.to_ne_bytes());
    put(8, &NOTHING_COUNTED.to_ne_bytes());
    put(24, &WITH_TIME.to_ne_bytes());
    put(40, &FLAGS.to_ne_bytes());
    put(92, &libc::CLOCK_MONOTONIC.to_ne_bytes());
    attributes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mapping_record_is_decoded_with_its_time() {
        let path = *b"/lib/plugin.so\0\0";
        let word = |at: usize| u64::from_le_bytes(path[at..at + 8].try_into().expect("8 bytes"));
        let header = u64::from(MAPPED) | (12 * 8) << 48;
        let record = [header, 77 | 78 << 32, 0x1000, 0x2000, 0x500, 8, 99, 1, 5, word(0), word(8), 123_456];
        let read = |at: usize| record[at];
        let expected = NewMapping {
            pid: 77,
            time_ns: 123_456,
            start: 0x1000,
            end: 0x3000,
            file_offset: 0x500,
            inode: 99,
            path: b"/lib/plugin.so".to_vec(),
        };
        assert_eq!(mapping(12, &read, &|pid| pid == 77), Some(expected));
        assert_eq!(mapping(12, &read, &|pid| pid == 78), None);
        assert_eq!(mapping(3, &|at| [u64::from(MAPPED), 77, 5][at], &|_| true), None, "cut short");
        let lost = mapping(4, &|at| [u64::from(LOST), 1, 2, 99][at], &|_| false);
        assert_eq!(lost.map(|lost| (lost.pid, lost.time_ns)), Some((0, 99)));
    }

    /// A mapping that longpole's own process makes with the right to execute is reported.
    #[test]
    fn a_new_executable_mapping_is_reported_once() {
        let mappings = match aya::util::nr_cpus() {
            Ok(cpus) => Mappings::watch(cpus.get()),
            Err((_, error)) => Err(error),
        };
        let mut mappings = match mappings {
            Ok(mappings) => mappings,
            Err(error) => return println!("SKIP a_new_executable_mapping_is_reported_once: {error}"),
        };
        let own = std::process::id();
        let file = File::open("/proc/self/exe").expect("program");
        let (rights, kind) = (libc::PROT_READ | libc::PROT_EXEC, libc::MAP_PRIVATE);
        use std::os::fd::AsRawFd as _;
        let before_ns = crate::probe::now_ns();
        // SAFETY: a new mapping of a file that is open, at an address of the kernel's choice.
        let at = unsafe { libc::mmap(std::ptr::null_mut(), PAGE, rights, kind, file.as_raw_fd(), 0) };
        assert_ne!(at, libc::MAP_FAILED);
        // SAFETY: the mapping just made.
        unsafe { libc::munmap(at, PAGE) };
        let after_ns = crate::probe::now_ns();
        let told = mappings.take(&|pid| pid == own);
        let name = std::fs::read_link("/proc/self/exe").expect("name");
        let name = name.file_name().expect("name").as_encoded_bytes();
        let ours = told.iter().find(|one| one.path.ends_with(name) && one.time_ns >= before_ns);
        let ours = ours.unwrap_or_else(|| panic!("{told:?}"));
        assert!(ours.time_ns <= after_ns && ours.pid == own, "{ours:?}");
        let inode = std::os::unix::fs::MetadataExt::ino(&file.metadata().expect("metadata"));
        assert_eq!((ours.start, ours.end - ours.start, ours.inode), (at as u64, PAGE as u64, inode));
        assert_eq!(mappings.take(&|_| true).iter().filter(|one| one.pid == own).count(), 0, "each once");
        // A CPU goes offline and comes back: mappings made there in between were missed.
        let all: Vec<u32> = mappings.buffers.iter().map(|buffer| buffer.cpu).collect();
        mappings.keep_up(&all[1..], 5);
        assert_eq!((mappings.buffers.len(), mappings.missed_ns), (all.len() - 1, None));
        mappings.keep_up(&all, 6);
        assert_eq!(mappings.buffers.len(), all.len());
        let missed = NewMapping { time_ns: 6, ..NewMapping::default() };
        assert_eq!(mappings.take(&|_| false), [missed]);
        assert_eq!(mappings.take(&|_| false), []);
    }
}
