//! Which processes are recorded: the user side of the programs' bitmap.

use std::sync::atomic::Ordering;

use super::load::Shared;

impl Shared {
    /// Starts recording a process. An id that no process can have is no one's.
    pub(crate) fn track(&self, pid: u32) {
        if let Some(word) = self.tracked.word(pid as usize / 64) {
            word.fetch_or(1 << (pid % 64), Ordering::SeqCst);
        }
    }

    /// Whether a process is recorded.
    pub(crate) fn is_tracked(&self, pid: u32) -> bool {
        let word = self.tracked.word(pid as usize / 64);
        word.is_some_and(|word| word.load(Ordering::SeqCst) >> (pid % 64) & 1 != 0)
    }

    /// Every recorded process.
    pub(crate) fn tracked_pids(&self) -> impl Iterator<Item = u32> {
        (0u32..)
            .step_by(64)
            .zip(0usize..)
            .map_while(|(first, index)| Some((first, self.tracked.word(index)?)))
            .flat_map(|(first, word)| {
                let bits = word.load(Ordering::Relaxed);
                (0..64).filter(move |bit| bits >> bit & 1 != 0).map(move |bit| first + bit)
            })
    }

    /// Stops recording every process.
    pub(crate) fn untrack_all(&self) {
        let mut index = 0;
        while let Some(word) = self.tracked.word(index) {
            if word.load(Ordering::SeqCst) != 0 {
                word.store(0, Ordering::SeqCst);
            }
            index += 1;
        }
    }
}
