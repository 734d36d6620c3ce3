//! Reads a program from text, or reports in one line what is wrong and where.

use std::collections::HashMap;
use std::fmt::Display;

use serde::de::DeserializeSeed;

use super::document::{Document, DocumentSeed, foreign};
use super::held;
use crate::program::{
    Background, Function, ObjectId, Operation, Program, ProgramError, Thread, ThreadId, quoted,
};

/// Reads a program.
///
/// # Errors
/// Text that is not JSON, not of this format or version, or not a valid program; with thread and operation if known. Never
/// panics, whatever the text.
pub fn read(text: &str) -> Result<Program, ProgramError> {
    let mut document = Document::default();
    let mut input = serde_json::Deserializer::from_str(text);
    let outcome = DocumentSeed(&mut document).deserialize(&mut input).and_then(|()| input.end());
    if let Err(error) = outcome {
        return Err(document.error.take().unwrap_or_else(|| not_json(text, &error)));
    }
    if !document.format {
        return Err(foreign("it has no \"format\""));
    }
    if !document.version {
        return Err(foreign("it has no \"version\""));
    }
    let program = assemble(document)?;
    program.check()?;
    held::check(&program)?;
    Ok(program)
}

fn assemble(mut document: Document) -> Result<Program, ProgramError> {
    let Some(mut threads) = document.threads.take() else {
        return Err(foreign("it has no \"threads\""));
    };
    resolve_threads(&document, &mut threads)?;
    let mut names = document.names;
    let mut known = HashMap::new();
    for entry in document.functions {
        // Functions that are only listed get a number, too: a function may have no calls.
        if let Some(number) = names.functions.number(&entry.name) {
            known.insert(number, entry);
        }
    }
    // A lock that no operation uses is ignored.
    let known_lock = |name: &String| names.objects.find(name).map(ObjectId);
    let mut writers_first: Vec<ObjectId> = document.writers_first.iter().filter_map(known_lock).collect();
    writers_first.sort_unstable();
    writers_first.dedup();
    let mut locks = Vec::new();
    for entry in document.locks {
        if let Some(object) = names.objects.number(&entry.name) {
            locks.push(entry.fact(ObjectId(object)));
        }
    }
    let samples = document.samples.into_samples(&mut names.functions);
    let functions = names.functions.into_list().into_iter().zip(0_u32..);
    let functions = functions
        .map(|(name, number)| Function { name, ..known.remove(&number).unwrap_or_default() }.with_origin());
    Ok(Program {
        functions: functions.collect(),
        objects: names.objects.into_list(),
        edges: names.edges.into_list(),
        threads,
        trust: document.trust,
        findings: document.findings,
        locks,
        recorded: document.recorded,
        overhead: document.overhead,
        recorded_cpus: document.recorded_cpus,
        machine: document.machine,
        writers_first,
        samples,
    })
}

/// Resolves names of threads to indices: for `background`, `create` and `join`.
fn resolve_threads(document: &Document, threads: &mut [Thread]) -> Result<(), ProgramError> {
    let numbers = number_threads(threads)?;
    let mentioned: Vec<Option<u32>> =
        document.names.threads.list().iter().map(|name| numbers.get(name.as_str()).copied()).collect();
    let mut backgrounds = Vec::with_capacity(document.backgrounds.len());
    for (thread, name, [repeats_from, repeats_until]) in &document.backgrounds {
        let Some(number) = numbers.get(name.as_str()).copied() else {
            let problem = format!("there is no thread {}", quoted(name));
            return Err(ProgramError::new(problem, "\"background\" names a thread of the same program"));
        };
        let background = Background {
            ends_with: ThreadId(number),
            repeats_from: *repeats_from,
            repeats_until: *repeats_until,
        };
        backgrounds.push((*thread as usize, background));
    }
    drop(numbers);
    for (thread, background) in backgrounds {
        threads[thread].background = Some(background);
    }
    for (thread, operation) in &document.thread_uses {
        let thread = &mut threads[*thread as usize];
        let Some(place) = thread.operations.get_mut(*operation as usize) else { continue };
        let (Operation::Create(other) | Operation::Join(other)) = place else { continue };
        match mentioned.get(other.0 as usize).copied().flatten() {
            Some(number) => *other = ThreadId(number),
            None => {
                let name = &document.names.threads.list()[other.0 as usize];
                let problem = format!("there is no thread {}", quoted(name));
                let hint = "\"create\" and \"join\" name a thread of the same program";
                return Err(ProgramError::new(problem, hint).at(&thread.name, *operation as usize));
            }
        }
    }
    Ok(())
}

fn number_threads(threads: &[Thread]) -> Result<HashMap<&str, u32>, ProgramError> {
    let mut numbers = HashMap::with_capacity(threads.len());
    for (thread, number) in threads.iter().zip(0_u32..) {
        if numbers.insert(thread.name.as_str(), number).is_some() {
            return Err(ProgramError::new(
                format!("two threads are called {}", quoted(&thread.name)),
                "give every thread a name of its own",
            ));
        }
    }
    Ok(numbers)
}

fn not_json(text: &str, error: &serde_json::Error) -> ProgramError {
    if text.trim_start().is_empty() {
        return foreign("it is empty");
    }
    match error.classify() {
        serde_json::error::Category::Eof => ProgramError::new(
            format!("the program is cut off: {}", one_line(error)),
            "write or copy the file again",
        ),
        serde_json::error::Category::Data => foreign(one_line(error)),
        _ => ProgramError::new(
            format!("the program is not valid JSON: {}", one_line(error)),
            "correct the text at that place",
        ),
    }
}

/// A parser's message, which may quote the input, as one line of limited length.
pub(super) fn one_line(error: &impl Display) -> String {
    const LONGEST: usize = 200;
    let text = error.to_string();
    let mut line: String =
        text.chars().take(LONGEST).map(|letter| if letter.is_control() { ' ' } else { letter }).collect();
    if text.chars().nth(LONGEST).is_some() {
        line.push('…');
    }
    line
}
