//! Asks for the symbols of one binary. A process without rights reads them ([`super::serve`]); in tests and tools, the
//! calling process does.

use super::serve::{self, SUBCOMMAND};
use super::service::{FromParser, Look, MOST_ANSWERED, Question, SymbolSummary, ToParser};
use crate::answer::Place;
use crate::binary::Binary;
use crate::choice::{Choice, Selection, choose};
use crate::code::{LockCall, LockRegions, UnwindRows, lock_regions};
use crate::elf::{ElfFile, Fetch, Files, HostFiles, ModuleFunctions, Outline};
use crate::error::SymbolError;
use crate::libc::LibcFunctions;
use crate::names::name;
use crate::places::{GoRuntime, Located, Locator, Named, locate_functions};
use crate::sandbox::{Helper, ParserLimits, wire};
use std::fs::File;
use std::io;
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Longest time that longpole waits for one answer of a parser.
const PATIENCE: Duration = Duration::from_secs(120);
/// Largest number of files that a parser may ask for during one answer.
const MOST_WISHES: u32 = 100_000;

/// Settings of how binaries are read.
#[derive(Clone, Debug)]
pub struct Parsers {
    /// The program with the hidden subcommand; `None`: the calling process reads the binaries.
    program: Option<PathBuf>,
    folders: Vec<PathBuf>,
    fetch: Option<Arc<dyn Fetch>>,
    limits: ParserLimits,
    patience: Duration,
}

impl Parsers {
    /// Reads binaries in the calling process, for tests and for tools that trust the binaries.
    pub fn here() -> Parsers {
        Parsers {
            program: None,
            folders: Vec::new(),
            fetch: None,
            limits: ParserLimits::default(),
            patience: PATIENCE,
        }
    }

    /// Reads binaries in separate processes, which run longpole's program at `program`.
    pub fn sandboxed(program: &Path) -> Parsers {
        Parsers { program: Some(program.to_owned()), ..Parsers::here() }
    }

    /// Reads binaries in separate processes, which run the same longpole as the calling process.
    pub fn of_longpole() -> Parsers {
        Parsers::sandboxed(Path::new("/proc/self/exe"))
    }

    /// Adds folders in which debug files are searched first.
    #[must_use]
    pub fn with_folders(mut self, folders: &[PathBuf]) -> Parsers {
        self.folders.extend_from_slice(folders);
        self
    }

    /// Fetches debug files that are not on this machine. Never used while recording, because fetching may take long.
    #[must_use]
    pub fn with_fetch(mut self, fetch: Arc<dyn Fetch>) -> Parsers {
        self.fetch = Some(fetch);
        self
    }

    /// Sets the limits of a parser's process, and the longest time for one answer.
    #[must_use]
    pub fn with_limits(mut self, limits: ParserLimits, patience: Duration) -> Parsers {
        self.limits = limits;
        self.patience = patience;
        self
    }

    /// Sets the longest time for one answer.
    #[must_use]
    pub fn with_patience(self, patience: Duration) -> Parsers {
        Parsers { patience, ..self }
    }

    /// Starts a parser for a binary; `name` is the binary's name in messages.
    pub fn open(&self, path: &Path, name: &str) -> Result<Parser, SymbolError> {
        self.open_file(crate::elf::open_plain(path)?, path, name, HostFiles::of(path))
    }

    /// Like [`Parsers::open`], for a file that stays open. So the parser reads the same file that gets the probes.
    pub fn open_binary(&self, binary: &Binary, name: &str) -> Result<Parser, SymbolError> {
        let path = binary.opened_by();
        let file = binary.file().try_clone();
        let file = file.map_err(|source| SymbolError::Open { path: path.to_owned(), source })?;
        self.open_file(file, path, name, HostFiles::of(path))
    }

    /// Like [`Parsers::open`], for a file that is already open, with the places of its debug files.
    pub fn open_file(
        &self,
        file: File,
        path: &Path,
        name: &str,
        files: HostFiles,
    ) -> Result<Parser, SymbolError> {
        let files = files.with_folders(&self.folders).with_fetch(self.fetch.clone());
        let work = match &self.program {
            None => {
                let mut module = ModuleFunctions::load(ElfFile::from_file(file, path)?, Box::new(files))?;
                module.rename(name);
                Work::Here(Box::new(module))
            }
            Some(program) => {
                let mut worker = Worker::start(program, self, path, files)?;
                let told = ToParser::Binary { path: path.to_owned(), name: name.to_owned() };
                match worker.ask(&told, Some(&file))? {
                    FromParser::Ready => Work::There(Box::new(worker)),
                    _ => return Err(worker.nonsense()),
                }
            }
        };
        Ok(Parser { name: name::safe_within(name, 255), work })
    }

