//! Level of detail: items that are too short to be shown by themselves are joined, so that a picture or file gets small enough.

use rustc_hash::FxHashMap;
use std::io::{self, Write};

/// Something that takes time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Item {
    /// Its kind, as a number of a palette.
    pub code: u32,
    /// Its length, nanoseconds.
    pub ns: u64,
    /// A further number, 0 for none: for example the thread that ended it.
    pub more: u32,
}

/// Passes on items, and joins short ones: items shorter than `quantum` form a group with their neighbours until it is
/// that long. A group becomes one item for each code, in order of first appearance, with the summed time. So sums over
/// longer stretches are exact; only the order of items in a group is lost. The second argument of `take` is the number
/// of joined items; 0 for an unchanged item.
pub fn summed(items: impl Iterator<Item = Item>, quantum: u64, mut take: impl FnMut(Item, u32)) {
    let mut group = Group::default();
    for item in items.filter(|item| item.ns > 0) {
        if item.ns >= quantum {
            group.flush(&mut take);
            take(item, 0);
            continue;
        }
        group.add(item);
        if group.ns >= quantum {
            group.flush(&mut take);
        }
    }
    group.flush(&mut take);
}

/// Largest number of codes in a group for which a code is found by a linear search.
const FEW: usize = 32;

#[derive(Default)]
struct Group {
    /// Summed items, each with the number of items that were joined in it.
    sums: Vec<(Item, u32)>,
    /// Index in `sums` by code, for groups with more than [`FEW`] codes.
    places: FxHashMap<u32, usize>,
    items: usize,
    ns: u64,
}

impl Group {
    fn add(&mut self, item: Item) {
        self.items += 1;
        self.ns = self.ns.saturating_add(item.ns);
        let place = match self.sums.len() > FEW {
            true => self.places.get(&item.code).copied(),
            false => self.sums.iter().position(|(sum, _)| sum.code == item.code),
        };
        if let Some((sum, joined)) = place.and_then(|place| self.sums.get_mut(place)) {
            sum.ns = sum.ns.saturating_add(item.ns);
            *joined = joined.saturating_add(1);
            return;
        }
        self.sums.push((item, 1));
        match self.sums.len() {
            ..=FEW => {}
            count if count == FEW + 1 => {
                self.places = self.sums.iter().zip(0..).map(|((sum, _), place)| (sum.code, place)).collect();
            }
            count => _ = self.places.insert(item.code, count - 1),
        }
    }

    fn flush(&mut self, take: &mut impl FnMut(Item, u32)) {
        let is_sum = self.items > 1;
        for (sum, joined) in self.sums.drain(..) {
            match is_sum {
                true => take(Item { more: 0, ..sum }, joined),
                false => take(sum, 0),
            }
        }
        (self.items, self.ns) = (0, 0);
        if !self.places.is_empty() {
            self.places = FxHashMap::default();
        }
    }
}

/// The smallest quantum, of 0 and a microsecond times a power of two, for which `count` is at most `most`. If there is
/// none: one for which it is nearly as small as possible.
pub fn quantum(most: usize, count: impl Fn(u64) -> usize) -> u64 {
    const LONGEST: u64 = 86_400_000_000_000;
    if count(0) <= most {
        return 0;
    }
    let fewest = count(LONGEST);
    let most = most.max(fewest.saturating_add(fewest / 20));
    let mut quantum = 1_000;
    while quantum < LONGEST && count(quantum) > most {
        quantum *= 2;
    }
    quantum
}

/// A writer with limited room. Writing more is an error, which means that the level of detail is too fine.
pub struct Room<W> {
    /// Bytes of room that remain.
    pub left: u64,
    /// Where the bytes are written.
    pub out: W,
}

impl<W: Write> Write for Room<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let left = self.left.checked_sub(bytes.len() as u64);
        self.left = left.ok_or(io::ErrorKind::FileTooLarge)?;
        self.out.write_all(bytes)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn items(list: &[(u32, u64)]) -> Vec<Item> {
        list.iter().map(|(code, ns)| Item { code: *code, ns: *ns, more: 7 }).collect()
    }

    fn told(list: &[(u32, u64)], quantum: u64) -> Vec<(u32, u64, u32, u32)> {
        let mut told = Vec::new();
        summed(items(list).into_iter(), quantum, |item, joined| {
            told.push((item.code, item.ns, item.more, joined));
        });
        told
    }

    #[test]
    fn items_shorter_than_the_quantum_are_summed_by_code() {
        let list = [(1, 50), (2, 3), (1, 2), (2, 4), (3, 100), (1, 1), (4, 0)];
        assert_eq!(told(&list, 0).len(), 6, "all but what takes no time");
        assert_eq!(
            told(&list, 10),
            [(1, 50, 7, 0), (2, 7, 0, 2), (1, 2, 0, 1), (3, 100, 7, 0), (1, 1, 7, 0)]
        );
    }

    #[test]
    fn sums_by_code_are_the_same_for_any_quantum() {
        let list: Vec<(u32, u64)> = (0..1_000u64).map(|i| ((i % 5) as u32, i * i % 97)).collect();
        let sum = |quantum, code| -> u64 {
            told(&list, quantum).iter().filter(|item| item.0 == code).map(|item| item.1).sum()
        };
        for quantum in [1, 50, 1_000, u64::MAX] {
            for code in 0..5 {
                assert_eq!(sum(quantum, code), sum(0, code));
            }
        }
        let fitting = quantum(100, |quantum| told(&list, quantum).len());
        assert!(fitting > 0 && told(&list, fitting).len() <= 100);
        assert_eq!(quantum(1_000, |quantum| told(&list, quantum).len()), 0);
        // The number of items may have a lower bound.
        assert_eq!(quantum(1, |_| 2), 1_000);
        assert_eq!(quantum(1, |quantum| if quantum < 50_000 { 300 } else { 100 }), 64_000);
    }

    #[test]
    fn a_thousand_codes_keep_their_sums_and_their_order() {
        let list: Vec<(u32, u64)> = (0..3_000u32).map(|i| (i * 7 % 1_000, u64::from(i % 13 + 1))).collect();
        let mut sums: Vec<(u32, u64)> = Vec::new();
        for (code, ns) in &list {
            match sums.iter_mut().find(|sum| sum.0 == *code) {
                Some(sum) => sum.1 += ns,
                None => sums.push((*code, *ns)),
            }
        }
        let told = told(&list, u64::MAX);
        assert_eq!(told.iter().map(|item| (item.0, item.1)).collect::<Vec<_>>(), sums);
        assert_eq!(told.iter().map(|item| item.3).sum::<u32>(), 3_000);
    }
}
