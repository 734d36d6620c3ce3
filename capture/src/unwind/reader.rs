//! Two threads: one finds where processes have code, the other reads unwind tables of binaries. The first takes
//! milliseconds and the second up to ten seconds for one binary, while the rings must be emptied.

use super::address_space::{CodeFound, look};
use super::binaries::{self, Binary, BinaryTables};
use super::told::Told;
use crate::probe::count_this_thread;
use crate::target::Code;
use rustc_hash::FxHashSet;
use std::fs::File;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, TryRecvError, channel};
use std::thread::Builder;
use std::time::Duration;
use symbols::FileKey;
use symbols::Parsers;

/// Largest number of binaries that are held open until their turn, since a process may have ended by then.
const MOST_OPEN: usize = 128;
/// Largest number of binaries that are remembered as passed on.
const MOST_SEEN: usize = 4096;
/// Niceness, as the ring reader's, since a process that is to be looked at may end soon.
const NICE: i32 = -10;

/// A question about a process that has run its program since `since_ns`.
#[derive(Debug)]
pub enum Ask {
    /// Asks for code besides `known`. New code may exist since `new_ns`, or since the reports in `told`.
    Look { pid: u32, since_ns: u64, new_ns: u64, known: Arc<Vec<Code>>, told: Vec<Told> },
    /// Asks for the unwind tables of this code.
    Tables { pid: u32, since_ns: u64, code: Code },
}

/// The answer to a question.
#[derive(Debug)]
pub enum ReaderAnswer {
    /// The places where the process has code.
    Code { pid: u32, since_ns: u64, seen: CodeFound },
    /// The tables; `None`: there are none, or they cannot be read.
    Tables { pid: u32, since_ns: u64, code: Code, binary: Option<Arc<Binary>> },
}

/// The asking end of both threads. When it is dropped, the threads end after their present work.
pub struct Reader {
    asks: Sender<Ask>,
    told: Receiver<ReaderAnswer>,
}

impl Reader {
    /// Starts the threads.
    pub fn start(parsers: Parsers) -> io::Result<Reader> {
        let (asks, asked) = channel();
        let (tell, told) = channel();
        let (opened, to_read) = channel();
        let open = Arc::new(AtomicUsize::new(0));
        let (opener, tells) =
            (Opener { opened, open: Arc::clone(&open), seen: FxHashSet::default() }, tell.clone());
        Builder::new().name("lp-maps".into()).spawn(move || opener.run(&asked, &tells))?;
        Builder::new().name("lp-tables".into()).spawn(move || read(parsers, &to_read, &open, &tell))?;
        Ok(Reader { asks, told })
    }

    /// A reader for tests.
    #[cfg(test)]
    pub fn played() -> (Reader, Receiver<Ask>, Sender<ReaderAnswer>) {
        let (asks, asked) = channel();
        let (tell, told) = channel();
        (Reader { asks, told }, asked, tell)
    }

    /// Asks a question. If the reading threads have ended, [`Reader::next`] shows it.
    pub fn ask(&self, ask: Ask) {
        let _ = self.asks.send(ask);
    }

    /// The next answer, if there is one. `Err`: there will be no answers any more.
    pub fn next(&self) -> Result<Option<ReaderAnswer>, Gone> {
        match self.told.try_recv() {
            Ok(told) => Ok(Some(told)),
            Err(TryRecvError::Empty) => Ok(None),
            Err(TryRecvError::Disconnected) => Err(Gone),
        }
    }

    /// Like [`Reader::next`], but waits for an answer.
    pub fn wait(&self, patience: Duration) -> Result<Option<ReaderAnswer>, Gone> {
        match self.told.recv_timeout(patience) {
            Ok(told) => Ok(Some(told)),
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => Err(Gone),
        }
    }
}

/// The threads have ended.
#[derive(Debug)]
pub struct Gone;

/// A binary on its way to the thread that reads tables.
struct Opened {
    pid: u32,
    since_ns: u64,
    code: Code,
    /// The file's identity; `None`: the file cannot be opened.
    key: Option<FileKey>,
    /// The open file; `None`: it was passed on before, or too many files are open.
    file: Option<File>,
}

/// The first thread: reads the mappings of processes, and opens their binaries while the processes exist.
struct Opener {
    opened: Sender<Opened>,
    open: Arc<AtomicUsize>,
    seen: FxHashSet<FileKey>,
}

impl Opener {
    fn run(mut self, asked: &Receiver<Ask>, tell: &Sender<ReaderAnswer>) {
        count_this_thread();
        if let Err(error) = rustix::process::setpriority_process(None, NICE) {
            log::debug!("no higher priority: {error}");
        }
        while let Ok(ask) = asked.recv() {
            let goes_on = match ask {
                Ask::Look { pid, since_ns, new_ns, known, told } => {
                    let seen = look(pid, new_ns, &known, &told);
                    tell.send(ReaderAnswer::Code { pid, since_ns, seen }).is_ok()
                }
                Ask::Tables { pid, since_ns, code } => self.hand_on(pid, since_ns, code),
            };
            if !goes_on {
                break;
            }
        }
    }

    fn hand_on(&mut self, pid: u32, since_ns: u64, code: Code) -> bool {
        let mut key = binaries::key(&code);
        let is_new = key.is_some_and(|key| !self.seen.contains(&key));
        let mut file = None;
        if is_new && self.open.load(Ordering::Relaxed) < MOST_OPEN {
            // If the file is replaced in between, the opened file's own key counts.
            (key, file) = binaries::open(&code).map_or((None, None), |(key, file)| (Some(key), Some(file)));
            self.open.fetch_add(usize::from(file.is_some()), Ordering::Relaxed);
            if self.seen.len() >= MOST_SEEN {
                self.seen.clear();
            }
            self.seen.extend(key);
        }
        self.opened.send(Opened { pid, since_ns, code, key, file }).is_ok()
    }
}

fn read(parsers: Parsers, to_read: &Receiver<Opened>, open: &AtomicUsize, tell: &Sender<ReaderAnswer>) {
    count_this_thread();
    let mut binaries = BinaryTables::reading_with(parsers);
    while let Ok(Opened { pid, since_ns, code, key, file }) = to_read.recv() {
        let binary = match (key, &file) {
            (None, _) => None,
            (Some(key), Some(file)) => binaries.read_open(&code, key, file),
            (Some(_), None) => binaries.read(&code),
        };
        open.fetch_sub(usize::from(file.is_some()), Ordering::Relaxed);
        drop(file);
        if tell.send(ReaderAnswer::Tables { pid, since_ns, code, binary }).is_err() {
            break;
        }
    }
}
