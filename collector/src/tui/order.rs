//! Keeps rows at their places: a row passes another one only if its weight is clearly larger, in more than one
//! analysis.

use std::collections::HashMap;

/// A row moves up past another one if its weight is at least this multiple of the other's.
const CLEARLY: f64 = 1.2;
/// Share of the newest weight in the smoothed weight; the remaining share is the previous smoothed weight.
const NEWEST: f64 = 0.5;

/// The order of rows over several analyses.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Order {
    /// Keys of the rows, from top to bottom.
    keys: Vec<String>,
    weights: HashMap<String, f64>,
}

impl Order {
    /// Updates the order with the rows of the next analysis and their weights.
    pub fn update<'a>(&mut self, rows: impl Iterator<Item = (&'a str, f64)> + Clone) {
        let before = std::mem::take(&mut self.weights);
        for (key, weight) in rows.clone() {
            let smooth = before.get(key).map_or(weight, |before| before + NEWEST * (weight - before));
            self.weights.insert(key.to_owned(), smooth);
        }
        self.keys.retain(|key| self.weights.contains_key(key));
        let weight = |key: &str| self.weights.get(key).copied().unwrap_or(0.0);
        // Known rows keep their order and new ones follow; then each row moves up to its place.
        let mut new: Vec<&str> = rows.map(|(key, _)| key).filter(|key| !before.contains_key(*key)).collect();
        new.sort_by(|a, b| weight(b).total_cmp(&weight(a)));
        let known = self.keys.len();
        self.keys.extend(new.into_iter().map(str::to_owned));
        for from in 1..self.keys.len() {
            let margin = if from < known { CLEARLY } else { 1.0 };
            let own = self.keys.get(from).map_or(0.0, |key| weight(key));
            let above = self.keys.iter().take(from).rev();
            let to = from - above.take_while(|key| own > margin * weight(key)).count();
            if let Some(part) = self.keys.get_mut(to..=from) {
                part.rotate_right(1);
            }
        }
    }

    /// The place of a row; unknown rows come last.
    pub fn place(&self, key: &str) -> usize {
        self.keys.iter().position(|other| other == key).unwrap_or(usize::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(order: &mut Order, rows: &[(&str, f64)]) -> String {
        order.update(rows.iter().copied());
        order.keys.join(" ")
    }

    #[test]
    fn rows_of_nearly_equal_weight_keep_their_places() {
        let mut order = Order::default();
        assert_eq!(told(&mut order, &[("b", 1.0), ("a", 3.0), ("c", 0.5)]), "a b c");
        for round in 0..20 {
            let by_chance = if round % 2 == 0 { 0.1 } else { -0.1 };
            assert_eq!(
                told(&mut order, &[("b", 1.0 + by_chance), ("c", 1.0 - by_chance), ("a", 3.0)]),
                "a b c"
            );
        }
    }

    #[test]
    fn a_row_moves_up_only_after_its_weight_is_clearly_larger_twice() {
        let mut order = Order::default();
        told(&mut order, &[("a", 3.0), ("b", 1.0), ("c", 0.5)]);
        // A single large weight may be chance.
        assert_eq!(told(&mut order, &[("a", 3.0), ("b", 1.0), ("c", 5.0)]), "a c b");
        assert_eq!(told(&mut order, &[("a", 3.0), ("b", 1.0), ("c", 5.0)]), "c a b");
        assert_eq!(told(&mut order, &[("b", 1.0), ("new", 2.0), ("c", 5.0)]), "c new b");
        assert_eq!((order.place("b"), order.place("a")), (2, usize::MAX));
        assert_eq!(told(&mut order, &[]), "");
    }
}
