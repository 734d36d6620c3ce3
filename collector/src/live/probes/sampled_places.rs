//! Finds functions from the places on a tally's stacks, and decides which of them matter. It is for recordings, which
//! are not analysed while they are made.

use super::hot_functions::HotFunction;
use super::probe_selection::{Candidate, Loaded, loaded};
use super::probed_functions::ProbedFunctions;
use super::tally::{SampledPlace, Tally};
use crate::live::main_loop::Granted;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use symbols::FileKey;
use symbols::binary::Binary;
use symbols::{ChosenFunction, Selection, SymbolError};

/// Least share of the samples from which a function is considered.
const LEAST_SHARE: f64 = 0.01;
/// Fewer samples say nothing.
const FEW_SAMPLES: u32 = 10;
/// Largest number of functions that are found in one file, the largest functions first.
const MOST_FUNCTIONS: usize = 8_192;

/// Functions of a file in which samples were found, in order of their places.
#[derive(Clone, Debug, Default)]
pub(super) struct Table {
    key: Option<FileKey>,
    functions: Vec<ChosenFunction>,
    /// Places that are in no function that can be probed.
    elsewhere: BTreeSet<u64>,
}

impl Table {
    /// Adds the functions that were found at these places to the table.
    fn add(&mut self, found: Vec<ChosenFunction>, places: &[u64]) {
        self.functions.extend(found);
        self.functions.sort_by_key(|function| function.entry_offset);
        self.functions.dedup_by_key(|function| function.entry_offset);
        let unknown: Vec<u64> = places.iter().copied().filter(|place| self.at(*place).is_none()).collect();
        self.elsewhere.extend(unknown);
    }

    /// Whether a place is in a known function, or was already asked for.
    fn knows(&self, place: u64) -> bool {
        self.elsewhere.contains(&place) || self.at(place).is_some()
    }

    /// Index of the function at a place.
    fn at(&self, offset: u64) -> Option<usize> {
        let next = self.functions.partition_point(|function| function.entry_offset <= offset);
        let number = next.checked_sub(1)?;
        let function = self.functions.get(number)?;
        (offset - function.entry_offset < function.size.max(1)).then_some(number)
    }
}

/// Samples of a function in one process, and their threads.
#[derive(Default)]
struct On {
    samples: u32,
    threads: BTreeMap<u32, u32>,
}

impl ProbedFunctions {
    /// Chooses which functions on a tally's stacks get probes; `None`: none is worth them.
    pub(super) fn seen_in(&mut self, tally: &Tally, pids: &[u32]) -> Option<Granted> {
        let all: u32 = tally.0.values().flatten().map(|sampled| sampled.count).sum();
        if all < FEW_SAMPLES {
            return None;
        }
        let mut found: Vec<(u32, Candidate)> = Vec::new();
        for (&pid, sampled) in tally.0.iter().filter(|(pid, _)| pids.contains(pid)) {
            let loaded = loaded(pid);
            let tables: Vec<Arc<Table>> =
                loaded.iter().map(|loaded| self.table_if_hit(loaded, sampled, all)).collect();
            for ((number, function), on) in on_stacks(&loaded, &tables, sampled) {
                let share = f64::from(on.samples) / f64::from(all);
                let (module, table) = (&loaded[number].module, &tables[number]);
                let Some((key, function)) = table.key.zip(table.functions.get(function)) else { continue };
                if share < LEAST_SHARE || function.unsure.is_some() {
                    continue;
                }
                let Some(address) = module.address(function.entry_offset) else { continue };
                let its: u32 =
                    sampled.iter().filter(|s| on.threads.contains_key(&s.thread)).map(|s| s.count).sum();
                let mut threads: Vec<(u32, u32)> = on.threads.into_iter().collect();
                threads.sort_by_key(|&(thread, count)| (std::cmp::Reverse(count), thread));
                let seen = HotFunction {
                    name: function.fact.name.clone(),
                    module: module.name().to_owned(),
                    cpu: f64::from(its) / f64::from(all),
                    threads: threads.into_iter().map(|(thread, _)| thread).take(MOST_THREADS).collect(),
                };
                let chosen = function.clone();
                found.push((on.samples, Candidate { seen, chosen, key, pid, address }));
            }
        }
        found.sort_by(|(a, one), (b, other)| b.cmp(a).then_with(|| one.seen.name.cmp(&other.seen.name)));
        let open = self.open_of(found.into_iter().map(|(_, candidate)| candidate).collect());
        // Costs are shares of the CPU time of all samples, so the total is 1.
        self.tried(open, 1.0, pids)
    }

