//! A process that runs a Go program, as far as its goroutines can be looked at.

use super::counts::Counts;
use super::look::Looker;
use crate::target::{Process, mapped};
use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use symbols::{GoRuntime, Outline, Parsers, open_plain};

/// The mark that Go puts into the data of each program (Go, `debug/buildinfo`), and the bytes in which it is.
const MARK: &[u8] = b"\xff Go buildinf:";
const MARK_WITHIN: u64 = 64 << 10;

/// A Go program that runs.
#[derive(Debug)]
pub struct GoProgram {
    memory: File,
    looker: Looker,
}

/// Why goroutines cannot be looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotLooked {
    /// The process runs no Go program, or has ended.
    NotGo,
    /// The program has no debug information.
    NoDebugInformation,
    /// longpole may not read the program's memory.
    NoRight,
}

impl GoProgram {
    /// The Go program that a process runs now.
    ///
    /// # Errors
    /// See [`NotLooked`].
    pub fn of(pid: u32, parsers: &Parsers) -> Result<GoProgram, NotLooked> {
        let process = Process::open(pid).map_err(|_| NotLooked::NotGo)?;
        let modules = mapped(&process).map_err(|_| NotLooked::NotGo)?;
        let main = modules.iter().find(|module| module.is_main).ok_or(NotLooked::NotGo)?;
        let range = main.ranges.first().ok_or(NotLooked::NotGo)?;
        let file = open_plain(&main.open_path).map_err(|_| NotLooked::NotGo)?;
        let outline = Outline::of(&file).ok_or(NotLooked::NotGo)?;
        if !is_go(&file, &outline) {
            return Err(NotLooked::NotGo);
        }
        let bias = outline.bias(range.start, range.file_offset).ok_or(NotLooked::NotGo)?;
        let runtime: Option<GoRuntime> = parsers.go_runtime(&file, &main.open_path).ok().flatten();
        let runtime = runtime.ok_or(NotLooked::NoDebugInformation)?;
        let memory = File::open(Path::new("/proc").join(pid.to_string()).join("mem"));
        Ok(GoProgram { memory: memory.map_err(|_| NotLooked::NoRight)?, looker: Looker::new(runtime, bias) })
    }

    /// Looks at the goroutines once and adds what they do. `None`: the process has ended, or runs another program.
    pub fn look(&mut self, counts: &mut Counts) -> Option<()> {
        let seen = self.looker.look(&self.memory)?;
        counts.add(&seen);
        Some(())
    }
}

/// Whether Go built the program.
fn is_go(file: &File, outline: &Outline) -> bool {
    outline.segments.iter().filter(|segment| !segment.executable).any(|segment| {
        let mut bytes = vec![0; segment.file_size.min(MARK_WITHIN) as usize];
        let read = file.read_at(&mut bytes, segment.offset).unwrap_or(0);
        bytes.get(..read).is_some_and(|bytes| bytes.windows(MARK.len()).any(|bytes| bytes == MARK))
    })
}
