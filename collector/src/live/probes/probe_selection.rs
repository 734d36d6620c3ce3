//! Decides which functions found in samples get probes: those that matter and are called so rarely that probes cost
//! next to nothing. Samples do not show how often a function is called: one long call looks like thousands of short
//! ones. So a trial counts some thirty calls at most (see [`count_calls`]).

use super::hot_functions::{HotFunction, HotFunctions};
use super::probed_functions::{ProbedFunctions, probe_of};
use crate::live::main_loop::{Chosen, Granted, NewFunctions, Placing};
use capture::probe::{AT_ONCE, Calls, count_calls, now_ns};
use capture::target::{Module, Process, is_c_library, mapped};
use engine::event::FunctionFact;
use std::collections::{BTreeMap, HashMap};
use std::fs::Metadata;
use std::path::PathBuf;
use std::time::Duration;
use symbols::FileKey;
use symbols::binary::Binary;
use symbols::{ChosenFunction, SymbolError};

/// Largest number of functions tried at once.
const MOST: usize = 2 * AT_ONCE;
/// Length of a trial.
const TRIAL: Duration = Duration::from_millis(100);

/// A function to try, in the first process that has it.
pub(super) struct Candidate {
    pub(super) seen: HotFunction,
    pub(super) chosen: ChosenFunction,
    pub(super) key: FileKey,
    pub(super) pid: u32,
    /// Address of the function's first instruction in that process.
    pub(super) address: u64,
}

impl ProbedFunctions {
    /// Chooses which functions found in samples get probes; `None`: none is worth them.
    pub(super) fn select_probes(&mut self, hot: &HotFunctions, pids: &[u32]) -> Option<Granted> {
        let open: Vec<&HotFunction> =
            hot.functions.iter().filter(|seen| self.trials.is_open(seen)).take(MOST).collect();
        if open.is_empty() {
            return None;
        }
        let candidates = self.candidates(&open, pids);
        for seen in &open {
            if !candidates.iter().any(|candidate| candidate.seen == **seen) {
                // There is no such symbol, or probes cannot be attached there: a later check would have the same
                // result.
                self.trials.decided(seen);
            }
        }
        self.tried(candidates, hot.cpu, pids)
    }

    /// The candidates that had no trial yet, `MOST` at most.
    pub(super) fn open_of(&self, mut candidates: Vec<Candidate>) -> Vec<Candidate> {
        candidates
            .retain(|candidate| self.trials.is_open(&candidate.seen) && !self.moves_code(candidate.pid));
        candidates.truncate(MOST);
        candidates
    }

    /// Tries functions, and returns those that are worth probes.
    pub(super) fn tried(&mut self, candidates: Vec<Candidate>, cpu: f64, pids: &[u32]) -> Option<Granted> {
        let mut accepted: BTreeMap<usize, Vec<Candidate>> = BTreeMap::new();
        let mut files: Vec<FileKey> = Vec::new();
        let mut rest = candidates.into_iter().peekable();
        while rest.peek().is_some() {
            let group: Vec<Candidate> = rest.by_ref().take(AT_ONCE).collect();
            let points: Vec<Vec<(u32, u64)>> = group.iter().map(points).collect();
            let mut calls = count_calls(&points.concat(), TRIAL).into_iter();
            for (candidate, points) in group.into_iter().zip(points) {
                let calls: Vec<Calls> = calls.by_ref().take(points.len()).flatten().collect();
                if self.trials.accepts(&candidate.seen, cpu, &candidate.chosen.fact, &calls) {
                    let file = files.iter().position(|key| *key == candidate.key).unwrap_or(files.len());
                    if file == files.len() {
                        files.push(candidate.key);
                    }
                    accepted.entry(file).or_default().push(candidate);
                }
            }
        }
        (!accepted.is_empty()).then(|| self.granted_to(accepted, pids))
    }

    /// The functions among these that can be probed.
    fn candidates(&mut self, open: &[&HotFunction], pids: &[u32]) -> Vec<Candidate> {
        let mut found: Vec<(usize, Candidate)> = Vec::new();
        let mut looked: Vec<FileKey> = Vec::new();
        for &pid in pids {
            for Loaded { module, path } in loaded(pid) {
                let here: Vec<(usize, &HotFunction)> = open
                    .iter()
                    .copied()
                    .enumerate()
                    .filter(|(_, seen)| seen.module == module.name())
                    .collect();
                if here.is_empty() {
                    continue;
                }
                let Some(binary) = self.opened(&path, &module.path) else { continue };
                let key = binary.key();
                // The file at that path has been replaced by another one, with other addresses.
                if looked.contains(&key) || key.inode() != module.inode {
                    continue;
                }
                looked.push(key);
                let names: Vec<&str> = here.iter().map(|(_, seen)| seen.name.as_str()).collect();
                let all = match self.named(&module.path, &binary, &names) {
                    Ok(all) => all,
                    Err(error) => {
                        log::debug!("{}: no function is tried: {error}", module.path);
                        continue;
                    }
                };
                for (rank, seen) in here {
                    let mut same = all.iter().filter(|chosen| chosen.fact.name == seen.name);
                    // Two functions have that name: the samples could be in either.
                    let (Some(chosen), None) = (same.next(), same.next()) else { continue };
                    if chosen.unsure.is_some() {
                        continue;
                    }
                    let Some(address) = module.address(chosen.entry_offset) else { continue };
                    let (seen, chosen) = (seen.clone(), chosen.clone());
                    found.push((rank, Candidate { seen, chosen, key, pid, address }));
                }
            }
        }
        found.sort_by_key(|(rank, _)| *rank);
        found.into_iter().map(|(_, candidate)| candidate).collect()
    }

