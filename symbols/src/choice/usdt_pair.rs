//! Pairs of USDT probes. A stretch of a thread begins when the thread reaches the first probe and ends when it reaches
//! the second one.

use super::choose::{Choice, ChosenFunction, Selection};
use crate::code::{is_stepped_nop, probeable_nop};
use crate::elf::{ElfFile, ModuleFunctions, UsdtProbe, usdt_probes};
use crate::names::{listed, safe};
use engine::event::FunctionFact;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fmt::{self, Display, Formatter};
use std::str::FromStr;

/// The prefix of the names that mean such a pair.
const PREFIX: &str = "usdt:";
/// Largest number of places of one probe.
const MOST_PLACES: usize = 1 << 12;
/// Number of letters that are compared to find similar names.
const MOST_COMPARED: usize = 64;
/// Number of similar names in a message.
const SIMILAR: usize = 3;

/// A pair of USDT probes, written `usdt:PROVIDER:BEGIN,END`; `END` may be several names with `|` between them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsdtPair {
    provider: String,
    begin: String,
    ends: Vec<String>,
}

/// The error for text that begins like a pair of USDT probes but is not a valid pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not usdt:PROVIDER:BEGIN,END")]
pub struct NoUsdtPair;

impl UsdtPair {
    /// Whether the user means this text as a pair of USDT probes.
    pub fn is_meant(text: &str) -> bool {
        // `usdt::` begins the name of a function in a module `usdt`.
        text.strip_prefix(PREFIX).is_some_and(|rest| !rest.starts_with(':'))
    }
}

impl FromStr for UsdtPair {
    type Err = NoUsdtPair;

    fn from_str(text: &str) -> Result<UsdtPair, NoUsdtPair> {
        let rest = text.strip_prefix(PREFIX).ok_or(NoUsdtPair)?;
        let (provider, probes) = rest.split_once(':').ok_or(NoUsdtPair)?;
        let (begin, ends) = probes.split_once(',').ok_or(NoUsdtPair)?;
        let ends: Vec<String> = ends.split('|').map(str::to_owned).collect();
        let is_name = |name: &str| {
            !name.is_empty()
                && name.chars().all(|c| !c.is_whitespace() && !",|:*?".contains(c))
                && safe(name) == name
        };
        let are_names = [provider, begin].into_iter().chain(ends.iter().map(String::as_str)).all(is_name);
        if !are_names || ends.iter().any(|end| end == begin) {
            return Err(NoUsdtPair);
        }
        Ok(UsdtPair { provider: provider.to_owned(), begin: begin.to_owned(), ends })
    }
}

impl Display for UsdtPair {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        write!(out, "{PREFIX}{}:{},{}", self.provider, self.begin, self.ends.join("|"))
    }
}

/// The facts about a pair of USDT probes that functions do not need.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PairPlaces {
    /// File offsets of further places at which a stretch begins.
    pub more_entries: Vec<u64>,
    /// For each place with a counter (USDT's semaphore), the place and the counter's offset in the file. While the
    /// counter is 0, the program skips the probe.
    pub semaphores: Vec<(u64, u64)>,
}

impl PairPlaces {
    /// The file offset of a place's counter; 0 means that the place has no counter.
    pub fn semaphore(&self, place: u64) -> u64 {
        self.semaphores.iter().find(|(of, _)| *of == place).map_or(0, |(_, counter)| *counter)
    }
}

/// A pair that a binary lacks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MissingPair {
    /// The pair, as the user gave it.
    pub pair: String,
    /// Whether the binary has other probes of this provider.
    pub has_provider: bool,
    /// The end of a sentence that begins with the binary's name: what the binary lacks.
    pub why: String,
}

/// Separates the names that a user has given into pairs and other names.
pub(super) fn split(given: &[String]) -> (Vec<UsdtPair>, Vec<String>) {
    let (mut pairs, mut names) = (Vec::new(), Vec::new());
    for text in given {
        match text.parse() {
            Ok(pair) => pairs.push(pair),
            Err(NoUsdtPair) => names.push(text.clone()),
        }
    }
    (pairs, names)
}

/// Adds the pairs that the module contains to the choice. Each other pair is added to [`Choice::missing`].
pub(super) fn add(module: &ModuleFunctions, selection: &Selection, pairs: &[UsdtPair], choice: &mut Choice) {
    if pairs.is_empty() {
        return;
    }
    let probes = usdt_probes(module.elf()).unwrap_or_default();
    for pair in pairs {
        match chosen(module, selection, pair, &probes, choice.chosen.len()) {
            Ok(pair) => choice.chosen.push(pair),
            Err(why) => {
                let has_provider = probes.iter().any(|probe| probe.provider == pair.provider);
                choice.missing.push(MissingPair { pair: pair.to_string(), has_provider, why });
            }
        }
    }
}

fn chosen(
    module: &ModuleFunctions,
    selection: &Selection,
    pair: &UsdtPair,
    probes: &[UsdtProbe],
    number: usize,
) -> Result<ChosenFunction, String> {
    let mut places = PairPlaces::default();
    let elf = module.elf();
    let begins = offsets(elf, pair, &pair.begin, probes, &mut places)?;
    let mut exit_offsets = Vec::new();
    for end in &pair.ends {
        exit_offsets.extend(offsets(elf, pair, end, probes, &mut places)?);
    }
    let (first, more) = begins.split_first().ok_or("has no such probe")?;
    places.more_entries = more.to_vec();
    let stepped = |offsets: &[u64]| offsets.iter().any(|offset| is_stepped_nop(&code_at(elf, *offset)));
    let number = u32::try_from(number).unwrap_or(u32::MAX);
    Ok(ChosenFunction {
        fact: FunctionFact {
            id: selection.first_id.saturating_add(number),
            name: pair.to_string(),
            module: module.module().to_owned(),
            offset: *first,
            location: None,
            exits_probed: true,
            entry_stepped: stepped(&begins),
            exits_stepped: stepped(&exit_offsets),
        },
        address: elf.code_address_of(*first).unwrap_or_default(),
        size: 0,
        entry_offset: *first,
        exit_offsets,
        unsure: None,
        pair: Some(places),
    })
}

