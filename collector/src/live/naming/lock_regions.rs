//! Finds places on sampled stacks that run under a lock: after a call in which threads waited for a word, and before
//! calls that woke a waiter of that word, in the innermost function that has both. The parser walks the code; this
//! module asks it.

use super::lock_stacks::LockStack;
use engine::event::{CodeFact, CodeMap, Note, NoteKind, frame_address, read_write_wait, read_write_words};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::{BTreeMap, BTreeSet};
use symbols::{LockCall, LockRegions};

/// Stacks kept; with more, all are forgotten.
const MOST_STACKS: usize = 1 << 14;
/// Innermost frames that can be the function in which a thread waits.
const INNERMOST: usize = 4;
/// Largest number of frames of a stack that are kept: locks are taken near the innermost frame.
const MOST_FRAMES: usize = 32;
/// Largest number of stacks of waits and wake-ups that are kept.
const MOST_LOCK_STACKS: usize = 1 << 13;
/// Largest number of places that are kept.
const MOST_FACTS: usize = 1 << 16;

/// Stacks of threads that waited for a word, or of threads that woke them; the innermost frame first.
type Stacks = BTreeSet<Vec<(Function, u64)>>;

/// Finds the frame of a function that takes the lock and ends with a jump to the releasing function, as compilers end a
/// function with a guard. The jump leaves no frame of it: the releasing stack has its caller's frame only.
fn leaves_by_releasing(takes: &[(Function, u64)], gives: &Stacks) -> Option<usize> {
    let is_without_it = |caller: &(Function, u64)| {
        gives.iter().any(|stack| {
            let at = stack.iter().position(|frame| frame == caller);
            let inner = at.and_then(|at| at.checked_sub(1)).and_then(|inner| stack.get(inner));
            inner.is_some_and(|(inner, _)| inner.0 != caller.0.0)
        })
    };
    let caller = takes.iter().position(is_without_it)?;
    let at = caller.checked_sub(1)?;
    let (function, _) = takes.get(at)?;
    takes.get(caller).is_some_and(|(caller, _)| caller.0 == function.0).then_some(at)
}

/// Parts of the names of C library functions that take a lock for their caller.
const LOCKS: [&str; 5] = ["mutex", "lll_lock", "mtx_lock", "rwlock", "spin_lock"];

/// A binary, by path and build-id.
type Binary = (String, Option<String>);

/// A function, identified by the offset of its first instruction in the file.
type Function = (Binary, u64);

/// See the module.
#[derive(Debug, Default)]
pub(super) struct LockRegionFinder {
    stacks: FxHashMap<u32, (u64, Vec<u64>)>,
    lock_stacks: Vec<LockStack>,
    /// Named places by function and offset.
    facts: FxHashMap<Function, BTreeMap<u64, CodeFact>>,
    /// The function (entry offset) of each place.
    functions: FxHashMap<(Binary, u64), u64>,
    /// The last question about each function: its calls and its number of places.
    asked: FxHashMap<Function, (Vec<LockCall>, usize)>,
    changed: bool,
}

impl LockRegionFinder {
    /// Remembers the stacks among these notes.
    pub(super) fn stacks(&mut self, notes: &[Note]) {
        for note in notes {
            let NoteKind::Stack { id, frames, .. } = &note.kind else { continue };
            if self.stacks.len() >= MOST_STACKS {
                self.stacks.clear();
            }
            let frames = frames.iter().take(MOST_FRAMES).copied().collect();
            self.stacks.insert(*id, (note.time_ns, frames));
        }
    }

    /// Keeps stacks of waits and wake-ups.
    pub(super) fn locks(&mut self, stacks: Vec<LockStack>) {
        if self.lock_stacks.len() >= MOST_LOCK_STACKS {
            self.lock_stacks.drain(..MOST_LOCK_STACKS / 2);
        }
        self.changed |= !stacks.is_empty();
        self.lock_stacks.extend(stacks);
    }