    /// The functions with exactly these names.
    fn named(
        &mut self,
        name: &str,
        binary: &Binary,
        names: &[&str],
    ) -> Result<Vec<ChosenFunction>, SymbolError> {
        let short = name.rsplit('/').next().unwrap_or(name);
        let include = names.iter().map(|name| name.replace('*', "?")).collect();
        let selection = symbols::Selection { include, ..self.selection.clone() };
        let mut choice = self.parsers.open_binary(binary, short)?.choose(&selection)?;
        choice.chosen.retain(|chosen| names.contains(&chosen.fact.name.as_str()));
        Ok(choice.chosen)
    }

    /// Numbers the new functions, and has them probed in all processes that have them.
    fn granted_to(&mut self, accepted: BTreeMap<usize, Vec<Candidate>>, pids: &[u32]) -> Granted {
        let mut facts: Vec<FunctionFact> = Vec::new();
        let mut chosen: HashMap<FileKey, Vec<ChosenFunction>> = HashMap::new();
        for candidate in accepted.into_values().flatten() {
            let Candidate { chosen: mut function, key, .. } = candidate;
            let known = self.files.get(&key).cloned().unwrap_or_default();
            if let Some(same) = known.iter().find(|known| known.entry_offset == function.entry_offset) {
                chosen.entry(key).or_default().push(same.clone());
                continue;
            }
            let Some(number) = self.next_number() else { break };
            function.fact.id = number;
            facts.push(function.fact.clone());
            let all: Vec<ChosenFunction> = known.iter().cloned().chain([function.clone()]).collect();
            self.files.insert(key, all.into());
            chosen.entry(key).or_default().push(function);
        }
        let mut granted = Granted::default();
        for &pid in pids {
            let mut functions = NewFunctions { looked_ns: now_ns(), ..NewFunctions::default() };
            for Loaded { module, path } in loaded(pid) {
                let is_one = |found: Metadata| chosen.contains_key(&FileKey::of(&found));
                if !std::fs::metadata(&path).is_ok_and(is_one) {
                    continue;
                }
                let Some(binary) = self.opened(&path, &module.path) else { continue };
                let of_file = chosen.get(&binary.key()).into_iter().flatten();
                functions.probes.extend(of_file.map(|chosen| probe_of(chosen, pid, &binary)));
            }
            if !functions.probes.is_empty() {
                functions.facts = std::mem::take(&mut facts);
                let (missing_since_ns, placing) = (0, Placing::Wanted);
                granted.chosen.push(Chosen { pid, missing_since_ns, functions: Ok(functions), placing });
            }
        }
        granted
    }
}

/// Where a function is tried: in threads of its process that were sampled in it or, if these have ended, in other
/// threads of the process.
fn points(candidate: &Candidate) -> Vec<(u32, u64)> {
    let tasks = PathBuf::from(format!("/proc/{}/task", candidate.pid));
    let lives = |thread: &u32| tasks.join(thread.to_string()).exists();
    let mut threads: Vec<u32> = candidate.seen.threads.iter().copied().filter(lives).collect();
    if threads.is_empty() {
        let names = std::fs::read_dir(&tasks).into_iter().flatten().flatten();
        threads.extend(names.filter_map(|name| name.file_name().to_str()?.parse::<u32>().ok()).take(AT_ONCE));
    }
    threads.into_iter().map(|thread| (thread, candidate.address)).collect()
}

/// A file whose code a process runs, and a path that opens the file.
pub(super) struct Loaded {
    pub(super) module: Module,
    pub(super) path: PathBuf,
}

/// The program and the libraries of a process. The C library is skipped: all code calls it, and it has probes of its
/// own.
pub(super) fn loaded(pid: u32) -> Vec<Loaded> {
    let Ok(process) = Process::open(pid) else { return Vec::new() };
    let modules = mapped(&process).unwrap_or_default();
    let is_wanted = |module: &Module| module.is_main || !is_c_library(module.name());
    let modules = modules.into_iter().filter(is_wanted);
    modules
        .map(|module| {
            let path = if module.is_main { process.open_path() } else { module.open_path.clone() };
            Loaded { module, path }
        })
        .collect()
}
