//! Reads one operation: an array whose first value is its kind.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, SeqAccess, Visitor};

use super::names::Names;
use super::value::{ExecValue, Length, Name, NameOrLength, reads};
use crate::program::{EdgeId, FunctionRef, ObjectId, Operation, ThreadId, quoted};
use crate::time::Ticks;

/// All names that operations use.
#[derive(Debug, Default)]
pub(super) struct AllNames {
    pub(super) functions: Names,
    pub(super) objects: Names,
    pub(super) edges: Names,
    /// Threads that operations create or join, in order of their first mention.
    pub(super) threads: Names,
}

/// The kind of an operation, which is the first value of its array.
#[derive(Clone, Copy, Debug, strum::EnumString)]
#[strum(serialize_all = "snake_case")]
enum Kind {
    Exec,
    Call,
    Ret,
    Signal,
    Wait,
    Lock,
    Unlock,
    Rdlock,
    Wrlock,
    Rwunlock,
    SpinLock,
    SpinUnlock,
    Barrier,
    CondWait,
    CondSignal,
    CondBroadcast,
    SemInit,
    SemWait,
    SemPost,
    Once,
    Create,
    Join,
    Io,
    Sleep,
    SleepUntil,
    SleepNext,
    Release,
    Await,
    Held,
    Freed,
}

struct KindName;

reads!(KindName, Kind, deserialize_str);

impl Visitor<'_> for KindName {
    type Value = Kind;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("the name of an operation")
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<Kind, E> {
        name.parse().map_err(|_| E::custom(format!("there is no operation {}", quoted(name))))
    }
}

/// Reads an operation.
pub(super) struct OperationSeed<'n>(pub(super) &'n mut AllNames);

reads!(OperationSeed<'_>, Operation, deserialize_seq);

impl<'de> Visitor<'de> for OperationSeed<'_> {
    type Value = Operation;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("an operation such as [\"exec\",\"f\",1000]")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut values: A) -> Result<Operation, A::Error> {
        let names = self.0;
        let Some(kind) = values.next_element_seed(KindName)? else {
            return Err(A::Error::custom("an operation without a name"));
        };
        let operation = match kind {
            Kind::Exec => exec(&mut values, &mut names.functions)?,
            Kind::Call => Operation::Call(FunctionRef(name(&mut values, &mut names.functions)?)),
            Kind::Ret => Operation::Return,
            Kind::Signal => Operation::Signal(object(&mut values, names)?),
            Kind::Wait => Operation::Wait(object(&mut values, names)?),
            Kind::Lock => Operation::Lock(object(&mut values, names)?),
            Kind::Unlock => Operation::Unlock(object(&mut values, names)?),
            Kind::Rdlock => Operation::ReadLock(object(&mut values, names)?),
            Kind::Wrlock => Operation::WriteLock(object(&mut values, names)?),
            Kind::Rwunlock => Operation::ReadWriteUnlock(object(&mut values, names)?),
            Kind::SpinLock => Operation::SpinLock(object(&mut values, names)?),
            Kind::SpinUnlock => Operation::SpinUnlock(object(&mut values, names)?),
            Kind::Barrier => match (object(&mut values, names)?, count(&mut values)?) {
                (_, 0) => return Err(A::Error::custom("a barrier for 0 threads")),
                (barrier, count) => Operation::Barrier(barrier, count),
            },
            Kind::CondWait => Operation::CondWait(object(&mut values, names)?, object(&mut values, names)?),
            Kind::CondSignal => Operation::CondSignal(object(&mut values, names)?),
            Kind::CondBroadcast => Operation::CondBroadcast(object(&mut values, names)?),
            Kind::SemInit => Operation::SemInit(object(&mut values, names)?, count(&mut values)?),
            Kind::SemWait => Operation::SemWait(object(&mut values, names)?),
            Kind::SemPost => Operation::SemPost(object(&mut values, names)?),
            Kind::Once => Operation::Once(object(&mut values, names)?, length(&mut values)?),
            Kind::Create => Operation::Create(ThreadId(name(&mut values, &mut names.threads)?)),
            Kind::Join => Operation::Join(ThreadId(name(&mut values, &mut names.threads)?)),
            Kind::Io => {
                let length = length(&mut values)?;
                Operation::Io(object(&mut values, names)?, length)
            }
            Kind::Sleep => Operation::Sleep(length(&mut values)?),
            Kind::SleepUntil => Operation::SleepUntil(length(&mut values)?),
            Kind::SleepNext => Operation::SleepNext(length(&mut values)?),
            Kind::Held => Operation::Held(object(&mut values, names)?, length(&mut values)?),
            Kind::Freed => Operation::Freed(object(&mut values, names)?, length(&mut values)?),
            Kind::Release => Operation::Release(EdgeId(name(&mut values, &mut names.edges)?)),
            Kind::Await => Operation::Await(EdgeId(name(&mut values, &mut names.edges)?)),
        };
        if values.next_element::<IgnoredAny>()?.is_some() {
            return Err(A::Error::custom("more values than the operation has"));
        }
        Ok(operation)
    }
}

fn exec<'de, A: SeqAccess<'de>>(values: &mut A, functions: &mut Names) -> Result<Operation, A::Error> {
    match values.next_element_seed(ExecValue(functions))?.ok_or_else(too_few)? {
        NameOrLength::Name(function) => Ok(Operation::ExecIn(FunctionRef(function), length(values)?)),
        NameOrLength::Length(length) => Ok(Operation::Exec(length)),
    }
}

fn name<'de, A: SeqAccess<'de>>(values: &mut A, names: &mut Names) -> Result<u32, A::Error> {
    values.next_element_seed(Name(names))?.ok_or_else(too_few)
}

fn object<'de, A: SeqAccess<'de>>(values: &mut A, names: &mut AllNames) -> Result<ObjectId, A::Error> {
    name(values, &mut names.objects).map(ObjectId)
}

fn length<'de, A: SeqAccess<'de>>(values: &mut A) -> Result<Ticks, A::Error> {
    values.next_element_seed(Length)?.ok_or_else(too_few)
}

fn count<'de, A: SeqAccess<'de>>(values: &mut A) -> Result<u32, A::Error> {
    values.next_element::<u32>()?.ok_or_else(too_few)
}

fn too_few<E: Error>() -> E {
    E::custom("fewer values than the operation needs")
}