    /// Takes the names of places.
    pub(super) fn named(&mut self, facts: &[CodeFact]) {
        if self.functions.len() >= MOST_FACTS {
            (self.functions, self.facts) = (FxHashMap::default(), FxHashMap::default());
            self.asked.clear();
        }
        for fact in facts {
            let Some(entry) = fact.entry else { continue };
            let binary = (fact.path.clone(), fact.build_id.clone());
            self.functions.insert((binary.clone(), fact.offset), entry);
            self.facts.entry((binary, entry)).or_default().insert(fact.offset, fact.clone());
            self.changed = true;
        }
    }

    /// Whether there is anything new to ask about.
    pub(super) fn is_due(&self) -> bool {
        self.changed && !self.lock_stacks.is_empty()
    }

    /// New facts: places found to lie under a lock, or under another lock than before. `ask` asks the parser about the calls
    /// and places of a binary.
    pub(super) fn find(
        &mut self,
        map: &CodeMap<'_>,
        mut ask: impl FnMut(&Binary, &[LockCall], &[u64]) -> Option<LockRegions>,
    ) -> Vec<CodeFact> {
        self.changed = false;
        let mut news = Vec::new();
        for (function, calls) in self.calls(map) {
            let Some(facts) = self.facts.get_mut(&function) else { continue };
            let asked = (calls, facts.len());
            if self.asked.get(&function) == Some(&asked) {
                continue;
            }
            let (calls, _) = &asked;
            let places: Vec<u64> = facts.keys().copied().collect();
            let held = ask(&function.0, calls, &places).unwrap_or_default();
            let mut under: Vec<Vec<u64>> = vec![Vec::new(); places.len()];
            for (call, held) in calls.iter().zip(&held) {
                for place in held.iter().flatten() {
                    if let Some(under) = under.get_mut(*place as usize) {
                        under.push(call.taken);
                    }
                }
            }
            for (fact, under) in facts.values_mut().zip(under) {
                if fact.under != under {
                    fact.under = under;
                    news.push(fact.clone());
                }
            }
            self.asked.insert(function, asked);
        }
        news
    }

    /// For each function: the calls in it that take locks, each with the calls that release the lock.
    fn calls(&self, map: &CodeMap<'_>) -> BTreeMap<Function, Vec<LockCall>> {
        // For each futex word: the stacks that take the lock, and those that release it.
        let mut words: BTreeMap<(u32, u64), [Stacks; 2]> = BTreeMap::new();
        let stacks: Vec<_> = self
            .lock_stacks
            .iter()
            .filter_map(|stack| {
                self.frames(map, stack).map(|frames| ((stack.pid, stack.word), stack.gives, frames))
            })
            .collect();
        // A read-write lock has several words: a reader's release wakes the writer by another word than readers wait for.
        let reach = |(word, gives, frames): &((u32, u64), bool, Vec<(Function, u64)>)| {
            let waits_in = frames.iter().take(INNERMOST).filter(|_| !gives);
            waits_in.filter_map(|frame| self.read_write_reach(frame)).next().map(|reach| (*word, reach))
        };
        let firsts = read_write_words(&stacks.iter().filter_map(reach).collect());
        for ((pid, word), gives, frames) in stacks {
            let word = firsts.get(&(pid, word)).copied().unwrap_or(word);
            words.entry((pid, word)).or_default()[usize::from(gives)].insert(frames);
        }
        let mut found: BTreeMap<Function, BTreeMap<u64, BTreeSet<u64>>> = BTreeMap::new();
        for [takes, gives] in words.values() {
            let mut by_function: FxHashMap<&Function, FxHashSet<u64>> = FxHashMap::default();
            for (function, place) in gives.iter().flatten() {
                by_function.entry(function).or_default().insert(*place);
            }
            for stack in takes {
                let is_both = |(function, place): &&(Function, u64)| {
                    by_function.get(function).is_some_and(|places| places.iter().any(|other| other != place))
                };
                let both = stack.iter().position(|frame| is_both(&frame));
                let Some(at) = both.or_else(|| leaves_by_releasing(stack, gives)) else { continue };
                let Some((function, place)) = stack.get(at) else { continue };
                let called = at.checked_sub(1).and_then(|inner| stack.get(inner));
                if called.is_some_and(|called| self.keeps_its_locks(called, function)) {
                    continue;
                }
                let given = found.entry(function.clone()).or_default().entry(*place).or_default();
                given.extend(by_function.get(function).into_iter().flatten());
            }
        }
        let calls = |calls: BTreeMap<u64, BTreeSet<u64>>| {
            let call =
                |(taken, given): (u64, BTreeSet<u64>)| LockCall { taken, given: given.into_iter().collect() };
            calls.into_iter().map(call).collect()
        };
        found.into_iter().map(|(function, of_function)| (function, calls(of_function))).collect()
    }

