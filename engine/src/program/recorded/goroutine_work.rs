//! What goroutines did and waited for, with names: looks at Go's runtime in the program's memory.

use super::goroutines::{READ_WRITE, is_gos};
use crate::event::{CodeMap, CodeNames, GoroutineAct, GoroutineFact, GoroutineState, frame_address};
use crate::program::Program;
use crate::timeline::Timeline;
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The goroutines of one process. Counts are sums over looks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct GoroutineWork {
    /// Looks.
    pub looks: u64,
    /// Goroutines by the function that they were started with, the busiest first, without those of Go's runtime.
    pub groups: Vec<GoroutineGroup>,
}

/// Goroutines that were started with the same function.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct GoroutineGroup {
    /// The function.
    pub function: String,
    /// The program's named function in which they compute most, as called from the outermost one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub computes: Option<String>,
    /// The most goroutines at one look.
    pub most: u64,
    /// Looks at which one of them was there.
    pub there: u64,
    /// Looks at which one of them ran, was runnable or was in a system call.
    pub busy: u64,
    /// Goroutines that ran.
    pub running: u64,
    /// Goroutines that could run, and had no thread of the runtime.
    pub runnable: u64,
    /// Goroutines in system calls.
    pub calls: u64,
    /// What they waited for, the most frequent first.
    pub waits: Vec<GoroutineWait>,
}

/// Goroutines that waited for the same.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct GoroutineWait {
    /// What for: `sync.Mutex`, or the words of Go's runtime, such as `chan receive`.
    pub reason: String,
    /// The innermost function that is not part of Go's standard library, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub function: Option<String>,
    /// The number of values that its channel can hold, if it is one channel.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capacity: Option<u64>,
    /// Goroutines.
    pub count: u64,
    /// Looks at which there was at least one of a stack of this kind.
    pub looks: u64,
}

impl GoroutineGroup {
    /// Goroutines in any state.
    pub fn all(&self) -> u64 {
        let awake = self.running.saturating_add(self.runnable).saturating_add(self.calls);
        self.waits.iter().fold(awake, |sum, wait| sum.saturating_add(wait.count))
    }

    /// A function by which a reader knows them.
    pub fn name(&self) -> &str {
        match &self.computes {
            Some(computes) if is_closure(&self.function) => computes,
            _ => &self.function,
        }
    }
}

impl GoroutineWait {
    /// The wait with its function: `chan receive in main.consume`.
    pub fn name(&self) -> String {
        let within = self.function.as_ref().map_or(String::new(), |function| format!(" in {function}"));
        format!("{}{within}", self.reason)
    }

    /// Whether it is a lock.
    pub fn is_lock(&self) -> bool {
        LOCKS.iter().any(|(_, lock)| self.reason == *lock)
    }
}

/// Locks, by the beginnings of the functions that take them, and of the runtime's reasons.
const LOCKS: [(&str, &str); 5] = [
    (READ_WRITE, "sync.RWMutex"),
    ("sync.RWMutex.", "sync.RWMutex"),
    ("sync.(*Mutex).", "sync.Mutex"),
    ("internal/sync.(*Mutex).", "sync.Mutex"),
    ("sync.Mutex.", "sync.Mutex"),
];
/// Other waits, by the beginning of a function.
const OTHERS: [(&str, &str); 3] =
    [("sync.(*WaitGroup).", "sync.WaitGroup"), ("sync.(*Cond).", "sync.Cond"), ("time.Sleep", "sleep")];

/// The goroutines of each process; empty unless there were looks.
pub(super) fn all(timeline: &Timeline, program: &Program) -> Vec<GoroutineWork> {
    if timeline.goroutines.is_empty() {
        return Vec::new();
    }
    let named = Named { map: CodeMap::of_mappings(&timeline.mappings), names: CodeNames::of(&timeline.code) };
    let works = timeline.goroutines.iter().map(|fact| of_process(fact, &named));
    let mut works: Vec<GoroutineWork> =
        works.filter(|work| work.looks > 0 && !work.groups.is_empty()).collect();
    let computed = computed(program);
    for group in works.iter_mut().flat_map(|work| &mut work.groups) {
        group.computes = computed.get(group.function.as_str()).and_then(most).map(str::to_owned);
    }
    works
}

