//! How much the numbers of two recordings of the same program may differ by chance.
//!
//! Ours, and an estimate. Where a function has as many operations in both, they are taken in pairs, in order,
//! and each pair's deviation from the mean difference counts as chance: operations that differ by design are
//! not noise. Otherwise every operation is taken as an independent draw from the lengths of its function. A
//! sum of n independent numbers with variance v has variance n · v; the result is twice its root, which
//! covers 19 of 20 differences. What changes for a whole run at once (the CPUs' frequency, other load) is not
//! in it: only more recordings show that. The sampling error ([`crate::attribution`]) is added where a row is
//! made.

use crate::cpus::Cpus;
use crate::critical_path::Weights;
use crate::predict::{Model, PathFacts, Timing, Visitor};
use crate::program::{FunctionRef, Program, ProgramError};
use crate::time::Ticks;
use rustc_hash::FxHashMap;

/// Twice the standard deviation of a difference, nanoseconds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Noise {
    /// Of the predicted time, by CPU count.
    pub time_ns: Vec<f64>,
    /// Of functions' own times on the extended critical path, by CPU count and name.
    pub functions_ns: Vec<FxHashMap<String, f64>>,
}

/// The noise of what differs between two programs.
///
/// # Errors
/// One of them fails [`Program::check`].
pub fn noise(before: &Program, after: &Program, cpus: &[Cpus], model: &Model) -> Result<Noise, ProgramError> {
    let (before, after) = (Parts::of(before, cpus, model)?, Parts::of(after, cpus, model)?);
    let mut noise = Noise::default();
    for (a, b) in before.0.iter().zip(&after.0) {
        let mut functions: FxHashMap<String, f64> = FxHashMap::default();
        let mut total = 0.0;
        let names: std::collections::BTreeSet<&Option<String>> = a.keys().chain(b.keys()).collect();
        for name in names {
            let none = Vec::new();
            let variance = of_difference(a.get(name).unwrap_or(&none), b.get(name).unwrap_or(&none));
            total += variance;
            if let Some(name) = name {
                functions.insert(name.clone(), 2.0 * variance.sqrt());
            }
        }
        noise.time_ns.push(2.0 * total.sqrt());
        noise.functions_ns.push(functions);
    }
    Ok(noise)
}

/// Weight · length of every operation, in order, by the name of its function; for each CPU count.
struct Parts(Vec<FxHashMap<Option<String>, Vec<f64>>>);

impl Parts {
    fn of(program: &Program, cpus: &[Cpus], model: &Model) -> Result<Parts, ProgramError> {
        let timing = Timing::new(program, model)?;
        let mut collector = Collector { program, parts: Vec::new() };
        timing.weigh(cpus, &mut collector);
        Ok(Parts(collector.parts))
    }
}

struct Collector<'p> {
    program: &'p Program,
    parts: Vec<FxHashMap<Option<String>, Vec<f64>>>,
}

impl Visitor for Collector<'_> {
    fn visit<const N: usize>(&mut self, weights: &Weights<'_, N>, paths: &[PathFacts]) {
        for path in paths {
            let of_function = parts(self.program, weights, path);
            let named = of_function.into_iter().map(|(name, parts)| (name.map(str::to_owned), parts));
            self.parts.push(named.collect());
        }
    }
}

/// Weight · length of every operation, in order, by the name of its function.
fn parts<'p, const N: usize>(
    program: &'p Program,
    weights: &Weights<'_, N>,
    path: &PathFacts,
) -> FxHashMap<Option<&'p str>, Vec<f64>> {
    let mut parts: FxHashMap<Option<&str>, Vec<f64>> = FxHashMap::default();
    for segment in weights.segments() {
        let length = Ticks(segment.end.0.saturating_sub(segment.start.0)).as_ns_f64();
        let name =
            segment.function.and_then(|FunctionRef(function)| program.functions.get(function as usize));
        let name = name.map(|function| function.name.as_str());
        parts
            .entry(name)
            .or_default()
            .push(path.mean(|place| weights.of_segment(&segment, place)).ns * length);
    }
    parts
}

/// The variance of the difference of two sums.
fn of_difference(a: &[f64], b: &[f64]) -> f64 {
    if a.len() == b.len() {
        return of_sum(a.iter().zip(b).map(|(a, b)| b - a));
    }
    of_sum(a.iter().copied()) + of_sum(b.iter().copied())
}

/// The variance of a sum: n · v, with v estimated from the n numbers. One number alone says nothing.
fn of_sum(numbers: impl Iterator<Item = f64>) -> f64 {
    let (mut count, mut mean, mut squares) = (0.0, 0.0, 0.0);
    // Welford 1962: without the difference of two large sums.
    for number in numbers {
        count += 1.0;
        let off = number - mean;
        mean += off / count;
        squares += off * (number - mean);
    }
    if count < 2.0 { 0.0 } else { (squares / (count - 1.0) * count).max(0.0) }
}
