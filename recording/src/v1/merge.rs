//! Merges facts from several chunks when reading.

use engine::event::Facts;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::Hash;

/// Number of entries in all lists together.
pub fn entries(facts: &Facts) -> usize {
    facts.processes.len()
        + facts.threads.len()
        + facts.functions.len()
        + facts.addresses.len()
        + facts.modules.len()
        + facts.mappings.len()
        + facts.code.len()
        + facts.spin.len()
        + facts.cpu_runs.len()
        + facts.hosts.len()
}

/// Merges facts, entry by entry.
#[derive(Default)]
pub struct Merger {
    facts: Facts,
    processes: HashMap<u32, usize>,
    threads: HashMap<(u32, u64), usize>,
    functions: HashMap<u32, usize>,
    addresses: HashMap<(u32, u64, u64), usize>,
    modules: HashMap<(String, Option<String>), usize>,
    mappings: HashMap<(u32, u64, u64), usize>,
    code: HashMap<(String, Option<String>, u64, u64), usize>,
}

impl Merger {
    /// Adds a chunk's facts. An entry replaces an older one with the same key, and entries with new keys are appended.
    /// Returns `false` if there would be too many entries. A writer counts replaced entries, too, so its files never
    /// have too many.
    pub fn add(&mut self, more: Facts, most: usize) -> bool {
        if entries(&self.facts) + entries(&more) > most {
            return false;
        }
        if more.start_ns != 0 {
            self.facts.start_ns = more.start_ns;
        }
        self.facts.hit_costs = more.hit_costs.or(self.facts.hit_costs);
        self.facts.sampling = more.sampling.or(self.facts.sampling);
        self.facts.idle_wake = more.idle_wake.or(self.facts.idle_wake);
        self.facts.line_transfer = more.line_transfer.or(self.facts.line_transfer);
        self.facts.tick_ns = more.tick_ns.or(self.facts.tick_ns);
        self.facts.idle_tick_ns = more.idle_tick_ns.or(self.facts.idle_tick_ns);
        self.facts.cpu_quota = more.cpu_quota.or(self.facts.cpu_quota);
        self.facts.launched = more.launched.or(self.facts.launched);
        self.facts.spin.extend(more.spin);
        self.facts.cpu_runs.extend(more.cpu_runs);
        self.facts.hosts.extend(more.hosts);
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
            (code.path.clone(), code.build_id.clone(), code.offset, code.since_ns)
        });
        true
    }

    /// The facts so far.
    pub fn facts(&self) -> &Facts {
        &self.facts
    }

    /// The merged facts.
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
    use engine::event::{FunctionFact, ThreadFact};

    fn function(id: u32, name: &str) -> FunctionFact {
        FunctionFact { id, name: name.into(), ..FunctionFact::default() }
    }

    #[test]
    fn later_facts_replace_and_extend_earlier_ones() {
        let mut merger = Merger::default();
        let first =
            Facts { start_ns: 7, functions: vec![function(1, "a"), function(2, "b")], ..Facts::default() };
        let second = Facts { functions: vec![function(2, "better"), function(3, "c")], ..Facts::default() };
        assert!(merger.add(first, 10) && merger.add(second, 10));
        let facts = merger.finish();
        assert_eq!(facts.start_ns, 7);
        let names: Vec<_> = facts.functions.iter().map(|f| (f.id, f.name.as_str())).collect();
        assert_eq!(names, [(1, "a"), (2, "better"), (3, "c")]);
    }

    #[test]
    fn more_facts_than_any_recording_has_are_refused() {
        let mut merger = Merger::default();
        let half = |from: u32| Facts {
            functions: (from..from + 50).map(|id| function(id, "f")).collect(),
            ..Facts::default()
        };
        assert!(merger.add(half(0), 100) && merger.add(half(50), 100));
        assert!(!merger.add(Facts { threads: vec![ThreadFact::default()], ..Facts::default() }, 100));
    }
}
