//! Call stacks with one weight each, for flame graphs.

use super::model::{Model, NO_FUNCTION};
use crate::cpu_words::on;
use crate::exit::say;
use crate::present::text::delays;
use engine::report::Cpus;
use engine::view::{Stack, Stacks};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// The weight of a stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Weight {
    /// Its CPU time.
    Cpu,
    /// Its share of the predicted time, on the CPU count with this index in [`Stacks::on`].
    Owed(usize),
}

impl Weight {
    /// The weight of a stack, nanoseconds.
    pub fn of(self, stack: &Stack) -> f64 {
        match self {
            Weight::Cpu => stack.cpu_ns,
            Weight::Owed(place) => stack.owed_ns.get(place).copied().unwrap_or(0.0),
        }
    }

    /// Name of the weight, for a title.
    pub fn title(self, stacks: &Stacks) -> String {
        match self {
            Weight::Cpu => "CPU time".to_owned(),
            Weight::Owed(place) => Weight::on(stacks.on.get(place).map_or(Cpus::Infinite, |on| on.cpus)),
        }
    }

    /// Name of a critical path, for a title.
    pub fn on(cpus: Cpus) -> String {
        format!("critical path {}", on(cpus))
    }

    /// Waits and hand-overs on the critical path, in words, each with its time in nanoseconds.
    pub fn waits(self, stacks: &Stacks) -> Vec<(String, f64)> {
        let Weight::Owed(place) = self else { return Vec::new() };
        let waits = stacks.on.get(place).map_or(&[][..], |on| on.waits.as_slice());
        let worth = waits.iter().filter(|wait| wait.weighted_ns != 0.0);
        worth.map(|wait| (format!("[{}]", delays::words(&wait.kind)), wait.weighted_ns)).collect()
    }
}

/// Stacks as names of functions, the outermost first, without duplicates and sorted. Waits and hand-overs are stacks of
/// one name. Negative weights cannot be drawn: they are omitted, with a note.
pub fn by_names<'m>(model: &'m Model<'_>, stacks: &Stacks, weight: Weight) -> Vec<(Vec<Cow<'m, str>>, f64)> {
    let mut sums: BTreeMap<Vec<Cow<'m, str>>, f64> = BTreeMap::new();
    for stack in &stacks.stacks {
        let ns = weight.of(stack);
        if ns == 0.0 {
            continue;
        }
        let names = stack.frames.iter().map(|frame| Cow::Borrowed(model.function(Some(frame.function))));
        let mut names: Vec<Cow<'m, str>> = names.collect();
        if names.is_empty() {
            names.push(Cow::Borrowed(NO_FUNCTION));
        }
        *sums.entry(names).or_insert(0.0) += ns;
    }
    for (name, ns) in weight.waits(stacks) {
        *sums.entry(vec![Cow::Owned(name)]).or_insert(0.0) += ns;
    }
    let (kept, negative): (Vec<_>, Vec<_>) = sums.into_iter().partition(|(_, ns)| *ns > 0.0);
    say_left_out(negative.len(), negative.iter().map(|(_, ns)| ns).sum());
    kept
}

/// Prints that stacks with a negative weight are missing.
pub fn say_left_out(count: usize, ns: f64) {
    if count > 0 {
        let ns = crate::cell::duration(ns);
        say(format_args!(
            "note: {count} call stacks with a negative weight ({ns} together) cannot be drawn: `longpole report` has them"
        ));
    }
}

/// Rounds to integer nanoseconds so that the sum differs by at most half a nanosecond.
#[derive(Clone, Copy, Debug, Default)]
pub struct Rounded {
    sum: f64,
    given: i64,
}

impl Rounded {
    /// The next number, rounded.
    pub fn next(&mut self, ns: f64) -> i64 {
        self.sum += ns;
        // A sum that does not fit becomes the largest number.
        let upto = self.sum.round() as i64;
        let next = upto.saturating_sub(self.given);
        self.given = upto;
        next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounded_numbers_add_up_to_the_rounded_sum() {
        let mut rounded = Rounded::default();
        let given: Vec<i64> =
            [0.4, 0.4, 0.4, 10.3, 0.0, -1.5].into_iter().map(|ns| rounded.next(ns)).collect();
        assert_eq!(given.iter().sum::<i64>(), 10, "{given:?}");
        assert_eq!(given[0], 0);
    }
}
