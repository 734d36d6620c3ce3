//! Stacks of a recording as places in functions: with probes, or known from samples only. Frames of the library that
//! longpole preloads are skipped: a caller that reached libc through it counts as the caller of the libc function.

use crate::event::{
    CodeFact, CodeMap, CodeNames, FunctionFact, FunctionId, frame_address, is_jit_code, is_recording_library,
};
use crate::program::naming::function_origin::{CODE_WITHOUT_A_FILE, MADE_CODE, UNKNOWN, unnamed};
use crate::program::spinning::busy_wait;
use crate::program::{FunctionRef, Place, PlaceId};
use crate::timeline::{Stack, Timeline};
use rustc_hash::{FxHashMap, FxHashSet};

/// The content of stacks before the program's functions have their indices.
#[derive(Debug, Default)]
pub(in crate::program) struct SampledCode {
    /// Functions known from stacks only, with unused ids.
    pub(in crate::program) facts: Vec<FunctionFact>,
    /// Ids of all functions on stacks, ascending.
    pub(in crate::program) functions: Vec<FunctionId>,
    places: Vec<(FunctionId, Option<String>, bool)>,
    /// For each stack, by its index in the timeline: its places.
    stacks: Vec<Vec<PlaceId>>,
    /// For each stack: whether its innermost frame is in a probe.
    in_probes: Vec<bool>,
    /// For each stack: whether its innermost frame is in a loop that only waits.
    in_waits: Vec<bool>,
    /// For each stack: whether that loop tries to take a lock, or the innermost function takes a spin lock.
    in_tries: Vec<bool>,
}

/// The kernel's name of the library that reads the clock.
const CLOCK: &str = "[vdso]";
/// The kernel's name of the memory for instructions under probes.
const UNDER_PROBES: &str = "[uprobes]";

impl SampledCode {
    pub(in crate::program) fn of(timeline: &Timeline) -> SampledCode {
        if timeline.stacks.is_empty() {
            return SampledCode::default();
        }
        let mut finder = Finder::of(timeline);
        let stacks = timeline
            .stacks
            .iter()
            .map(|stack| {
                let frames = stack.frames.iter().enumerate();
                let mut places = Vec::with_capacity(stack.frames.len());
                // Whether all frames so far only read the clock, which may be part of recording.
                let mut only_clock = true;
                for (index, address) in frames {
                    let (pid, address) = (stack.pid, frame_address(index, *address));
                    match finder.map.at(pid, address, stack.time.0) {
                        Some((mapping, _)) if is_recording_library(&mapping.path) => {
                            if only_clock {
                                places.clear();
                            }
                            continue;
                        }
                        mapping => only_clock &= mapping.is_some_and(|(mapping, _)| mapping.path == CLOCK),
                    }
                    finder.frame(pid, address, stack.time.0, &mut places);
                }
                if places.is_empty() && !stack.frames.is_empty() {
                    let unknown = finder.function("", None, UNKNOWN, None);
                    places.push(finder.place(unknown, None, false));
                }
                places
            })
            .collect();
        let in_probe = |stack: &Stack| {
            let address = stack.frames.first().copied().unwrap_or(0);
            finder.is_in_probe(stack.pid, address, stack.time.0)
        };
        let in_probes = timeline.stacks.iter().map(in_probe).collect();
        let innermost: Vec<Option<&CodeFact>> =
            timeline.stacks.iter().map(|stack| finder.innermost(stack)).collect();
        let in_waits = innermost.iter().map(|code| code.is_some_and(|code| code.waits)).collect();
        let tries =
            |code: &CodeFact| code.tries || code.function.as_deref().is_some_and(busy_wait::is_spin_lock);
        let in_tries = innermost.iter().map(|code| code.is_some_and(tries)).collect();
        let mut functions: Vec<FunctionId> = finder.places.iter().map(|(function, ..)| *function).collect();
        functions.sort_unstable();
        functions.dedup();
        SampledCode {
            facts: finder.facts,
            functions,
            places: finder.places,
            stacks,
            in_probes,
            in_waits,
            in_tries,
        }
    }