/// File offsets of a probe's places, ascending. The error is the end of a sentence that begins with the binary's name.
fn offsets(
    elf: &ElfFile,
    pair: &UsdtPair,
    name: &str,
    probes: &[UsdtProbe],
    places: &mut PairPlaces,
) -> Result<Vec<u64>, String> {
    let mut offsets = BTreeSet::new();
    for probe in probes.iter().filter(|probe| probe.provider == pair.provider && probe.name == name) {
        let unusable = |what: &str| format!("has a place of {}:{name} that {what}", pair.provider);
        let offset = elf.code_offset_of(probe.address).filter(|_| elf.is_x86_64);
        let offset = offset.ok_or_else(|| unusable("is no code"))?;
        if !probeable_nop(&code_at(elf, offset)) {
            return Err(unusable("cannot hold a breakpoint"));
        }
        if let Some(semaphore) = probe.semaphore {
            let counter = elf.offset_of(semaphore).filter(|counter| *counter != 0);
            places.semaphores.push((offset, counter.ok_or_else(|| unusable("has no counter in the file"))?));
        }
        offsets.insert(offset);
        if offsets.len() > MOST_PLACES {
            return Err(format!("has more than {MOST_PLACES} places of {}:{name}", pair.provider));
        }
    }
    if offsets.is_empty() { Err(lacks(pair, name, probes)) } else { Ok(offsets.into_iter().collect()) }
}

/// The bytes of the instruction at a file offset; fewer at the end of the file.
fn code_at(elf: &ElfFile, offset: u64) -> Vec<u8> {
    (1..=15).rev().find_map(|size| elf.read(offset, size, "code", 15).ok()).unwrap_or_default()
}

/// Describes what a binary without this probe contains instead.
fn lacks(pair: &UsdtPair, name: &str, probes: &[UsdtProbe]) -> String {
    let provider = &pair.provider;
    let names = |of: &dyn Fn(&UsdtProbe) -> bool, what: fn(&UsdtProbe) -> &str| -> Vec<String> {
        let found: BTreeSet<&str> = probes.iter().filter(|probe| of(probe)).map(what).collect();
        found.into_iter().map(str::to_owned).collect()
    };
    if probes.is_empty() {
        return "has no USDT probes".to_owned();
    }
    let mut own = names(&|probe| probe.provider == *provider, |probe| &probe.name);
    if own.is_empty() {
        let providers = names(&|_| true, |probe| &probe.provider);
        return format!("has no USDT probes of provider {provider}, but of {}", listed(&providers));
    }
    own.sort_by_cached_key(|other| distance(name, other));
    own.truncate(SIMILAR);
    format!("has no USDT probe {provider}:{name}; the nearest are {}", listed(&own))
}

/// The Levenshtein distance: the number of letters to insert, remove or replace.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) =
        (a.chars().take(MOST_COMPARED).collect(), b.chars().take(MOST_COMPARED).collect());
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (line, of_a) in a.iter().enumerate() {
        let mut before = line;
        let mut left = line + 1;
        for (cell, of_b) in row.iter_mut().skip(1).zip(&b) {
            let above = *cell;
            left = (before + usize::from(of_a != of_b)).min(above + 1).min(left + 1);
            (before, *cell) = (above, left);
        }
        if let Some(first) = row.first_mut() {
            *first = line + 1;
        }
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pair_is_read_and_printed_and_other_text_is_refused() {
        for text in ["usdt:shop:order__start,order__done", "usdt:postgresql:a,b|c"] {
            let pair: UsdtPair = text.parse().expect("a pair");
            assert_eq!(pair.to_string(), text);
            assert!(UsdtPair::is_meant(text));
        }
        for text in [
            "usdt:",
            "usdt:a",
            "usdt:a:b",
            "usdt:a:b,",
            "usdt::b,c",
            "usdt:a:b,b",
            "usdt:a:b,c|",
            "usdt:a:b,c d",
        ] {
            assert_eq!(text.parse::<UsdtPair>(), Err(NoUsdtPair), "{text}");
        }
        assert!(
            UsdtPair::is_meant("usdt:a") && !UsdtPair::is_meant("usdt::read") && !UsdtPair::is_meant("read")
        );
    }

    #[test]
    fn similar_names_come_first() {
        let probe = |name: &str| UsdtProbe {
            provider: "shop".into(),
            name: name.into(),
            address: 0,
            semaphore: None,
        };
        let probes = ["cart", "order__done", "order__start", "pay__start"].map(probe);
        let pair: UsdtPair = "usdt:shop:order__strt,x".parse().expect("a pair");
        assert_eq!(
            lacks(&pair, "order__strt", &probes),
            "has no USDT probe shop:order__strt; the nearest are order__start, order__done, pay__start"
        );
        let other: UsdtPair = "usdt:bank:a,b".parse().expect("a pair");
        assert_eq!(lacks(&other, "a", &probes), "has no USDT probes of provider bank, but of shop");
        assert_eq!(lacks(&other, "a", &[]), "has no USDT probes");
        assert_eq!((distance("", "abc"), distance("abc", "abc"), distance("kitten", "sitting")), (3, 0, 3));
    }
}