    /// Finds the synchronization functions of a C library's file.
    pub fn libc_functions(&self, file: &File, path: &Path) -> Result<LibcFunctions, SymbolError> {
        let outline = || Outline::of(file).ok_or_else(|| SymbolError::not_elf(path, "it has no ELF header"));
        let believed = match self.look(file, path, Look::LibcFunctions)? {
            (FromParser::LibcFunctions(told), _) => told.believed(&outline()?),
            _ => None,
        };
        believed.ok_or_else(|| SymbolError::Parser { path: path.to_owned(), what: NONSENSE.to_owned() })
    }

    /// Reads the unwind rows of a binary, which show how to find a function's caller. `None` if the binary has no rows.
    pub fn unwind_rows(&self, file: &File, path: &Path) -> Result<Option<UnwindRows>, SymbolError> {
        let rows = match self.look(file, path, Look::UnwindRows)? {
            (FromParser::UnwindRows(None), _) => return Ok(None),
            (FromParser::UnwindRows(Some(told)), Some(rows)) => told.believed(&rows).ok().flatten(),
            _ => None,
        };
        let nonsense = || SymbolError::Parser { path: path.to_owned(), what: NONSENSE.to_owned() };
        rows.ok_or_else(nonsense).map(Some)
    }

    /// Whether a library makes memory executable; see `library_moves_code`.
    pub fn library_moves_code(&self, file: &File, path: &Path) -> Result<bool, SymbolError> {
        match self.look(file, path, Look::MovesCode)? {
            (FromParser::MovesCode(moves), _) => Ok(moves),
            _ => Err(SymbolError::Parser { path: path.to_owned(), what: NONSENSE.to_owned() }),
        }
    }

    /// Finds where Go's runtime keeps its goroutines in this binary. `None`: the binary is no Go program, or has no
    /// debug information.
    pub fn go_runtime(&self, file: &File, path: &Path) -> Result<Option<GoRuntime>, SymbolError> {
        match self.look(file, path, Look::GoRuntime)? {
            (FromParser::GoRuntime(found), _) => Ok(found.filter(GoRuntime::is_plausible)),
            _ => Err(SymbolError::Parser { path: path.to_owned(), what: NONSENSE.to_owned() }),
        }
    }

    fn look(&self, file: &File, path: &Path, look: Look) -> Result<(FromParser, Option<File>), SymbolError> {
        let Some(program) = &self.program else {
            let file = file.try_clone();
            let file = file.map_err(|source| SymbolError::Open { path: path.to_owned(), source })?;
            return match serve::look_at(file, path, look) {
                (FromParser::Failed { kind, text }, _) => {
                    Err(SymbolError::Told { kind, text: name::safe(&text) })
                }
                said => Ok(said),
            };
        };
        let mut worker = Worker::start(program, self, path, HostFiles::none())?;
        worker.converse(&ToParser::Look { path: path.to_owned(), look }, Some(file))
    }
}

/// The end of a sentence about a parser that gave an impossible answer.
const NONSENSE: &str = "gave an invalid answer and was ended";

/// Reads the symbols of one binary.
#[derive(Debug)]
pub struct Parser {
    name: String,
    work: Work,
}

#[derive(Debug)]
enum Work {
    Here(Box<ModuleFunctions>),
    There(Box<Worker>),
}

impl Parser {
    /// The PID of the parser process; `None` if the calling process reads the binary.
    pub fn process(&self) -> Option<u32> {
        match &self.work {
            Work::Here(_) => None,
            Work::There(worker) => Some(worker.child.id()),
        }
    }

    /// Asks which symbols and debug information the binary has.
    pub fn summary(&mut self) -> Result<SymbolSummary, SymbolError> {
        match &mut self.work {
            Work::Here(module) => {
                let no_lines = Locator::with(module, |locator| locator.no_lines().cloned());
                Ok(SymbolSummary::of(module, no_lines, false))
            }
            Work::There(worker) => match worker.question(Question::Summary)? {
                FromParser::Summary(mut summary) => {
                    summary.module.clone_from(&self.name);
                    summary.refused.iter_mut().for_each(make_safe);
                    Ok(*summary)
                }
                _ => Err(worker.nonsense()),
            },
        }
    }