    /// The places, with functions as indices in the program.
    pub(in crate::program) fn places(&self, functions: &FxHashMap<FunctionId, FunctionRef>) -> Vec<Place> {
        let place = |(function, line, inlined): &(FunctionId, Option<String>, bool)| Place {
            function: functions.get(function).copied().unwrap_or(FunctionRef(u32::MAX)),
            line: line.clone(),
            inlined: *inlined,
        };
        self.places.iter().map(place).collect()
    }

    /// For each stack: whether its innermost function, a function inlined there, or the loop there only waits.
    ///
    /// A mutex or read-write lock that spins before it sleeps does not count where operations are put back (estimated):
    /// these show who waits.
    pub(in crate::program) fn waiting(&self, timeline: &Timeline) -> Vec<bool> {
        let waits = |fact: &FunctionFact| {
            busy_wait::is_waiter(&fact.name, &fact.module)
                || busy_wait::is_declared(&timeline.spin, &fact.name)
        };
        let places: Vec<bool> = self.of_places(timeline, waits);
        let lock_places: Vec<bool> = self.of_places(timeline, |fact| busy_wait::is_sleeping_lock(&fact.name));
        let put_back: FxHashSet<u32> =
            timeline.locks.iter().filter(|lock| lock.put_back).map(|lock| lock.pid).collect();
        let is_inlined = |id: &PlaceId| self.places.get(id.0 as usize).is_some_and(|place| place.2);
        let is_in = |stack: &Vec<PlaceId>, places: &[bool]| {
            let inlined = stack.iter().take_while(|id| is_inlined(id)).count();
            stack.iter().take(inlined + 1).any(|id| places.get(id.0 as usize) == Some(&true))
        };
        let all = self.stacks.iter().zip(&timeline.stacks).zip(&self.in_waits);
        all.map(|((places_of, stack), waits)| {
            let is_known = put_back.contains(&stack.pid) && is_in(places_of, &lock_places);
            !is_known && (*waits || is_in(places_of, &places))
        })
        .collect()
    }

    /// For each place, by its id: what `judge` says about its function; the default for an unknown function.
    pub(in crate::program) fn of_places<T: Default>(
        &self,
        timeline: &Timeline,
        judge: impl Fn(&FunctionFact) -> T,
    ) -> Vec<T> {
        let facts: FxHashMap<FunctionId, &FunctionFact> =
            timeline.functions.iter().chain(&self.facts).map(|fact| (fact.id, fact)).collect();
        let of = |function: &FunctionId| facts.get(function).map(|fact| judge(fact)).unwrap_or_default();
        self.places.iter().map(|(function, ..)| of(function)).collect()
    }

    /// For each stack: whether its thread waits for a spin lock.
    pub(in crate::program) fn in_tries(&self) -> &[bool] {
        &self.in_tries
    }

    pub(in crate::program) fn in_probes(&self) -> &[bool] {
        &self.in_probes
    }

    pub(in crate::program) fn stacks(&self) -> &[Vec<PlaceId>] {
        &self.stacks
    }
}

struct Finder<'a> {
    map: CodeMap<'a>,
    named: CodeNames<'a>,
    /// Functions with probes, by binary and offset of the first instruction; below, by binary and name, `None` if not unique.
    probed: FxHashMap<(&'a str, u64), FunctionId>,
    by_name: FxHashMap<(&'a str, &'a str), Option<FunctionId>>,
    /// Other functions, by binary and first instruction; below, by binary and name, and whether the first is known.
    placed: FxHashMap<(String, u64), FunctionId>,
    named_only: FxHashMap<(String, String), (FunctionId, bool)>,
    facts: Vec<FunctionFact>,
    places: Vec<(FunctionId, Option<String>, bool)>,
    numbers: FxHashMap<(FunctionId, Option<String>, bool), PlaceId>,
    /// For each place of a binary and time of its last change: the places of the program.
    seen: FxHashMap<(&'a str, Option<&'a str>, u64, u64), Vec<PlaceId>>,
    /// The next unused id.
    next: FunctionId,
}

