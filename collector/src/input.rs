//! Opens the input of an analysis command: a session or a program JSON, recognized by content.

use crate::content::Content;
use crate::cores::first_on_all_cores;
use crate::exit::{UserError, say};
use crate::part::part_of;
use crate::part_of_file::{NoPart, PartOfFile, part_of_file};
use crate::plan::part::{MOST_RECORDS, RecordingPart};
use crate::plan::{InputPlan, Source};
use engine::event::Recording;
use engine::program::Program;
use engine::report::Finding;
use engine::timeline::Timeline;
use recording::{Damage, DamageKind, Meta, Outline, SessionError, SessionInfo};
use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, BufReader, Cursor, Read, Seek, SeekFrom};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// A program JSON larger than this is refused: 10 million operations take about 200 MB.
const MOST_JSON_BYTES: u64 = 4 << 30;

/// Bytes by which a file's kind is recognized; leading blanks of a JSON must fit.
const START_BYTES: usize = 1 << 16;

/// Least size of a large file, bytes: reading such a file takes a second.
const LARGE_BYTES: u64 = 16 << 20;

/// Bytes read at once if most of a file is skipped.
const SMALL_BUFFER: usize = 1 << 16;

/// The content of a file.
#[derive(Debug)]
pub enum Input {
    /// A recording.
    Session(Box<Session>),
    /// A program JSON.
    Program(Box<Program>),
}

/// A recording, or a part of one.
#[derive(Debug, Default)]
pub struct Session {
    /// The recording.
    pub recording: Recording,
    /// Facts about the file: format, records, chunks.
    pub info: SessionInfo,
    /// A finding that says which part of the recording was read; `None`: all of it.
    pub part: Option<Finding>,
    /// The events were not read.
    pub without_events: bool,
}

/// The stages of an input.
#[derive(Debug)]
pub struct Parts {
    /// The timeline of the recording; `None` for a program JSON.
    pub timeline: Option<Timeline>,
    /// The program.
    pub program: Program,
    /// The file's description of itself.
    pub meta: Option<Meta>,
}

impl Input {
    /// Opens and reads an input. Every error is one line that names the file.
    pub fn open(plan: &InputPlan) -> Result<Input, UserError> {
        capture::target::return_large_blocks();
        let source = plan.source.resolved()?;
        match Input::part_of_file(&source, plan.part, MOST_RECORDS)? {
            Some(part) => Ok(part),
            None => Input::whole(&source)?.part(plan.part, MOST_RECORDS),
        }
    }

    /// Opens an input with at most `most` records. `None`: the complete file would have to be read, and it has more
    /// than `most_whole` events.
    pub fn open_small(
        file: &Path,
        (most, most_whole): (usize, u64),
        events: u64,
    ) -> Result<Option<Input>, UserError> {
        let source = Source::File(file.to_owned());
        if let Some(part) = Input::part_of_file(&source, RecordingPart::default(), most)? {
            return Ok(Some(part));
        }
        if events > most_whole {
            return Ok(None);
        }
        Input::whole(&source)?.part(RecordingPart::default(), most).map(Some)
    }

    /// Reads a large file without its events, which is quick; a small file is read completely.
    pub fn open_without_events(source: &Source) -> Result<Input, UserError> {
        let found = match outline(source, LARGE_BYTES)? {
            Some((name, mut outline)) => {
                outline.without_events().map_err(|error| unreadable(&name, &error))?
            }
            None => None,
        };
        let Some((recording, info)) = found else { return Input::whole(source) };
        Ok(Input::Session(Box::new(Session { recording, info, part: None, without_events: true })))
    }