/// For each function with which sampled stacks begin: the program's outermost named function, and its samples.
fn computed(program: &Program) -> BTreeMap<&str, BTreeMap<&str, u64>> {
    let mut counts: FxHashMap<u32, u64> = FxHashMap::default();
    for sample in (0..program.threads.len()).flat_map(|thread| program.samples.of_thread(thread)) {
        *counts.entry(sample.stack).or_default() += 1;
    }
    let mut all: BTreeMap<&str, BTreeMap<&str, u64>> = BTreeMap::new();
    for (stack, count) in counts {
        let places = program.samples.stack(stack).rev().map(|(_, place)| place.function);
        let names = places.filter_map(|function| program.functions.get(function.0 as usize));
        let mut names = names.map(|function| function.name.as_str());
        let Some(start) = names.find(|name| !name.starts_with("runtime.") || *name == "runtime.main") else {
            continue;
        };
        let own = names.find(|name| !is_gos(name) && !is_closure(name));
        let start = if start == "runtime.main" { "main.main" } else { start };
        if let Some(own) = own {
            *all.entry(start).or_default().entry(own).or_default() += count;
        }
    }
    all
}

/// The function that has most of the samples.
fn most<'p>(counts: &BTreeMap<&'p str, u64>) -> Option<&'p str> {
    let all: u64 = counts.values().sum();
    let (function, count) = counts.iter().max_by_key(|(_, count)| **count)?;
    (2 * count > all).then_some(*function)
}

/// Whether a function has no name of its own: Go's compiler numbers them.
fn is_closure(name: &str) -> bool {
    let last = name.rsplit('.').next().unwrap_or_default();
    let number = last.strip_prefix("func").or_else(|| last.strip_prefix("gowrap")).unwrap_or(last);
    !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
}

struct Named<'t> {
    map: CodeMap<'t>,
    names: CodeNames<'t>,
}

impl<'t> Named<'t> {
    /// Names of the functions on a stack, the innermost first.
    fn stack(&self, pid: u32, frames: &[u64]) -> Vec<&'t str> {
        let at = |(index, address): (usize, &u64)| {
            let (mapping, offset) = self.map.at(pid, frame_address(index, *address), u64::MAX)?;
            self.names.at(mapping, offset, u64::MAX)
        };
        let codes = frames.iter().enumerate().filter_map(at);
        codes
            .flat_map(|code| {
                let inlined = code.inlined.iter().map(|inlined| inlined.function.as_str());
                inlined.chain(code.function.as_deref())
            })
            .collect()
    }
}

fn of_process(fact: &GoroutineFact, named: &Named<'_>) -> GoroutineWork {
    let mut groups: BTreeMap<&str, GoroutineGroup> = BTreeMap::new();
    let function = |start: u64| match named.stack(fact.pid, &[start]).last().copied() {
        Some("runtime.main") => Some("main.main"),
        name => name.filter(|name| !name.starts_with("runtime.")),
    };
    for of in &fact.starts {
        let Some(name) = function(of.start) else { continue };
        let group = groups.entry(name).or_default();
        group.most = group.most.saturating_add(of.most);
        group.there = group.there.max(of.there);
        group.busy = group.busy.max(of.busy);
    }
    for act in &fact.acts {
        let Some(group) = function(act.start).and_then(|name| groups.get_mut(name)) else { continue };
        let sum = match act.state {
            GoroutineState::Running => &mut group.running,
            GoroutineState::Runnable => &mut group.runnable,
            GoroutineState::Call => &mut group.calls,
            GoroutineState::Waiting => {
                add_wait(&mut group.waits, wait_of(act, &named.stack(fact.pid, &act.frames)));
                continue;
            }
        };
        *sum = sum.saturating_add(act.count);
    }
    let named =
        groups.into_iter().map(|(function, group)| GoroutineGroup { function: function.to_owned(), ..group });
    let mut groups: Vec<GoroutineGroup> = named.collect();
    groups.iter_mut().for_each(|group| group.waits.sort_by_key(|wait| std::cmp::Reverse(wait.count)));
    groups.sort_by_key(|group| std::cmp::Reverse(group.running.saturating_add(group.runnable)));
    GoroutineWork { looks: fact.looks, groups }
}

