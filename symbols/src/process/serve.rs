//! The parser's process: `longpole __symbols`, started by [`super::Parsers`] with a socket as its standard input. The
//! process drops all rights before it reads the first byte of a binary.

use super::service::{FromParser, Look, MOST_ASKED, Question, SymbolSummary, ToParser};
use crate::choice::{choose, library_moves_code};
use crate::code::{UnwindRows, lock_regions};
use crate::elf::{Candidate, ElfFile, FileRequest, Files, ModuleFunctions};
use crate::error::SymbolError;
use crate::libc::functions_in;
use crate::places::{DebugInformation, GoRuntime, Locator, Named, locate_with};
use crate::sandbox::{ParserLimits, confine, wire};
use rustix::fs::{MemfdFlags, memfd_create};
use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;

/// The hidden subcommand.
pub const SUBCOMMAND: &str = "__symbols";

/// Runs the hidden subcommand and returns its exit code. The code is 125 if standard input is no socket (a user typed
/// the command), or if the process could not be confined.
pub fn serve(limits: ParserLimits) -> u8 {
    std::panic::set_hook(Box::new(|_| {}));
    let Ok(stdin) = io::stdin().as_fd().try_clone_to_owned() else { return 125 };
    let socket = UnixStream::from(stdin);
    if socket.peer_addr().is_err() {
        return 125;
    }
    // `confine` closes all descriptors above 2, and this copy of the socket is one of them. So the code below uses
    // standard input itself.
    drop(socket);
    if confine(limits).is_err() {
        return 125;
    }
    let Ok(stdin) = io::stdin().as_fd().try_clone_to_owned() else { return 125 };
    match converse(&Arc::new(UnixStream::from(stdin))) {
        Ok(()) => 0,
        Err(_) => 1,
    }
}

/// Answers questions until the other side closes the socket.
fn converse(socket: &Arc<UnixStream>) -> io::Result<()> {
    let (path, name, file) = match wire::receive::<ToParser>(socket, MOST_ASKED, None)? {
        Some((ToParser::Binary { path, name }, Some(file))) => (path, name, file),
        Some((ToParser::Look { path, look }, Some(file))) => {
            let (said, file) = look_at(file, &path, look);
            return wire::send(socket, &said, file.as_ref(), None);
        }
        _ => return Err(io::ErrorKind::InvalidData.into()),
    };
    let files = Box::new(AskedFiles { socket: Arc::clone(socket) });
    let module = ElfFile::from_file(file, &path).and_then(|mut elf| {
        elf.let_map();
        let mut module = ModuleFunctions::load(elf, files)?;
        module.rename(&name);
        Ok(module)
    });
    let module = match module {
        Ok(module) => module,
        Err(error) => {
            let said = FromParser::Failed { kind: (&error).into(), text: error.to_string() };
            return wire::send(socket, &said, None, None);
        }
    };
    wire::send(socket, &FromParser::Ready, None, None)?;
    let mut answers = Answers { module: &module, variables: None };
    // The debug information is read only at the first question that needs it.
    let first = loop {
        let Some((told, _)) = wire::receive::<ToParser>(socket, MOST_ASKED, None)? else { return Ok(()) };
        match told {
            ToParser::Question(question @ (Question::Variables(_) | Question::LockRegions { .. })) => {
                wire::send(socket, &answers.answer(question, None), None, None)?;
            }
            ToParser::Question(question) => break question,
            _ => return Err(io::ErrorKind::InvalidData.into()),
        }
    };
    let debug = DebugInformation::of(&module);
    let supplement_missing = debug.as_ref().is_ok_and(DebugInformation::supplement_missing);
    Locator::over(&module, &debug, |locator| {
        let mut question = first;
        loop {
            let said = match question {
                Question::Summary => {
                    let no_lines = locator.no_lines().cloned();
                    FromParser::Summary(Box::new(SymbolSummary::of(&module, no_lines, supplement_missing)))
                }
                question => answers.answer(question, Some(locator)),
            };
            wire::send(socket, &said, None, None)?;
            match wire::receive::<ToParser>(socket, MOST_ASKED, None)? {
                None => return Ok(()),
                Some((ToParser::Question(next), _)) => question = next,
                Some(_) => return Err(io::ErrorKind::InvalidData.into()),
            }
        }
    })
}