    fn part_of_file(source: &Source, part: RecordingPart, most: usize) -> Result<Option<Input>, UserError> {
        let Some((name, mut outline)) = outline(source, 0)? else { return Ok(None) };
        match part_of_file(&mut outline, part, most) {
            Ok(PartOfFile { recording, info, finding }) => {
                let session = Session { recording, info, part: Some(finding), without_events: false };
                Ok(Some(Input::Session(Box::new(session))))
            }
            Err(NoPart::ReadAll) => Ok(None),
            Err(NoPart::Io(error)) => Err(unreadable(&name, &error)),
            Err(NoPart::User(error)) => Err(error),
        }
    }

    /// The part of a recording that was read, with at most `most` records.
    pub fn part(self, part: RecordingPart, most: usize) -> Result<Input, UserError> {
        match self {
            Input::Session(read) => {
                let Session { recording, info, .. } = *read;
                let clock = info.meta.as_ref().map(|meta| meta.clock).unwrap_or_default();
                let (recording, part) = part_of(recording, clock, part, most)?;
                Ok(Input::Session(Box::new(Session { recording, info, part, without_events: false })))
            }
            Input::Program(_) if part.from.is_some() || part.to.is_some() => Err(UserError::usage(
                "a program has no parts, since it has no recorded times",
                "give a recording, or leave --from and --to out",
            )),
            Input::Program(program) => Ok(Input::Program(program)),
        }
    }

    /// Reads all of an input.
    fn whole(source: &Source) -> Result<Input, UserError> {
        match source {
            Source::Stdin => {
                let mut start = Vec::new();
                let mut stdin = io::stdin().lock();
                stdin
                    .by_ref()
                    .take(START_BYTES as u64)
                    .read_to_end(&mut start)
                    .map_err(|error| unreadable("standard input", &error))?;
                Input::from_stream("standard input", start, stdin)
            }
            Source::File(path) => Input::from_file(path),
            Source::Newest => Input::whole(&source.resolved()?),
        }
    }

    fn from_file(path: &Path) -> Result<Input, UserError> {
        let (name, mut file) = open_file(path)?;
        let fail = |error: io::Error| unreadable(&name, &error);
        let mut start = Vec::new();
        file.by_ref().take(START_BYTES as u64).read_to_end(&mut start).map_err(fail)?;
        if !file.metadata().map_err(fail)?.is_file() {
            return Input::from_stream(&name, start, file);
        }
        match Content::of(&start) {
            Content::Session => {
                file.seek(SeekFrom::Start(0)).map_err(fail)?;
                Input::session(&name, BufReader::with_capacity(1 << 20, file))
            }
            Content::Program => Input::program(&name, start, file),
            Content::Other(problem, hint) => Err(UserError::runtime(format!("{name} {problem}"), hint)),
        }
    }

    /// Reads a pipe or the like, which can only be read once.
    fn from_stream(name: &str, start: Vec<u8>, rest: impl Read) -> Result<Input, UserError> {
        match Content::of(&start) {
            Content::Session => {
                let bytes = read_all(name, start, rest)?;
                Input::session(name, Cursor::new(bytes))
            }
            Content::Program => Input::program(name, start, rest),
            Content::Other(problem, hint) => Err(UserError::runtime(format!("{name} {problem}"), hint)),
        }
    }

    fn session(name: &str, source: impl Read + Seek) -> Result<Input, UserError> {
        let (recording, info) = recording::read_from(source).map_err(|error| session_error(name, &error))?;
        Ok(Input::Session(Box::new(Session { recording, info, part: None, without_events: false })))
    }

    fn program(name: &str, start: Vec<u8>, rest: impl Read) -> Result<Input, UserError> {
        let bytes = read_all(name, start, rest)?;
        let text = String::from_utf8(bytes).map_err(|error| {
            UserError::runtime(
                format!("{name} is not UTF-8 text: see byte {}", error.utf8_error().valid_up_to()),
                "save the program as UTF-8",
            )
        })?;
        let program = engine::program::json::read(text.strip_prefix('\u{feff}').unwrap_or(&text))
            .map_err(|error| UserError::runtime(format!("{name}: {error}"), error.hint()))?;
        Ok(Input::Program(Box::new(program)))
    }

