//! The thread that names sampled code while its process runs. It names the newest stacks first, and uses a small share
//! of the time.

use super::jit_names::JitNames;
use super::lock_regions::LockRegionFinder;
use super::lock_stacks::LockStack;
use super::poll_intervals::PollIntervals;
use crate::live::main_loop::Message;
use crate::threads;
use capture::target::{Module, Process, mapped};
use engine::event::{CodeFact, CodeMap, CodePlace, MappingFact, Note, NoteKind, frame_address, is_jit_code};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};
use symbols::Outline;
use symbols::symbolize::{name_code, unnamed};
use symbols::{FailureKind, HostFiles, Parser, Parsers, open_plain};
use tokio::sync::mpsc::UnboundedSender;

/// Wait before names are read: more places may come and are read in one go.
const GATHER: Duration = Duration::from_millis(300);
/// Largest number of places named in one recording.
const MOST_PLACES: usize = 1 << 20;
/// Largest number of places that are remembered as named for a live screen. Beyond that, all are forgotten, and named
/// again when they occur again: the screen forgets old names, and a program may generate code without end.
pub const PLACES_AT_ONCE: usize = 1 << 16;
/// Largest number of mappings that are remembered.
const MOST_MAPPINGS: usize = 1 << 16;
/// Largest number of binaries whose symbols are kept.
const MOST_PARSERS: usize = 64;
/// Largest number of binaries kept open until their symbols are read.
const MOST_FILES: usize = 96;
/// With this number of new stacks, their places are collected at once, even before it is time to read names: a stack
/// takes more memory than its places.
const MANY_STACKS: usize = 4096;

enum News {
    Mappings(Vec<MappingFact>),
    Stacks(Vec<Note>),
    Locks(Vec<LockStack>),
}

/// Sends stacks to the thread and receives names.
#[derive(Debug)]
pub struct CodeNamer {
    news: Option<Sender<News>>,
    names: Receiver<Vec<CodeFact>>,
}

impl CodeNamer {
    /// Starts the thread.
    pub fn start(poll_intervals: PollIntervals, news: UnboundedSender<Message>) -> io::Result<CodeNamer> {
        CodeNamer::reading_with(Parsers::of_longpole(), poll_intervals, news)
    }

    fn reading_with(
        parsers: Parsers,
        poll_intervals: PollIntervals,
        news: UnboundedSender<Message>,
    ) -> io::Result<CodeNamer> {
        let (told, inbox) = channel();
        let (outbox, names) = channel();
        threads::spawn("code names", news, (), move || {
            threads::behind_others();
            run(parsers, poll_intervals, &inbox, &outbox);
        })?;
        Ok(CodeNamer { news: Some(told), names })
    }

    /// Passes on mappings: where processes have code.
    pub fn mappings(&self, mappings: &[MappingFact]) {
        self.tell(News::Mappings(mappings.to_vec()));
    }

    /// Passes the stacks among these notes to the thread.
    pub fn stacks(&self, notes: &[Note]) {
        let stacks: Vec<Note> =
            notes.iter().filter(|note| matches!(note.kind, NoteKind::Stack { .. })).cloned().collect();
        if !stacks.is_empty() {
            self.tell(News::Stacks(stacks));
        }
    }

    /// Passes on stacks that were sampled at waits for locks and at wake-ups.
    pub fn locks(&self, stacks: Vec<LockStack>) {
        if !stacks.is_empty() {
            self.tell(News::Locks(stacks));
        }
    }

    fn tell(&self, news: News) {
        if let Some(sender) = &self.news {
            // A thread that has ended has reported the reason itself.
            let _ = sender.send(news);
        }
    }

    /// Names found since the last call.
    pub fn take(&self) -> Vec<CodeFact> {
        self.names.try_iter().flatten().collect()
    }

    /// The remaining names. Waits for them, but not forever.
    pub fn finish(mut self) -> Vec<CodeFact> {
        self.news = None;
        super::rest(&self.names, "some sampled code has no names yet; `longpole symbolize` finds names")
    }
}

/// A binary, by path and build-id.
type Binary = (String, Option<String>);

/// A binary that is kept open because its process may end before the binary's symbols are read.
struct Held {
    file: File,
    path: PathBuf,
    files: HostFiles,
}

