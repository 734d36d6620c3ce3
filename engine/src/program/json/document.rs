//! Reads the document and its threads without a tree of values: a program may have many million operations.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Serialize};

use super::operation::{AllNames, OperationSeed};
use super::samples::SamplesEntry;
use super::value::reads;
use super::{FORMAT, VERSION};
use crate::event::Overhead;
use crate::finding::{Finding, Trust};
use crate::program::{
    Function, LockFact, LockSide, MachineFacts, Move, ObjectId, Operation, ProgramError, Recorded, Thread,
    quoted,
};
use crate::time::Ticks;

/// The part of the document that has been read so far.
#[derive(Debug, Default)]
pub(super) struct Document {
    pub(super) format: bool,
    pub(super) version: bool,
    pub(super) threads: Option<Vec<Thread>>,
    pub(super) functions: Vec<Function>,
    pub(super) locks: Vec<LockEntry>,
    pub(super) trust: Trust,
    pub(super) findings: Vec<Finding>,
    pub(super) recorded: Recorded,
    pub(super) overhead: Option<Overhead>,
    pub(super) recorded_cpus: Option<u32>,
    pub(super) machine: Option<MachineFacts>,
    /// Names of the read-write locks.
    pub(super) writers_first: Vec<String>,
    pub(super) samples: SamplesEntry,
    pub(super) names: AllNames,
    /// Places of `create` and `join`: thread and operation. Their threads get numbers when all names are known.
    pub(super) thread_uses: Vec<(u32, u32)>,
    /// Background threads: number, name of the thread that it ends with, and the range of repeated operations.
    pub(super) backgrounds: Vec<(u32, String, [u32; 2])>,
    /// The error in the content, if the text is valid JSON.
    pub(super) error: Option<ProgramError>,
}

/// Facts about a lock from a recording.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct LockEntry {
    pub(super) name: String,
    #[serde(flatten)]
    all: SideEntry,
    #[serde(default, skip_serializing_if = "SideEntry::is_nothing")]
    reading: SideEntry,
}

/// Facts about a lock or one of its sides (reading, writing); lengths in integer nanoseconds.
#[derive(Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default)]
struct SideEntry {
    acquisitions: u64,
    contended: u64,
    wait_ns: u64,
    hold_ns: u64,
}

impl LockEntry {
    pub(super) fn of(name: String, lock: &LockFact) -> LockEntry {
        let LockFact { acquisitions, contended, waited, held, reading, .. } = *lock;
        let all = SideEntry::of(LockSide { acquisitions, contended, waited, held });
        LockEntry { name, all, reading: SideEntry::of(reading) }
    }

    pub(super) fn fact(&self, object: ObjectId) -> LockFact {
        let LockSide { acquisitions, contended, waited, held } = self.all.side();
        LockFact { object, acquisitions, contended, waited, held, reading: self.reading.side() }
    }
}

impl SideEntry {
    fn of(side: LockSide) -> SideEntry {
        let LockSide { acquisitions, contended, waited, held } = side;
        let ns = |length: Ticks| length.0 / Ticks::PER_NS;
        SideEntry { acquisitions, contended, wait_ns: ns(waited), hold_ns: ns(held) }
    }

    fn side(&self) -> LockSide {
        let SideEntry { acquisitions, contended, wait_ns, hold_ns } = *self;
        let (waited, held) = (Ticks::from_ns(wait_ns), Ticks::from_ns(hold_ns));
        LockSide { acquisitions, contended, waited, held }
    }

    fn is_nothing(&self) -> bool {
        *self == SideEntry::default()
    }
}

impl Document {
    /// Notes the error; the returned one only stops the parser, and its text is not used.
    fn fail<E: Error>(&mut self, error: ProgramError) -> E {
        self.error.get_or_insert(error);
        E::custom("no program")
    }
}

pub(super) fn foreign(what: impl fmt::Display) -> ProgramError {
    ProgramError::new(
        format!("this is not a longpole program: {what}"),
        "a program starts with {\"format\":\"longpole-program\",\"version\":1,\"threads\":[",
    )
}

/// Reads a text into a [`Document`].
pub(super) struct DocumentSeed<'d>(pub(super) &'d mut Document);