    /// The input with compute times as measured: the cost of probe hits is not subtracted. A program JSON is not
    /// changed.
    pub fn raw(mut self) -> Input {
        if let Input::Session(read) = &mut self {
            read.recording.facts.hit_costs = None;
        }
        self
    }

    /// The program, with a finding for each thing that is missing from the file.
    pub fn into_program(self) -> Program {
        self.into_parts().program
    }

    /// The timeline, and a program with names that was not simulated; `None` for a program JSON.
    pub fn into_unsimulated(self) -> Option<(Timeline, Program)> {
        let Input::Session(read) = self else { return None };
        let Session { recording, info, part, .. } = *read;
        let timeline = engine::timeline::build(&recording);
        drop(recording);
        let mut program = engine::translation::unsimulated_from_timeline(&timeline);
        program.findings.splice(0..0, session_findings(&info).into_iter().chain(part));
        Some((timeline, program))
    }

    /// The program, and if it was recorded, its timeline and the file's description.
    pub fn into_parts(self) -> Parts {
        match self {
            Input::Program(program) => Parts { timeline: None, program: *program, meta: None },
            Input::Session(read) => {
                let Session { recording, info, part, .. } = *read;
                let timeline = engine::timeline::build(&recording);
                // Frees memory: recordings are large, and so is the next stage.
                drop(recording);
                let mut program = engine::translation::from_timeline_on(&timeline, &first_on_all_cores);
                program.findings.splice(0..0, session_findings(&info).into_iter().chain(part));
                program.recorded_on(info.meta.as_ref().map(|meta| meta.cpu_count).filter(|&cpus| cpus > 0));
                Parts { timeline: Some(timeline), program, meta: info.meta }
            }
        }
    }
}

/// Opens a regular file, or a pipe that the shell has opened; returns it with its name.
fn open_file(path: &Path) -> Result<(String, File), UserError> {
    let name = path.display().to_string();
    let fail = |error: io::Error| unreadable(&name, &error);
    // Checked before opening: opening a pipe may wait forever for a writer, and opening a device may have effects.
    expected(&name, path, &path.metadata().map_err(fail)?)?;
    // If the file has become a pipe in the meantime, opening it still must not wait. The flags do not affect regular
    // files.
    let flags = if is_own_descriptor(path) { 0 } else { libc::O_NONBLOCK | libc::O_NOCTTY };
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path).map_err(fail)?;
    expected(&name, path, &file.metadata().map_err(fail)?)?;
    Ok((name, file))
}

/// The name of a file, and its index.
type NamedOutline = (String, Outline<BufReader<File>>);

/// The index of a session in a regular file of at least this size; `None`: it is something else.
fn outline(source: &Source, least_bytes: u64) -> Result<Option<NamedOutline>, UserError> {
    let Source::File(path) = source else { return Ok(None) };
    // A pipe can only be read once, so a pipe is not opened here.
    if !path.metadata().is_ok_and(|metadata| metadata.is_file() && metadata.len() >= least_bytes) {
        return Ok(None);
    }
    let (name, mut file) = open_file(path)?;
    let fail = |error: io::Error| unreadable(&name, &error);
    let mut start = [0; 8];
    let is_session = file.read(&mut start).map_err(fail)? == start.len() && recording::is_session(&start);
    if !is_session {
        return Ok(None);
    }
    let outline = recording::outline(BufReader::with_capacity(SMALL_BUFFER, file));
    Ok(outline.map_err(|error| session_error(&name, &error))?.map(|outline| (name, outline)))
}

/// Refuses everything but regular files and pipes that the shell has opened.
fn expected(name: &str, path: &Path, metadata: &Metadata) -> Result<(), UserError> {
    if metadata.is_dir() {
        return Err(UserError::runtime(format!("{name} is a directory"), "give a file in it"));
    }
    if metadata.is_file() || is_own_descriptor(path) {
        return Ok(());
    }
    Err(UserError::runtime(
        format!("{name} is not a regular file"),
        "to read from a pipe, give - and connect the pipe to standard input",
    ))
}

