//! Callers and callees of functions, from samples.

use crate::program::Program;
use rustc_hash::FxHashMap;

/// Largest number of names in each list.
const NAMES: usize = 8;

/// Callers and callees of a function. For a function that calls itself, directly or not, these are the caller of the
/// outermost call and the callee of the innermost one.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Neighbours {
    /// Unique name.
    pub function: String,
    /// Samples with the function anywhere on the stack.
    pub samples: u64,
    /// Samples with the function on top of the stack.
    pub on_top: u64,
    /// Its callers, with numbers of samples, the most frequent first.
    pub callers: Vec<(String, u64)>,
    /// The function's callees, each with its time like the callers.
    pub callees: Vec<(String, u64)>,
}

/// The `most` functions that are on most stacks, the most frequent first.
pub fn neighbours(program: &Program, most: usize) -> Vec<Neighbours> {
    let samples = &program.samples;
    let mut taken = vec![0u64; samples.stacks.len()];
    for sample in samples.threads.iter().flatten() {
        if let Some(taken) = taken.get_mut(sample.stack as usize) {
            *taken += 1;
        }
    }
    #[derive(Default)]
    struct Counts {
        samples: u64,
        on_top: u64,
        callers: FxHashMap<u32, u64>,
        callees: FxHashMap<u32, u64>,
    }
    let mut counts: FxHashMap<u32, Counts> = FxHashMap::default();
    for (stack, taken) in (0u32..).zip(taken).filter(|(_, taken)| *taken > 0) {
        let functions: Vec<u32> = samples.stack(stack).map(|(_, place)| place.function.0).collect();
        // For each function: index of its innermost and of its outermost frame on this stack.
        let mut places: FxHashMap<u32, (usize, usize)> = FxHashMap::default();
        for (place, function) in functions.iter().enumerate() {
            places.entry(*function).or_insert((place, place)).1 = place;
        }
        for (function, (innermost, outermost)) in places {
            let of = counts.entry(function).or_default();
            of.samples += taken;
            match innermost.checked_sub(1).and_then(|inner| functions.get(inner)) {
                Some(callee) => *of.callees.entry(*callee).or_default() += taken,
                None => of.on_top += taken,
            }
            if let Some(caller) = functions.get(outermost + 1) {
                *of.callers.entry(*caller).or_default() += taken;
            }
        }
    }
    let name = |function: u32| program.functions.get(function as usize).map(|function| function.name.clone());
    let named = |counts: FxHashMap<u32, u64>| {
        let mut names: Vec<(String, u64)> =
            counts.into_iter().filter_map(|(function, count)| Some((name(function)?, count))).collect();
        names.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        names.truncate(NAMES);
        names
    };
    let mut found: Vec<(u32, Counts)> = counts.into_iter().collect();
    found.sort_by_key(|(function, of)| (std::cmp::Reverse(of.samples), *function));
    found.truncate(most);
    let neighbours = found.into_iter().filter_map(|(function, of)| {
        Some(Neighbours {
            function: name(function)?,
            samples: of.samples,
            on_top: of.on_top,
            callers: named(of.callers),
            callees: named(of.callees),
        })
    });
    neighbours.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::{Function, FunctionRef, Place, PlaceId, Sample, Samples};

    #[test]
    fn a_sampled_function_is_counted_between_its_callers_and_callees() {
        let function = |name: &str| Function { name: name.into(), ..Function::default() };
        let place = |function| Place { function: FunctionRef(function), line: None, inlined: false };
        let sample = |stack| Sample { operation: 0, stack };
        let program = Program {
            functions: ["main", "walk", "leaf", "other"].map(function).to_vec(),
            samples: Samples {
                places: (0..4).map(place).collect(),
                // `walk` calls itself and is called by other functions too; one stack is empty.
                stacks: [&[2, 1, 1, 0][..], &[1, 0], &[2, 1, 3], &[]]
                    .map(|stack| stack.iter().map(|place| PlaceId(*place)).collect())
                    .to_vec(),
                threads: vec![vec![sample(0), sample(0), sample(1)], vec![sample(2), sample(3), sample(99)]],
                ..Samples::default()
            },
            ..Program::default()
        };
        let found = neighbours(&program, 3);
        assert_eq!(found.iter().map(|of| of.function.as_str()).collect::<Vec<_>>(), ["walk", "main", "leaf"]);
        let walk = &found[0];
        assert_eq!((walk.samples, walk.on_top), (4, 1));
        assert_eq!(walk.callers, [("main".to_owned(), 3), ("other".to_owned(), 1)]);
        assert_eq!(walk.callees, [("leaf".to_owned(), 3)]);
        assert_eq!(neighbours(&Program::default(), 9), []);
    }
}
