//! Finds the user's functions (those of the program itself, not of a standard library) in which the time of standard
//! functions is spent. "Make `<u64 as PartialOrd>::lt` faster first" is not advice; a user can change the function that
//! calls it or has it inlined.
//!
//! [`crate::program::FunctionOrigin`] says which functions are standard. This is for advice only: rows of reports are
//! not changed.

use crate::program::{FunctionRef, Place, PlaceId, Program};
use rustc_hash::FxHashMap;

/// A standard function, and the user's functions that call it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct UsedBy {
    /// Its name.
    pub function: String,
    /// For samples with this standard function innermost: the nearest user's function on the stack, and its share of
    /// these samples. If the shares add up to less than 1, the remaining samples have no user's function on the stack.
    pub by: Vec<(String, f64)>,
}

/// Every standard function that samples show innermost, in order of names.
pub fn used_by(program: &Program) -> Vec<UsedBy> {
    let samples = &program.samples;
    let standard: Vec<bool> = samples.places.iter().map(|place| is_standard_place(program, place)).collect();
    let is_standard = |place: PlaceId| standard.get(place.0 as usize) == Some(&true);
    // For a stack: the standard function that is innermost, and the user's function nearest to it.
    let of_stack = |stack: u32| {
        let mut places = samples.stack(stack);
        let (first, innermost) = places.next()?;
        if !is_standard(first) {
            return None;
        }
        let own = places.find(|(place, _)| !is_standard(*place)).map(|(_, place)| place.function);
        Some((innermost.function, own))
    };
    let of_stacks: Vec<_> = (0..samples.stacks.len()).map(|stack| of_stack(stack as u32)).collect();
    let mut counts: FxHashMap<_, FxHashMap<_, u64>> = FxHashMap::default();
    for sample in samples.threads.iter().flatten() {
        if let Some(Some((function, own))) = of_stacks.get(sample.stack as usize) {
            *counts.entry(*function).or_default().entry(*own).or_insert(0) += 1;
        }
    }
    let name = |function: FunctionRef| {
        program.functions.get(function.0 as usize).map(|function| function.name.clone())
    };
    let mut all: Vec<UsedBy> = counts
        .into_iter()
        .filter_map(|(function, owners)| {
            let all: u64 = owners.values().sum();
            let share = |(own, count): (Option<_>, u64)| Some((name(own?)?, count as f64 / all as f64));
            let mut by: Vec<(String, f64)> = owners.into_iter().filter_map(share).collect();
            by.sort_by(|a, b| b.1.total_cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
            Some(UsedBy { function: name(function)?, by })
        })
        .collect();
    all.sort_by(|a, b| a.function.cmp(&b.function));
    all
}

/// The program with samples without the standard functions below the innermost user's function.
pub fn attributed_to_users(mut program: Program) -> Program {
    let standard: Vec<bool> =
        program.samples.places.iter().map(|place| is_standard_place(&program, place)).collect();
    for stack in &mut program.samples.stacks {
        let own = stack.iter().position(|place| standard.get(place.0 as usize) == Some(&false));
        stack.drain(..own.unwrap_or(0));
    }
    program
}

fn is_standard_place(program: &Program, place: &Place) -> bool {
    let function = program.functions.get(place.function.0 as usize);
    function.is_some_and(|function| function.origin_at(place.line.as_deref()).is_standard())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_standard_function_s_samples_count_for_the_nearest_own_caller() {
        let text = r#"{"format":"longpole-program","version":1,"threads":[{"name":"T","ops":[["exec",1000]]}],
            "samples":{"rate_hz":499,"places":[{"function":"<u64>::lt","inlined":true},{"function":"hash"},
            {"function":"sort"},{"function":"core::hint::black_box"},{"function":"main"}],
            "stacks":[[0,3,1,4],[0,2,4],[1,4],[3]],"threads":[[[0,0],[0,0],[0,0],[0,1],[0,2],[0,3]]]}}"#;
        let program = crate::program::json::read(text).expect("a program");
        let of = |function: &str, by: &[(&str, f64)]| UsedBy {
            function: function.to_owned(),
            by: by.iter().map(|(name, share)| ((*name).to_owned(), *share)).collect(),
        };
        let expected = [of("<u64>::lt", &[("hash", 0.75), ("sort", 0.25)]), of("core::hint::black_box", &[])];
        assert_eq!(used_by(&program), expected);
        // The innermost standard functions are gone.
        let stacks: Vec<Vec<u32>> = attributed_to_users(program.clone())
            .samples
            .stacks
            .iter()
            .map(|stack| stack.iter().map(|place| place.0).collect())
            .collect();
        assert_eq!(stacks, [&[1, 4][..], &[2, 4], &[1, 4], &[3]]);
    }
}