/// Whether a path is `<(COMMAND)` of a shell or `/dev/stdin`: it is open already, so there is a writer.
fn is_own_descriptor(path: &Path) -> bool {
    path == Path::new("/dev/stdin") || path.starts_with("/dev/fd") || path.starts_with("/proc/self/fd")
}

/// Findings about the session file itself.
fn session_findings(info: &SessionInfo) -> Vec<Finding> {
    let mut findings = Vec::new();
    if let Some(damage) = &info.damage {
        findings.push(of_damage(damage));
    }
    if info.unknown_records > 0 {
        findings.push(Finding::UnknownRecords { records: info.unknown_records });
    }
    findings
}

fn of_damage(damage: &Damage) -> Finding {
    let error = damage.to_string();
    match damage.kind {
        DamageKind::NoEnd | DamageKind::Cut { .. } => Finding::CutSession { error },
        DamageKind::Corrupt { .. } => Finding::DamagedSession { error },
        DamageKind::Trailing => Finding::TrailingBytes { error },
        DamageKind::TooLarge => Finding::SessionTooLarge { error },
    }
}

impl Source {
    /// The source with the newest recording's name filled in, which is shown to the user.
    pub fn resolved(&self) -> Result<Source, UserError> {
        let Source::Newest = self else { return Ok(self.clone()) };
        let path = newest(Path::new("."))?;
        say(format_args!("reading {}", path.display()));
        Ok(Source::File(path))
    }
}

/// The `*.lp` file of a folder that was changed last; of several with the same time, the one whose name comes last.
pub(super) fn newest(folder: &Path) -> Result<PathBuf, UserError> {
    let entries = std::fs::read_dir(folder).map_err(|error| unreadable("the current folder", &error))?;
    let recordings = entries.filter_map(|entry| {
        let path = PathBuf::from(entry.ok()?.file_name());
        let is_one = path.extension().is_some_and(|end| end == "lp");
        let changed = folder.join(&path).metadata().ok().filter(Metadata::is_file)?.modified().ok()?;
        is_one.then_some((changed, path))
    });
    recordings.max().map(|(_, path)| path).ok_or_else(|| {
        UserError::usage(
            "no FILE given, and this folder has no recording (*.lp)",
            "give a file, or make one: `longpole record -o FILE -- COMMAND`",
        )
    })
}

fn read_all(name: &str, start: Vec<u8>, rest: impl Read) -> Result<Vec<u8>, UserError> {
    read_at_most(MOST_JSON_BYTES, name, start, rest)
}

fn read_at_most(most: u64, name: &str, mut start: Vec<u8>, rest: impl Read) -> Result<Vec<u8>, UserError> {
    rest.take(most).read_to_end(&mut start).map_err(|error| unreadable(name, &error))?;
    if start.len() as u64 >= most {
        let problem = format!("{name} is larger than {} GiB", most >> 30);
        let hint = if recording::is_session(&start) {
            "save the input as a file and give its name: only input from a pipe must fit into memory"
        } else {
            "split the program, or give the session that it comes from"
        };
        return Err(UserError::runtime(problem, hint));
    }
    Ok(start)
}

fn unreadable(name: &str, error: &io::Error) -> UserError {
    match error.kind() {
        io::ErrorKind::NotFound => UserError::runtime(
            format!("there is no file {name}"),
            "check the name; `longpole record -o FILE` makes a recording",
        ),
        io::ErrorKind::PermissionDenied => UserError::runtime(
            format!("you may not read {name}"),
            "a recording belongs to the user who made it: run as that user, or with sudo",
        ),
        io::ErrorKind::OutOfMemory => {
            UserError::runtime(format!("{name} does not fit into memory"), "use a machine with more memory")
        }
        _ => UserError::runtime(format!("{name} cannot be read: {error}"), "check the file and its disk"),
    }
}

