//! Facts about the code in sampled stacks: functions, lines, inlined calls, and loops that only wait.

use crate::{Location, Parser, Parsers, Place};
use engine::event::{CodeFact, CodePlace, InlinedFact, Recording, unnamed_code};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Largest number of places in one request, because the size of an answer is limited.
const AT_ONCE: usize = 10_000;

/// The facts that a binary's symbols give about places in it. Unknown parts stay empty, so that a later search can fill
/// them in.
pub fn name_code(parser: &mut Parser, places: &[CodePlace]) -> Result<Vec<CodeFact>, String> {
    let mut facts = Vec::with_capacity(places.len());
    for places in places.chunks(AT_ONCE) {
        let asked: Vec<Place> = places.iter().map(|place| Place::FileOffset(place.offset)).collect();
        let found = parser.locate(&asked).map_err(|error| error.to_string())?.locations();
        facts.extend(places.iter().zip(&found).map(|(place, location)| fact(place, location)));
    }
    let mut entries: BTreeMap<u64, Option<String>> =
        facts.iter().filter_map(|fact| fact.entry).map(|entry| (entry, None)).collect();
    let offsets: Vec<u64> = entries.keys().copied().collect();
    for offsets in offsets.chunks(AT_ONCE) {
        let asked: Vec<Place> = offsets.iter().map(|offset| Place::FileOffset(*offset)).collect();
        let found = parser.locate(&asked).map_err(|error| error.to_string())?.locations();
        for (offset, location) in offsets.iter().zip(&found) {
            entries.insert(*offset, own_line(location));
        }
    }
    for fact in &mut facts {
        fact.declared = fact.entry.and_then(|entry| entries.get(&entry).cloned()).flatten();
    }
    Ok(facts)
}

/// A fact that contains only the place.
pub fn unnamed(place: &CodePlace) -> CodeFact {
    CodeFact {
        path: place.path.clone(),
        build_id: place.build_id.clone(),
        offset: place.offset,
        ..CodeFact::default()
    }
}

/// The place of a fact.
fn place_of(fact: &CodeFact) -> CodePlace {
    CodePlace { path: fact.path.clone(), build_id: fact.build_id.clone(), offset: fact.offset }
}

fn fact(place: &CodePlace, location: &Location) -> CodeFact {
    let frames = location.frames.as_deref().unwrap_or_default();
    let (inlined, itself) = match frames.split_last() {
        Some((itself, inlined)) => (inlined, Some(itself)),
        None => (&[][..], None),
    };
    let line = |file: &Option<String>, line: Option<u32>| Some(format!("{}:{}", file.as_deref()?, line?));
    let symbol = location.symbol.as_ref().ok();
    let inlined = inlined.iter().map(|frame| InlinedFact {
        function: frame.function.clone().unwrap_or_else(|| "[inlined]".to_owned()),
        line: line(&frame.file, frame.line),
    });
    CodeFact {
        function: symbol
            .map(|hit| hit.name.clone())
            .or_else(|| itself.and_then(|frame| frame.function.clone())),
        entry: symbol.and_then(|hit| place.offset.checked_sub(hit.distance)),
        line: itself.and_then(|frame| line(&frame.file, frame.line)),
        inlined: inlined.collect(),
        waits: location.waits,
        tries: location.tries,
        ..unnamed(place)
    }
}

/// `file:line` in the function itself, even if the place belongs to a function inlined there.
fn own_line(location: &Location) -> Option<String> {
    let frame = location.frames.as_ref().ok()?.last()?;
    Some(format!("{}:{}", frame.file.as_deref()?, frame.line?))
}

/// Names the unnamed places in stacks of a recording, if this machine has their binaries (with the same build-id). With
/// `again`, also searches for places for which an earlier search found no name.
pub fn code_of(recording: &Recording, parsers: &Parsers, folders: &[PathBuf], again: bool) -> Vec<CodeFact> {
    let nameless = recording.facts.code.iter().filter(|fact| again && fact.function.is_none()).map(place_of);
    let mut by_binary: BTreeMap<(String, Option<String>), Vec<CodePlace>> = BTreeMap::new();
    for place in
        unnamed_code(recording).into_iter().chain(nameless).filter(|place| place.path.starts_with('/'))
    {
        by_binary.entry((place.path.clone(), place.build_id.clone())).or_default().push(place);
    }
    let parsers = parsers.clone().with_folders(folders);
    let mut facts = Vec::new();
    for ((path, build_id), places) in by_binary {
        let found = super::find::binary(&path, build_id.as_deref(), folders).and_then(|binary| {
            let name = path.rsplit('/').next().unwrap_or(&path);
            let mut parser = parsers.open(&binary, name).map_err(|error| error.to_string())?;
            name_code(&mut parser, &places)
        });
        match found {
            Ok(named) => facts.extend(named.into_iter().filter(|fact| fact.function.is_some())),
            Err(why) => log::debug!("no names of {path}: {why}"),
        }
    }
    facts
}
