//! Waits that a time limit ended, though the thread does not depend on the time: CPython's GIL (5 ms),
//! `wait_for` loops, the threads of virtual machines, Go's `usleep(3)`. **Ours.** What follows such a wait
//! keeps its recorded order: it comes after what another thread did until then (an edge from there), whenever
//! that happens.
//!
//! 1. *A wait that is entered again* for the same thing is one wait (`chains`), unless the thread woke others
//!    in between: one that does is a clock for them. What ended the last wait ends it: a thread of the
//!    recording. If a time limit ended it, and after most of its limits the thread only checked something,
//!    that changed during the last wait. The thread that changed it is the last one that released the mutex
//!    of the condition, where that is recorded, else the one that stopped computing last, else one that
//!    computes (`sources`).
//! 2. *A sleep so short* that the kernel's own slack is most of it lets others make progress, and is followed
//!    by a check of what they did: the same. So is every sleep of a housekeeping thread that mostly only
//!    checks something after it (Go's `sysmon`, which sleeps longer and longer), while others have work: the
//!    length of such a sleep bounds nothing.
//! 3. *An interruption* (`interrupts`): a thread that hardly computes wakes others after its time limit, but
//!    all of those began to wait after that, since it had stopped them. That happens to them wherever they
//!    are.

mod chains;
mod interrupts;
mod occupied;
mod poll;
mod shares;
mod sources;

pub(super) use poll::Poll;

use super::lock_replay::Plan;
use crate::timeline::Timeline;
use chains::{Chains, Limited};
use occupied::OfProcesses;
use poll::set;
use shares::Shares;
use sources::Sources;

/// All of a recording.
#[derive(Clone, Debug, Default)]
pub(super) struct Polls {
    /// By thread of the timeline and wait.
    waits: Vec<Vec<Poll>>,
    /// By thread: when it wakes others, with the number of the edge.
    releases: Vec<Vec<(u64, u32)>>,
    /// How many edges there are.
    pub(super) edges: u32,
}

impl Polls {
    pub(super) fn of(timeline: &Timeline, plan: &Plan) -> Polls {
        let mut polls = Polls { releases: vec![Vec::new(); timeline.threads.len()], ..Polls::default() };
        let mut gone_on: Vec<(usize, Limited, Vec<u32>)> = Vec::new();
        let shares = Shares::of(timeline);
        let mut occupied = OfProcesses::default();
        for (index, thread) in timeline.threads.iter().enumerate() {
            let keeps_house = chains::sleeps(thread) && !shares.works(timeline, index);
            let beside = if keeps_house { occupied.of_thread(timeline, &shares, index) } else { None };
            let chains = Chains::of(index, thread, plan, beside);
            gone_on.extend(chains.gone_on.into_iter().map(|(last, before)| (index, last, before)));
            polls.waits.push(chains.polls);
        }
        if !gone_on.is_empty() {
            let sources = Sources::of(timeline, &polls, &shares);
            for (index, last, before) in gone_on {
                if let Some(source) = sources.of_wait(timeline, index, &last) {
                    polls.set(index, before, Poll::Nothing);
                    polls.end(index, last.wait, source);
                }
            }
        }
        for (index, wait, source) in interrupts::all(timeline, plan, &polls, &shares) {
            polls.end(index, wait, source);
        }
        polls
    }

    /// What a wait stands for.
    pub(super) fn wait(&self, thread: usize, wait: u32) -> Poll {
        let waits = self.waits.get(thread);
        waits.and_then(|waits| waits.get(wait as usize)).copied().unwrap_or(Poll::Time)
    }

    /// When a thread wakes others, with the number of the edge.
    pub(super) fn releases(&self, thread: usize) -> &[(u64, u32)] {
        self.releases.get(thread).map_or(&[], Vec::as_slice)
    }

    /// A wait of a thread ends for what another one had done at an instant.
    fn end(&mut self, index: usize, wait: u32, (source, time): (usize, u64)) {
        let Some(releases) = self.releases.get_mut(source) else { return };
        releases.push((time, self.edges));
        self.set(index, [wait], Poll::Ended(self.edges));
        self.edges = self.edges.saturating_add(1);
    }

    fn set(&mut self, index: usize, waits: impl IntoIterator<Item = u32>, poll: Poll) {
        if let Some(of_thread) = self.waits.get_mut(index) {
            set(of_thread, waits, poll);
        }
    }
}