fn session_error(name: &str, error: &SessionError) -> UserError {
    match error {
        SessionError::Io(error) => unreadable(name, error),
        other => UserError::runtime(format!("{name}: {other}"), other.hint()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::event::{FunctionFact, ProcessFact, WindowEnd};
    use engine::report::{Cpus, Detail};
    use proptest::prelude::*;

    /// The hint differs: a session cannot be split like a program.
    #[test]
    fn an_input_too_large_for_a_pipe_gets_the_hint_for_its_kind() {
        let hint =
            |start: &[u8]| read_at_most(16, "-", start.to_vec(), &[0u8; 20][..]).expect_err("too large").hint;
        assert!(hint(b"\x9fLPS\r\n\x1a\n").contains("save the input as a file"));
        assert!(hint(b"{").contains("split the program"));
        assert_eq!(read_at_most(16, "-", b"{".to_vec(), &b"}"[..]).expect("small"), b"{}");
    }

    /// Records as in a hostile or broken file: few threads, CPUs and functions, so that they interact, and times that mostly
    /// increase.
    fn record() -> impl Strategy<Value = probe_abi::Record> {
        let kind = proptest::sample::select(probe_abi::Kind::ALL.to_vec());
        let small = || prop_oneof![8 => 0u32..5, 1 => any::<u32>()];
        let time = prop_oneof![8 => 0u64..10_000, 1 => any::<u64>()];
        let body = proptest::collection::vec(small(), 10);
        (kind, time, small(), small(), 0u8..7, body).prop_map(|(kind, time, tid, pid, context, body)| {
            let mut bytes = [0u8; 64];
            bytes[..8].copy_from_slice(&time.to_le_bytes());
            bytes[8..12].copy_from_slice(&body[8].to_le_bytes());
            bytes[12] = body[9] as u8 % 3;
            bytes[14] = kind as u8;
            bytes[15] = context;
            bytes[16..20].copy_from_slice(&tid.to_le_bytes());
            bytes[20..24].copy_from_slice(&pid.to_le_bytes());
            for (place, word) in bytes[24..56].as_chunks_mut::<4>().0.iter_mut().zip(body) {
                *place = word.to_le_bytes();
            }
            probe_abi::Record::decode(&bytes).expect("64 bytes hold any record")
        })
    }

    fn program_of(recording: &Recording) -> Program {
        let info = SessionInfo { unknown_records: 1, ..SessionInfo::default() };
        Input::Session(Box::new(Session { recording: recording.clone(), info, ..Session::default() }))
            .into_program()
    }

    proptest! {
        #[test]
        fn any_session_gives_a_report_and_an_export_with_the_same_report(
            mut events in proptest::collection::vec(record(), 0..200),
            sorted in any::<bool>(),
            facts in any::<bool>(),
        ) {
            if sorted {
                events.sort_by_key(|event| event.header().time_ns);
            }
            let mut recording = Recording { events, ..Recording::default() };
            if facts {
                recording.facts.processes.push(ProcessFact { pid: 1, ..ProcessFact::default() });
                recording.facts.functions.push(FunctionFact { id: 2, name: "f\u{1b}".into(), ..FunctionFact::default() });
                recording.facts.end = Some(WindowEnd { end_ns: 5_000, ..WindowEnd::default() });
            }
            let program = program_of(&recording);
            prop_assert_eq!(program.check(), Ok(()));
            let cpus = Cpus::parse_list("1,3,inf").expect("a list");
            let report = engine::report::report(&program, &cpus, Detail::Segments);
            let mut exported = Vec::new();
            engine::program::json::write(&program, &mut exported).expect("exported");
            let exported = String::from_utf8(exported).expect("text");
            let read = engine::program::json::read(&exported).expect("read back");
            prop_assert_eq!(engine::report::report(&read, &cpus, Detail::Segments), report);
        }
    }
}
