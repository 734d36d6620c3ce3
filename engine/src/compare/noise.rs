//! How much the numbers of one recording would differ in another one by chance.
//!
//! Ours, and an estimate: as if every operation's length had been drawn by itself from what its function was seen to take.
//! A sum of n such lengths with variance v has variance n · v. Twice its root is given: 19 of 20 recordings lie within. What
//! changes for a whole run at once (the CPUs' frequency, other load) is not in it: only more recordings show that.

use crate::critical_path::CriticalPath;
use crate::program::{FunctionRef, Program, ProgramError};
use crate::report::Cpus;

/// Twice the standard deviation, nanoseconds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Noise {
    /// Of the predicted time, by CPU count.
    pub time_ns: Vec<f64>,
    /// Of each function's own time on the extended critical path, by CPU count and function.
    pub functions_ns: Vec<Vec<f64>>,
}

#[derive(Clone, Copy, Default)]
struct Spread {
    count: f64,
    sum: f64,
    squares: f64,
}

impl Spread {
    fn add(&mut self, value: f64) {
        self.count += 1.0;
        self.sum += value;
        self.squares += value * value;
    }

    /// Variance of the sum: n · v, with v estimated from the n values. One value alone says nothing.
    fn of_sum(self) -> f64 {
        if self.count < 2.0 {
            return 0.0;
        }
        let variance = (self.squares - self.sum * self.sum / self.count) / (self.count - 1.0);
        (variance * self.count).max(0.0)
    }
}

/// The noise of a program's numbers.
///
/// # Errors
/// The program fails [`Program::check`].
pub fn noise(program: &Program, cpus: &[Cpus]) -> Result<Noise, ProgramError> {
    let path = CriticalPath::of(program)?;
    let mut noise = Noise::default();
    for weights in path.weights(cpus) {
        for place in 0..weights.cpus().len() {
            let mut functions = vec![Spread::default(); program.functions.len()];
            let mut elsewhere = Spread::default();
            for segment in path.segments() {
                let weight = weights.weight(segment.point, place);
                if weight == 0.0 {
                    continue;
                }
                let length = crate::time::Ticks(segment.end.0.saturating_sub(segment.start.0)).as_ns_f64();
                let spread = match segment.function {
                    Some(FunctionRef(function)) => &mut functions[function as usize],
                    None => &mut elsewhere,
                };
                spread.add(weight * length);
            }
            let variances: Vec<f64> = functions.into_iter().map(Spread::of_sum).collect();
            noise.time_ns.push(2.0 * (variances.iter().sum::<f64>() + elsewhere.of_sum()).sqrt());
            noise.functions_ns.push(variances.into_iter().map(|variance| 2.0 * variance.sqrt()).collect());
        }
    }
    Ok(noise)
}
