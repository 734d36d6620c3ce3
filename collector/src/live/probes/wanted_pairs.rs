//! Pairs of USDT probes that a user wants: in which files they were found, and what other files lack.

use crate::exit::UserError;
use engine::event::FunctionFact;
use std::collections::{BTreeMap, BTreeSet};
use symbols::binary::Binary;
use symbols::{ChosenFunction, FileKey, MissingPair, UsdtPair, listed};

/// Largest number of files whose lack of pairs is remembered.
const MOST_LACKS: usize = 4096;
/// What a user can do about a pair that is not there.
const HINT: &str = "`readelf -n FILE` lists the probes of a program or library, with their providers";

/// The pairs that a user wants.
#[derive(Debug, Default)]
pub(super) struct WantedPairs {
    wanted: Vec<String>,
    /// The files that have a pair, by process.
    found: BTreeMap<(u32, String), Vec<(FileKey, String)>>,
    /// Files, and what they lack.
    lacks: Vec<(String, MissingPair)>,
}

impl WantedPairs {
    /// The pairs among these names of functions.
    pub(super) fn of(functions: &[String]) -> WantedPairs {
        let is_pair = |name: &&String| name.parse::<UsdtPair>().is_ok();
        WantedPairs { wanted: functions.iter().filter(is_pair).cloned().collect(), ..WantedPairs::default() }
    }

    /// Whether the user wants these pairs and no function.
    pub(super) fn are_all(&self, functions: &[String]) -> bool {
        !self.wanted.is_empty() && self.wanted.len() == functions.len()
    }

    /// The error if the kernel has `refused` the probes of a pair.
    pub(super) fn refused(
        &self,
        functions: &[FunctionFact],
        mut refused: impl FnMut(u32) -> bool,
    ) -> Result<(), UserError> {
        let mut wanted = functions.iter().filter(|function| self.wanted.contains(&function.name));
        match wanted.find(|function| refused(function.id)) {
            None => Ok(()),
            Some(FunctionFact { name, .. }) => Err(UserError::permission(
                format!("the kernel refuses the probes of {name}"),
                "the kernel's log (`dmesg`) may say why; another tracer with probes there can be the reason",
            )),
        }
    }

    /// Notes the pairs that a process has in a file. Returns the numbers of those that it has in another file, too.
    pub(super) fn found(&mut self, pid: u32, binary: &Binary, chosen: &[ChosenFunction]) -> BTreeSet<u32> {
        let mut elsewhere = BTreeSet::new();
        for ChosenFunction { fact, .. } in chosen.iter().filter(|chosen| chosen.pair.is_some()) {
            let files = self.found.entry((pid, fact.name.clone())).or_default();
            if files.iter().any(|(key, _)| *key != binary.key()) {
                log::warn!("{} is in {}, too, where it gets no probes", fact.name, binary.name());
                elsewhere.insert(fact.id);
            }
            files.push((binary.key(), binary.name().to_owned()));
        }
        elsewhere
    }

    /// Notes the pairs that a file lacks.
    pub(super) fn missing(&mut self, file: &str, missing: &[MissingPair]) {
        let room = MOST_LACKS.saturating_sub(self.lacks.len());
        self.lacks.extend(missing.iter().take(room).map(|lack| (file.to_owned(), lack.clone())));
    }

    /// Forgets a process that has ended or runs another program.
    pub(super) fn forget(&mut self, pid: u32) {
        self.found.retain(|(of, _), _| *of != pid);
    }

