//! Facts may come in several chunks: cutting them up for writing, and putting them together when reading.

use engine::event::{
    AddressFact, CodeFact, Facts, FunctionFact, MappingFact, ModuleFact, ProcessFact, ThreadFact,
};
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::Hash;

/// Entries per chunk when writing.
const PER_CHUNK: usize = 4096;

/// Names longer than this are cut: they come from the target and must not break the recording.
const MOST_NAME_BYTES: usize = 1024;

/// Most entries of all lists together when reading.
pub const MOST_ENTRIES: usize = 1 << 22;

/// Facts in pieces of a size that fits into a chunk. `end` is left out: it has a chunk of its own.
pub fn pieces(facts: &Facts) -> Vec<Facts> {
    let count = |entries: usize| entries.div_ceil(PER_CHUNK);
    let chunks = count(facts.processes.len())
        .max(count(facts.threads.len()))
        .max(count(facts.functions.len()))
        .max(count(facts.addresses.len()))
        .max(count(facts.modules.len()))
        .max(count(facts.mappings.len()))
        .max(count(facts.code.len()));
    (0..chunks.max(1))
        .map(|i| Facts {
            start_ns: facts.start_ns,
            processes: piece(&facts.processes, i, shorten_process),
            threads: piece(&facts.threads, i, shorten_thread),
            functions: piece(&facts.functions, i, shorten_function),
            addresses: piece(&facts.addresses, i, shorten_address),
            modules: piece(&facts.modules, i, shorten_module),
            hit_costs: facts.hit_costs,
            sampling: facts.sampling,
            mappings: piece(&facts.mappings, i, shorten_mapping),
            idle_wake: facts.idle_wake,
            tick_ns: facts.tick_ns,
            idle_tick_ns: facts.idle_tick_ns,
            launched: facts.launched,
            code: piece(&facts.code, i, shorten_code),
            end: None,
        })
        .collect()
}

fn piece<T: Clone>(all: &[T], i: usize, shorten: fn(&mut T)) -> Vec<T> {
    let mut piece: Vec<T> = all.chunks(PER_CHUNK).nth(i).unwrap_or_default().to_vec();
    piece.iter_mut().for_each(shorten);
    piece
}

fn shorten_process(process: &mut ProcessFact) {
    shorten(&mut process.comm);
    shorten(&mut process.executable);
}

/// For `WindowEnd`, too.
pub fn shorten_thread(thread: &mut ThreadFact) {
    shorten(&mut thread.comm);
}

fn shorten_function(function: &mut FunctionFact) {
    shorten(&mut function.name);
    shorten(&mut function.module);
    if let Some(location) = &mut function.location {
        shorten(location);
    }
}

fn shorten_address(address: &mut AddressFact) {
    let AddressFact { name, location, module, build_id, .. } = address;
    name.iter_mut().chain(location).chain(module).chain(build_id).for_each(shorten);
}

fn shorten_module(module: &mut ModuleFact) {
    let ModuleFact { name, path, build_id, missing, own_locks } = module;
    [name, path].into_iter().chain(build_id).chain(missing).chain(own_locks).for_each(shorten);
}

fn shorten_mapping(mapping: &mut MappingFact) {
    let MappingFact { path, build_id, .. } = mapping;
    [path].into_iter().chain(build_id).for_each(shorten);
}

fn shorten_code(code: &mut CodeFact) {
    const MOST_INLINED: usize = 64;
    let CodeFact { path, build_id, function, declared, line, inlined, .. } = code;
    [path].into_iter().chain(build_id).chain(function).chain(declared).chain(line).for_each(shorten);
    inlined.truncate(MOST_INLINED);
    for inlined in inlined {
        shorten(&mut inlined.function);
        inlined.line.iter_mut().for_each(shorten);
    }
}

/// Entries of all lists.
pub fn entries(facts: &Facts) -> usize {
    facts.processes.len()
        + facts.threads.len()
        + facts.functions.len()
        + facts.addresses.len()
        + facts.modules.len()
        + facts.mappings.len()
        + facts.code.len()
}

fn shorten(name: &mut String) {
    if name.len() > MOST_NAME_BYTES {
        name.truncate(name.floor_char_boundary(MOST_NAME_BYTES));
        name.push('…');
    }
}

/// Puts facts together, entry by entry.
#[derive(Default)]
pub struct Merger {
    facts: Facts,
    processes: HashMap<u32, usize>,
    threads: HashMap<(u32, u64), usize>,
    functions: HashMap<u32, usize>,
    addresses: HashMap<(u32, u64, u64), usize>,
    modules: HashMap<(String, Option<String>), usize>,
    mappings: HashMap<(u32, u64, u64), usize>,
    code: HashMap<(String, Option<String>, u64), usize>,
}

