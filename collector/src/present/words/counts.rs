//! CPU counts in words, and groups of CPU counts with the same time.

use crate::present::style::Style;
use engine::report::Cpus;

/// Times that differ by less than this share count as the same.
const EQUAL: f64 = 0.005;

/// A CPU count as a column's title: `4`, `∞`.
pub(in crate::present) fn title(cpus: Cpus, style: &Style) -> String {
    match cpus {
        Cpus::Count(count) => count.to_string(),
        Cpus::Infinite => if style.unicode { "∞" } else { "inf" }.to_owned(),
    }
}

/// CPU counts in few words: `2`, `2, 4`, `2 to ∞`.
pub(in crate::present) fn range(cpus: &[Cpus], style: &Style) -> String {
    match cpus {
        [] => String::new(),
        [one] => title(*one, style),
        [one, two] => format!("{}, {}", title(*one, style), title(*two, style)),
        [one, .., last] => format!("{} to {}", title(*one, style), title(*last, style)),
    }
}

/// CPU counts in a sentence: `on 2 to ∞ CPUs`.
pub(in crate::present) fn on(cpus: &[Cpus], style: &Style) -> String {
    let plural = if cpus == [Cpus::ONE] { "" } else { "s" };
    format!("{} CPU{plural}", range(cpus, style))
}

/// Groups of neighbouring items whose times are the same.
pub(in crate::present) fn alike<T>(
    items: impl IntoIterator<Item = T>,
    times: impl Fn(&T) -> Vec<f64>,
) -> Vec<Vec<T>> {
    let mut all: Vec<Vec<T>> = Vec::new();
    for item in items {
        let is_like = |known: &T| {
            let (known, new) = (times(known), times(&item));
            known.len() == new.len() && known.iter().zip(&new).all(|(a, b)| (a - b).abs() <= EQUAL * a.abs())
        };
        match all.last_mut() {
            Some(group) if group.first().is_some_and(is_like) => group.push(item),
            _ => all.push(vec![item]),
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_counts_are_a_range_and_similar_results_one_group() {
        let style = Style { colour: false, unicode: false, width: 80 };
        let count = |count| Cpus::count(count).expect("a count");
        assert_eq!(range(&[count(2), count(4), Cpus::Infinite], &style), "2 to inf");
        assert_eq!(on(&[Cpus::ONE], &style), "1 CPU");
        let groups = alike([10.0, 5.0, 5.01, 4.99, 3.0], |time| vec![*time]);
        assert_eq!(groups, [vec![10.0], vec![5.0, 5.01, 4.99], vec![3.0]]);
    }
}