impl<'a> Finder<'a> {
    fn of(timeline: &'a Timeline) -> Finder<'a> {
        let mut by_name: FxHashMap<(&str, &str), Option<FunctionId>> = FxHashMap::default();
        for fact in timeline.functions.iter().filter(|fact| !fact.name.is_empty()) {
            let only = by_name.entry((&fact.module, &fact.name)).or_insert(Some(fact.id));
            if *only != Some(fact.id) {
                *only = None;
            }
        }
        let used = timeline.functions.iter().map(|fact| fact.id);
        Finder {
            map: CodeMap::of_mappings(&timeline.mappings),
            named: CodeNames::of(&timeline.code),
            probed: timeline.functions.iter().map(|f| ((f.module.as_str(), f.offset), f.id)).collect(),
            by_name,
            placed: FxHashMap::default(),
            named_only: FxHashMap::default(),
            facts: Vec::new(),
            places: Vec::new(),
            numbers: FxHashMap::default(),
            seen: FxHashMap::default(),
            next: used.max().unwrap_or(0).checked_add(1).unwrap_or(0),
        }
    }

    /// Whether a thread at this address is in a probe: at the first instruction of a probed function, or at its copy that the
    /// kernel executes. That instruction takes as long as a trap, and next to nothing without a probe.
    fn is_in_probe(&self, pid: u32, address: u64, time_ns: u64) -> bool {
        let Some((mapping, offset)) = self.map.at(pid, address, time_ns) else { return false };
        if mapping.path == UNDER_PROBES {
            return true;
        }
        let module = mapping.path.rsplit('/').next().unwrap_or(&mapping.path);
        let code = self.named.at(mapping, offset, time_ns);
        let entry = code.and_then(|code| code.entry);
        // The address is at the breakpoint, or after the breakpoint's first byte.
        entry.is_some_and(|entry| {
            offset.wrapping_sub(entry) <= 1 && self.probed.contains_key(&(module, entry))
        })
    }

    /// The innermost code of a stack outside of the preloaded library and the clock.
    fn innermost(&self, stack: &Stack) -> Option<&'a CodeFact> {
        let mut frames = stack
            .frames
            .iter()
            .enumerate()
            .map(|(index, address)| self.map.at(stack.pid, frame_address(index, *address), stack.time.0));
        let own = frames.find(|place| {
            !place.is_some_and(|(mapping, _)| mapping.path == CLOCK || is_recording_library(&mapping.path))
        });
        let (mapping, offset) = own.flatten()?;
        self.named.at(mapping, offset, stack.time.0)
    }

    /// Appends the places at an address: functions inlined there, and the function around them.
    fn frame(&mut self, pid: u32, address: u64, time_ns: u64, places: &mut Vec<PlaceId>) {
        let Some((mapping, offset)) = self.map.at(pid, address, time_ns) else {
            let unknown = self.function("", None, UNKNOWN, None);
            places.push(self.place(unknown, None, false));
            return;
        };
        let code = self.named.at(mapping, offset, time_ns);
        let since_ns = code.map_or(0, |code| code.since_ns);
        let key = (mapping.path.as_str(), mapping.build_id.as_deref(), offset, since_ns);
        if let Some(seen) = self.seen.get(&key) {
            places.extend_from_slice(seen);
            return;
        }
        let from = places.len();
        let is_made = is_jit_code(&mapping.path);
        let module = match mapping.path.rsplit('/').next() {
            // Code that several processes generated under one name is one function, like code of a shared binary.
            _ if is_made => MADE_CODE,
            last => last.unwrap_or(&mapping.path),
        };
        for inlined in code.iter().flat_map(|code| &code.inlined) {
            let function = self.function(module, None, &inlined.function, None);
            places.push(self.place(function, inlined.line.clone(), true));
        }
        // Rarely executed code that a compiler moved out of a function (`name.cold`) still belongs to that function.
        let name = code.and_then(|code| code.function.as_deref()).map(|name| match name.find(".cold") {
            Some(at) if at > 0 => name.get(..at).unwrap_or(name),
            _ => name,
        });
        let function = match name {
            Some(name) => {
                let (entry, declared) = code.map_or((None, None), |code| (code.entry, code.declared.clone()));
                self.function(module, entry, name, declared)
            }
            // Code without a name counts as one function for its complete binary.
            None if is_made || module.is_empty() => self.function("", None, CODE_WITHOUT_A_FILE, None),
            None => self.function(module, None, &unnamed(module), None),
        };
        let line = code.and_then(|code| code.line.clone());
        places.push(self.place(function, line, false));
        self.seen.insert(key, places.get(from..).unwrap_or_default().to_vec());
    }

