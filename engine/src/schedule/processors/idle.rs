//! The set of idle processors.

/// A set of processors.
#[derive(Debug)]
pub(super) struct CpuSet {
    words: Vec<u64>,
    count: u32,
    size: u32,
}

impl CpuSet {
    /// A set of all processors.
    pub(super) fn full(size: u32) -> CpuSet {
        let mut set = CpuSet { words: vec![0; (size as usize).div_ceil(64)], count: 0, size };
        (0..size).for_each(|cpu| set.insert(cpu));
        set
    }

    pub(super) fn is_empty(&self) -> bool {
        self.count == 0
    }

    pub(super) fn contains(&self, cpu: u32) -> bool {
        self.words.get((cpu / 64) as usize).is_some_and(|word| word & (1 << (cpu % 64)) != 0)
    }

    pub(super) fn insert(&mut self, cpu: u32) {
        let word = &mut self.words[(cpu / 64) as usize];
        self.count += u32::from(*word & (1 << (cpu % 64)) == 0);
        *word |= 1 << (cpu % 64);
    }

    pub(super) fn remove(&mut self, cpu: u32) {
        let word = &mut self.words[(cpu / 64) as usize];
        self.count -= u32::from(*word & (1 << (cpu % 64)) != 0);
        *word &= !(1 << (cpu % 64));
    }

    /// The processors of the set, from `start` to the last and then from the first to `start`.
    pub(super) fn from(&self, start: u32) -> impl Iterator<Item = u32> + '_ {
        let start = if self.size == 0 { 0 } else { start % self.size };
        let part = |from: u32, to: u32| {
            let first = (from / 64) as usize;
            let words = self.words.get(first..).unwrap_or_default().iter().zip(first as u32..);
            let cpus = words.take_while(move |(_, word)| word * 64 < to).flat_map(|(bits, word)| {
                let mut bits = *bits;
                std::iter::from_fn(move || {
                    let bit = bits.trailing_zeros();
                    bits &= bits.wrapping_sub(1);
                    (bit < 64).then_some(word * 64 + bit)
                })
            });
            cpus.filter(move |cpu| (from..to).contains(cpu))
        };
        part(start, self.size).chain(part(0, start))
    }
}

#[cfg(test)]
mod tests {
    use super::CpuSet;

    #[test]
    fn a_set_of_cpus_is_walked_around_from_any_cpu() {
        let mut set = CpuSet::full(130);
        assert_eq!(set.from(129).take(3).collect::<Vec<_>>(), [129, 0, 1]);
        (0..130).filter(|cpu| ![3, 64, 129].contains(cpu)).for_each(|cpu| set.remove(cpu));
        for (start, order) in [(0, [3, 64, 129]), (4, [64, 129, 3]), (64, [64, 129, 3]), (65, [129, 3, 64])] {
            assert_eq!(set.from(start).collect::<Vec<_>>(), order, "from {start}");
        }
        assert!(set.contains(64) && !set.contains(65) && !set.is_empty());
        [3, 64, 129, 129].into_iter().for_each(|cpu| set.remove(cpu));
        assert!(set.is_empty() && set.from(7).next().is_none());
    }
}
