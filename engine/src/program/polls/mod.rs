//! Waits ended by a time limit whose thread does not depend on the time (a method of longpole's own): CPython's GIL (5
//! ms), `wait_for` loops, threads of virtual machines, Go's `usleep(3)`. What follows such a wait keeps its recorded
//! order: it comes after what another thread had done until then (an edge from there), whenever that is.
//!
//! 1. *A wait that is entered again* for the same thing is one wait (`chains`), unless the thread woke others in between:
//!    then it is a clock for them. The end of the last wait ends it. If a recorded thread ended that, this is the waker. If a
//!    time limit ended it, and the thread mostly only checked something after its limits, the checked thing changed during
//!    the last wait. The thread that changed it is the last one to release the condition's mutex, where recorded; else the
//!    last one to stop computing; else one that computes (`sources`).
//! 2. *A sleep so short* that it is mostly the kernel's timer slack lets others make progress, with a check of their progress
//!    after it: the same. So is each sleep of a housekeeping thread that mostly only checks something (Go's `sysmon`, whose
//!    sleeps get longer), while others have work: such a sleep's length limits nothing.
//! 3. *An interruption* (`interrupts`): a thread that hardly computes wakes others after its time limit, but all of them
//!    began to wait after it, since it had stopped them. This happens to them wherever they are.

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

/// The meanings of all timed waits of a recording.
#[derive(Clone, Debug, Default)]
pub(super) struct Polls {
    /// For each thread of the timeline and each of its waits: what the wait stands for.
    waits: Vec<Vec<Poll>>,
    /// For each thread: times at which it releases others, with the number of the edge.
    releases: Vec<Vec<(u64, u32)>>,
    /// Number of edges.
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

    /// What a timed wait stands for.
    pub(super) fn wait(&self, thread: usize, wait: u32) -> Poll {
        let waits = self.waits.get(thread);
        waits.and_then(|waits| waits.get(wait as usize)).copied().unwrap_or(Poll::Time)
    }

    /// Instants at which a thread releases others, with the number of the edge.
    pub(super) fn releases(&self, thread: usize) -> &[(u64, u32)] {
        self.releases.get(thread).map_or(&[], Vec::as_slice)
    }

    /// The wait ended because of what `source` had done by this time.
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