    /// The id of a function; a new one if it has none.
    fn function(
        &mut self,
        module: &str,
        entry: Option<u64>,
        name: &str,
        location: Option<String>,
    ) -> FunctionId {
        if let Some(id) = entry.and_then(|entry| self.probed.get(&(module, entry))) {
            return *id;
        }
        if let Some(Some(id)) = self.by_name.get(&(module, name)) {
            return *id;
        }
        let by_entry = entry.map(|entry| (module.to_owned(), entry));
        if let Some(id) = by_entry.as_ref().and_then(|key| self.placed.get(key)) {
            return *id;
        }
        // Inlined copies have no first instruction: they belong to the function of that name, if there is one.
        let by_name = (module.to_owned(), name.to_owned());
        if let Some((id, has_place)) = self.named_only.get_mut(&by_name)
            && (entry.is_none() || !*has_place)
        {
            let id = *id;
            *has_place |= entry.is_some();
            if let Some(key) = by_entry {
                self.placed.insert(key, id);
            }
            if let Some(fact) = self.facts.iter_mut().rev().find(|fact| fact.id == id && entry.is_some()) {
                fact.offset = entry.unwrap_or(0);
                fact.location = location;
            }
            return id;
        }
        let id = self.next;
        self.next = self.next.checked_add(1).unwrap_or(0);
        self.facts.push(FunctionFact {
            id,
            name: name.to_owned(),
            module: module.to_owned(),
            offset: entry.unwrap_or(0),
            location,
            ..FunctionFact::default()
        });
        self.named_only.entry(by_name).or_insert((id, entry.is_some()));
        if let Some(key) = by_entry {
            self.placed.insert(key, id);
        }
        id
    }

    fn place(&mut self, function: FunctionId, line: Option<String>, inlined: bool) -> PlaceId {
        let key = (function, line, inlined);
        if let Some(number) = self.numbers.get(&key) {
            return *number;
        }
        let number = PlaceId(u32::try_from(self.places.len()).unwrap_or(u32::MAX));
        self.places.push(key.clone());
        self.numbers.insert(key, number);
        number
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{MappingFact, SyncObject};
    use crate::time::Timestamp;
    use crate::timeline::{FirstUse, Lock};

    /// A thread that spins for Rust's lock before it sleeps must not wait for another thread in the middle of a section
    /// that was put back (estimated): the simulation would deadlock.
    #[test]
    fn spinning_for_a_lock_that_is_put_back_is_no_wait_of_its_own() {
        let waits = |function: &str, put_back: bool| {
            let code = CodeFact {
                path: "/program".to_owned(),
                offset: 0x10,
                function: Some(function.to_owned()),
                waits: true,
                ..CodeFact::default()
            };
            let lock =
                Lock { pid: 7, address: 64, kind: SyncObject::RwLock, first: FirstUse::default(), put_back };
            let mapping = MappingFact {
                pid: 7,
                start: 0x1000,
                end: 0x2000,
                path: "/program".to_owned(),
                ..MappingFact::default()
            };
            let timeline = Timeline {
                locks: vec![lock],
                mappings: vec![mapping],
                code: vec![code],
                stacks: vec![Stack { pid: 7, time: Timestamp(1), frames: vec![0x1010], ..Stack::default() }],
                ..Timeline::default()
            };
            SampledCode::of(&timeline).waiting(&timeline)
        };
        let of_rust = "std::sys::sync::rwlock::futex::RwLock::read_contended";
        assert_eq!(waits(of_rust, true), [false]);
        assert_eq!(waits(of_rust, false), [true]);
        assert_eq!(waits("poll_ring", true), [true]);
    }
}
