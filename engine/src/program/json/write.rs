//! Writes a program as JSON with one operation per line, without building the text in memory.

use std::collections::HashSet;
use std::io::{self, BufWriter, Write};

use super::document::LockEntry;
use super::samples::SamplesEntry;
use super::text::escaped;
use super::{FORMAT, VERSION};
use crate::finding::Trust;
use crate::program::{
    EdgeId, Function, FunctionRef, LockFact, ObjectId, Operation, Program, Recorded, ThreadId,
};
use crate::time::Ticks;
use serde::Serialize;

/// Writes a program so that [`super::read`] returns one with the same report.
///
/// # Errors
/// Errors of the writer; `InvalidInput` for a program that fails [`Program::check`] or whose names are not unique.
pub fn write(program: &Program, to: impl Write) -> io::Result<()> {
    let invalid = |text: String| io::Error::new(io::ErrorKind::InvalidInput, text);
    program.check().map_err(|error| invalid(error.to_string()))?;
    let names = Names::of(program).map_err(invalid)?;
    let mut out = BufWriter::with_capacity(1 << 16, to);
    write!(out, "{{\"format\":\"{FORMAT}\",\"version\":{VERSION}")?;
    if let Some(cpus) = program.recorded_cpus {
        write!(out, ",\n\"recorded_cpus\":{cpus}")?;
    }
    if program.trust != Trust::default() {
        write!(out, ",\n\"trust\":{}", serde_json::to_string(&program.trust)?)?;
    }
    if let Some(machine) = &program.machine {
        write!(out, ",\n\"machine\":{}", escaped(serde_json::to_string(machine)?))?;
    }
    if !program.writers_first.is_empty() {
        let locks = program.writers_first.iter().map(|lock| names.objects[lock.0 as usize].as_str());
        write!(out, ",\n\"writers_first\":[{}]", locks.collect::<Vec<_>>().join(","))?;
    }
    if program.recorded != Recorded::default() {
        write!(out, ",\n\"recorded\":{}", escaped(serde_json::to_string(&program.recorded)?))?;
    }
    if let Some(overhead) = &program.overhead {
        write!(out, ",\n\"overhead\":{}", serde_json::to_string(overhead)?)?;
    }
    if !program.findings.is_empty() {
        write!(out, ",\n\"findings\":{}", escaped(serde_json::to_string(&program.findings)?))?;
    }
    functions(program, &mut out)?;
    locks(program, &mut out)?;
    if !program.samples.is_empty() {
        let samples = serde_json::to_string(&SamplesEntry::of(program))?;
        write!(out, ",\n\"samples\":{}", escaped(samples))?;
    }
    out.write_all(b",\n\"threads\":[")?;
    for (index, thread) in program.threads.iter().enumerate() {
        let comma = if index == 0 { "" } else { "," };
        write!(out, "{comma}\n{{\"name\":{}", names.threads[index])?;
        if thread.nice != 0 {
            write!(out, ",\"nice\":{}", thread.nice)?;
        }
        if !thread.cpus.is_empty() {
            write!(out, ",\"cpus\":{}", serde_json::to_string(&thread.cpus)?)?;
        }
        if let Some(background) = thread.background {
            let name = names.threads.get(background.ends_with.0 as usize).map_or("\"\"", |name| name);
            write!(out, ",\"background\":[{name},{},{}]", background.repeats_from, background.repeats_until)?;
        }
        if let Some(process) = &thread.process {
            write!(out, ",\"process\":{}", json(process))?;
        }
        if !thread.moves.is_empty() {
            let moves =
                thread.moves.iter().map(|step| (step.operation, step.after.0 / Ticks::PER_NS, step.cpu));
            write!(out, ",\n\"ran_on\":{}", serde_json::to_string(&moves.collect::<Vec<_>>())?)?;
        }
        out.write_all(b",\"ops\":[")?;
        for (index, step) in thread.operations.iter().enumerate() {
            out.write_all(if index == 0 { b"\n" } else { b",\n" })?;
            operation(step, &names, &mut out)?;
        }
        out.write_all(b"]}")?;
    }
    out.write_all(b"]}\n")?;
    out.flush()
}

/// Writes facts about functions besides their names; writes nothing if there are none.
fn functions(program: &Program, out: &mut impl Write) -> io::Result<()> {
    let is_known = |function: &&Function| {
        let named = Function { name: function.name.clone(), ..Function::default() };
        **function != Function { origin: function.origin, ..named }
    };
    list("functions", program.functions.iter().filter(is_known), out)
}

/// Writes facts about locks; nothing if there are none.
fn locks(program: &Program, out: &mut impl Write) -> io::Result<()> {
    let name = |lock: &LockFact| program.objects.get(lock.object.0 as usize).cloned();
    let entries = program.locks.iter().filter_map(|lock| Some(LockEntry::of(name(lock)?, lock)));
    list("locks", entries, out)
}

/// Writes a list with one entry per line; writes nothing if the list is empty.
fn list(title: &str, entries: impl Iterator<Item = impl Serialize>, out: &mut impl Write) -> io::Result<()> {
    let mut entries = entries.peekable();
    if entries.peek().is_none() {
        return Ok(());
    }
    let lines: Result<Vec<String>, _> = entries.map(|entry| serde_json::to_string(&entry)).collect();
    write!(out, ",\n\"{title}\":[{}]", escaped(lines?.join(",\n")))
}