    /// The functions of a file that samples fell into; `all`: number of all samples. Only these functions are decoded, since
    /// decoding all takes a tenth of a second.
    fn table_if_hit(&mut self, loaded: &Loaded, sampled: &[SampledPlace], all: u32) -> Arc<Table> {
        let Loaded { module, path } = loaded;
        let offsets = |sampled: &SampledPlace| {
            places(&sampled.frames).filter_map(|place| module.file_offset(place)).collect::<Vec<_>>()
        };
        if sampled.iter().all(|sampled| offsets(sampled).is_empty()) {
            return Arc::default();
        }
        let Some(binary) = self.opened(path, &module.path) else { return Arc::default() };
        let key = binary.key();
        // The file at that path has been replaced by another one, with other addresses.
        if key.inode() != module.inode {
            return Arc::default();
        }
        let mut table = self.tables.get(&key).cloned().unwrap_or_default();
        let (mut new, mut samples) = (BTreeSet::new(), 0_u32);
        for sampled in sampled {
            let mut unknown = offsets(sampled);
            unknown.retain(|place| !table.knows(*place));
            samples = samples.saturating_add(if unknown.is_empty() { 0 } else { sampled.count });
            new.extend(unknown);
        }
        // With fewer samples no function of this file can reach the share, and the file would be read again each time.
        if f64::from(samples) >= LEAST_SHARE * f64::from(all) && !new.is_empty() {
            let new: Vec<u64> = new.into_iter().collect();
            let found = self.read_table(&module.path, &binary, new.clone()).unwrap_or_else(|error| {
                log::debug!("{}: no function is tried: {error}", module.path);
                Vec::new()
            });
            let known = Arc::make_mut(&mut table);
            known.key = Some(key);
            known.add(found, &new);
            self.tables.insert(key, Arc::clone(&table));
        }
        table
    }

    fn read_table(
        &mut self,
        name: &str,
        binary: &Binary,
        places: Vec<u64>,
    ) -> Result<Vec<ChosenFunction>, SymbolError> {
        let short = name.rsplit('/').next().unwrap_or(name);
        let selection = Selection { max_functions: MOST_FUNCTIONS, places, ..self.selection.clone() };
        Ok(self.parsers.open_binary(binary, short)?.choose(&selection)?.chosen)
    }
}

/// Largest number of threads named for each function.
const MOST_THREADS: usize = 4;

/// Places of a stack's frames: its innermost instruction, and the calls before its return addresses.
fn places(frames: &[u64]) -> impl Iterator<Item = u64> + '_ {
    frames.iter().enumerate().map(|(depth, &frame)| if depth == 0 { frame } else { frame.saturating_sub(1) })
}

/// Functions on the stacks, each with the number of samples that contain it; recursion counts once.
fn on_stacks(
    loaded: &[Loaded],
    tables: &[Arc<Table>],
    sampled: &[SampledPlace],
) -> BTreeMap<(usize, usize), On> {
    let mut all: BTreeMap<(usize, usize), On> = BTreeMap::new();
    for sampled in sampled {
        let here: BTreeSet<(usize, usize)> = places(&sampled.frames)
            .filter_map(|place| {
                loaded.iter().zip(tables).enumerate().find_map(|(number, (loaded, table))| {
                    Some((number, table.at(loaded.module.file_offset(place)?)?))
                })
            })
            .collect();
        for function in here {
            let on = all.entry(function).or_default();
            on.samples += sampled.count;
            *on.threads.entry(sampled.thread).or_default() += sampled.count;
        }
    }
    all
}

/// Tables by file.
pub(super) type Tables = std::collections::HashMap<FileKey, Arc<Table>>;

#[cfg(test)]
mod tests {
    use super::*;

    fn function(entry_offset: u64, size: u64) -> ChosenFunction {
        ChosenFunction {
            fact: engine::event::FunctionFact::default(),
            address: entry_offset,
            size,
            entry_offset,
            exit_offsets: Vec::new(),
            unsure: None,
            pair: None,
        }
    }

    #[test]
    fn a_sampled_place_belongs_only_to_the_function_around_it() {
        let mut table = Table::default();
        table.add(vec![function(0x200, 0x10)], &[0x208]);
        table.add(vec![function(0x100, 0x80), function(0x200, 0x10)], &[0x180, 0x120]);
        let knows = |place| table.knows(place);
        assert_eq!([knows(0x120), knows(0x180), knows(0x181)], [true, true, false]);
        let at = |offset| table.at(offset);
        assert_eq!([at(0xff), at(0x100), at(0x17f), at(0x180)], [None, Some(0), Some(0), None]);
        assert_eq!([at(0x200), at(0x20f), at(0x210)], [Some(1), Some(1), None]);
        assert_eq!(Table::default().at(5), None);
    }

    #[test]
    fn a_return_address_is_looked_up_at_the_call_before_it() {
        assert_eq!(places(&[0x10, 0x20, 0]).collect::<Vec<_>>(), [0x10, 0x1f, 0]);
    }
}
