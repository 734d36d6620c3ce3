//! Which functions that samples have shown get probes: those that matter and are called so rarely that probes cost next
//! to nothing. How often a function is called, samples cannot tell: one long call looks as thousands of short ones in a
//! row. So it is tried, with some thirty calls at most (see [`count_calls`]).

use super::functions::{Functions, probe_of};
use super::message::{Chosen, Granted, NewFunctions, Placing};
use super::promising::{Promising, Sighting};
use capture::probe::{AT_ONCE, Calls, count_calls, now_ns};
use capture::target::{Module, Process, is_c_library, mapped};
use engine::event::{FunctionFact, HitCosts, OperationsTried};
use std::collections::{BTreeMap, HashMap};
use std::fs::Metadata;
use std::path::PathBuf;
use std::time::Duration;
use symbols::FileKey;
use symbols::binary::Binary;
use symbols::{ChosenFunction, SymbolError};

/// Functions tried in one go.
const MOST: usize = 2 * AT_ONCE;
/// How long they are tried.
const TRIAL: Duration = Duration::from_millis(100);
/// Less running time than this, and fewer calls, say nothing.
const LEAST_RUN_S: f64 = 0.02;
const FEW_CALLS: f64 = 8.0;
/// A function is tried so often before it is given up.
const MOST_TRIALS: u8 = 20;
/// What probes on functions may cost if there is no limit: of the processes' CPU time.
const COST_WITHOUT_LIMIT: f64 = 0.02;
/// A call with probes costs so much if it could not be measured, nanoseconds: the slowest machine that we know.
const CALL_NS: f64 = 20_000.0;

/// What is known of functions that samples have shown.
#[derive(Debug, Default)]
pub(super) struct Trials {
    /// What all may cost, and what those that were chosen do: of the processes' CPU time.
    limit: f64,
    spent: f64,
    hit_costs: Option<HitCosts>,
    /// Trials that said nothing, by binary and name; [`MOST_TRIALS`]: it is decided.
    tried: HashMap<(String, String), u8>,
}

/// A function that is tried, in the first process that has it.
pub(super) struct Candidate {
    pub(super) seen: Promising,
    pub(super) chosen: ChosenFunction,
    pub(super) key: FileKey,
    pub(super) pid: u32,
    /// Of its first instruction in that process.
    pub(super) address: u64,
}

impl Trials {
    pub(super) fn new(budget_ppm: Option<u32>, hit_costs: Option<HitCosts>) -> Trials {
        let limit = budget_ppm.map_or(COST_WITHOUT_LIMIT, |ppm| f64::from(ppm) / 1e6);
        Trials { limit, hit_costs, ..Trials::default() }
    }

    fn is_open(&self, seen: &Promising) -> bool {
        let key = (seen.module.clone(), seen.name.clone());
        self.tried.get(&key).is_none_or(|tried| *tried < MOST_TRIALS)
    }

    fn decided(&mut self, seen: &Promising) {
        self.tried.insert((seen.module.clone(), seen.name.clone()), MOST_TRIALS);
    }

    /// Whether a function with these calls gets probes. All of them take at most half of what is allowed, one a quarter of
    /// that: calls that become more frequent must not cost others their probes.
    fn accepts(&mut self, seen: &Promising, cpu: f64, fact: &FunctionFact, calls: &[Calls]) -> bool {
        let ran_s = calls.iter().map(|calls| calls.ran_ns as f64 / 1e9).sum::<f64>();
        let count = calls.iter().map(|calls| calls.count as f64).sum::<f64>();
        if ran_s < LEAST_RUN_S && count < FEW_CALLS {
            *self.tried.entry((seen.module.clone(), seen.name.clone())).or_default() += 1;
            return false;
        }
        // One more than was seen: the next may have been about to come.
        let each_s = (count + 1.0) / ran_s.max(1e-9);
        let cost = each_s * seen.cpu * self.call_ns(fact) / 1e9 / cpu.max(1e-9);
        if cost > self.limit / 8.0 || self.spent + cost > self.limit / 2.0 {
            self.decided(seen);
            return false;
        }
        self.decided(seen);
        self.spent += cost;
        true
    }

    /// Whether a family of lock functions gets probes.
    pub(super) fn fits(&self, tried: &OperationsTried) -> bool {
        let cost = tried.cost_ppm as f64 / 1e6;
        tried.calls.is_some() && cost <= self.limit / 4.0 && self.spent + cost <= self.limit / 2.0
    }

    /// It has got them.
    pub(super) fn spend(&mut self, tried: &OperationsTried) {
        self.spent += tried.cost_ppm as f64 / 1e6;
    }

