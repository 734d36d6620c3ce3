//! Sums over looks.

use super::look::{Seen, Wait};
use engine::event::{GoroutineAct, GoroutineFact, GoroutineStart, GoroutineState};
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;

/// Largest number of different starts, and of different acts, that are kept. Further ones are not counted.
const MOST: usize = 4_096;

/// The sums over looks at one process.
#[derive(Debug, Default)]
pub struct Counts {
    looks: u64,
    idle: u64,
    starts: FxHashMap<u64, GoroutineStart>,
    acts: FxHashMap<Act, (u64, u64)>,
}

type Act = (u64, GoroutineState, Option<Arc<Wait>>);

impl Counts {
    pub(super) fn add(&mut self, seen: &[Seen]) {
        self.looks += 1;
        let busy = |one: &Seen| one.state != GoroutineState::Waiting;
        let runs = |one: &Seen| matches!(one.state, GoroutineState::Running | GoroutineState::Runnable);
        if !seen.iter().any(runs) {
            self.idle += 1;
        }
        let mut there: FxHashMap<u64, (u64, bool)> = FxHashMap::default();
        let mut acts: FxHashSet<Act> = FxHashSet::default();
        for one in seen {
            let start = there.entry(one.start).or_default();
            *start = (start.0.saturating_add(one.weight), start.1 | busy(one));
            let act = (one.start, one.state, one.wait.clone());
            if self.acts.len() >= MOST && !self.acts.contains_key(&act) {
                continue;
            }
            let sums = self.acts.entry(act.clone()).or_default();
            sums.0 = sums.0.saturating_add(one.weight);
            if acts.insert(act) {
                sums.1 += 1;
            }
        }
        for (start, (count, is_busy)) in there {
            if self.starts.len() >= MOST && !self.starts.contains_key(&start) {
                continue;
            }
            let sums =
                self.starts.entry(start).or_insert(GoroutineStart { start, ..GoroutineStart::default() });
            sums.most = sums.most.max(count);
            sums.there += 1;
            sums.busy += u64::from(is_busy);
        }
    }

    /// Number of looks.
    pub fn looks(&self) -> u64 {
        self.looks
    }

    /// The sums; `None`: there was no look.
    pub fn fact(&self, pid: u32) -> Option<GoroutineFact> {
        let mut starts: Vec<GoroutineStart> = self.starts.values().cloned().collect();
        starts.sort_unstable_by_key(|of| of.start);
        let act = |((start, state, wait), (count, looks)): (&Act, &(u64, u64))| {
            let wait = wait.as_deref().cloned().unwrap_or_default();
            GoroutineAct {
                start: *start,
                state: *state,
                reason: wait.reason.to_string(),
                frames: wait.frames,
                capacity: wait.capacity,
                count: *count,
                looks: *looks,
            }
        };
        let mut acts: Vec<GoroutineAct> = self.acts.iter().map(act).collect();
        acts.sort_by(|a, b| {
            (a.start, a.state, &a.reason, &a.frames).cmp(&(b.start, b.state, &b.reason, &b.frames))
        });
        (self.looks > 0).then_some(GoroutineFact { pid, looks: self.looks, idle: self.idle, starts, acts })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_are_summed_by_start_and_by_what_goroutines_do() {
        let one = |start, state, reason: Option<&str>| Seen {
            start,
            state,
            wait: reason.map(|reason| Arc::new(Wait { reason: reason.into(), ..Wait::default() })),
            weight: 1,
        };
        let mut counts = Counts::default();
        assert_eq!(counts.fact(7), None);
        let send = || one(1, GoroutineState::Waiting, Some("chan send"));
        counts.add(&[send(), send(), one(2, GoroutineState::Running, None)]);
        counts.add(&[send(), one(2, GoroutineState::Call, None)]);
        let fact = counts.fact(7).expect("looks");
        assert_eq!((fact.looks, fact.idle), (2, 1), "a system call needs no CPU");
        let starts: Vec<_> = fact.starts.iter().map(|of| (of.start, of.most, of.busy, of.there)).collect();
        assert_eq!(starts, [(1, 2, 0, 2), (2, 1, 2, 2)]);
        let acts: Vec<_> =
            fact.acts.iter().map(|act| (act.start, act.reason.as_str(), act.count, act.looks)).collect();
        assert_eq!(acts, [(1, "chan send", 3, 2), (2, "", 1, 1), (2, "", 1, 1)]);
    }
}
