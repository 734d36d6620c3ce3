//! What goroutines wait for, from samples of Go's slow paths (ours).
//!
//! Go's runtime decides which goroutine runs, so that their waits are not visible. But a goroutine computes for a moment before it
//! waits, and the one that makes it runnable does so, too: in functions that run in no other case. Where samples see these, somebody
//! waited; how long is not known.

use crate::program::{Function, Program};
use crate::timeline::Timeline;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Samples of goroutines that wait for one kind of thing in one function, or end such waits.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct GoroutineWaits {
    /// What they wait for: `sync.Mutex`, `channel` and the like.
    pub what: String,
    /// The innermost function on the stack that is not of Go's standard library, if there is one.
    pub function: Option<String>,
    /// Samples.
    pub count: u64,
}

/// Functions that run only if a goroutine waits or has waited (Go's `src/sync/mutex.go`, `src/runtime/sema.go`, `chan.go`): the start
/// of the name.
const SLOW: [&str; 12] = [
    "sync.(*Mutex).lockSlow",
    "sync.(*Mutex).unlockSlow",
    "internal/sync.(*Mutex).lockSlow",
    "internal/sync.(*Mutex).unlockSlow",
    "sync.(*RWMutex).rUnlockSlow",
    "runtime.semacquire1",
    "runtime.semrelease1",
    "runtime.notifyListWait",
    "runtime.acquireSudog",
    "runtime.releaseSudog",
    "runtime.send",
    "runtime.recv",
];
/// What the goroutine waits for, by the start of a function's name around the slow one, innermost first.
const WHAT: [(&str, &str); 9] = [
    ("sync.(*RWMutex).", "sync.RWMutex"),
    ("sync.(*WaitGroup).", "sync.WaitGroup"),
    ("sync.(*Cond).", "sync.Cond"),
    ("sync.(*Mutex).Lock", "sync.Mutex"),
    ("sync.(*Mutex).Unlock", "sync.Mutex"),
    ("runtime.chansend", "channel"),
    ("runtime.chanrecv", "channel"),
    ("runtime.selectgo", "channel"),
    ("sync.(*Mutex).", "sync.Mutex"),
];

/// Whether a function is of Go's standard library or runtime: by its source, else by its package, whose path begins with a host's
/// name in all others but `main`.
fn is_gos(function: &Function) -> bool {
    match function.location.as_deref().filter(|location| location.starts_with('/')) {
        Some(source) => ["/go/src/", "/lib/go-1", "/go1."].iter().any(|root| source.contains(root)),
        None => {
            let path = function.name.split('/').next().unwrap_or_default();
            let is_remote = path.contains('.') && function.name.contains('/');
            !function.name.starts_with("main.") && !is_remote
        }
    }
}

/// By what is waited for and function, the most frequent first; empty unless Go programs were recorded.
pub(super) fn waits(timeline: &Timeline, program: &Program) -> Vec<GoroutineWaits> {
    let mut counts: BTreeMap<(&'static str, Option<&str>), u64> = BTreeMap::new();
    let threads = if timeline.go.is_empty() { 0 } else { program.threads.len() };
    for sample in (0..threads).flat_map(|thread| program.samples.of_thread(thread)) {
        let places = program.samples.stack(sample.stack).map(|(_, place)| place.function);
        let mut functions =
            places.filter_map(|function| program.functions.get(function.0 as usize)).peekable();
        let is_slow = |name: &str| SLOW.iter().any(|slow| name.starts_with(slow));
        let what = |name: &str| WHAT.iter().find(|(start, _)| name.starts_with(start)).map(|(_, what)| *what);
        let mut found = None;
        let mut slow = false;
        while let Some(function) = functions.next_if(|function| is_gos(function)) {
            slow |= is_slow(&function.name);
            // An outer one says more: a wait group's semaphore, a read-write lock's mutex.
            found = what(&function.name).or(found);
        }
        if let Some(what) = found.filter(|_| slow) {
            let own = functions.next().map(|function| function.name.as_str());
            *counts.entry((what, own)).or_insert(0) += 1;
        }
    }
    let mut all: Vec<GoroutineWaits> = counts
        .into_iter()
        .map(|((what, function), count)| GoroutineWaits {
            what: what.to_owned(),
            function: function.map(str::to_owned),
            count,
        })
        .collect();
    all.sort_by_key(|waits| std::cmp::Reverse(waits.count));
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_of_go_are_known_by_their_source_or_by_their_package() {
        let of = |name: &str, location: Option<&str>| {
            is_gos(&Function {
                name: name.to_owned(),
                location: location.map(str::to_owned),
                ..Function::default()
            })
        };
        assert!(of("sync.(*Mutex).lockSlow", Some("/usr/lib/go-1.19/src/sync/mutex.go:117")));
        assert!(of("net/http.(*conn).serve", Some("/usr/local/go/src/net/http/server.go:1")));
        assert!(of("net/http.(*conn).serve", None) && of("runtime.chansend1", None));
        assert!(!of("main.handle", None) && !of("main.handle", Some("/srv/shop/main.go:7")));
        assert!(!of("github.com/a/b.(*Pool).Get", None));
        assert!(!of("shop/cart.Add", Some("/home/me/go/pkg/mod/shop/cart.go:7")));
    }
}
