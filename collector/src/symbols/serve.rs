//! The parser's own process: `longpole __symbols`, started by [`super::Parsers`] with a socket as its standard input.
//! It gives up all rights before it looks at the first byte of a binary.

use super::dwarf::DebugInformation;
use super::elf_file::ElfFile;
use super::files::{Candidate, Files, Wish};
use super::functions::ModuleFunctions;
use super::locator::Locator;
use super::service::{MOST_ASKED, Question, Said, Summary, Told};
use super::variables::Named;
use super::{choose, resolve};
use crate::sandbox::{Limits, confine, wire};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;

/// The hidden subcommand.
pub const SUBCOMMAND: &str = "__symbols";

/// What the hidden subcommand does; gives its exit code. 125: it was typed by hand, or could not be confined.
pub fn serve(limits: Limits) -> u8 {
    std::panic::set_hook(Box::new(|_| {}));
    let Ok(stdin) = io::stdin().as_fd().try_clone_to_owned() else { return 125 };
    let socket = UnixStream::from(stdin);
    if socket.peer_addr().is_err() {
        return 125;
    }
    // The copy has a number that confining would close: standard input itself is used.
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

/// Answers until the other side closes.
fn converse(socket: &Arc<UnixStream>) -> io::Result<()> {
    let Some((Told::Binary { path, name }, Some(file))) = wire::receive::<Told>(socket, MOST_ASKED)? else {
        return Err(io::ErrorKind::InvalidData.into());
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
            let said = Said::Failed { kind: (&error).into(), text: error.to_string() };
            return wire::send(socket, &said, None);
        }
    };
    wire::send(socket, &Said::Ready, None)?;
    let mut variables = None;
    let mut answer = |question: Question, locator: Option<&mut Locator<'_>>| -> Said {
        match (question, locator) {
            (Question::Choose(selection), Some(locator)) => {
                let mut choice = choose(&module, &selection);
                let facts = choice.chosen.iter_mut().map(|chosen| &mut chosen.fact);
                resolve::locate_with(locator, facts);
                Said::Choice(Box::new(choice))
            }
            (Question::Locate(places), Some(locator)) => Said::Located(Box::new(locator.locate(&places))),
            (Question::Variables(addresses), _) => {
                let mut known = variables.get_or_insert_with(|| Named::read(&module).ok()).as_mut();
                let mut name = |&address: &u64| known.as_mut().and_then(|known| known.at(address));
                Said::Variables(addresses.iter().map(&mut name).collect())
            }
            (question, _) => Said::Failed {
                kind: super::service::FailureKind::Unsupported,
                text: format!("this question cannot be answered: {question:?}"),
            },
        }
    };
    // Debug information is read when it is first needed.
    let first = loop {
        let Some((told, _)) = wire::receive::<Told>(socket, MOST_ASKED)? else { return Ok(()) };
        match told {
            Told::Question(question @ Question::Variables(_)) => {
                wire::send(socket, &answer(question, None), None)?;
            }
            Told::Question(question) => break question,
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
                    Said::Summary(Box::new(Summary::of(&module, no_lines, supplement_missing)))
                }
                question => answer(question, Some(locator)),
            };
            wire::send(socket, &said, None)?;
            match wire::receive::<Told>(socket, MOST_ASKED)? {
                None => return Ok(()),
                Some((Told::Question(next), _)) => question = next,
                Some(_) => return Err(io::ErrorKind::InvalidData.into()),
            }
        }
    })
}

/// Files that longpole opens.
struct AskedFiles {
    socket: Arc<UnixStream>,
}

impl Files for AskedFiles {
    fn open(&mut self, wish: &Wish, from: u32) -> Option<Candidate> {
        wire::send(&self.socket, &Said::Want { wish: wish.clone(), from }, None).ok()?;
        match wire::receive::<Told>(&self.socket, MOST_ASKED).ok()?? {
            (Told::File { path, next }, Some(file)) => Some(Candidate { file, path, next }),
            _ => None,
        }
    }
}
