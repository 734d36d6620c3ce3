//! Source lines around the places that a recording names.

use crate::present::source::Sources;
use engine::program::Program;
use std::collections::{BTreeMap, BTreeSet};

/// Lines before and after a place.
const AROUND: usize = 6;
/// Largest size of all source lines together, bytes.
const MOST_BYTES: usize = 4 << 20;

/// Lines around the places of functions and samples, by file and number, if the files exist and there is room.
pub fn lines(program: &Program) -> BTreeMap<String, BTreeMap<usize, String>> {
    let functions = program.functions.iter().filter_map(|function| function.location.as_deref());
    let places = program.samples.places.iter().filter_map(|place| place.line.as_deref());
    let mut wanted: BTreeMap<&str, BTreeSet<usize>> = BTreeMap::new();
    for place in functions.chain(places) {
        let Some((file, line)) = place.rsplit_once(':') else { continue };
        let Ok(line) = line.parse::<usize>() else { continue };
        let around = line.saturating_sub(AROUND).max(1)..=line.saturating_add(AROUND);
        wanted.entry(file).or_default().extend(around);
    }
    let (mut sources, mut found, mut bytes) = (Sources::default(), BTreeMap::new(), 0);
    for (file, wanted) in wanted {
        let Some(text) = sources.text(file) else { continue };
        let numbered = text.lines().enumerate().map(|(place, line)| (place + 1, line));
        let kept: BTreeMap<usize, String> = numbered
            .filter(|(number, _)| wanted.contains(number))
            .map(|(number, line)| (number, line.to_owned()))
            .collect();
        bytes += kept.values().map(String::len).sum::<usize>();
        if bytes > MOST_BYTES {
            break;
        }
        if !kept.is_empty() {
            found.insert(file.to_owned(), kept);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::program::Function;

    #[test]
    fn source_lines_around_several_places_are_included_once() {
        let own = concat!(env!("CARGO_MANIFEST_DIR"), "/src/page/sources.rs");
        let function =
            |line: usize| Function { location: Some(format!("{own}:{line}")), ..Function::default() };
        let functions = vec![
            function(2),
            function(4),
            Function { location: Some("/nowhere.c:3".to_owned()), ..Function::default() },
            Function { location: Some("/etc/passwd:1".to_owned()), ..Function::default() },
        ];
        let found = lines(&Program { functions, ..Program::default() });
        assert_eq!(found.keys().collect::<Vec<_>>(), [own]);
        assert_eq!(found[own].keys().copied().collect::<Vec<_>>(), (1..=10).collect::<Vec<_>>());
        assert!(found[own][&1].starts_with("//! Source lines"));
    }
}