    /// Fails if a pair is not there, or in several files of a process. `held`: the program of a command, which has not loaded
    /// its libraries yet, so a pair may still come. Returns remarks about that.
    pub(super) fn verdict(&self, held: bool) -> Result<Vec<String>, UserError> {
        for ((pid, pair), files) in &self.found {
            let names: BTreeSet<&str> = files.iter().map(|(_, name)| name.as_str()).collect();
            let names: Vec<&str> = names.into_iter().collect();
            if files.iter().any(|(key, _)| files.first().is_some_and(|(first, _)| first != key)) {
                return Err(UserError::usage(
                    format!("{pair} is in several files of process {pid}: {}", listed(&names)),
                    "longpole cannot tell which one is meant: give probes that one file has, or `--per NAME` of a function",
                ));
            }
        }
        let mut remarks = Vec::new();
        for pair in &self.wanted {
            if self.found.keys().any(|(_, found)| found == pair) {
                continue;
            }
            let mut lacks = self.lacks.iter().filter(|(_, lack)| lack.pair == *pair);
            let others = lacks.clone().count().saturating_sub(1);
            let near = lacks.clone().find(|(_, lack)| lack.has_provider);
            match (near, lacks.next()) {
                (Some((file, lack)), _) => {
                    return Err(UserError::usage(format!("{file} {}", lack.why), HINT));
                }
                (None, Some((file, lack))) if held => remarks.push(format!(
                    "{file} {}; {pair} gets probes when a program or library with it is loaded",
                    lack.why
                )),
                (None, Some((file, lack))) => {
                    let others = if others > 0 { "; its libraries lack them, too" } else { "" };
                    return Err(UserError::usage(format!("{file} {}{others}", lack.why), HINT));
                }
                (None, None) => {}
            }
        }
        Ok(remarks)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;
    use symbols::PairPlaces;

    const PAIR: &str = "usdt:shop:a,b";

    fn wanted() -> WantedPairs {
        WantedPairs::of(&["hash*".to_owned(), PAIR.to_owned()])
    }

    fn lack(why: &str, has_provider: bool) -> MissingPair {
        MissingPair { pair: PAIR.to_owned(), has_provider, why: why.to_owned() }
    }

    #[test]
    fn a_pair_that_no_file_has_is_an_error_with_the_nearest_names() {
        let mut pairs = wanted();
        assert!(!pairs.are_all(&["hash*".to_owned(), PAIR.to_owned()]) && pairs.are_all(&[PAIR.to_owned()]));
        pairs.missing("store", &[lack("has no USDT probes", false)]);
        let error = pairs.verdict(false).expect_err("it is not there");
        assert_eq!(error.message, "store has no USDT probes");
        assert!(pairs.verdict(true).expect("a library may have it")[0].contains("when a program"));
        pairs.missing("libshop.so", &[lack("has no USDT probe shop:a; the nearest are c", true)]);
        for held in [false, true] {
            let error = pairs.verdict(held).expect_err("a slip of the pen");
            assert_eq!(error.message, "libshop.so has no USDT probe shop:a; the nearest are c");
        }
    }

    #[test]
    fn a_pair_in_two_files_of_a_process_is_an_error_and_in_two_processes_is_none() {
        let file = |path: &str, name: &str| Binary::open(Path::new(path), name).expect("open");
        let (one, two) = (file("/proc/self/exe", "one"), file("/bin/sh", "two"));
        let fact = engine::event::FunctionFact { id: 7, name: PAIR.into(), ..Default::default() };
        let chosen = [ChosenFunction {
            fact,
            address: 0,
            size: 0,
            entry_offset: 0,
            exit_offsets: Vec::new(),
            unsure: None,
            pair: Some(PairPlaces::default()),
        }];
        let mut pairs = wanted();
        for (pid, binary) in [(1, &one), (1, &one), (2, &two)] {
            assert_eq!(pairs.found(pid, binary, &chosen), BTreeSet::new());
        }
        assert_eq!(pairs.verdict(false), Ok(Vec::new()));
        assert_eq!(pairs.found(1, &two, &chosen), BTreeSet::from([7]));
        let error = pairs.verdict(false).expect_err("two");
        assert_eq!(error.message, "usdt:shop:a,b is in several files of process 1: one, two");
        pairs.forget(1);
        assert_eq!(pairs.verdict(false), Ok(Vec::new()));
    }
}
