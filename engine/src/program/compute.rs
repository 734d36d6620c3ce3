//! CPU time of a program by function, and the program with scaled CPU time.

use super::walk::CallWalk;
use super::{FunctionRef, Operation, Program};
use crate::time::Ticks;

/// CPU time by the function on top of the stack.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ComputeTimes {
    /// Compute time of each function, in the order of [`Program::functions`].
    pub functions: Vec<Ticks>,
    /// CPU time outside of all functions.
    pub elsewhere: Ticks,
}

/// Factors by which functions' CPU times are multiplied.
#[derive(Clone, Debug, PartialEq)]
pub struct ComputeFactors {
    /// Factor of each function, in the order of [`Program::functions`]; 1 for missing entries.
    pub functions: Vec<f64>,
    /// Factor for CPU time outside of all functions.
    pub elsewhere: f64,
}

impl ComputeTimes {
    /// Total CPU time.
    pub fn total(&self) -> Ticks {
        self.functions.iter().fold(self.elsewhere, |sum, time| Ticks(sum.0.saturating_add(time.0)))
    }
}

impl Program {
    /// CPU time of each function itself, without its callees, summed over all threads.
    pub fn compute_times(&self) -> ComputeTimes {
        let mut times = ComputeTimes { functions: vec![Ticks(0); self.functions.len()], elsewhere: Ticks(0) };
        for thread in &self.threads {
            let mut walk = CallWalk::default();
            for operation in &thread.operations {
                if let Some((function, length)) = walk.computed(operation) {
                    let place = function
                        .and_then(|function| times.functions.get_mut(function.0 as usize))
                        .unwrap_or(&mut times.elsewhere);
                    place.0 = place.0.saturating_add(length.0);
                }
                walk.pass(operation);
            }
        }
        times
    }

    /// The program with scaled computing; waits keep their lengths.
    ///
    /// A factor that is not a positive number counts as 1. The sum of all lengths is limited to [`Ticks::MAX_TOTAL`].
    pub fn with_compute(self, factors: &ComputeFactors) -> Program {
        self.computing(|_, function| match function {
            Some(function) => factors.functions.get(function.0 as usize).copied().unwrap_or(1.0),
            None => factors.elsewhere,
        })
    }

    /// The program with computing scaled by a factor for each thread index and function.
    pub(crate) fn computing(mut self, factor: impl Fn(usize, Option<FunctionRef>) -> f64) -> Program {
        let mut left = Ticks::MAX_TOTAL;
        for (place, thread) in self.threads.iter_mut().enumerate() {
            let mut walk = CallWalk::default();
            for operation in &mut thread.operations {
                let function = walk.computed(operation).and_then(|(function, _)| function);
                walk.pass(operation);
                let factor = factor(place, function);
                match operation {
                    Operation::Exec(length) | Operation::ExecIn(_, length) | Operation::Once(_, length) => {
                        let factor = if factor.is_finite() && factor > 0.0 { factor } else { 1.0 };
                        *length = length.scaled(factor).min(Ticks(left));
                        left -= length.0;
                    }
                    Operation::Io(_, length) | Operation::Sleep(length) | Operation::SleepNext(length) => {
                        length.0 = length.0.min(left);
                        left -= length.0;
                    }
                    _ => {}
                }
            }
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROGRAM: &str = r#"{"format":"longpole-program","version":1,"threads":[
        {"name":"T1","ops":[["exec",10],["call","f"],["exec",100],["call","g"],["exec",5],["ret"],["exec",1],["ret"],["io",7,"disk"]]},
        {"name":"T2","ops":[["exec","g",20],["exec",4],["once","o",3]]}]}"#;

    fn program() -> Program {
        crate::program::json::read(PROGRAM).expect("a program")
    }

    #[test]
    fn compute_time_belongs_to_the_function_on_top() {
        let times = program().compute_times();
        let ns = |number: u64| Ticks(number * Ticks::PER_NS);
        assert_eq!(times.functions, [ns(101), ns(25)]);
        assert_eq!((times.elsewhere, times.total()), (ns(17), ns(143)));
    }

    #[test]
    fn scaling_changes_a_function_s_compute_time_and_no_wait() {
        let factors = ComputeFactors { functions: vec![2.0, 0.5], elsewhere: 1.0 };
        let scaled = program().with_compute(&factors);
        let ns = |number: u64| Ticks(number * Ticks::PER_NS);
        assert_eq!(scaled.compute_times().functions, [ns(202), Ticks(ns(25).0 / 2)]);
        assert_eq!(scaled.compute_times().elsewhere, ns(17));
        assert_eq!(scaled.check(), Ok(()));
        let same = ComputeFactors { functions: vec![f64::NAN, -1.0], elsewhere: 0.0 };
        assert_eq!(program().with_compute(&same), program());
    }

    #[test]
    fn a_huge_factor_stays_within_what_a_program_may_hold() {
        let factors = ComputeFactors { functions: vec![1e300, 1e300], elsewhere: 1e300 };
        assert_eq!(program().with_compute(&factors).check(), Ok(()));
    }
}