/// Places that need names, by binary.
type Wanted = BTreeMap<Binary, Vec<CodePlace>>;

struct Work {
    parsers: Parsers,
    mappings: Vec<MappingFact>,
    /// Stacks whose places were not yet collected.
    stacks: Vec<Note>,
    seen: HashSet<CodePlace>,
    /// The consumer forgets old names.
    forgets: bool,
    wanted: Wanted,
    /// Names of code made at run time, which is in no file.
    jit: JitNames,
    /// Finds code that runs under locks.
    locks: LockRegionFinder,
    /// Open binaries without a parser; `None`: the file cannot be opened.
    held: HashMap<Binary, Option<Held>>,
    /// Parsers; `None`: the binary cannot be read.
    open: HashMap<Binary, Option<Parser>>,
    /// Whether the user was already told that a program of an unreadable kind runs.
    said_unreadable: bool,
}

fn run(
    parsers: Parsers,
    poll_intervals: PollIntervals,
    inbox: &Receiver<News>,
    outbox: &Sender<Vec<CodeFact>>,
) {
    let mut work = Work {
        parsers,
        mappings: Vec::new(),
        stacks: Vec::new(),
        seen: HashSet::new(),
        forgets: poll_intervals == PollIntervals::WATCHED,
        wanted: Wanted::new(),
        jit: JitNames::default(),
        locks: LockRegionFinder::default(),
        held: HashMap::new(),
        open: HashMap::new(),
        said_unreadable: false,
    };
    let mut not_before = poll_intervals.first(Instant::now() + GATHER);
    loop {
        let is_idle = work.stacks.is_empty() && work.wanted.is_empty() && !work.locks.is_due();
        let due = (!is_idle).then_some(not_before);
        let received = match due.into_iter().chain(work.jit.next_look()).min() {
            None => inbox.recv().map_err(|_| RecvTimeoutError::Disconnected),
            Some(at) => inbox.recv_timeout(at.saturating_duration_since(Instant::now())),
        };
        work.jit.see_growth();
        match received {
            Ok(News::Mappings(mappings)) => {
                work.hold(&mappings);
                work.mappings.extend(mappings);
                forget_mappings(&mut work.mappings, MOST_MAPPINGS);
            }
            Ok(News::Stacks(stacks)) => {
                if work.stacks.is_empty() {
                    not_before = not_before.max(Instant::now() + GATHER);
                }
                work.stacks.extend(stacks);
                if work.stacks.len() >= MANY_STACKS {
                    work.look();
                }
            }
            Ok(News::Locks(stacks)) => work.locks.locks(stacks),
            Err(RecvTimeoutError::Timeout) if due.is_none_or(|due| due > Instant::now()) => {}
            Err(over) => {
                let began = Instant::now();
                work.look();
                let mut facts = work.name();
                work.locks.named(&facts);
                facts.extend(work.find_held());
                not_before = poll_intervals.again(began);
                let sent = facts.is_empty() || outbox.send(facts).is_ok();
                if over == RecvTimeoutError::Disconnected || !sent {
                    return;
                }
            }
        }
    }
}

impl Work {
    /// Keeps the binaries of new mappings open.
    fn hold(&mut self, mappings: &[MappingFact]) {
        self.jit.hold(mappings);
        let mut modules = Modules::default();
        for mapping in mappings.iter().filter(|mapping| mapping.path.starts_with('/')) {
            let binary = (mapping.path.clone(), mapping.build_id.clone());
            if self.held.len() < MOST_FILES && !self.open.contains_key(&binary) {
                self.held.entry(binary).or_insert_with_key(|binary| modules.hold(mapping.pid, binary));
            }
        }
    }

