//! The set of recorded processes: the user side of the programs' bitmap.

use std::sync::atomic::Ordering;

use super::shared_map::Shared;

impl Shared {
    /// Starts recording a process. A PID beyond the kernel's range is ignored.
    pub(crate) fn track(&self, pid: u32) {
        if let Some(word) = self.tracked.word(pid as usize / 64) {
            word.fetch_or(1 << (pid % 64), Ordering::SeqCst);
        }
    }

    /// Records a process, unless it is longpole itself.
    pub(crate) fn track_another(&self, pid: u32) {
        if pid != std::process::id() {
            self.track(pid);
        }
    }

    /// Whether a process is recorded.
    pub(crate) fn is_tracked(&self, pid: u32) -> bool {
        let word = self.tracked.word(pid as usize / 64);
        word.is_some_and(|word| word.load(Ordering::SeqCst) >> (pid % 64) & 1 != 0)
    }

    /// Every recorded process. Cheap, since nearly all of the bitmap's words are 0.
    pub(crate) fn tracked_pids(&self) -> impl Iterator<Item = u32> {
        (0u32..)
            .step_by(64)
            .zip(0usize..)
            .map_while(|(first, index)| Some((first, self.tracked.word(index)?.load(Ordering::Relaxed))))
            .filter(|(_, bits)| *bits != 0)
            .flat_map(|(first, bits)| set_bits(bits).map(move |bit| first + bit))
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

/// Numbers of the bits that are 1, from the lowest.
fn set_bits(bits: u64) -> impl Iterator<Item = u32> {
    let mut left = bits;
    std::iter::from_fn(move || {
        let bit = (left != 0).then(|| left.trailing_zeros())?;
        left &= left - 1;
        Some(bit)
    })
}

#[cfg(test)]
mod tests {
    use super::set_bits;

    #[test]
    fn each_set_bit_of_a_word_is_listed_once() {
        assert_eq!(set_bits(0).count(), 0);
        assert_eq!(set_bits(1 | 1 << 5 | 1 << 63).collect::<Vec<_>>(), [0, 5, 63]);
        assert_eq!(set_bits(u64::MAX).collect::<Vec<_>>(), (0..64).collect::<Vec<_>>());
    }
}
