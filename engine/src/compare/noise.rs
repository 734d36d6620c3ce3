//! How much the numbers of two recordings of the same program may differ by chance.
//!
//! This estimate is longpole's own. If a function has the same number of operations in both recordings, they are paired
//! in order, and each pair's deviation from the mean difference counts as chance: operations that differ by design are
//! not noise. Otherwise every operation counts as an independent draw from the lengths of its function. A sum of n
//! independent numbers with variance v has variance n · v. The result is twice its root, which covers 19 of 20
//! differences.
//!
//! Numbers of a run are not independent: other programs, the CPUs' frequency and caches slow down stretches of it. So
//! the sums of its tenths are compared, too (the method of batch means): if they vary more than independent numbers
//! would, the excess is *drift*. What slows one function slows the others, so the drift of the whole is the sum of its
//! functions' drifts. Runs of the model with other choices of the scheduler have other lengths; their variance counts
//! in that of the predicted time. A difference that lasts for a whole run is not covered: only more recordings show it.
//! The sampling error ([`crate::attribution`]) is added where a row is made.

use crate::cpus::Cpus;
use crate::critical_path::Weights;
use crate::predict::{Model, PathFacts, Timing, Visitor};
use crate::program::{FunctionRef, Program, ProgramError};
use crate::time::Ticks;
use rustc_hash::FxHashMap;

/// Number of parts of a run whose sums are compared.
const TENTHS: usize = 10;
/// Fewest numbers in a part: with fewer, sums show no more than single numbers.
const FEWEST_IN_A_TENTH: usize = 4;
/// With fewer numbers in a run, the spread of its time is not known.
const FEWEST_IN_A_RUN: usize = TENTHS;

/// Twice the standard deviation of a difference, nanoseconds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Noise {
    /// Possible difference of the predicted time for each CPU count, nanoseconds; `None`: the programs have too few
    /// operations to tell.
    pub time_ns: Vec<Option<f64>>,
    /// Possible differences of functions' self times on the extended critical path, nanoseconds: for each CPU count, by
    /// name. Functions with too few operations are not there.
    pub functions_ns: Vec<FxHashMap<String, f64>>,
}

/// The noise of differences between two programs.
///
/// # Errors
/// One of them fails [`Program::check`].
pub fn noise(before: &Program, after: &Program, cpus: &[Cpus], model: &Model) -> Result<Noise, ProgramError> {
    let (before, after) = (Parts::of(before, cpus, model)?, Parts::of(after, cpus, model)?);
    let mut noise = Noise::default();
    for ((a, of_a), (b, of_b)) in
        before.parts.iter().zip(&before.decisions).zip(after.parts.iter().zip(&after.decisions))
    {
        let mut functions: FxHashMap<String, f64> = FxHashMap::default();
        let (mut total, mut drift) = (0.0, 0.0);
        let count = |side: &FxHashMap<Option<String>, Vec<f64>>| side.values().map(Vec::len).sum::<usize>();
        let is_known = count(a).min(count(b)) >= FEWEST_IN_A_RUN;
        let names: std::collections::BTreeSet<&Option<String>> = a.keys().chain(b.keys()).collect();
        for name in names {
            let none = Vec::new();
            let (a, b) = (a.get(name).unwrap_or(&none), b.get(name).unwrap_or(&none));
            let variance = of_difference(a, b);
            total += variance.independent;
            drift += variance.drift.sqrt();
            if let Some(name) = name.as_ref().filter(|_| a.len().max(b.len()) > 1) {
                functions.insert(name.clone(), 2.0 * (variance.independent + variance.drift).sqrt());
            }
        }
        noise.time_ns.push(is_known.then(|| 2.0 * (total + drift * drift + of_a + of_b).sqrt()));
        noise.functions_ns.push(functions);
    }
    Ok(noise)
}

/// Numbers by CPU count.
struct Parts {
    /// Products weight · length of all operations of a function, in order, by the function's name; one map for each CPU
    /// count.
    parts: Vec<FxHashMap<Option<String>, Vec<f64>>>,
    /// The variance of the length of a run with random choices.
    decisions: Vec<f64>,
}

impl Parts {
    fn of(program: &Program, cpus: &[Cpus], model: &Model) -> Result<Parts, ProgramError> {
        let timing = Timing::new(program, model)?;
        let mut collector = Collector { program, parts: Vec::new(), decisions: Vec::new() };
        timing.weigh(cpus, &mut collector);
        Ok(Parts { parts: collector.parts, decisions: collector.decisions })
    }
}

struct Collector<'p> {
    program: &'p Program,
    parts: Vec<FxHashMap<Option<String>, Vec<f64>>>,
    decisions: Vec<f64>,
}

impl Visitor for Collector<'_> {
    fn visit<const N: usize>(&mut self, weights: &Weights<'_, N>, paths: &[PathFacts]) {
        for path in paths {
            let of_function = parts(self.program, weights, path);
            let named = of_function.into_iter().map(|(name, parts)| (name.map(str::to_owned), parts));
            self.parts.push(named.collect());
            let finished = path.lengths_ns.iter().copied().filter(|length| *length > 0.0);
            let count = finished.clone().count().max(1) as f64;
            self.decisions.push(of_sum(finished) / count);
        }
    }
}

/// Computes the products weight · length of all operations in order, by the name of their function.
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

/// The variance of a sum of numbers from a run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Variance {
    /// The variance if the numbers are independent.
    independent: f64,
    /// The excess, since some stretches of the run are slower than others.
    drift: f64,
}

