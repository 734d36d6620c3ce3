//! Finds which functions of a binary the user means by names and patterns.

use crate::elf::{Function, FunctionKind, ModuleFunctions};
use crate::names::{NameMatch, is_pattern, match_name, match_whole_name, name};
use engine::glob;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// Largest number of functions listed for one ambiguous name.
const MOST_TOLD: usize = 32;

/// A name that several functions may have.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unclear {
    /// The name, as the user gave it.
    pub name: String,
    /// Names of the functions that the user may have meant.
    pub may_be: Vec<String>,
}

/// The functions of a binary that the user's names and patterns refer to.
#[derive(Debug)]
pub(super) struct NamedFunctions<'p> {
    /// Whether the user has given any name or pattern.
    pub(super) asked: bool,
    patterns: Vec<&'p str>,
    /// Addresses of the functions that the user's names refer to.
    places: BTreeSet<u64>,
}

impl<'p> NamedFunctions<'p> {
    /// Finds the functions of names and patterns. Also returns the ambiguous names. [`super::Selection::whole`]
    /// explains `whole`.
    pub(super) fn of(
        module: &ModuleFunctions,
        given: &'p [String],
        whole: bool,
    ) -> (NamedFunctions<'p>, Vec<Unclear>) {
        let (patterns, names): (Vec<&str>, Vec<&str>) =
            given.iter().map(String::as_str).partition(|given| is_pattern(given));
        let mut wanted = NamedFunctions { asked: !given.is_empty(), patterns, places: BTreeSet::new() };
        let mut unclear = Vec::new();
        for name in names {
            unclear.extend(wanted.find(module, name, whole));
        }
        (wanted, unclear)
    }

    fn find(&mut self, module: &ModuleFunctions, given: &str, whole: bool) -> Option<Unclear> {
        let all = module.functions();
        let raw = all.iter().filter(|function| module.raw_name(function) == given);
        let before = self.places.len();
        self.places.extend(raw.map(|function| function.address));
        if self.places.len() > before {
            return None;
        }
        // Compilers split parts off a function (`.part`); the name of such a part begins with the name of the function.
        let is_whole = |function: &&Function| {
            matches!(function.kind, FunctionKind::Ordinary | FunctionKind::Alias(_))
                || given.contains(".part")
        };
        let functions: Vec<&Function> = all.iter().filter(is_whole).collect();
        let names = functions.iter().map(|function| module.name(function));
        let found = if whole { match_whole_name(given, names) } else { match_name(given, names) };
        let places = match &found {
            NameMatch::Nothing => return None,
            NameMatch::These(places) | NameMatch::Several(places) => places,
        };
        let found_at: BTreeSet<u64> = places
            .iter()
            .filter_map(|&place| functions.get(place))
            .map(|function| function.address)
            .collect();
        // Several names of one function are not ambiguous.
        if matches!(found, NameMatch::Several(_)) && found_at.len() > 1 {
            let may_be = places.iter().filter_map(|&place| functions.get(place)).take(MOST_TOLD);
            let may_be = may_be.map(|function| module.name(function)).collect();
            return Some(Unclear { name: given.to_owned(), may_be });
        }
        self.places.extend(found_at);
        None
    }

    /// Whether one of the names at an address matches. Each pattern is compared with the readable name, with the
    /// readable name without parameters, and with the raw name.
    pub(super) fn holds(&self, module: &ModuleFunctions, names: &[Function]) -> bool {
        if names.first().is_some_and(|function| self.places.contains(&function.address)) {
            return true;
        }
        // This check comes first, because a hostile symbol table may contain millions of names for one address.
        !self.patterns.is_empty()
            && names.iter().take(64).any(|function| {
                let raw = module.raw_name(function);
                let readable = module.name(function);
                let short = name::demangled_without_parameters(&raw);
                self.patterns.iter().any(|pattern| {
                    glob::matches(pattern, &readable)
                        || glob::matches(pattern, &raw)
                        || short.as_deref().is_some_and(|short| glob::matches(pattern, short))
                })
            })
    }
}
