//! What programs from recordings say about other numbers of CPUs: pure arithmetic.

use super::compare::Predicted;
use engine::predict::Model;
use engine::program::{ComputeFactors, Program};
use engine::report::Cpus;

/// A function whose CPU time grows with the CPUs.
#[derive(Clone, Debug, PartialEq)]
pub struct Inflated {
    /// Its name; what is in no function has none.
    pub function: Option<String>,
    /// Its own CPU time on one CPU, ns.
    pub one_ns: f64,
    /// On the largest number of CPUs, ns.
    pub many_ns: f64,
}

/// The prediction for each number of CPUs, from the program of its place.
pub fn predictions<'p>(
    counts: &[u32],
    grown: &[f64],
    program_of: impl Fn(usize) -> &'p Program,
) -> Vec<Predicted> {
    counts
        .iter()
        .zip(grown)
        .enumerate()
        .map(|(place, (&cpus, &inflation))| {
            let program = program_of(place);
            let all =
                ComputeFactors { functions: vec![inflation; program.functions.len()], elsewhere: inflation };
            Predicted {
                cpus,
                time_ns: time(program, cpus),
                inflated_ns: time(&program.clone().with_compute(&all), cpus),
            }
        })
        .collect()
}

fn time(program: &Program, cpus: u32) -> f64 {
    let Some(cpus) = Cpus::count(cpus) else { return 0.0 };
    let prediction = engine::predict::predict(program, &[cpus], &Model::default());
    prediction.results.first().map_or(0.0, |result| result.time_ns)
}

/// How much more CPU time each function of the one program takes in the other, by name.
pub fn factors(one: &Program, many: &Program) -> (ComputeFactors, Vec<Inflated>) {
    let (few, more) = (one.compute_times(), many.compute_times());
    let ns = |ticks: engine::time::Ticks| ticks.0 as f64 / engine::time::Ticks::PER_NS as f64;
    let mut inflated = Vec::new();
    let mut factor = |function: Option<&str>, one_ns: f64, many_ns: f64| {
        // What hardly runs has no ratio worth the name.
        if one_ns <= 0.0 || many_ns <= 0.0 {
            return 1.0;
        }
        inflated.push(Inflated { function: function.map(str::to_owned), one_ns, many_ns });
        many_ns / one_ns
    };
    let functions = one
        .functions
        .iter()
        .zip(&few.functions)
        .map(|(function, &time)| {
            let there = many.functions.iter().position(|other| other.name == function.name);
            let there = there.and_then(|place| more.functions.get(place)).map_or(0.0, |&time| ns(time));
            factor(Some(&function.name), ns(time), there)
        })
        .collect();
    let elsewhere = factor(None, ns(few.elsewhere), ns(more.elsewhere));
    inflated.sort_by(|a, b| (b.many_ns - b.one_ns).total_cmp(&(a.many_ns - a.one_ns)));
    (ComputeFactors { functions, elsewhere }, inflated)
}

/// The factors for a number of CPUs between the first and the last, on the straight line between them: two
/// recordings tell no more.
pub fn between(factors: &ComputeFactors, count: u32, counts: &[u32]) -> ComputeFactors {
    let most = counts.last().copied().unwrap_or(1);
    let share = if most <= 1 { 0.0 } else { f64::from(count.saturating_sub(1)) / f64::from(most - 1) };
    let part = |factor: f64| 1.0 + (factor - 1.0) * share;
    ComputeFactors {
        functions: factors.functions.iter().map(|&factor| part(factor)).collect(),
        elsewhere: part(factors.elsewhere),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program(f: u64, g: u64) -> Program {
        let text = format!(
            r#"{{"format":"longpole-program","version":1,"threads":[{{"name":"T","ops":[["exec","f",{f}],["exec","g",{g}],["exec",10]]}}]}}"#
        );
        engine::program::json::read(&text).expect("a program")
    }

    #[test]
    fn functions_that_grow_are_told_by_name_and_halfway_they_grow_half() {
        let (factors, inflated) = factors(&program(100, 50), &program(150, 50));
        assert_eq!(factors.functions, [1.5, 1.0]);
        let first = &inflated[0];
        assert_eq!((first.function.as_deref(), first.one_ns, first.many_ns), (Some("f"), 100.0, 150.0));
        let counts = [1, 2, 3];
        assert_eq!(between(&factors, 1, &counts).functions, [1.0, 1.0]);
        assert_eq!(between(&factors, 2, &counts).functions, [1.25, 1.0]);
        assert_eq!(between(&factors, 3, &counts).functions, [1.5, 1.0]);
    }

    #[test]
    fn inflation_makes_the_prediction_longer() {
        let program = program(100, 50);
        let predicted = predictions(&[1, 2], &[1.0, 1.25], |_| &program);
        assert_eq!((predicted[1].time_ns, predicted[1].inflated_ns), (160.0, 200.0));
        assert_eq!(predicted[0].time_ns, predicted[0].inflated_ns);
    }
}