    /// Whether a function in another binary than its caller has released all locks that it took when it returns. True
    /// for `pthread_create`, false for `pthread_mutex_lock`; false without a name, since such a function may take a
    /// lock for its caller.
    fn keeps_its_locks(&self, (called, place): &(Function, u64), caller: &Function) -> bool {
        let code = self.facts.get(called).and_then(|places| places.get(place));
        let name = code.and_then(|code| code.function.as_deref());
        called.0 != caller.0 && name.is_some_and(|name| !LOCKS.iter().any(|lock| name.contains(lock)))
    }

    /// Size in bytes of the words of the read-write lock that a thread waits for at this place.
    fn read_write_reach(&self, (function, place): &(Function, u64)) -> Option<u64> {
        let code = self.facts.get(function)?.get(place)?;
        let inlined = code.inlined.iter().map(|inlined| inlined.function.as_str());
        code.function.as_deref().into_iter().chain(inlined).find_map(read_write_wait).map(|wait| wait.1)
    }

    /// The frames of a stack that lie in functions with a named place, the innermost first.
    fn frames(&self, map: &CodeMap<'_>, stack: &LockStack) -> Option<Vec<(Function, u64)>> {
        let (time_ns, frames) = self.stacks.get(&stack.stack)?;
        let frame = |(index, address): (usize, &u64)| {
            let (mapping, offset) = map.at(stack.pid, frame_address(index, *address), *time_ns)?;
            let binary = (mapping.path.clone(), mapping.build_id.clone());
            let entry = *self.functions.get(&(binary.clone(), offset))?;
            Some(((binary, entry), offset))
        };
        Some(frames.iter().enumerate().filter_map(frame).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::event::MappingFact;

    /// Calls of the program that take and release; each library function lies on its own page.
    const TAKES: u64 = 0x110;
    const GIVES: u64 = 0x120;

    /// The mappings of a program and of its C library.
    fn mappings() -> [MappingFact; 2] {
        let mapping = |start: u64, path: &str| MappingFact {
            pid: 7,
            start,
            end: start + 0x1000,
            path: path.to_owned(),
            ..MappingFact::default()
        };
        [mapping(0x1000, "/program"), mapping(0x8000, "/libc.so.6")]
    }

    fn place(path: &str, offset: u64, function: &str) -> CodeFact {
        CodeFact {
            path: path.to_owned(),
            offset,
            function: Some(function.to_owned()),
            entry: Some(offset & !0xff),
            ..CodeFact::default()
        }
    }

    /// Number of calls of the program that are found to precede code under a lock. A thread waited in the C library's
    /// function `takes`, and was woken in `gives`.
    fn calls(takes: &str, gives: &str) -> usize {
        let mut code = LockRegionFinder::default();
        code.named(&[
            place("/program", TAKES, "sort"),
            place("/program", GIVES, "sort"),
            place("/libc.so.6", 0x210, takes),
            place("/libc.so.6", 0x310, gives),
        ]);
        let stack = |id, inner: u64, outer: u64| Note {
            time_ns: 1,
            kind: NoteKind::Stack {
                id,
                pid: 7,
                frames: vec![0x8000 + inner, 0x1000 + outer + 1],
                cut: false,
            },
        };
        code.stacks(&[stack(1, 0x210, TAKES), stack(2, 0x310, GIVES)]);
        let lock = |stack, gives| LockStack { stack, pid: 7, word: 64, gives };
        code.locks(vec![lock(1, false), lock(2, true)]);
        code.calls(&CodeMap::of_mappings(&mappings())).values().map(Vec::len).sum()
    }

    /// A guard may release its lock after a jump. If that lock were not found, it would be replayed as recorded, and a
    /// second CPU would seem to help.
    #[test]
    fn a_function_that_jumps_to_its_unlock_is_found_as_a_lock_region() {
        let program = |entry: u64| (("/program".to_owned(), None), entry);
        let library = |entry: u64| (("/libc.so.6".to_owned(), None), entry);
        let (worker, table) = (program(0x300), program(0x100));
        let takes = [(library(0x200), 0x210), (table.clone(), TAKES), (worker.clone(), 0x340)];
        let gives = |outer: &[(Function, u64)]| {
            let inner = [(library(0x400), 0x410)];
            Stacks::from([inner.iter().chain(outer).cloned().collect()])
        };
        assert_eq!(leaves_by_releasing(&takes, &gives(&[(worker.clone(), 0x340)])), Some(1));
        assert_eq!(leaves_by_releasing(&takes, &gives(&[(worker.clone(), 0x350)])), None, "another call");
        assert_eq!(
            leaves_by_releasing(&takes, &gives(&[(table, 0x120), (worker.clone(), 0x340)])),
            None,
            "a call"
        );
        let in_library = [(library(0x200), 0x210), (worker.clone(), 0x340)];
        assert_eq!(
            leaves_by_releasing(&in_library, &gives(&[(worker, 0x340)])),
            None,
            "it is not the library's"
        );
    }

    /// Readers and writers take the lock in functions of their own: writers wake threads that wait for the readers'
    /// word.
    #[test]
    fn a_writer_s_lock_region_is_found_although_readers_release_it() {
        let mut code = LockRegionFinder::default();
        code.named(&[
            place("/program", 0x110, "read"),
            place("/program", 0x120, "read"),
            place("/program", 0x210, "write"),
            place("/program", 0x220, "write"),
            place("/program", 0x310, "worker"),
            place("/program", 0x320, "worker"),
            place("/libc.so.6", 0x110, "pthread_rwlock_rdlock"),
            place("/libc.so.6", 0x210, "pthread_rwlock_wrlock"),
            place("/libc.so.6", 0x310, "pthread_rwlock_unlock"),
        ]);
        let stack = |id, frames: [u64; 3]| Note {
            time_ns: 1,
            kind: NoteKind::Stack {
                id,
                pid: 7,
                frames: vec![0x8000 + frames[0], 0x1001 + frames[1], 0x1001 + frames[2]],
                cut: false,
            },
        };
        code.stacks(&[
            stack(1, [0x110, 0x110, 0x310]),
            stack(2, [0x310, 0x120, 0x310]),
            stack(3, [0x210, 0x210, 0x320]),
            stack(4, [0x310, 0x220, 0x320]),
        ]);
        let lock = |stack, word, gives| LockStack { stack, pid: 7, word, gives };
        code.locks(vec![lock(1, 72, false), lock(4, 72, true), lock(3, 76, false), lock(2, 76, true)]);
        let calls = code.calls(&CodeMap::of_mappings(&mappings()));
        let found: Vec<(u64, u64, Vec<u64>)> = calls
            .into_iter()
            .flat_map(|((_, entry), calls)| {
                calls.into_iter().map(move |call| (entry, call.taken, call.given))
            })
            .collect();
        assert_eq!(found, [(0x100, 0x110, vec![0x120]), (0x200, 0x210, vec![0x220])]);
    }

    /// Without this rule, glibc's lock of thread stacks would seem to be held most of the time in a program that
    /// creates threads.
    #[test]
    fn only_lock_functions_of_libc_return_with_a_lock_held() {
        assert_eq!(calls("pthread_mutex_lock", "pthread_mutex_unlock"), 1);
        assert_eq!(calls("pthread_rwlock_wrlock", "pthread_rwlock_unlock"), 1);
        assert_eq!(calls("pthread_create", "pthread_join"), 0);
    }
}