    /// What a probed call of a lock function costs, nanoseconds: some begin with an instruction that is stepped over.
    pub(super) fn operation_ns(&self) -> f64 {
        self.call_ns(&FunctionFact { entry_stepped: true, ..FunctionFact::default() })
    }

    fn call_ns(&self, fact: &FunctionFact) -> f64 {
        let Some(costs) = self.hit_costs else { return CALL_NS };
        let entry = if fact.entry_stepped { costs.entry_stepped } else { costs.entry };
        let ns = |cost: engine::event::HitCost| cost.total_ns() as f64;
        (ns(entry) + ns(costs.exit)).max(1.0)
    }
}

impl Functions {
    /// Probes for functions that samples have shown, if some are worth it.
    pub(super) fn worth(&mut self, sighting: &Sighting, pids: &[u32]) -> Option<Granted> {
        let open: Vec<&Promising> =
            sighting.functions.iter().filter(|seen| self.trials.is_open(seen)).take(MOST).collect();
        if open.is_empty() {
            return None;
        }
        let candidates = self.candidates(&open, pids);
        for seen in &open {
            if !candidates.iter().any(|candidate| candidate.seen == **seen) {
                // No such symbol, or probes would not hold there: that does not change.
                self.trials.decided(seen);
            }
        }
        self.tried(candidates, sighting.cpu, pids)
    }

    /// Those of them that have not had their trial.
    pub(super) fn open_of(&self, mut candidates: Vec<Candidate>) -> Vec<Candidate> {
        candidates
            .retain(|candidate| self.trials.is_open(&candidate.seen) && !self.moves_code(candidate.pid));
        candidates.truncate(MOST);
        candidates
    }

    /// Tries functions, and gives probes to those that are worth it.
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

    /// Those of them that can be probed.
    fn candidates(&mut self, open: &[&Promising], pids: &[u32]) -> Vec<Candidate> {
        let mut found: Vec<(usize, Candidate)> = Vec::new();
        let mut looked: Vec<FileKey> = Vec::new();
        for &pid in pids {
            for Loaded { module, path } in loaded(pid) {
                let here: Vec<(usize, &Promising)> = open
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
                // Another program by now: its addresses are others.
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
                    // Two of one name: which of them samples have shown is not known.
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

    /// The functions of these very names.
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

    /// Gives numbers to those that are new, and probes in every process.
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

/// Where a function is tried: in threads of its process that it was seen in, or if these are gone, in some that live now.
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

/// A file that a process runs, and a path that opens it.
pub(super) struct Loaded {
    pub(super) module: Module,
    pub(super) path: PathBuf,
}

/// Its program and libraries. The C library is left out: everything calls it, and it has probes of its own.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(name: &str, cpu: f64) -> Promising {
        Promising { name: name.into(), module: "program".into(), cpu, threads: vec![1] }
    }

    fn calls(count: u64, ran_ms: u64) -> Vec<Calls> {
        vec![Calls { count, ran_ns: ran_ms * 1_000_000 }]
    }

    #[test]
    fn rare_calls_are_accepted_frequent_ones_never_and_what_did_not_run_is_tried_again() {
        let mut trials = Trials::new(Some(20_000), None);
        let fact = FunctionFact::default();
        // 20 µs each: 0.25 % are 125 a second.
        assert!(trials.accepts(&seen("long", 1.0), 1.0, &fact, &calls(1, 100)));
        assert!(!trials.is_open(&seen("long", 1.0)), "it has probes");
        let hot = seen("hot", 1.0);
        assert!(!trials.accepts(&hot, 1.0, &fact, &calls(32, 2)), "cut short, so it did not run for long");
        assert!(!trials.is_open(&hot), "never again");
        let asleep = seen("asleep", 1.0);
        for _ in 0..MOST_TRIALS {
            assert!(trials.is_open(&asleep));
            assert!(!trials.accepts(&asleep, 1.0, &fact, &[]));
        }
        assert!(!trials.is_open(&asleep));
        assert!(trials.accepts(&seen("in one of many threads", 0.1), 10.0, &fact, &calls(32, 100)));
    }

    #[test]
    fn all_together_stay_below_half_of_the_limit() {
        let mut trials = Trials::new(None, None);
        let fact = FunctionFact::default();
        let accepted = (0..100)
            .filter(|number| trials.accepts(&seen(&format!("f{number}"), 1.0), 1.0, &fact, &calls(4, 100)))
            .count();
        // 50 calls a second each: 0.1 % of the 1 % that is half of the limit.
        assert!((9..=10).contains(&accepted), "{accepted}");
    }
}
