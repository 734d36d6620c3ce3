//! The owner of each function: the user's function to which its time is attributed, where a person is to change something. A
//! standard function counts for its caller; a C library, a runtime, or longpole's own library for none.

use super::owners::used_by;
use crate::program::{FunctionRef, ObjectId, Operation, Program, Walk};
use rustc_hash::FxHashMap;

/// For each function of a program: the function that its time counts for.
#[derive(Debug)]
pub struct Owners {
    of: Vec<Option<FunctionRef>>,
}

impl Owners {
    /// The owners, from the program's samples, which show callers.
    pub fn of(program: &Program) -> Owners {
        let numbers: FxHashMap<&str, u32> = (0..)
            .zip(&program.functions)
            .map(|(number, function)| (function.name.as_str(), number))
            .collect();
        let used: FxHashMap<String, Option<FunctionRef>> = used_by(program)
            .into_iter()
            .map(|used| {
                let own = used.by.iter().find_map(|(own, _)| numbers.get(own.as_str()).copied());
                (used.function, own.map(FunctionRef))
            })
            .collect();
        let is_own = |function: FunctionRef| {
            program
                .functions
                .get(function.0 as usize)
                .is_some_and(|function| function.origin.can_be_changed())
        };
        let of = (0..).zip(&program.functions).map(|(number, function)| match used.get(&function.name) {
            Some(own) => own.filter(|own| is_own(*own)),
            None => Some(FunctionRef(number)).filter(|own| is_own(*own)),
        });
        Owners { of: of.collect() }
    }

    /// Owners such that each function counts for itself.
    pub fn themselves(program: &Program) -> Owners {
        let of = (0..).zip(&program.functions).map(|(number, _)| Some(FunctionRef(number)));
        Owners { of: of.collect() }
    }

    /// The function that the time of `function` counts for; `None` if no user can change that function.
    pub(crate) fn owner(&self, function: FunctionRef) -> Option<FunctionRef> {
        self.of.get(function.0 as usize).copied().flatten()
    }

    /// The function that an operation's computing counts for: the innermost one that a user can change.
    pub(crate) fn computing<L: Fn(ObjectId) -> bool>(
        &self,
        walk: &Walk<L>,
        operation: &Operation,
    ) -> Option<FunctionRef> {
        let (own, _) = walk.computed(operation)?;
        let mut outwards = own.into_iter().chain(walk.stack().iter().rev().copied());
        outwards.find_map(|function| self.owner(function))
    }

    /// The functions whose time counts for `function`; `function` itself comes first.
    pub fn owned_by(&self, function: FunctionRef) -> Vec<FunctionRef> {
        let owned = (0..).zip(&self.of).filter(|(_, owner)| **owner == Some(function));
        let others = owned.map(|(number, _)| FunctionRef(number)).filter(|other| *other != function);
        std::iter::once(function).chain(others).collect()
    }
}
