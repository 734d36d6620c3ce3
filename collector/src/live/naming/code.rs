//! The thread that names the code of sampled stacks while it is there: the stacks that came last first, and with a small
//! part of the time.

use crate::live::message::Message;
use crate::live::parts;
use crate::symbolize::{name_code, unnamed};
use crate::symbols::{ElfFile, Parser, Parsers};
use engine::event::{CodeFact, CodeMap, CodePlace, MappingFact, Note, NoteKind, frame_address};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::io;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};
use tokio::sync::mpsc::UnboundedSender;

/// Before names are read: more may come that are read with them.
const GATHER: Duration = Duration::from_millis(300);
/// Reading names takes at most one part in so many of the time.
const SHARE: u32 = 20;
/// How long the end may wait for the last names.
const LAST_WAIT: Duration = Duration::from_secs(20);
/// Most places named in one recording.
const MOST_PLACES: usize = 1 << 20;
/// Most mappings remembered: those of processes that are gone are forgotten first, being the oldest.
const MOST_MAPPINGS: usize = 1 << 16;
/// Most binaries kept open.
const MOST_BINARIES: usize = 64;

enum News {
    Mappings(Vec<MappingFact>),
    Stacks(Vec<Note>),
}

/// The other end of the thread.
#[derive(Debug)]
pub struct CodeNamer {
    news: Option<Sender<News>>,
    names: Receiver<Vec<CodeFact>>,
}

impl CodeNamer {
    /// Starts the thread.
    pub fn start(news: UnboundedSender<Message>) -> io::Result<CodeNamer> {
        CodeNamer::reading_with(Parsers::of_longpole(), news)
    }

    fn reading_with(parsers: Parsers, news: UnboundedSender<Message>) -> io::Result<CodeNamer> {
        let (told, inbox) = channel();
        let (outbox, names) = channel();
        parts::spawn("code names", news, (), move || run(parsers, &inbox, &outbox))?;
        Ok(CodeNamer { news: Some(told), names })
    }

    /// Where processes have code.
    pub fn mappings(&self, mappings: &[MappingFact]) {
        self.tell(News::Mappings(mappings.to_vec()));
    }

    /// Stacks among these notes are to be named.
    pub fn stacks(&self, notes: &[Note]) {
        let stacks: Vec<Note> =
            notes.iter().filter(|note| matches!(note.kind, NoteKind::Stack { .. })).cloned().collect();
        if !stacks.is_empty() {
            self.tell(News::Stacks(stacks));
        }
    }

    fn tell(&self, news: News) {
        if let Some(sender) = &self.news {
            // If the thread is gone it has said why.
            let _ = sender.send(news);
        }
    }

    /// What has been found since the last call.
    pub fn take(&self) -> Vec<CodeFact> {
        self.names.try_iter().flatten().collect()
    }

    /// The rest. Waits for it, but not for ever.
    pub fn finish(mut self) -> Vec<CodeFact> {
        self.news = None;
        let until = Instant::now() + LAST_WAIT;
        let mut rest = Vec::new();
        loop {
            match self.names.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok(names) => rest.extend(names),
                Err(RecvTimeoutError::Disconnected) => return rest,
                Err(RecvTimeoutError::Timeout) => {
                    tracing::warn!(
                        "reading symbols takes too long: some sampled code has no names yet; `longpole symbolize` finds them"
                    );
                    return rest;
                }
            }
        }
    }
}

/// A binary, by path and build-id.
type Binary = (String, Option<String>);

struct Work {
    parsers: Parsers,
    mappings: Vec<MappingFact>,
    /// Stacks not yet looked at.
    stacks: Vec<Note>,
    seen: HashSet<CodePlace>,
    /// `None`: it cannot be read.
    open: HashMap<Binary, Option<Parser>>,
}