reads!(DocumentSeed<'_>, (), deserialize_map);

impl<'de> Visitor<'de> for DocumentSeed<'_> {
    type Value = ();

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a longpole program")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<(), A::Error> {
        let document = self.0;
        while let Some(field) = fields.next_key::<Field>()? {
            match field {
                Field::Format => {
                    let format: String = fields.next_value()?;
                    if format != FORMAT {
                        return Err(document.fail(foreign(format_args!("its format is {}", quoted(&format)))));
                    }
                    document.format = true;
                }
                Field::Version => {
                    let version: u64 = fields.next_value()?;
                    if version != VERSION {
                        return Err(document.fail(ProgramError::new(
                            format!("version {version} of the program format is not known, only {VERSION}"),
                            "use the longpole that wrote it, or a newer one",
                        )));
                    }
                    document.version = true;
                }
                Field::Threads if document.threads.is_some() => {
                    return Err(document.fail(foreign("it has \"threads\" twice")));
                }
                Field::Threads => fields.next_value_seed(ThreadsSeed(document))?,
                Field::Functions => document.functions = fields.next_value()?,
                Field::Locks => document.locks = fields.next_value()?,
                Field::Trust => document.trust = fields.next_value()?,
                Field::Findings => document.findings = fields.next_value()?,
                Field::Recorded => document.recorded = fields.next_value()?,
                Field::Overhead => document.overhead = fields.next_value()?,
                Field::RecordedCpus => document.recorded_cpus = fields.next_value()?,
                Field::Machine => document.machine = fields.next_value()?,
                Field::WritersFirst => document.writers_first = fields.next_value()?,
                Field::Samples => document.samples = fields.next_value()?,
                Field::Other => {
                    fields.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(())
    }
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Field {
    Format,
    Version,
    Threads,
    Functions,
    Locks,
    Trust,
    Findings,
    Recorded,
    Overhead,
    RecordedCpus,
    Machine,
    WritersFirst,
    Samples,
    #[serde(other)]
    Other,
}

struct ThreadsSeed<'d>(&'d mut Document);

reads!(ThreadsSeed<'_>, (), deserialize_seq);

impl<'de> Visitor<'de> for ThreadsSeed<'_> {
    type Value = ();

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a list of threads")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        let mut threads = Vec::new();
        while let Some(thread) =
            list.next_element_seed(ThreadSeed { document: self.0, number: threads.len() })?
        {
            threads.push(thread);
        }
        self.0.threads = Some(threads);
        Ok(())
    }
}

struct ThreadSeed<'d> {
    document: &'d mut Document,
    number: usize,
}

reads!(ThreadSeed<'_>, Thread, deserialize_map);

impl<'de> Visitor<'de> for ThreadSeed<'_> {
    type Value = Thread;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a thread such as {\"name\":\"T1\",\"ops\":[]}")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Thread, A::Error> {
        let ThreadSeed { document, number } = self;
        let mut name: Option<String> = None;
        let mut operations: Option<Vec<Operation>> = None;
        let (mut nice, mut cpus) = (0_i8, Vec::new());
        let (mut process, mut ran_on) = (None, Vec::new());
        while let Some(field) = fields.next_key::<ThreadField>()? {
            match field {
                ThreadField::Name => name = Some(fields.next_value()?),
                ThreadField::Nice => nice = fields.next_value()?,
                ThreadField::Cpus => cpus = fields.next_value()?,
                ThreadField::Process => process = fields.next_value()?,
                ThreadField::RanOn => ran_on = fields.next_value()?,
                ThreadField::Background => {
                    let (ends_with, from, until): (String, u32, u32) = fields.next_value()?;
                    document.backgrounds.push((number as u32, ends_with, [from, until]));
                }
                ThreadField::Ops if operations.is_some() => {
                    let problem = format!("thread number {number} has \"ops\" twice");
                    return Err(
                        document.fail(ProgramError::new(problem, "give each thread one list of operations"))
                    );
                }
                ThreadField::Ops => {
                    let seed = OperationsSeed { document, number, name: name.as_deref() };
                    operations = Some(fields.next_value_seed(seed)?);
                }
                ThreadField::Other => {
                    fields.next_value::<IgnoredAny>()?;
                }
            }
        }
        match (name, operations) {
            (Some(name), Some(operations)) => Ok(Thread {
                name,
                operations,
                nice: nice.clamp(-20, 19),
                cpus,
                process,
                moves: moves(ran_on),
                background: None,
            }),
            (name, _) => {
                let missing = if name.is_none() { "name" } else { "ops" };
                let problem = format!("thread number {number} (from 0) has no \"{missing}\"");
                Err(document.fail(ProgramError::new(problem, "a thread is {\"name\":\"T1\",\"ops\":[…]}")))
            }
        }
    }
}

/// Makes moves of `ran_on` entries (operation, nanoseconds in it, CPU), sorted, whatever their order in the text.
fn moves(ran_on: Vec<(u32, u64, Option<u16>)>) -> Vec<Move> {
    let moves = ran_on.into_iter().map(|(operation, after_ns, cpu)| Move {
        operation,
        after: Ticks::from_ns(after_ns),
        cpu,
    });
    let mut moves: Vec<Move> = moves.collect();
    moves.sort_by_key(|step| (step.operation, step.after));
    moves
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum ThreadField {
    Name,
    Nice,
    Cpus,
    Process,
    RanOn,
    Background,
    Ops,
    #[serde(other)]
    Other,
}

struct OperationsSeed<'d> {
    document: &'d mut Document,
    number: usize,
    name: Option<&'d str>,
}

reads!(OperationsSeed<'_>, Vec<Operation>, deserialize_seq);

impl<'de> Visitor<'de> for OperationsSeed<'_> {
    type Value = Vec<Operation>;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a list of operations")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Vec<Operation>, A::Error> {
        let OperationsSeed { document, number, name } = self;
        let mut operations = Vec::new();
        loop {
            match list.next_element_seed(OperationSeed(&mut document.names)) {
                Ok(None) => return Ok(operations),
                Ok(Some(operation)) => {
                    if matches!(operation, Operation::Create(_) | Operation::Join(_)) {
                        // `Program::check` refuses programs whose indices exceed 32 bits.
                        document.thread_uses.push((number as u32, operations.len() as u32));
                    }
                    operations.push(operation);
                }
                Err(error) => {
                    let problem = super::read::one_line(&error);
                    let error = ProgramError::new(
                        problem,
                        "the operations and their values are listed in docs/program-format.md",
                    );
                    let numbered = format!("number {number}");
                    return Err(document.fail(error.at(name.unwrap_or(&numbered), operations.len())));
                }
            }
        }
    }
}
