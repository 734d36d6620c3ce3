//! Lanes: what follows one thing after the other in time, at a level of detail that fits.

use super::columns::{Column, Columns};
use rustc_hash::FxHashMap;

/// Something that takes its time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Item {
    /// What it is: a number of a palette.
    pub code: u32,
    /// How long, nanoseconds.
    pub ns: u64,
    /// One more number, 0 for none: for example the thread that ended it.
    pub more: u32,
}

/// Passes on items. Items shorter than `quantum` are joined with their neighbours until the group is that
/// long. The group has one item for each code, in the order in which codes came, with their summed time. So
/// sums over any longer stretch stay exact; within a group only the order is lost. The flag says that an item
/// is such a sum.
pub fn summed(items: impl Iterator<Item = Item>, quantum: u64, mut take: impl FnMut(Item, bool)) {
    let mut group = Group::default();
    for item in items.filter(|item| item.ns > 0) {
        if item.ns >= quantum {
            group.flush(&mut take);
            take(item, false);
            continue;
        }
        group.add(item);
        if group.ns >= quantum {
            group.flush(&mut take);
        }
    }
    group.flush(&mut take);
}

/// Codes in a group that are found by looking at all of them.
const FEW: usize = 32;

#[derive(Default)]
struct Group {
    sums: Vec<Item>,
    /// By code, where there are more than [`FEW`].
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
            false => self.sums.iter().position(|sum| sum.code == item.code),
        };
        if let Some(sum) = place.and_then(|place| self.sums.get_mut(place)) {
            sum.ns = sum.ns.saturating_add(item.ns);
            return;
        }
        self.sums.push(item);
        match self.sums.len() {
            ..=FEW => {}
            count if count == FEW + 1 => {
                self.places = self.sums.iter().zip(0..).map(|(sum, place)| (sum.code, place)).collect();
            }
            count => _ = self.places.insert(item.code, count - 1),
        }
    }

    fn flush(&mut self, take: &mut impl FnMut(Item, bool)) {
        let is_sum = self.items > 1;
        for sum in self.sums.drain(..) {
            take(if is_sum { Item { more: 0, ..sum } } else { sum }, is_sum);
        }
        (self.items, self.ns) = (0, 0);
        if !self.places.is_empty() {
            self.places = FxHashMap::default();
        }
    }
}

/// The smallest quantum, 0 or a microsecond doubled again and again, with which `count` gives at most `most` items. If none does:
/// with which it gives nearly as few as there can be.
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

/// Lanes in the making: for each its number of items and where it begins, for each item its code (doubled, plus one for a sum),
/// length and further number.
#[derive(Debug, Default)]
pub struct Lanes {
    counts: Column,
    starts: Column,
    codes: Vec<u64>,
    lengths: Column,
    more: Column,
}

impl Lanes {
    /// Appends a lane that begins at this time, nanoseconds.
    pub fn add(&mut self, start: u64, items: impl Iterator<Item = Item>, quantum: u64) {
        let mut count = 0;
        self.starts.push(start);
        summed(items, quantum, |item, is_sum| {
            count += 1;
            self.codes.push(coded(item.code, is_sum));
            self.lengths.push(item.ns);
            self.more.push(u64::from(item.more));
        });
        self.counts.push(count);
    }

    /// Keeps them under this name; `number` gives each code the number that it has in the page.
    pub fn finish(self, name: &str, number: impl Fn(u32) -> u32, columns: &mut Columns) {
        let mut codes = Column::default();
        for code in self.codes {
            // What was encoded fits.
            codes.push(coded(number((code >> 1) as u32), code & 1 != 0));
        }
        let parts = [
            ("counts", self.counts),
            ("starts", self.starts),
            ("codes", codes),
            ("lengths", self.lengths),
            ("more", self.more),
        ];
        for (part, column) in parts {
            columns.add(format!("{name}.{part}"), column);
        }
    }
}

fn coded(code: u32, is_sum: bool) -> u64 {
    u64::from(code) << 1 | u64::from(is_sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn items(list: &[(u32, u64)]) -> Vec<Item> {
        list.iter().map(|(code, ns)| Item { code: *code, ns: *ns, more: 7 }).collect()
    }

    fn told(list: &[(u32, u64)], quantum: u64) -> Vec<(u32, u64, u32, bool)> {
        let mut told = Vec::new();
        summed(items(list).into_iter(), quantum, |item, is_sum| {
            told.push((item.code, item.ns, item.more, is_sum));
        });
        told
    }

    #[test]
    fn short_items_are_summed_by_what_they_are() {
        let list = [(1, 50), (2, 3), (1, 2), (2, 4), (3, 100), (1, 1), (4, 0)];
        assert_eq!(told(&list, 0).len(), 6, "all but what takes no time");
        assert_eq!(
            told(&list, 10),
            [(1, 50, 7, false), (2, 7, 0, true), (1, 2, 0, true), (3, 100, 7, false), (1, 1, 7, false)]
        );
    }

    #[test]
    fn sums_stay_whatever_the_quantum() {
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
        // Some lanes cannot be shorter.
        assert_eq!(quantum(1, |_| 2), 1_000);
        assert_eq!(quantum(1, |quantum| if quantum < 50_000 { 300 } else { 100 }), 64_000);
    }

    #[test]
    fn very_many_codes_are_summed_as_few_ones_are() {
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
        assert!(told.iter().all(|item| item.3));
    }
}