/// The variance of the difference of two sums.
fn of_difference(a: &[f64], b: &[f64]) -> Variance {
    if a.len() == b.len() {
        let differences: Vec<f64> = a.iter().zip(b).map(|(a, b)| b - a).collect();
        return with_drift(&differences);
    }
    let (a, b) = (with_drift(a), with_drift(b));
    Variance { independent: a.independent + b.independent, drift: a.drift + b.drift }
}

/// The variance of a sum of numbers in the order of the run.
fn with_drift(numbers: &[f64]) -> Variance {
    let independent = of_sum(numbers.iter().copied());
    let size = numbers.len() / TENTHS;
    if size < FEWEST_IN_A_TENTH {
        return Variance { independent, drift: 0.0 };
    }
    let tenths = numbers.chunks_exact(size).take(TENTHS).map(|tenth| tenth.iter().sum::<f64>());
    Variance { independent, drift: (of_sum(tenths) - independent).max(0.0) }
}

/// The variance of a sum: n · v, with v estimated from the n numbers; 0 for a single number.
fn of_sum(numbers: impl Iterator<Item = f64>) -> f64 {
    let (mut count, mut mean, mut squares) = (0.0, 0.0, 0.0);
    // Welford 1962: avoids the difference of two large sums.
    for number in numbers {
        count += 1.0;
        let off = number - mean;
        mean += off / count;
        squares += off * (number - mean);
    }
    if count < 2.0 { 0.0 } else { (squares / (count - 1.0) * count).max(0.0) }
}

#[cfg(test)]
mod tests {
    use crate::compare::{BeforeAfter, compare, compare_all};
    use crate::cpus::Cpus;
    use crate::predict::Model;
    use crate::program::{Operation, Program, Thread};
    use crate::time::Ticks;

    /// A run with calls of 1 µs each. `slower` multiplies a call's length; its argument is the call's place in the run,
    /// from 0 to 1.
    fn run(calls: usize, seed: u64, slower: impl Fn(f64) -> f64) -> Program {
        let mut state = seed;
        let length = |call: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let chance = (state >> 40) as f64 / (1u64 << 24) as f64 - 0.5;
            Ticks::from_ns((1000.0 * slower(call as f64 / calls as f64) + 50.0 * chance) as u64)
        };
        let function = crate::program::Function { name: "f".to_owned(), ..Default::default() };
        let exec = |length| Operation::ExecIn(crate::program::FunctionRef(0), length);
        let operations = (0..calls).map(length).map(exec).collect();
        let thread = Thread { name: "T".to_owned(), operations, ..Thread::default() };
        Program { functions: vec![function], threads: vec![thread], ..Program::default() }
    }

    fn change(before: &Program, after: &Program) -> (BeforeAfter, BeforeAfter) {
        let compared = compare(before, after, &[Cpus::ONE], &Model::default()).expect("programs");
        (compared.curve[0].time, compared.functions[0].changes[0])
    }

    /// Other load on the machine that comes and goes makes two recordings of one program differ: noise must cover that.
    #[test]
    fn differences_from_other_load_that_comes_and_goes_are_not_clear() {
        // A part of the run is a tenth slower, in one recording at its beginning, in the others at its end.
        let early = run(2000, 1, |place| if place < 0.4 { 1.1 } else { 1.0 });
        let late = run(2050, 2, |place| if place > 0.7 { 1.1 } else { 1.0 });
        let same = run(2000, 3, |place| if place > 0.7 { 1.1 } else { 1.0 });
        for other in [&late, &same] {
            let (time, function) = change(&early, other);
            assert!(time.by() != 0.0 && !time.is_clear() && !function.is_clear(), "{time:?} {function:?}");
        }
        let slower = run(2000, 4, |place| if place > 0.7 { 1.5 } else { 1.4 });
        let (time, function) = change(&early, &slower);
        assert!(time.is_clear() && function.is_clear(), "{time:?} {function:?}");
    }

    /// Without drift, small changes are clear.
    #[test]
    fn a_small_change_between_two_steady_runs_is_clear() {
        let (time, _) = change(&run(2000, 1, |_| 1.0), &run(2000, 2, |_| 1.01));
        assert!(time.is_clear(), "{time:?}");
    }

    /// A clock frequency, for example, lasts for a whole run: one recording of each cannot show it.
    #[test]
    fn what_lasts_for_a_whole_run_is_noise_between_recordings_of_one_side() {
        let side = |seed: u64, lengths: [f64; 3]| {
            [0, 1, 2].map(|place| run(2000, seed + place as u64, |_| lengths[place]))
        };
        let before = side(1, [1.0, 1.08, 0.95]);
        let change = |after: &[Program; 3]| {
            let sides = [before.each_ref(), after.each_ref()];
            let both =
                compare_all([&sides[0], &sides[1]], &[Cpus::ONE], &Model::default()).expect("programs");
            assert_eq!(both.recordings, [3, 3]);
            (both.curve[0].time, both.functions[0].changes[0])
        };
        let same = side(4, [1.06, 0.97, 1.02]);
        let (single, _) = self::change(&before[0], &same[0]);
        assert!(single.is_clear(), "{single:?}");
        let (time, function) = change(&same);
        assert_eq!([time.is_noise(), function.is_noise()], [Some(true); 2], "{time:?} {function:?}");
        let (time, function) = change(&side(7, [1.36, 1.27, 1.32]));
        assert_eq!([time.is_noise(), function.is_noise()], [Some(false); 2], "{time:?} {function:?}");
    }

    #[test]
    fn a_run_of_a_few_operations_has_no_known_noise() {
        let (time, function) = change(&run(1, 1, |_| 1.0), &run(1, 2, |_| 1.0));
        assert_eq!([time.is_noise(), function.is_noise()], [None; 2]);
    }
}