    /// Asks which functions to probe, with their lines.
    pub fn choose(&mut self, selection: &Selection) -> Result<Choice, SymbolError> {
        match &mut self.work {
            Work::Here(module) => {
                let mut choice = choose(module, selection);
                locate_functions(module, choice.chosen.iter_mut().map(|chosen| &mut chosen.fact));
                Ok(choice)
            }
            Work::There(worker) => match worker.question(Question::Choose(selection.clone()))? {
                FromParser::Choice(mut choice) => {
                    // A hostile file may control the parser. So longpole itself sets numbers and module names.
                    choice.chosen.truncate(selection.max_functions);
                    for (number, chosen) in choice.chosen.iter_mut().enumerate() {
                        let number = u32::try_from(number).unwrap_or(u32::MAX);
                        chosen.fact.id = selection.first_id.saturating_add(number);
                        chosen.fact.module.clone_from(&self.name);
                        make_safe(&mut chosen.fact.name);
                        chosen.fact.location.iter_mut().for_each(make_safe);
                    }
                    choice.depth = selection.depth;
                    let given = |name: &String| {
                        selection.include.iter().chain(&selection.exclude).any(|one| one == name)
                    };
                    choice.unclear.retain(|unclear| given(&unclear.name));
                    choice.missing.retain(|missing| selection.include.contains(&missing.pair));
                    choice.missing.iter_mut().for_each(|missing| make_safe(&mut missing.why));
                    choice.unclear.iter_mut().flat_map(|unclear| &mut unclear.may_be).for_each(make_safe);
                    Ok(*choice)
                }
                _ => Err(worker.nonsense()),
            },
        }
    }

    /// Asks for the locations of these places, in the same order.
    pub fn locate(&mut self, places: &[Place]) -> Result<Located, SymbolError> {
        match &mut self.work {
            Work::Here(module) => Ok(Locator::with(module, |locator| locator.locate(places))),
            Work::There(worker) => match worker.question(Question::Locate(places.to_vec()))? {
                FromParser::Located(mut located) if located.len() == places.len() => {
                    located.module.clone_from(&self.name);
                    located.make_safe();
                    Ok(*located)
                }
                _ => Err(worker.nonsense()),
            },
        }
    }

    /// Asks which of these places (file offsets) a thread reaches only while it holds the lock that a call takes. There
    /// is one answer for each call.
    pub fn lock_regions(&mut self, calls: &[LockCall], places: &[u64]) -> Result<LockRegions, SymbolError> {
        match &mut self.work {
            Work::Here(module) => Ok(lock_regions(module, calls, places)),
            Work::There(worker) => {
                let question = Question::LockRegions { calls: calls.to_vec(), places: places.to_vec() };
                match worker.question(question)? {
                    FromParser::LockRegions(held) if held.len() == calls.len() => Ok(held),
                    _ => Err(worker.nonsense()),
                }
            }
        }
    }

    /// Asks for the variable at each of these linked addresses.
    pub fn variables(&mut self, linked: &[u64]) -> Result<Vec<Option<String>>, SymbolError> {
        match &mut self.work {
            Work::Here(module) => {
                let mut known = Named::read(module)?;
                Ok(linked.iter().map(|&address| known.at(address)).collect())
            }
            Work::There(worker) => match worker.question(Question::Variables(linked.to_vec()))? {
                FromParser::Variables(mut names) if names.len() == linked.len() => {
                    names.iter_mut().flatten().for_each(make_safe);
                    Ok(names)
                }
                _ => Err(worker.nonsense()),
            },
        }
    }
}

fn make_safe(text: &mut String) {
    *text = name::safe(text);
}

/// A parser's process, and the connection to it.
#[derive(Debug)]
struct Worker {
    child: Child,
    /// Counts the CPU time of the process as part of longpole's cost, until the process has been waited for.
    helper: Option<Helper>,
    socket: UnixStream,
    files: HostFiles,
    path: PathBuf,
    limits: ParserLimits,
    patience: Duration,
    /// How the process ended; `None` while it is in use.
    gone: Option<String>,
}

impl Worker {
    fn start(
        program: &Path,
        parsers: &Parsers,
        path: &Path,
        files: HostFiles,
    ) -> Result<Worker, SymbolError> {
        let failed = |error: io::Error| SymbolError::Parser {
            path: path.to_owned(),
            what: format!("could not be started: {error}"),
        };
        let (socket, theirs) = UnixStream::pair().map_err(failed)?;
        let ParserLimits { memory, cpu_s } = parsers.limits;
        let child = Command::new(program)
            .arg(SUBCOMMAND)
            .args([memory.to_string(), cpu_s.to_string()])
            .env_clear()
            .current_dir("/")
            // The parser has a process group of its own, so that ^C does not end it: longpole needs the parser for the
            // last names.
            .process_group(0)
            .stdin(Stdio::from(std::os::fd::OwnedFd::from(theirs)))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(failed)?;
        let (limits, patience) = (parsers.limits, parsers.patience);
        let helper = Some(Helper::of(child.id()));
        Ok(Worker { child, helper, socket, files, path: path.to_owned(), limits, patience, gone: None })
    }