impl Merger {
    /// Adds a chunk's facts: what has a known key replaces, the rest is appended. `false`: that would be more than
    /// any recording has.
    pub fn add(&mut self, more: Facts) -> bool {
        if entries(&self.facts) + entries(&more) > MOST_ENTRIES {
            return false;
        }
        if more.start_ns != 0 {
            self.facts.start_ns = more.start_ns;
        }
        self.facts.hit_costs = more.hit_costs.or(self.facts.hit_costs);
        self.facts.sampling = more.sampling.or(self.facts.sampling);
        self.facts.idle_wake = more.idle_wake.or(self.facts.idle_wake);
        self.facts.tick_ns = more.tick_ns.or(self.facts.tick_ns);
        self.facts.idle_tick_ns = more.idle_tick_ns.or(self.facts.idle_tick_ns);
        self.facts.launched = more.launched.or(self.facts.launched);
        merge(&mut self.facts.processes, &mut self.processes, more.processes, |process| process.pid);
        merge(&mut self.facts.threads, &mut self.threads, more.threads, |t| (t.tid, t.start_time_ns));
        merge(&mut self.facts.functions, &mut self.functions, more.functions, |function| function.id);
        merge(&mut self.facts.addresses, &mut self.addresses, more.addresses, |fact| {
            (fact.pid, fact.address, fact.since_ns)
        });
        merge(&mut self.facts.modules, &mut self.modules, more.modules, |module| {
            (module.path.clone(), module.build_id.clone())
        });
        merge(&mut self.facts.mappings, &mut self.mappings, more.mappings, |mapping| {
            (mapping.pid, mapping.since_ns, mapping.start)
        });
        merge(&mut self.facts.code, &mut self.code, more.code, |code| {
            (code.path.clone(), code.build_id.clone(), code.offset)
        });
        true
    }

    /// The facts put together.
    pub fn finish(self) -> Facts {
        self.facts
    }
}

fn merge<T, K: Hash + Eq>(all: &mut Vec<T>, known: &mut HashMap<K, usize>, more: Vec<T>, key: fn(&T) -> K) {
    for entry in more {
        match known.entry(key(&entry)) {
            Entry::Occupied(place) => all[*place.get()] = entry,
            Entry::Vacant(place) => {
                place.insert(all.len());
                all.push(entry);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn function(id: u32, name: &str) -> FunctionFact {
        FunctionFact { id, name: name.into(), ..FunctionFact::default() }
    }

    #[test]
    fn later_facts_replace_and_add() {
        let mut merger = Merger::default();
        let first =
            Facts { start_ns: 7, functions: vec![function(1, "a"), function(2, "b")], ..Facts::default() };
        let second = Facts { functions: vec![function(2, "better"), function(3, "c")], ..Facts::default() };
        assert!(merger.add(first) && merger.add(second));
        let facts = merger.finish();
        assert_eq!(facts.start_ns, 7);
        let names: Vec<_> = facts.functions.iter().map(|f| (f.id, f.name.as_str())).collect();
        assert_eq!(names, [(1, "a"), (2, "better"), (3, "c")]);
    }

    #[test]
    fn many_facts_make_several_pieces_and_a_hostile_name_is_cut() {
        let mut functions: Vec<_> = (0..10_000).map(|id| function(id, "f")).collect();
        functions[9_999].name = "é".repeat(10_000_000);
        let pieces = pieces(&Facts { functions, ..Facts::default() });
        assert_eq!(pieces.iter().map(|p| p.functions.len()).collect::<Vec<_>>(), [4096, 4096, 1808]);
        let name = &pieces[2].functions[1807].name;
        assert!(name.len() <= MOST_NAME_BYTES + 3 && name.ends_with('…'), "{} bytes", name.len());
    }

    #[test]
    fn more_entries_than_any_recording_has_are_refused() {
        let mut merger = Merger::default();
        let half = MOST_ENTRIES as u32 / 2;
        let processes = |from: u32| Facts {
            processes: (from..from + half).map(|pid| ProcessFact { pid, ..ProcessFact::default() }).collect(),
            ..Facts::default()
        };
        assert!(merger.add(processes(0)) && merger.add(processes(half)));
        assert!(!merger.add(Facts { threads: vec![ThreadFact::default()], ..Facts::default() }));
    }
}