    /// Collects the places in new stacks, the latest stacks first.
    fn look(&mut self) {
        let stacks = std::mem::take(&mut self.stacks);
        self.locks.stacks(&stacks);
        let mut modules = Modules::default();
        let map = CodeMap::of_mappings(&self.mappings);
        for note in stacks.iter().rev() {
            let NoteKind::Stack { pid, frames, .. } = &note.kind else { continue };
            for (index, address) in frames.iter().enumerate() {
                let Some((mapping, offset)) = map.at(*pid, frame_address(index, *address), note.time_ns)
                else {
                    continue;
                };
                // A mapping of the kernel, as `[vdso]`: its name is enough.
                let is_made = is_jit_code(&mapping.path);
                if !mapping.path.starts_with('/') && !is_made {
                    continue;
                }
                let (path, build_id) = (mapping.path.clone(), mapping.build_id.clone());
                let place = CodePlace { path, build_id, offset };
                if self.forgets && self.seen.len() >= PLACES_AT_ONCE {
                    self.seen.clear();
                    self.jit.forget_wanted();
                }
                if self.seen.len() < MOST_PLACES && self.seen.insert(place.clone()) {
                    if is_made {
                        self.jit.want(*pid, offset);
                        continue;
                    }
                    let binary = (place.path.clone(), place.build_id.clone());
                    if !self.held.contains_key(&binary) && !self.open.contains_key(&binary) {
                        self.held.insert(binary.clone(), modules.hold(*pid, &binary));
                    }
                    self.wanted.entry(binary).or_default().push(place);
                }
            }
        }
    }

    /// Places that lie under a lock and are new.
    fn find_held(&mut self) -> Vec<CodeFact> {
        if !self.locks.is_due() {
            return Vec::new();
        }
        let map = CodeMap::of_mappings(&self.mappings);
        let open = &mut self.open;
        self.locks.find(&map, |binary, calls, places| {
            let parser = open.get_mut(binary)?.as_mut()?;
            parser.lock_regions(calls, places).inspect_err(|why| log::debug!("code under locks: {why}")).ok()
        })
    }

    /// Reads the names of collected places.
    fn name(&mut self) -> Vec<CodeFact> {
        let mut facts = self.jit.name();
        for (binary, places) in std::mem::take(&mut self.wanted) {
            if self.open.len() >= MOST_PARSERS {
                self.open.clear();
            }
            let name = binary.0.rsplit('/').next().unwrap_or_default().to_owned();
            let (parsers, held, said) = (&self.parsers, &mut self.held, &mut self.said_unreadable);
            let parser = self.open.entry(binary).or_insert_with_key(|binary| {
                let Held { file, path, files } = held.remove(binary).flatten()?;
                let opened = parsers.open_file(file, &path, &name, files);
                if let Err(why) = &opened
                    && FailureKind::from(why) == FailureKind::Unsupported
                    && !std::mem::replace(said, true)
                {
                    log::warn!("code without names: {why}");
                }
                opened.ok()
            });
            let named = parser.as_mut().map(|parser| name_code(parser, &places));
            match named {
                Some(Ok(named)) => facts.extend(named),
                Some(Err(why)) => {
                    log::debug!("no names of sampled code: {why}");
                    *parser = None;
                    facts.extend(places.iter().map(unnamed));
                }
                None => facts.extend(places.iter().map(unnamed)),
            }
        }
        facts
    }
}

/// Forgets mappings if there are more than the limit: first the oldest without a file, since programs make and discard
/// such code, then the oldest of all. It forgets a quarter more than needed, so that it rarely has to.
pub fn forget_mappings(mappings: &mut Vec<MappingFact>, most: usize) {
    if mappings.len() <= most {
        return;
    }
    let mut too_many = mappings.len() - most + most / 4;
    let mut forget = |is_one: &dyn Fn(&MappingFact) -> bool| {
        mappings.retain(|mapping| {
            let goes = too_many > 0 && is_one(mapping);
            too_many -= usize::from(goes);
            !goes
        });
    };
    forget(&|mapping| !mapping.path.starts_with('/') || mapping.path.starts_with("//"));
    forget(&|mapping| mapping.path.starts_with("/memfd:"));
    forget(&|_| true);
}

/// Mappings of processes, read once for each: a program may ask for two hundred libraries at once.
#[derive(Default)]
struct Modules(HashMap<u32, Vec<Module>>);

