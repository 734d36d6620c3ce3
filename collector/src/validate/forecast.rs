//! Predictions for other numbers of CPUs, from programs of recordings: pure arithmetic.

use super::compare::Predicted;
use engine::predict::Model;
use engine::program::{ComputeFactors, Program};
use engine::report::Cpus;

/// The prediction for each number of CPUs; `program_of` returns the program for an index of `counts`.
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
    fn inflation_lengthens_the_predicted_time() {
        let program = program(100, 50);
        let predicted = predictions(&[1, 2], &[1.0, 1.25], |_| &program);
        assert_eq!((predicted[1].time_ns, predicted[1].inflated_ns), (160.0, 200.0));
        assert_eq!(predicted[0].time_ns, predicted[0].inflated_ns);
    }
}