    fn send(&mut self, told: &ToParser, file: Option<&File>, until: Instant) -> Result<(), SymbolError> {
        match wire::send(&self.socket, told, file, Some(until)) {
            Ok(()) => Ok(()),
            Err(error) => Err(self.given_up(&error)),
        }
    }

    fn question(&mut self, question: Question) -> Result<FromParser, SymbolError> {
        self.ask(&ToParser::Question(question), None)
    }

    fn ask(&mut self, told: &ToParser, file: Option<&File>) -> Result<FromParser, SymbolError> {
        self.converse(told, file).map(|(said, _)| said)
    }

    /// Sends a message and waits for the answer. While it waits, opens the files that the parser asks for.
    fn converse(
        &mut self,
        told: &ToParser,
        file: Option<&File>,
    ) -> Result<(FromParser, Option<File>), SymbolError> {
        if let Some(what) = &self.gone {
            return Err(SymbolError::Parser { path: self.path.clone(), what: what.clone() });
        }
        // One deadline covers everything: sending, all parts of the answer, and the files in between.
        let mut until = Instant::now() + self.patience;
        self.send(told, file, until)?;
        for _ in 0..MOST_WISHES {
            let (said, with) = match wire::receive::<FromParser>(&self.socket, MOST_ANSWERED, Some(until)) {
                Ok(Some(said)) => said,
                Ok(None) => return Err(self.given_up(&io::ErrorKind::UnexpectedEof.into())),
                Err(error) => return Err(self.given_up(&error)),
            };
            match said {
                FromParser::Want { request, from } => {
                    let asked = Instant::now();
                    let found = self.files.open(&request, from);
                    if self.files.fetches() {
                        // The time that longpole needs to fetch a file does not count for the parser.
                        until += asked.elapsed();
                    }
                    match found {
                        Some(found) => {
                            let told = ToParser::File { path: found.path, next: found.next };
                            self.send(&told, Some(&found.file), until)?;
                        }
                        None => self.send(&ToParser::NoFile, None, until)?,
                    }
                }
                FromParser::Failed { kind, text } => {
                    return Err(SymbolError::Told { kind, text: name::safe(&text) });
                }
                answer => return Ok((answer, with)),
            }
        }
        Err(self.nonsense())
    }

    /// Ends a parser whose answer does not match the question.
    fn nonsense(&mut self) -> SymbolError {
        self.given_up(&io::ErrorKind::InvalidData.into())
    }

    /// Ends the process and returns the error.
    fn given_up(&mut self, error: &io::Error) -> SymbolError {
        let slow = matches!(error.kind(), io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock);
        // A process that has closed its socket is about to end by itself. Its exit status then says why.
        if !slow {
            let until = Instant::now() + Duration::from_secs(2);
            while matches!(self.child.try_wait(), Ok(None)) && Instant::now() < until {
                std::thread::sleep(Duration::from_millis(1));
            }
        }
        let ended = self.child.try_wait().ok().flatten();
        let what = match ended {
            Some(status) => self.end(status),
            None if slow => format!("took longer than {} s and was ended", self.patience.as_secs_f64()),
            None => format!("gave an invalid answer and was ended: {error}"),
        };
        self.finish();
        self.gone = Some(what.clone());
        SymbolError::Parser { path: self.path.clone(), what }
    }

    /// How the process ended, as the end of a sentence.
    fn end(&self, status: ExitStatus) -> String {
        let mib = self.limits.memory >> 20;
        match status.signal() {
            Some(libc::SIGSYS) => {
                "was ended: it made a system call that no reader of symbols needs".to_owned()
            }
            Some(libc::SIGXCPU | libc::SIGKILL) => {
                format!("was ended: it used {} s of processor time", self.limits.cpu_s)
            }
            Some(libc::SIGABRT) => {
                format!("gave up: the file needs more than {mib} MiB, or nests too deeply")
            }
            Some(libc::SIGBUS) => "was ended: the file was cut short while it was read".to_owned(),
            Some(signal) => format!("crashed (signal {signal})"),
            None => match status.code() {
                Some(125) => "could not give up its rights, so it did not start".to_owned(),
                code => format!("ended by itself (exit code {})", code.unwrap_or_default()),
            },
        }
    }

    fn finish(&mut self) {
        // An error here means that the process has already ended.
        let _ = self.child.kill();
        self.helper = None;
        let _ = self.child.wait();
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.finish();
    }
}
