//! Functions without probes in samples: which of them matter, and in which threads they run.

use engine::attribution::sampled_functions;
use engine::program::{Operation, Program};
use engine::report::Report;

/// Least share of the predicted time, on any number of CPUs, from which a function is considered.
const LEAST_SHARE: f64 = 0.01;
/// Largest number of functions in one report.
const MOST: usize = 64;
/// Largest number of threads named for each function.
const MOST_THREADS: usize = 4;

/// A function that may be worth probes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HotFunction {
    /// Name of the function, as in reports.
    pub name: String,
    /// File name of the function's binary.
    pub module: String,
    /// CPU time per second of all threads that have samples in the function.
    pub cpu: f64,
    /// Threads with the most samples in the function, most samples first.
    pub threads: Vec<u32>,
}

/// Functions found in the samples of a window.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HotFunctions {
    /// The functions; those with most of the predicted time come first.
    pub functions: Vec<HotFunction>,
    /// CPU time per second of all threads.
    pub cpu: f64,
}

/// Functions of a report that are known from samples only. `window_ns`: length of the window.
pub fn hot_functions(program: &Program, report: &Report, window_ns: u64) -> HotFunctions {
    if program.samples.rate_hz == 0 || window_ns == 0 {
        return HotFunctions::default();
    }
    // Not computed from counts of samples, whose rate may have changed: the threads' computing time is exact.
    let cpu_of = |thread: usize| {
        let operations = program.threads.get(thread).map_or(&[][..], |thread| &thread.operations);
        let computed = operations.iter().map(|operation| match operation {
            Operation::Exec(time) | Operation::ExecIn(_, time) | Operation::Once(_, time) => time.as_ns_f64(),
            _ => 0.0,
        });
        computed.sum::<f64>() / window_ns as f64
    };
    let shares = report.largest_shares(|row| row.tetid_ns);
    let mut found: Vec<(f64, HotFunction)> = sampled_functions(program)
        .into_iter()
        .filter_map(|seen| {
            let share = *shares.get(seen.function.name.as_str())?;
            let module = seen.function.module.clone().filter(|_| share >= LEAST_SHARE)?;
            let cpu = seen.threads.iter().map(|(thread, _)| cpu_of(thread.0 as usize)).sum();
            let numbers = seen.threads.iter().filter_map(|(thread, _)| {
                // Recorded threads have names of `engine::program`: `name/tid`.
                let name = &program.threads.get(thread.0 as usize)?.name;
                name.rsplit_once('/')?.1.parse().ok()
            });
            let threads = numbers.take(MOST_THREADS).collect();
            Some((share, HotFunction { name: seen.function.name.clone(), module, cpu, threads }))
        })
        .collect();
    found.sort_by(|(a, one), (b, other)| b.total_cmp(a).then_with(|| one.name.cmp(&other.name)));
    found.truncate(MOST);
    HotFunctions {
        functions: found.into_iter().map(|(_, function)| function).collect(),
        cpu: (0..program.threads.len()).map(cpu_of).sum(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::program::{Function, FunctionRef, Place, PlaceId, Sample, Samples, Thread};
    use engine::report::{Cpus, Detail};
    use engine::time::Ticks;

    #[test]
    fn hot_functions_are_sorted_by_cpu_time_and_have_their_threads() {
        let function = |name: &str, module: Option<&str>| Function {
            name: name.into(),
            module: module.map(str::to_owned),
            sampled: true,
            ..Function::default()
        };
        let place = |number| Place { function: FunctionRef(number), line: None, inlined: false };
        let thread = |name: &str| Thread {
            name: name.into(),
            operations: vec![Operation::Exec(Ticks::from_ns(1_000_000_000))],
            ..Thread::default()
        };
        let rare = Sample { operation: 0, stack: 2 };
        let samples = |stack, count| vec![Sample { operation: 0, stack }; count];
        let mut first = samples(0, 70);
        first.extend(samples(1, 30));
        let mut second = samples(1, 100);
        second.push(rare);
        let program = Program {
            functions: vec![
                function("less", Some("program")),
                function("more", Some("libmore.so")),
                function("rare", Some("program")),
                function("nowhere", None),
            ],
            threads: vec![thread("a/b/17"), thread("a/18")],
            samples: Samples {
                places: (0..4).map(place).collect(),
                stacks: vec![
                    vec![PlaceId(0), PlaceId(3)],
                    vec![PlaceId(1), PlaceId(3)],
                    vec![PlaceId(2), PlaceId(3)],
                ],
                threads: vec![first, second],
                rate_hz: 100,
                ..Samples::default()
            },
            ..Program::default()
        };
        let report = engine::report::report(&program, &[Cpus::ONE, Cpus::Infinite], Detail::Functions);
        let hot = hot_functions(&program, &report, 2_000_000_000);
        let names: Vec<&str> = hot.functions.iter().map(|function| function.name.as_str()).collect();
        assert_eq!(names, ["more", "less"]);
        let more = &hot.functions[0];
        assert_eq!((more.module.as_str(), &more.threads[..]), ("libmore.so", &[18, 17][..]));
        // Two threads compute for a second each in 2 s, regardless of the number of samples.
        assert!((more.cpu - 1.0).abs() < 1e-9 && (hot.cpu - 1.0).abs() < 1e-9, "{hot:?}");
        assert!((hot.functions[1].cpu - 0.5).abs() < 1e-9);
        assert_eq!(hot_functions(&program, &report, 0), HotFunctions::default());
    }
}
