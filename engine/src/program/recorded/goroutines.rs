//! Finds locks that goroutines wait for, from samples of the locks' slow paths. (This method is longpole's own.)
//!
//! Go's runtime decides which goroutine runs, so that their waits are not visible. But a goroutine computes for a
//! moment before it waits for a lock, and so does the goroutine that makes it runnable, in functions that run in no
//! other case (Go's `src/sync/mutex.go`, `rwmutex.go`). If samples show these functions, a goroutine waited; how long
//! is not known. Channels, conditions and wait groups are ignored: a goroutine that waits for them may have nothing to
//! do.

use crate::program::{Function, Program, ThreadId};
use crate::timeline::Timeline;
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Samples of goroutines that wait for a lock in one function, or end such waits.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct GoroutineWaits {
    /// The type of the lock: `sync.Mutex` or `sync.RWMutex`.
    pub lock: String,
    /// The innermost function on the stack that is not part of Go's standard library, if there is one.
    pub function: Option<String>,
    /// Samples.
    pub count: u64,
}

/// Functions that run only if a goroutine waits for a lock or has waited: the start of the name.
const SLOW: [&str; 5] = [
    "sync.(*Mutex).lockSlow",
    "sync.(*Mutex).unlockSlow",
    "internal/sync.(*Mutex).lockSlow",
    "internal/sync.(*Mutex).unlockSlow",
    "sync.(*RWMutex).rUnlockSlow",
];
pub(super) const READ_WRITE: &str = "sync.(*RWMutex).";
/// First elements of the paths of Go's own packages.
const STANDARD: [&str; 48] = [
    "archive",
    "bufio",
    "bytes",
    "cmp",
    "compress",
    "container",
    "context",
    "crypto",
    "database",
    "debug",
    "embed",
    "encoding",
    "errors",
    "expvar",
    "flag",
    "fmt",
    "go",
    "hash",
    "html",
    "image",
    "index",
    "internal",
    "io",
    "iter",
    "log",
    "maps",
    "math",
    "mime",
    "net",
    "os",
    "path",
    "plugin",
    "reflect",
    "regexp",
    "runtime",
    "slices",
    "sort",
    "strconv",
    "strings",
    "structs",
    "sync",
    "syscall",
    "testing",
    "text",
    "time",
    "unicode",
    "unique",
    "vendor",
];

/// Whether a function of this name belongs to Go's standard library or runtime, judged by its package. Packages of programs are
/// called `main`, or their names begin with the name of a host or of their module.
pub(super) fn is_gos(name: &str) -> bool {
    let first = match name.split_once('/') {
        Some((first, _)) => first,
        None => name.split('.').next().unwrap_or_default(),
    };
    STANDARD.contains(&first)
}

/// Waits of goroutines by lock and function, the most frequent first; empty unless Go programs were recorded.
/// `threads`: as for [`super::of`].
pub(super) fn waits(
    timeline: &Timeline,
    program: &Program,
    threads: &FxHashMap<u32, ThreadId>,
) -> Vec<GoroutineWaits> {
    let mut counts: BTreeMap<(&'static str, Option<&str>), u64> = BTreeMap::new();
    let mut known: FxHashMap<u32, Option<(&'static str, Option<&str>)>> = FxHashMap::default();
    let is_go = |index: &u32| {
        let thread = timeline.threads.get(*index as usize);
        thread.is_some_and(|thread| timeline.go.binary_search(&thread.pid).is_ok())
    };
    for thread in threads.iter().filter(|(index, _)| is_go(index)).map(|(_, thread)| thread.0 as usize) {
        for sample in program.samples.of_thread(thread) {
            let found = *known.entry(sample.stack).or_insert_with(|| {
                let places = program.samples.stack(sample.stack).map(|(_, place)| place.function);
                wait_of(places.filter_map(|function| program.functions.get(function.0 as usize)))
            });
            if let Some(found) = found {
                *counts.entry(found).or_insert(0) += 1;
            }
        }
    }
    let mut all: Vec<GoroutineWaits> = counts
        .into_iter()
        .map(|((lock, function), count)| GoroutineWaits {
            lock: lock.to_owned(),
            function: function.map(str::to_owned),
            count,
        })
        .collect();
    all.sort_by_key(|waits| std::cmp::Reverse(waits.count));
    all
}

/// The lock that a stack (innermost function first) waits for, and the program's function that takes or releases it.
fn wait_of<'p>(stack: impl Iterator<Item = &'p Function>) -> Option<(&'static str, Option<&'p str>)> {
    let (mut is_slow, mut is_read_write) = (false, false);
    for function in stack {
        let name = function.name.as_str();
        if !is_gos(name) {
            return is_slow.then(|| (lock(is_read_write), Some(name)));
        }
        is_slow |= SLOW.iter().any(|slow| name.starts_with(slow));
        is_read_write |= name.starts_with(READ_WRITE);
    }
    is_slow.then(|| (lock(is_read_write), None))
}

/// A read-write lock has a mutex inside.
fn lock(is_read_write: bool) -> &'static str {
    if is_read_write { "sync.RWMutex" } else { "sync.Mutex" }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(stack: &[&str]) -> Option<(&'static str, Option<String>)> {
        let function = |name: &&str| Function { name: (*name).to_owned(), ..Function::default() };
        let functions: Vec<Function> = stack.iter().map(function).collect();
        wait_of(functions.iter()).map(|(lock, function)| (lock, function.map(str::to_owned)))
    }

    #[test]
    fn a_goroutine_s_wait_for_a_lock_is_known_by_its_slow_path() {
        let main = Some("main.handle".to_owned());
        let inner = [
            "runtime.semacquire1",
            "sync.runtime_SemacquireMutex",
            "sync.(*Mutex).lockSlow",
            "sync.(*Mutex).Lock",
        ];
        let outer = ["main.handle", "net/http.(*conn).serve", "runtime.goexit"];
        let of = |lock: &[&str]| found(&inner.iter().chain(lock).chain(&outer).copied().collect::<Vec<_>>());
        assert_eq!(of(&[]), Some(("sync.Mutex", main.clone())));
        assert_eq!(of(&["sync.(*RWMutex).Lock"]), Some(("sync.RWMutex", main.clone())));
        // Three cases: a library locks for its caller; the lock is inlined without debug information; no function is
        // the program's.
        assert_eq!(of(&["database/sql.(*DB).conn"]), Some(("sync.Mutex", main.clone())));
        assert_eq!(found(&["internal/sync.(*Mutex).lockSlow", "main.handle"]), Some(("sync.Mutex", main)));
        assert_eq!(found(&["sync.(*Mutex).unlockSlow", "runtime.goexit"]), Some(("sync.Mutex", None)));
        // Without a wait; and a channel, where waiting may be for work.
        assert_eq!(found(&["sync.(*Mutex).Lock", "main.handle"]), None);
        assert_eq!(found(&["runtime.send", "runtime.chansend", "runtime.chansend1", "main.handle"]), None);
    }

    #[test]
    fn functions_of_go_s_packages_are_known_by_their_first_element() {
        assert!(
            ["sync.(*Mutex).lockSlow", "net/http.(*conn).serve", "internal/poll.runtime_pollWait"]
                .iter()
                .all(|name| is_gos(name))
        );
        let others = [
            "main.handle",
            "github.com/a/b.(*Pool).Get",
            "go.uber.org/zap.(*Logger).Info",
            "shop/cart.Add",
            "shop.Add",
        ];
        assert!(!others.iter().any(|name| is_gos(name)));
    }
}