/// Answers questions about one module.
struct Answers<'m> {
    module: &'m ModuleFunctions,
    /// The module's variables, read at the first question about them; `Some(None)` if they cannot be read.
    variables: Option<Option<Named<'m>>>,
}

impl Answers<'_> {
    /// Answers one question. Some questions need a locator.
    fn answer(&mut self, question: Question, locator: Option<&mut Locator<'_>>) -> FromParser {
        match (question, locator) {
            (Question::Choose(selection), Some(locator)) => {
                let mut choice = choose(self.module, &selection);
                let facts = choice.chosen.iter_mut().map(|chosen| &mut chosen.fact);
                locate_with(locator, facts);
                FromParser::Choice(Box::new(choice))
            }
            (Question::Locate(places), Some(locator)) => {
                FromParser::Located(Box::new(locator.locate(&places)))
            }
            (Question::Variables(addresses), _) => {
                let module = self.module;
                let mut known = self.variables.get_or_insert_with(|| Named::read(module).ok()).as_mut();
                let mut name = |&address: &u64| known.as_mut().and_then(|known| known.at(address));
                FromParser::Variables(addresses.iter().map(&mut name).collect())
            }
            (Question::LockRegions { calls, places }, _) => {
                FromParser::LockRegions(lock_regions(self.module, &calls, &places))
            }
            (question, _) => FromParser::Failed {
                kind: crate::error::FailureKind::Unsupported,
                text: format!("this question cannot be answered: {question:?}"),
            },
        }
    }
}

/// Answers a question about one file, if the question needs no other file.
pub fn look_at(file: File, path: &Path, look: Look) -> (FromParser, Option<File>) {
    let answer = ElfFile::from_file(file, path).and_then(|elf| match look {
        Look::LibcFunctions => Ok((FromParser::LibcFunctions(Box::new(functions_in(&elf)?.into())), None)),
        Look::MovesCode => Ok((FromParser::MovesCode(library_moves_code(&elf)), None)),
        Look::GoRuntime => Ok((FromParser::GoRuntime(GoRuntime::of(&elf)), None)),
        Look::UnwindRows => {
            let Some((told, bytes)) = UnwindRows::of(&elf)?.map(|rows| rows.told()) else {
                return Ok((FromParser::UnwindRows(None), None));
            };
            let file =
                in_memory(&bytes).map_err(|source| SymbolError::Open { path: path.to_owned(), source })?;
            Ok((FromParser::UnwindRows(Some(Box::new(told))), Some(file)))
        }
    });
    answer
        .unwrap_or_else(|error| (FromParser::Failed { kind: (&error).into(), text: error.to_string() }, None))
}

fn in_memory(bytes: &[u8]) -> io::Result<File> {
    let mut file = File::from(memfd_create("longpole-rows", MemfdFlags::CLOEXEC)?);
    file.write_all(bytes)?;
    Ok(file)
}

/// The files that the parser asks longpole for.
struct AskedFiles {
    socket: Arc<UnixStream>,
}

impl Files for AskedFiles {
    fn open(&mut self, request: &FileRequest, from: u32) -> Option<Candidate> {
        wire::send(&self.socket, &FromParser::Want { request: request.clone(), from }, None, None).ok()?;
        match wire::receive::<ToParser>(&self.socket, MOST_ASKED, None).ok()?? {
            (ToParser::File { path, next }, Some(file)) => Some(Candidate { file, path, next }),
            _ => None,
        }
    }
}
