//! Functions that only samples show, and the threads whose samples contain them.

use crate::program::{Function, Program, ThreadId};
use rustc_hash::FxHashMap;

/// A function without probes that is on sampled stacks, inlined copies not counted.
#[derive(Clone, Debug, PartialEq)]
pub struct SampledFunction<'a> {
    /// The function.
    pub function: &'a Function,
    /// Threads whose samples have the function on the stack, with the number of these samples; largest number first.
    pub threads: Vec<(ThreadId, u64)>,
}

/// All functions that only samples show, in the program's order. The program must have passed [`Program::check`].
pub fn sampled_functions(program: &Program) -> Vec<SampledFunction<'_>> {
    let samples = &program.samples;
    let on_stacks: Vec<Vec<u32>> = (0u32..)
        .take(samples.stacks.len())
        .map(|stack| {
            let whole = samples.stack(stack).filter(|(_, place)| !place.inlined);
            let mut functions: Vec<u32> = whole.map(|(_, place)| place.function.0).collect();
            functions.sort_unstable();
            functions.dedup();
            functions
        })
        .collect();
    let mut seen: FxHashMap<u32, Vec<(ThreadId, u64)>> = FxHashMap::default();
    for (thread, of_thread) in (0..).map(ThreadId).zip(&samples.threads) {
        for sample in of_thread {
            let functions = on_stacks.get(sample.stack as usize).map_or(&[][..], Vec::as_slice);
            for function in functions {
                let threads = seen.entry(*function).or_default();
                match threads.last_mut() {
                    Some((last, count)) if *last == thread => *count += 1,
                    _ => threads.push((thread, 1)),
                }
            }
        }
    }
    let mut found: Vec<(u32, SampledFunction<'_>)> = seen
        .into_iter()
        .filter_map(|(number, mut threads)| {
            let function = program.functions.get(number as usize).filter(|function| function.sampled)?;
            threads.sort_by_key(|(thread, count)| (std::cmp::Reverse(*count), *thread));
            Some((number, SampledFunction { function, threads }))
        })
        .collect();
    found.sort_unstable_by_key(|(number, _)| *number);
    found.into_iter().map(|(_, seen)| seen).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::{FunctionRef, Operation, Place, PlaceId, Sample, Samples, Thread};
    use crate::time::Ticks;

    #[test]
    fn sampled_functions_count_each_sample_once_without_probed_or_inlined_ones() {
        let function = |name: &str, sampled| Function { name: name.into(), sampled, ..Function::default() };
        let place = |function, inlined| Place { function: FunctionRef(function), line: None, inlined };
        let thread = |name: &str| Thread {
            name: name.into(),
            operations: vec![Operation::Exec(Ticks::from_ns(10))],
            ..Thread::default()
        };
        let sample = |stack| Sample { operation: 0, stack };
        let program = Program {
            functions: vec![function("probed", false), function("twice", true), function("copy", true)],
            threads: vec![thread("a/1"), thread("b/2")],
            samples: Samples {
                places: vec![place(0, false), place(1, false), place(2, true)],
                // The function `twice` calls itself.
                stacks: vec![vec![PlaceId(1), PlaceId(1), PlaceId(0)], vec![PlaceId(2), PlaceId(1)], vec![]],
                threads: vec![vec![sample(0)], vec![sample(0), sample(1), sample(2)]],
                rate_hz: 499,
                ..Samples::default()
            },
            ..Program::default()
        };
        let seen = sampled_functions(&program);
        assert_eq!(seen.len(), 1, "{seen:?}");
        assert_eq!(seen[0].function.name, "twice");
        assert_eq!(seen[0].threads, [(ThreadId(1), 2), (ThreadId(0), 1)]);
    }
}