/// Adds a wait to those of the same kind.
fn add_wait(waits: &mut Vec<GoroutineWait>, wait: GoroutineWait) {
    let is_same = |other: &&mut GoroutineWait| {
        (&other.reason, &other.function, other.capacity) == (&wait.reason, &wait.function, wait.capacity)
    };
    match waits.iter_mut().find(is_same) {
        Some(other) => {
            other.count = other.count.saturating_add(wait.count);
            other.looks = other.looks.max(wait.looks);
        }
        None => waits.push(wait),
    }
}

/// `stack`: names of functions, the innermost first.
fn wait_of(act: &GoroutineAct, stack: &[&str]) -> GoroutineWait {
    let function = stack.iter().find(|name| !is_gos(name));
    let own = stack.iter().take_while(|name| is_gos(name));
    let known = |list: &[(&str, &'static str)]| {
        let texts = || own.clone().copied().chain([act.reason.as_str()]);
        list.iter().find(|(start, _)| texts().any(|text| text.starts_with(start))).map(|(_, kind)| *kind)
    };
    let reason = known(&LOCKS).or_else(|| known(&OTHERS)).unwrap_or(&act.reason);
    GoroutineWait {
        reason: reason.to_owned(),
        function: function.map(|function| (*function).to_owned()),
        capacity: act.capacity.filter(|_| reason.starts_with("chan")),
        count: act.count,
        looks: act.looks,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn act(reason: &str) -> GoroutineAct {
        GoroutineAct {
            reason: reason.to_owned(),
            capacity: Some(5),
            count: 3,
            looks: 2,
            ..GoroutineAct::default()
        }
    }

    #[test]
    fn a_goroutine_s_wait_has_the_lock_s_type_and_the_program_s_function() {
        let of = |reason: &str, stack: &[&str]| {
            let wait = wait_of(&act(reason), stack);
            (wait.reason, wait.function, wait.capacity)
        };
        let inner = [
            "runtime.gopark",
            "runtime.semacquire1",
            "sync.runtime_SemacquireMutex",
            "sync.(*Mutex).lockSlow",
        ];
        let stack = |middle: &[&'static str]| [&inner[..], middle, &["main.handle", "main.main"]].concat();
        let handle = Some("main.handle".to_owned());
        assert_eq!(
            of("semacquire", &stack(&["sync.(*Mutex).Lock"])),
            ("sync.Mutex".into(), handle.clone(), None)
        );
        assert_eq!(
            of("semacquire", &stack(&["sync.(*RWMutex).Lock"])),
            ("sync.RWMutex".into(), handle.clone(), None)
        );
        assert_eq!(
            of("sync.RWMutex.RLock", &[]),
            ("sync.RWMutex".into(), None, None),
            "a stack without names"
        );
        let send = ["runtime.gopark", "runtime.chansend", "runtime.chansend1", "main.handle"];
        assert_eq!(of("chan send", &send), ("chan send".into(), handle, Some(5)));
        assert_eq!(of("semacquire", &["sync.(*WaitGroup).Wait", "main.main"]).0, "sync.WaitGroup");
        // The caller of a function with a callback is the program's, and its lock is another wait.
        assert_eq!(of("sleep", &["time.Sleep", "main.poll", "sync.(*Mutex).Lock"]).0, "sleep");
    }

    #[test]
    fn functions_that_go_numbers_are_no_names() {
        assert!(
            ["main.main.func1", "main.(*T).run.gowrap2", "main.f.func2.1"]
                .iter()
                .all(|name| is_closure(name))
        );
        assert!(!["main.function", "main.func", "main.work"].iter().any(|name| is_closure(name)));
    }

    #[test]
    fn the_same_wait_of_several_stacks_is_one() {
        let mut waits = Vec::new();
        add_wait(&mut waits, wait_of(&act("select"), &["main.a"]));
        add_wait(&mut waits, wait_of(&act("select"), &["runtime.gopark", "main.a", "main.b"]));
        add_wait(&mut waits, wait_of(&act("select"), &["main.b"]));
        assert_eq!(waits.iter().map(|wait| wait.count).collect::<Vec<_>>(), [6, 3]);
    }
}