fn run(parsers: Parsers, inbox: &Receiver<News>, outbox: &Sender<Vec<CodeFact>>) {
    let mut work = Work {
        parsers,
        mappings: Vec::new(),
        stacks: Vec::new(),
        seen: HashSet::new(),
        open: HashMap::new(),
    };
    let mut not_before = Instant::now() + GATHER;
    loop {
        let received = if work.stacks.is_empty() {
            inbox.recv().map_err(|_| RecvTimeoutError::Disconnected)
        } else {
            inbox.recv_timeout(not_before.saturating_duration_since(Instant::now()))
        };
        match received {
            Ok(News::Mappings(mappings)) => {
                work.mappings.extend(mappings);
                let too_many = work.mappings.len().saturating_sub(MOST_MAPPINGS);
                work.mappings.drain(..too_many);
            }
            Ok(News::Stacks(stacks)) => {
                if work.stacks.is_empty() {
                    not_before = not_before.max(Instant::now() + GATHER);
                }
                work.stacks.extend(stacks);
            }
            Err(over) => {
                let began = Instant::now();
                let facts = work.name();
                not_before = Instant::now() + began.elapsed().saturating_mul(SHARE);
                let sent = facts.is_empty() || outbox.send(facts).is_ok();
                if over == RecvTimeoutError::Disconnected || !sent {
                    return;
                }
            }
        }
    }
}

impl Work {
    fn name(&mut self) -> Vec<CodeFact> {
        let stacks = std::mem::take(&mut self.stacks);
        let map = CodeMap::of_mappings(&self.mappings);
        let mut wanted: BTreeMap<Binary, (u32, Vec<CodePlace>)> = BTreeMap::new();
        for note in stacks.iter().rev() {
            let NoteKind::Stack { pid, frames, .. } = &note.kind else { continue };
            for (index, address) in frames.iter().enumerate() {
                let Some((mapping, offset)) = map.at(*pid, frame_address(index, *address), note.time_ns)
                else {
                    continue;
                };
                let (path, build_id) = (mapping.path.clone(), mapping.build_id.clone());
                let place = CodePlace { path, build_id, offset };
                if self.seen.len() < MOST_PLACES && self.seen.insert(place.clone()) {
                    let binary = (place.path.clone(), place.build_id.clone());
                    wanted.entry(binary).or_insert_with(|| (*pid, Vec::new())).1.push(place);
                }
            }
        }
        let mut facts = Vec::new();
        for (binary, (pid, places)) in wanted {
            if !binary.0.starts_with('/') {
                // The kernel's own, or code that no file holds: what it is called says all.
                continue;
            }
            if self.open.len() >= MOST_BINARIES {
                self.open.clear();
            }
            let parsers = &self.parsers;
            let parser = self.open.entry(binary).or_insert_with_key(|binary| open(parsers, pid, binary));
            let named = parser.as_mut().map(|parser| name_code(parser, &places));
            match named {
                Some(Ok(named)) => facts.extend(named),
                Some(Err(why)) => {
                    tracing::debug!("no names of sampled code: {why}");
                    *parser = None;
                    facts.extend(places.iter().map(unnamed));
                }
                None => facts.extend(places.iter().map(unnamed)),
            }
        }
        facts
    }
}

/// The binary as the process has it, else the one at its path here, if it is the same.
fn open(parsers: &Parsers, pid: u32, (path, build_id): &Binary) -> Option<Parser> {
    let name = path.rsplit('/').next().unwrap_or(path);
    let places = [PathBuf::from(format!("/proc/{pid}/root{path}")), PathBuf::from(path)];
    places.iter().find_map(|place| {
        let found = ElfFile::open(place).ok()?.build_id.map(|id| id.to_string());
        if build_id.is_some() && found != *build_id {
            return None;
        }
        parsers.open(place, name).ok()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::symbols::Selection;
    use crate::target::{Process, code};
    use std::process::{Child, Command, Stdio};

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
    fn code_on_stacks_gets_its_names_once_whoever_has_it_there() {
        assert!(std::hint::black_box(named_by_samples(1)) > 0);
        let child = || {
            let child = Command::new("/proc/self/exe")
                .args(["--exact", "live::beside::tests::waits_for_the_end_of_its_input", "--ignored"])
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
        let namer = CodeNamer::reading_with(parsers, news).expect("a thread");
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
            notes.push(Note { time_ns: 5, kind: NoteKind::Stack { id, pid, frames } });
        }
        notes.push(Note { time_ns: 6, kind: NoteKind::ProbesOn { functions: vec![1] } });
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