fn operation(operation: &Operation, names: &Names, out: &mut impl Write) -> io::Result<()> {
    let object = |object: ObjectId| &names.objects[object.0 as usize];
    let function = |function: FunctionRef| &names.functions[function.0 as usize];
    let thread = |thread: ThreadId| &names.threads[thread.0 as usize];
    match *operation {
        Operation::Exec(time) => write!(out, "[\"exec\",{}]", Length(time)),
        Operation::ExecIn(name, time) => write!(out, "[\"exec\",{},{}]", function(name), Length(time)),
        Operation::Call(name) => write!(out, "[\"call\",{}]", function(name)),
        Operation::Return => write!(out, "[\"ret\"]"),
        Operation::Signal(name) => write!(out, "[\"signal\",{}]", object(name)),
        Operation::Wait(name) => write!(out, "[\"wait\",{}]", object(name)),
        Operation::Lock(name) => write!(out, "[\"lock\",{}]", object(name)),
        Operation::Unlock(name) => write!(out, "[\"unlock\",{}]", object(name)),
        Operation::ReadLock(name) => write!(out, "[\"rdlock\",{}]", object(name)),
        Operation::WriteLock(name) => write!(out, "[\"wrlock\",{}]", object(name)),
        Operation::ReadWriteUnlock(name) => write!(out, "[\"rwunlock\",{}]", object(name)),
        Operation::SpinLock(name) => write!(out, "[\"spin_lock\",{}]", object(name)),
        Operation::SpinUnlock(name) => write!(out, "[\"spin_unlock\",{}]", object(name)),
        Operation::Barrier(name, count) => write!(out, "[\"barrier\",{},{count}]", object(name)),
        Operation::CondWait(name, mutex) => {
            write!(out, "[\"cond_wait\",{},{}]", object(name), object(mutex))
        }
        Operation::CondSignal(name) => write!(out, "[\"cond_signal\",{}]", object(name)),
        Operation::CondBroadcast(name) => write!(out, "[\"cond_broadcast\",{}]", object(name)),
        Operation::SemInit(name, count) => write!(out, "[\"sem_init\",{},{count}]", object(name)),
        Operation::SemWait(name) => write!(out, "[\"sem_wait\",{}]", object(name)),
        Operation::SemPost(name) => write!(out, "[\"sem_post\",{}]", object(name)),
        Operation::Once(name, time) => write!(out, "[\"once\",{},{}]", object(name), Length(time)),
        Operation::Create(name) => write!(out, "[\"create\",{}]", thread(name)),
        Operation::Join(name) => write!(out, "[\"join\",{}]", thread(name)),
        Operation::Io(name, time) => write!(out, "[\"io\",{},{}]", Length(time), object(name)),
        Operation::Sleep(time) => write!(out, "[\"sleep\",{}]", Length(time)),
        Operation::SleepUntil(time) => write!(out, "[\"sleep_until\",{}]", Length(time)),
        Operation::SleepNext(time) => write!(out, "[\"sleep_next\",{}]", Length(time)),
        Operation::Held(name, time) => write!(out, "[\"held\",{},{}]", object(name), Length(time)),
        Operation::Freed(name, time) => write!(out, "[\"freed\",{},{}]", object(name), Length(time)),
        Operation::Release(edge) => write!(out, "[\"release\",{}]", names.edge(edge)),
        Operation::Await(edge) => write!(out, "[\"await\",{}]", names.edge(edge)),
    }
}

/// Nanoseconds with the needed decimals; exact.
struct Length(Ticks);

impl std::fmt::Display for Length {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (whole, part) = (self.0.0 / Ticks::PER_NS, self.0.0 % Ticks::PER_NS);
        match part {
            0 => write!(out, "{whole}"),
            part if part % 100 == 0 => write!(out, "{whole}.{}", part / 100),
            part if part % 10 == 0 => write!(out, "{whole}.{:02}", part / 10),
            part => write!(out, "{whole}.{part:03}"),
        }
    }
}

/// All names as JSON strings.
struct Names {
    functions: Vec<String>,
    objects: Vec<String>,
    threads: Vec<String>,
    edges: Vec<String>,
    /// Prefix for the names of unnamed edges, unlike all other names.
    unnamed_edge: String,
}

impl Names {
    fn of(program: &Program) -> Result<Names, String> {
        let edges = unique("edges", program.edges.iter().map(String::as_str))?;
        Ok(Names {
            functions: unique("functions", program.functions.iter().map(|function| function.name.as_str()))?,
            objects: unique("objects", program.objects.iter().map(String::as_str))?,
            threads: unique("threads", program.threads.iter().map(|thread| thread.name.as_str()))?,
            edges,
            unnamed_edge: program.unnamed_edge(),
        })
    }

    fn edge(&self, edge: EdgeId) -> std::borrow::Cow<'_, str> {
        match self.edges.get(edge.0 as usize) {
            Some(name) => name.into(),
            None => format!("\"{}{}\"", self.unnamed_edge, edge.0).into(),
        }
    }
}

fn unique<'n>(what: &str, names: impl Iterator<Item = &'n str> + Clone) -> Result<Vec<String>, String> {
    let mut seen = HashSet::new();
    for name in names.clone() {
        if !seen.insert(name) {
            return Err(format!("two {what} of the program are called {}", crate::program::quoted(name)));
        }
    }
    Ok(names.map(json).collect())
}

fn json(text: &str) -> String {
    escaped(serde_json::Value::from(text).to_string())
}
