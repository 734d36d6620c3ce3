//! Threads that do the same and wait for each other ([`crate::limit::threads::peers`]), as rows of the ledger.

use super::stretch::{Stretch, without_stretch};
use crate::experiment::Edit;
use crate::limit::WORTH;
use crate::limit::search::Search;
use crate::limit::threads::thread_group::Group;
use crate::limit::watched_run::WatchedRun;
use crate::program::RecordedWait;

impl Search {
    /// The least times, nanoseconds, without the longest stretch that one thread computes alone, and without the waits of
    /// threads that do the same for each other. A stretch of such a thread is one of these waits, seen from the other side.
    pub(in crate::limit) fn without_waits_alone(&self, run: &WatchedRun) -> Vec<(Edit, f64)> {
        let peers = self.without_waits_of_peers(run);
        let Some(stretch) = run.stretch else { return peers.into_iter().collect() };
        let divided = without_stretch(run.cpus, stretch, run.time_ns());
        match (self.peers_of(stretch.thread), peers) {
            (None, peers) => std::iter::once(divided).chain(peers).collect(),
            (Some(_), Some((edit, ns))) => vec![(edit, ns.min(divided.1))],
            (Some(_), None) => vec![(Edit::NoTurns, divided.1)],
        }
    }

    /// The least time, nanoseconds, if threads that do the same do not wait for each other, while CPUs have nothing to do.
    fn without_waits_of_peers(&self, run: &WatchedRun) -> Option<(Edit, f64)> {
        let group = self.peers_among(run.stretch)?;
        let waits = run.states.mean(self.program(), &group.threads, run.base.length).other;
        let idle = 1.0 - run.busy() / run.cpus.or(usize::MAX) as f64;
        Some(waits.min(idle))
            .filter(|gain| *gain >= WORTH)
            .map(|gain| (Edit::NoTurns, run.time_ns() * (1.0 - gain)))
    }

    /// The least time, nanoseconds, if all rounds of work end evenly.
    pub(in crate::limit) fn without_uneven_rounds(&self, run: &WatchedRun) -> Option<(Edit, f64)> {
        let rounds = run.rounds.as_ref().filter(|_| !self.hidden && run.turns.is_none())?;
        let edit = Edit::EvenRounds { threads: rounds.crew.clone(), times: rounds.times };
        Some((edit, run.time_ns() * (1.0 - run.share(rounds.saved))))
    }

    /// Whether processes that the program started, and that were not recorded, computed more than the program.
    pub(in crate::limit) fn children_compute_more(&self, run: &WatchedRun) -> bool {
        self.recorded.children.as_ref().is_some_and(|children| children.cpus > run.busy())
    }

    /// The kind of wait in which threads wait for each other most of the time, with its function.
    pub(in crate::limit) fn peers_wait_in(&self) -> Option<String> {
        let waits = self.recorded.waits.iter().filter(|wait| wait.is_for_threads_at_work());
        waits.max_by_key(|wait| wait.wait_ns).map(RecordedWait::with_sleepers)
    }

    /// The group of this stretch's thread, or any, if its threads wait for each other.
    pub(in crate::limit) fn peers_among(&self, stretch: Option<Stretch>) -> Option<&Group> {
        let any = self.groups.iter().zip(&self.peers).find(|(_, peers)| **peers).map(|(group, _)| group);
        stretch.and_then(|stretch| self.peers_of(stretch.thread)).or(any)
    }

    /// The group of a thread, if its threads wait for each other.
    pub(in crate::limit) fn peers_of(&self, thread: usize) -> Option<&Group> {
        let groups = self.groups.iter().zip(&self.peers);
        groups
            .filter(|(_, peers)| **peers)
            .map(|(group, _)| group)
            .find(|group| group.threads.contains(&thread))
    }
}
