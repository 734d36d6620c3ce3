//! Lanes: what follows one thing after the other in time, at a level of detail that fits.

use super::columns::{Column, Columns};

/// Something that takes its time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Item {
    /// What it is: a number of a palette.
    pub code: u32,
    /// How long, nanoseconds.
    pub ns: u64,
    /// One more number, 0 for none: who ended it, say.
    pub more: u32,
}

/// Hands on items. What is shorter than `quantum` is put together with its neighbours until that is as long: one item for each
/// code then, in the order in which codes came, with the time of all together. So sums over any longer stretch stay exact;
/// within such a group only the order is gone. The flag says that an item is such a sum.
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

#[derive(Default)]
struct Group {
    sums: Vec<Item>,
    items: usize,
    ns: u64,
}

impl Group {
    fn add(&mut self, item: Item) {
        self.items += 1;
        self.ns = self.ns.saturating_add(item.ns);
        match self.sums.iter_mut().find(|sum| sum.code == item.code) {
            Some(sum) => sum.ns = sum.ns.saturating_add(item.ns),
            None => self.sums.push(item),
        }
    }

    fn flush(&mut self, take: &mut impl FnMut(Item, bool)) {
        let is_sum = self.items > 1;
        for sum in self.sums.drain(..) {
            take(if is_sum { Item { more: 0, ..sum } } else { sum }, is_sum);
        }
        (self.items, self.ns) = (0, 0);
    }
}

/// The smallest quantum, 0 or a microsecond doubled again and again, with which `count` gives at most `most` items; a day if
/// none does.
pub fn quantum(most: usize, count: impl Fn(u64) -> usize) -> u64 {
    const LONGEST: u64 = 86_400_000_000_000;
    let mut quantum = 0;
    while quantum < LONGEST && count(quantum) > most {
        quantum = if quantum == 0 { 1_000 } else { quantum * 2 };
    }
    quantum
}

/// Lanes in the making: for each its number of items and where it begins, for each item its code (doubled, plus one for a sum),
/// length and further number.
#[derive(Debug, Default)]
pub struct Lanes {
    counts: Column,
    starts: Column,
    codes: Column,
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
            self.codes.push(u64::from(item.code) << 1 | u64::from(is_sum));
            self.lengths.push(item.ns);
            self.more.push(u64::from(item.more));
        });
        self.counts.push(count);
    }

    /// Keeps them under this name.
    pub fn finish(self, name: &str, columns: &mut Columns) {
        let parts = [
            ("counts", self.counts),
            ("starts", self.starts),
            ("codes", self.codes),
            ("lengths", self.lengths),
            ("more", self.more),
        ];
        for (part, column) in parts {
            columns.add(format!("{name}.{part}"), column);
        }
    }
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
        assert!(quantum(1, |_| 2) > 86_400_000_000_000, "some lanes cannot be shorter");
    }
}