impl Modules {
    /// Opens the exact file that the process has mapped, even if it was replaced on disk; else the file at the
    /// mapping's path, if that is the same file.
    fn hold(&mut self, pid: u32, (path, build_id): &Binary) -> Option<Held> {
        let modules = self
            .0
            .entry(pid)
            .or_insert_with(|| Process::open(pid).and_then(|process| mapped(&process)).unwrap_or_default());
        let own = modules.iter().filter(|module| module.path == *path).map(|module| module.open_path.clone());
        let places = [PathBuf::from(format!("/proc/{pid}/root{path}")), PathBuf::from(path)];
        own.filter(|place| !place.as_os_str().is_empty()).chain(places).find_map(|place| {
            // A file that is no 64-bit program is opened, too: its parser reports why it has no names.
            let opened = Outline::open(&place).map(|(file, outline)| (file, outline.build_id));
            let (file, found) = opened.or_else(|| Some((open_plain(&place).ok()?, None)))?;
            let found = found.map(|id| id.to_string());
            if build_id.is_some() && found != *build_id {
                return None;
            }
            Some(Held { file, files: HostFiles::of(&place), path: place })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use capture::target::{Process, code};
    use std::process::{Child, Command, Stdio};
    use symbols::Selection;

    #[inline(never)]
    fn named_by_samples(number: u64) -> u64 {
        (0..number).fold(7, |sum, round| sum ^ std::hint::black_box(round).wrapping_mul(sum))
    }

    struct Running(Child);

    impl Drop for Running {
        fn drop(&mut self) {
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }

    fn mapped(pid: u32) -> Vec<MappingFact> {
        let process = Process::open(pid).expect("it waits");
        let facts = code(&process).expect("its code").into_iter().map(|code| MappingFact {
            pid,
            start: code.start,
            end: code.end,
            file_offset: code.file_offset,
            path: code.path.clone(),
            build_id: code.build_id().map(|id| id.to_string()),
            ..MappingFact::default()
        });
        facts.collect()
    }

    #[test]
    fn code_on_stacks_is_named_once_for_all_processes_that_map_it() {
        assert!(std::hint::black_box(named_by_samples(1)) > 0);
        let child = || {
            let child = Command::new("/proc/self/exe")
                .args([
                    "--exact",
                    "live::probes::library_probes::tests::waits_for_the_end_of_its_input",
                    "--ignored",
                ])
                .stdin(Stdio::piped())
                .stdout(Stdio::null())
                .spawn();
            Running(child.expect("started"))
        };
        let (first, second) = (child(), child());
        let parsers = Parsers::here();
        let include = vec!["*named_by_samples".to_owned()];
        let wanted = Selection { include, max_functions: 10, ..Selection::default() };
        let exe = PathBuf::from("/proc/self/exe");
        let choice =
            parsers.open(&exe, "test").and_then(|mut parser| parser.choose(&wanted)).expect("symbols");
        let [function] = &choice.chosen[..] else { panic!("{:?}", choice.chosen) };

        let (news, _told) = tokio::sync::mpsc::unbounded_channel();
        let namer = CodeNamer::reading_with(parsers, PollIntervals::WATCHED, news).expect("a thread");
        let mut notes = Vec::new();
        for (id, child) in (0..).zip([&first, &second]) {
            let pid = child.0.id();
            let mappings = mapped(pid);
            let offset = function.entry_offset;
            let at = mappings.iter().find_map(|mapping| {
                let within = offset.checked_sub(mapping.file_offset)?;
                let address = mapping.start.checked_add(within)?;
                (address < mapping.end && mapping.build_id == mappings[0].build_id).then_some(address)
            });
            let at = at.expect("the function is mapped");
            namer.mappings(&mappings);
            // The second frame is a return address, and the third lies nowhere.
            let frames = vec![at, at + 1, 0x10];
            notes.push(Note { time_ns: 5, kind: NoteKind::Stack { id, pid, frames, cut: false } });
        }
        notes.push(Note { time_ns: 6, kind: NoteKind::ProbesOn { functions: vec![1], pid: None } });
        namer.stacks(&notes);
        let facts = namer.finish();
        let [fact] = &facts[..] else { panic!("one place, once for both processes: {facts:?}") };
        assert_eq!(
            (fact.offset, fact.function.as_deref()),
            (function.entry_offset, Some(function.fact.name.as_str()))
        );
        assert!(fact.build_id.is_some() || fact.path.starts_with('/'), "{fact:?}");
    }
}
