//! Threads that do the same and wait for each other ([`crate::limit::threads::peers`]), as rows of the ledger.

use super::stretch::Stretch;
use crate::experiment::Edit;
use crate::limit::WORTH;
use crate::limit::search::Search;
use crate::limit::threads::thread_group::Group;
use crate::limit::watched_run::WatchedRun;

impl Search {
    /// The least time, nanoseconds, if threads that do the same do not wait for each other, while CPUs have nothing to do.
    pub(in crate::limit) fn without_waits_of_peers(&self, run: &WatchedRun) -> Option<(Edit, f64)> {
        let (group, _) = self.groups.iter().zip(&self.peers).find(|(_, peers)| **peers)?;
        let waits = run.states.mean(self.program(), &group.threads, run.base.length).other;
        let idle = 1.0 - run.busy() / run.cpus.or(usize::MAX) as f64;
        Some(waits.min(idle))
            .filter(|gain| *gain >= WORTH)
            .map(|gain| (Edit::NoTurns, run.time_ns() * (1.0 - gain)))
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
